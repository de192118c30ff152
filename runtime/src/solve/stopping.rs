//! Stopping criterion of linear solves, and detection of stagnation at the rounding-error level.
//!
//! The recurrence of a method carries its own residual. It falls below any bound, while the true residual remains at
//! the rounding-error level,
//!
//! ```text
//! ‖b − A x‖ ≈ ε (Σ_ij A_ij² x_j²)^½ = ε ‖A (x ∘ s)‖ on average over random signs s        (noise)
//! ```
//!
//! the root mean square of the effect of one rounding per entry. A norm that a method does not minimise is not
//! monotone: that of CG's residual may grow for thousands of iterations. A solve therefore has not stagnated because
//! its residual has not fallen for a while. It has stagnated if the true residual contradicts the recurrence, again
//! after a restart from it.
//!
//! Squares of a right-hand side far from 1 underflow or overflow. It is therefore scaled by a power of two, without
//! rounding, and the solution is scaled back.

use super::ranges::{at_least_one, tolerances};
use super::{LinearOperator, Observer, OperatorError, Outcome, Preconditioner, Progress, Report};
use crate::algebra::vector::{Precision, Vector, epsilon};
use std::time::Instant;

/// Multiple of the rounding-error level below which a residual is indistinguishable from it,
pub(super) const NEAR: f64 = 4.0;
/// and multiple above which it is certainly larger.
pub(super) const FAR: f64 = 1000.0;
/// Required reduction of a restart from the true residual.
const FALL: f64 = 0.5;
/// Iterations without a new minimum after which the true residual is checked; a method that then reaches its iteration
/// limit counts as stagnated.
pub(super) const PATIENCE: usize = 2000;

/// Stopping criterion: ‖b − A x‖ ≤ max(rtol·‖b‖, atol).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CgSettings {
    /// Relative tolerance.
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
    /// Maximum number of iterations.
    pub max_iterations: usize,
    /// True if the tolerance is mandatory: a residual that rounding keeps above it is [`Outcome::BelowRounding`], not
    /// [`Outcome::Rounding`].
    pub strict: bool,
}

impl Default for CgSettings {
    fn default() -> Self {
        Self { rtol: 1e-10, atol: 0.0, max_iterations: 10_000, strict: false }
    }
}

impl CgSettings {
    /// Checks the ranges of the settings.
    ///
    /// # Errors
    ///
    /// A setting is out of range.
    pub(super) fn check(self) -> Result<(), OperatorError> {
        tolerances(self.rtol, self.atol)?;
        at_least_one("max_iterations", self.max_iterations)
    }

    /// Returns the residual norm of the stopping criterion for ‖b‖ = `scale`.
    pub(super) fn target(self, scale: f64) -> f64 {
        (self.rtol * scale).max(self.atol)
    }
}

/// Stopping criterion of a linear solve.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoppingCriterion {
    /// ‖b‖.
    pub(super) scale: f64,
    /// Requested residual norm.
    pub(super) asked: f64,
    /// True if that norm is mandatory, even below the rounding-error level.
    strict: bool,
    precision: Precision,
}

/// Linear system with preconditioner and stopping criterion.
#[derive(Clone, Copy)]
pub(super) struct LinearSystem<'a> {
    pub(super) a: &'a dyn LinearOperator,
    pub(super) b: &'a Vector,
    pub(super) preconditioner: Preconditioner<'a>,
    pub(super) criterion: StoppingCriterion,
}

impl StoppingCriterion {
    /// Returns the norm of the recurrence residual at which the true one is checked; smaller values are meaningless.
    pub(super) fn claim(self) -> f64 {
        self.asked.max(epsilon(self.precision) * self.scale)
    }

    /// Returns whether the true residual may exceed the claim after this many iterations. Their number bounds the
    /// square root of the condition number, with which rounding error grows.
    pub(super) fn doubtful(self, iterations: usize) -> bool {
        let epsilon = epsilon(self.precision);
        let noise = 1e3 * epsilon * (iterations as f64).powi(2);
        self.claim() < epsilon.sqrt().max(noise) * self.scale
    }

    /// Judges a true residual of norm `norm` at x after the recurrence claimed convergence; `last` was the true
    /// residual at its start. Returns `None` while restarts help, otherwise the outcome.
    pub(super) fn claimed(
        self,
        a: &dyn LinearOperator,
        x: &Vector,
        norm: f64,
        last: f64,
    ) -> Result<Option<Outcome>, OperatorError> {
        let (noise, falls) = (noise(a, x)?, norm <= FALL * last);
        let near = !self.strict && norm <= NEAR * noise;
        Ok(match (falls, norm <= FAR * noise) {
            (true, _) if !near => None,
            (false, false) => Some(Outcome::Stagnated),
            _ => Some(self.met_rounding(norm)),
        })
    }

    /// Judges a true residual without a claim, after iterations without a new minimum.
    pub(super) fn unmoved(
        self,
        a: &dyn LinearOperator,
        x: &Vector,
        norm: f64,
    ) -> Result<Option<Outcome>, OperatorError> {
        Ok((norm <= NEAR * noise(a, x)?).then(|| self.met_rounding(norm)))
    }

    /// Returns the outcome of a residual `norm` at the rounding-error level.
    pub(super) fn met_rounding(self, norm: f64) -> Outcome {
        // The relative error is at least about the relative residual: a quarter of the digits must remain.
        let useless = norm > epsilon(self.precision).sqrt().sqrt() * self.scale;
        if self.strict || useless { Outcome::BelowRounding } else { Outcome::Rounding }
    }

    /// Returns the outcome at the iteration limit, `after` iterations past the smallest residual.
    pub(super) fn limit(self, after: usize) -> Outcome {
        if after >= PATIENCE { Outcome::Stagnated } else { Outcome::IterationLimit }
    }
}

/// Estimates the rounding error of b − A x by the formula of the module documentation.
fn noise(a: &dyn LinearOperator, x: &Vector) -> Result<f64, OperatorError> {
    let (mut turned_x, mut y) = (x.clone(), x.like());
    turned_x.flip_signs();
    a.apply(&turned_x, &mut y)?;
    Ok(epsilon(x.precision()) * y.norm())
}

/// Returns the power of two that divides a right-hand side of this norm; `None` if its squares, and those of its
/// residuals, have full precision anyway.
fn unit(scale: f64, precision: Precision) -> Option<i32> {
    let range = match precision {
        Precision::F64 => 200,
        Precision::F32 => 40,
    };
    // The powers and their inverses must be representable.
    let exponent = scale.log2().floor().clamp(-1000.0, 1000.0) as i32;
    (exponent.abs() > range).then_some(exponent)
}

/// Solves A x = b by a method that receives b, x, the stopping criterion, the observer and the residual history.
pub(super) fn solve(
    solver: &'static str,
    b: &Vector,
    x: &mut Vector,
    settings: CgSettings,
    observe: Observer<'_>,
    method: impl FnOnce(
        &Vector,
        &mut Vector,
        StoppingCriterion,
        Observer<'_>,
        &mut Vec<f64>,
    ) -> Result<Outcome, OperatorError>,
) -> Result<Report, OperatorError> {
    settings.check()?;
    let (start, precision) = (Instant::now(), b.precision());
    let scale = b.norm();
    let target = settings.target(scale);
    let mut history = Vec::new();
    let mut criterion =
        StoppingCriterion { scale, asked: target, strict: settings.strict, precision };
    let outcome = if scale == 0.0 {
        x.fill(0.0);
        history.push(0.0);
        Outcome::Converged
    } else if !scale.is_finite() {
        history.push(scale);
        let numbers = b.to_vec().into_iter().all(f64::is_finite);
        if !b.any(!numbers) { Outcome::Overflow } else { Outcome::NotFinite }
    } else if scale * epsilon(precision).sqrt()
        < least(precision) * (b.entries_in_all() as f64).sqrt()
    {
        history.push(scale);
        Outcome::Underflow
    } else if let Some(exponent) = unit(scale, precision) {
        let (unit, inverse) = (2f64.powi(exponent), 2f64.powi(-exponent));
        let mut own = b.clone();
        own.scale(inverse);
        x.scale(inverse);
        (criterion.scale, criterion.asked) = (scale * inverse, target * inverse);
        let unscaled = &mut |progress: Progress| {
            let (residual, target) = (progress.residual * unit, progress.target * unit);
            observe(Progress { residual, target, ..progress })
        };
        let outcome = method(&own, x, criterion, unscaled, &mut history)?;
        history.iter_mut().for_each(|norm| *norm *= unit);
        let size = x.norm();
        x.scale(unit);
        representable(outcome, size, x.norm())
    } else {
        method(b, x, criterion, observe, &mut history)?
    };
    Ok(Report::ended(solver, start, target, (outcome, history)))
}

/// Creates the report of a solve that failed before its first iteration.
pub(super) fn solve_none(
    solver: &'static str,
    b: &Vector,
    settings: CgSettings,
    outcome: Outcome,
) -> Result<Report, OperatorError> {
    settings.check()?;
    let (start, scale) = (Instant::now(), b.norm());
    Ok(Report::ended(solver, start, settings.target(scale), (outcome, vec![scale])))
}

/// Returns the smallest positive number.
fn least(precision: Precision) -> f64 {
    match precision {
        Precision::F64 => f64::from_bits(1),
        Precision::F32 => f64::from(f32::from_bits(1)),
    }
}

/// Adjusts the outcome for a solution of size `before` that has size `after` in the units of the problem.
fn representable(outcome: Outcome, before: f64, after: f64) -> Outcome {
    match outcome {
        Outcome::Converged | Outcome::Rounding if !after.is_finite() => Outcome::Overflow,
        Outcome::Converged | Outcome::Rounding if after == 0.0 && before > 0.0 => {
            Outcome::Underflow
        }
        outcome => outcome,
    }
}

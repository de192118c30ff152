//! What a linear solve aims at, and what to make of a residual that is not there yet.
//!
//! Two things stand between a tolerance and a residual. The recurrences of a method carry a residual of their own, which
//! falls below any bound while the true one stays where rounding keeps it,
//!
//! ```text
//! ‖b − A x‖ ≈ ε (Σ_ij A_ij² x_j²)^½ = ε ‖A (x ∘ s)‖ on average over random signs s        (noise)
//! ```
//!
//! (entry by entry the squares of what one rounding does to it), and no norm that a method does not minimise falls in every iteration: that of CG's residual may grow for thousands of
//! them. So a solve has not stagnated because its residual has not fallen for a while. It has where its recurrence claims
//! what the true residual denies, again after it began anew from there.
//!
//! The other is the range of numbers: a right-hand side far from 1 has squares that under- or overflow. It is scaled by a
//! power of two first, which changes no digit, and the solution back.

use super::{
    CgSettings, LinearOperator, Observer, OperatorError, Outcome, Preconditioner, Progress, Report,
};
use crate::algebra::vector::{Precision, Vector, epsilon};
use std::time::Instant;

/// Multiples of the noise: a residual this small cannot be told from it,
pub(super) const NEAR: f64 = 4.0;
/// and one that is larger than this is no noise.
pub(super) const FAR: f64 = 1000.0;
/// How much a fresh start from the true residual must take off it, else it is of no use.
const FALL: f64 = 0.5;
/// Iterations without a new smallest residual after which the true one is looked at, and from which on a method that
/// comes to its limit counts as stagnated.
pub(super) const PATIENCE: usize = 2000;

/// What a linear solve aims at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// ‖b‖.
    pub(super) scale: f64,
    /// The norm of the residual that is asked for.
    pub(super) asked: f64,
    /// Whether no more than that will do, even where rounding leaves more.
    strict: bool,
    precision: Precision,
}

/// What is solved by a method, and how well.
#[derive(Clone, Copy)]
pub(super) struct System<'a> {
    pub(super) a: &'a dyn LinearOperator,
    pub(super) b: &'a Vector,
    pub(super) preconditioner: Preconditioner<'a>,
    pub(super) goal: Goal,
}

impl Goal {
    /// The norm of the recurrence's residual at which to look at the true one: below this it says nothing.
    pub(super) fn claim(self) -> f64 {
        self.asked.max(epsilon(self.precision) * self.scale)
    }

    /// Whether the true residual may be larger than the claim after so many iterations: their number is at least that
    /// of the square root of the condition, with which the noise grows.
    pub(super) fn doubtful(self, iterations: usize) -> bool {
        let epsilon = epsilon(self.precision);
        let noise = 1e3 * epsilon * (iterations as f64).powi(2);
        self.claim() < epsilon.sqrt().max(noise) * self.scale
    }

    /// What a true residual of norm `norm` at x says, where the recurrence claims to be there and `last` was the true
    /// residual when it began: nothing as long as fresh starts from it help, else the end.
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

    /// The same where the recurrence claims nothing, but has found no smaller residual for a while.
    pub(super) fn unmoved(
        self,
        a: &dyn LinearOperator,
        x: &Vector,
        norm: f64,
    ) -> Result<Option<Outcome>, OperatorError> {
        Ok((norm <= NEAR * noise(a, x)?).then(|| self.met_rounding(norm)))
    }

    /// The outcome where rounding keeps the residual at `norm`.
    pub(super) fn met_rounding(self, norm: f64) -> Outcome {
        // What the residual is to the load the error is to the solution, or less: a quarter of the digits must be left.
        let useless = norm > epsilon(self.precision).sqrt().sqrt() * self.scale;
        if self.strict || useless { Outcome::BelowRounding } else { Outcome::Rounding }
    }

    /// What it means that the limit of iterations is reached, so many after the smallest residual.
    pub(super) fn limit(self, after: usize) -> Outcome {
        if after >= PATIENCE { Outcome::Stagnated } else { Outcome::IterationLimit }
    }
}

/// What rounding leaves of b − A x, about: see the file's head.
fn noise(a: &dyn LinearOperator, x: &Vector) -> Result<f64, OperatorError> {
    let (mut turned_x, mut y) = (x.clone(), x.like());
    turned_x.turn();
    a.apply(&turned_x, &mut y)?;
    Ok(epsilon(x.precision()) * y.norm())
}

/// The power of two by which a right-hand side of this norm is divided; none where its squares, and those of what
/// a solve leaves of it, are numbers of full precision anyway.
fn unit(scale: f64, precision: Precision) -> Option<i32> {
    let range = match precision {
        Precision::F64 => 200,
        Precision::F32 => 40,
    };
    // The powers themselves and their inverses must be numbers.
    let exponent = scale.log2().floor().clamp(-1000.0, 1000.0) as i32;
    (exponent.abs() > range).then_some(exponent)
}

/// Solves A x = b with a method that gets b, x, what to aim at, and room for the norms of the residual.
pub(super) fn solve(
    solver: &'static str,
    b: &Vector,
    x: &mut Vector,
    settings: CgSettings,
    observe: Observer<'_>,
    method: impl FnOnce(
        &Vector,
        &mut Vector,
        Goal,
        Observer<'_>,
        &mut Vec<f64>,
    ) -> Result<Outcome, OperatorError>,
) -> Result<Report, OperatorError> {
    settings.check()?;
    let (start, precision) = (Instant::now(), b.precision());
    let scale = b.norm();
    let target = settings.target(scale);
    let mut history = Vec::new();
    let mut goal = Goal { scale, asked: target, strict: settings.strict, precision };
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
        (goal.scale, goal.asked) = (scale * inverse, target * inverse);
        let told = &mut |progress: Progress| {
            let (residual, target) = (progress.residual * unit, progress.target * unit);
            observe(Progress { residual, target, ..progress })
        };
        let outcome = method(&own, x, goal, told, &mut history)?;
        history.iter_mut().for_each(|norm| *norm *= unit);
        let size = x.norm();
        x.scale(unit);
        representable(outcome, size, x.norm())
    } else {
        method(b, x, goal, observe, &mut history)?
    };
    Ok(Report::ended(solver, start, target, (outcome, history)))
}

/// The end of a solve that has not begun.
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

/// The smallest number above 0.
fn least(precision: Precision) -> f64 {
    match precision {
        Precision::F64 => f64::from_bits(1),
        Precision::F32 => f64::from(f32::from_bits(1)),
    }
}

/// What becomes of an outcome where a solution of size `before` has the size `after` in the units of the problem.
fn representable(outcome: Outcome, before: f64, after: f64) -> Outcome {
    match outcome {
        Outcome::Converged | Outcome::Rounding if !after.is_finite() => Outcome::Overflow,
        Outcome::Converged | Outcome::Rounding if after == 0.0 && before > 0.0 => {
            Outcome::Underflow
        }
        outcome => outcome,
    }
}

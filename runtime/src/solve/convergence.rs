//! Convergence check: conclusions from a residual below its tolerance for the error of the solution.
//!
//! The tolerance is relative to the initial residual. It is too wide if the initial state is far away, and the largest
//! residual hides the others if fields have different units. The solution u is therefore rejected if for a field f
//!
//! ```text
//! ‖δ_f‖ · ‖R(u + δ)‖ / ‖R(u)‖ > √rtol · ‖u_f‖        the field still changes, or
//! ‖R_f(u + δ)‖ > rtol · s_f                          its equations are not solved,
//! ```
//!
//! with the last step δ and the scale s_f of the field's own equations ([`FieldScales`]). The next step is smaller than
//! δ by about the reduction of the residual, in balanced norms if the solve was balanced. Residuals at the
//! rounding-error level, estimated by [`noise`], are accepted. u_f in the first line contains the free DoFs only, those
//! changed by the step: prescribed values contain no information about the unknown ones.
//!
//! A field that tends to 0 never converges relative to itself. Its equations may be homogeneous in it: R_f(s u_f) = s^m
//! R_f(u_f). Then only the initial state determines its size, and it is compared with its largest norm so far.

use super::scale::{FieldScales, norms};
use super::stopping::FAR;
use super::{FieldDofs, NonlinearSystem, OperatorError, Outcome};
use crate::algebra::vector::{Vector, epsilon};

/// Relative change, in multiples of the bound, below which prescribed values cannot matter.
const SURELY: f64 = 1e-4;
/// Test of homogeneity: a field is scaled by 2 to the power of minus this,
const SMALLER: i32 = 10;
/// up to this many times,
const TIMES: i32 = 10;
/// with this tolerance of the exponent m between the residuals.
const ALIKE: f64 = 1e-6;
/// Ratio of scales from which a field is named in a failure.
const APART: f64 = 1e16;

/// Returns the entries of a vector that a step has changed.
fn moved(u: &Vector, delta: &Vector) -> Vector {
    let mut entries = u.clone();
    entries.mask_by(delta);
    entries
}

/// A completed step.
pub(super) struct CompletedStep<'a> {
    /// R before the step.
    pub(super) before: &'a Vector,
    /// δ.
    pub(super) delta: &'a Vector,
    /// u after the step.
    pub(super) u: &'a Vector,
    /// R after the step.
    pub(super) after: &'a Vector,
    /// Ratio of the residual norms after and before the step, in the norm that the solve has reduced.
    pub(super) reduction: f64,
}

/// Reason for rejecting a solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RejectionReason {
    /// A field still changes.
    Moves,
    /// The equations of a field are not solved.
    Unsolved,
}

/// Convergence check with the history of the fields.
pub(super) struct ConvergenceCheck {
    pub(super) scales: FieldScales,
    rtol: f64,
    /// Largest norm of each field's free DoFs so far.
    sizes: Vec<f64>,
}

impl ConvergenceCheck {
    /// Creates the check from the initial residual.
    pub(super) fn new(system: &dyn NonlinearSystem, rtol: f64, start: &Vector) -> Self {
        let scales = FieldScales::new(system, start);
        let sizes = vec![0.0; scales.fields.len()];
        Self { scales, rtol: rtol.max(epsilon(start.precision())), sizes }
    }

    /// Returns the tolerance of each field's residual, relative to its scale.
    pub(super) fn rtol(&self) -> f64 {
        self.rtol
    }

    /// Checks the solution after a step with a residual within the tolerance; returns the reason of a rejection.
    pub(super) fn of(
        &mut self,
        system: &dyn NonlinearSystem,
        step: &CompletedStep<'_>,
    ) -> Result<Option<RejectionReason>, OperatorError> {
        self.scales.see(&norms(&self.scales.fields, step.before));
        if self.is_unsolved(system, step.u, step.after)? {
            return Ok(Some(RejectionReason::Unsolved));
        }
        Ok(self.is_moving(system, step)?.then_some(RejectionReason::Moves))
    }

    /// Returns whether the equations of a field are not solved at u relative to their own scale; `r` is R(u).
    pub(super) fn is_unsolved(
        &mut self,
        system: &dyn NonlinearSystem,
        u: &Vector,
        r: &Vector,
    ) -> Result<bool, OperatorError> {
        let count = self.scales.fields.len();
        if count == 1 {
            return Ok(false);
        }
        let left = norms(&self.scales.fields, r);
        let unsolved = |scales: &FieldScales, rtol: f64| -> Vec<usize> {
            (0..count).filter(|&f| left[f] > rtol * scales.of(f)).collect()
        };
        if unsolved(&self.scales, self.rtol).is_empty() {
            return Ok(false);
        }
        self.scales.evaluate(system, u, r)?;
        self.are_real(system, (u, r), &left, unsolved(&self.scales, self.rtol))
    }

    /// Returns the final outcome, with each field's residual `r` at u relative to its own scale; `balanced` states that
    /// the solve used balanced equations.
    pub(super) fn settled(
        &mut self,
        system: &dyn NonlinearSystem,
        (u, r): (&Vector, &Vector),
        outcome: Outcome,
        balanced: bool,
    ) -> Result<Outcome, OperatorError> {
        if !outcome.is_success() {
            return Ok(if balanced { self.failed(r, outcome) } else { outcome });
        }
        if !self.is_unsolved(system, u, r)? {
            return Ok(outcome);
        }
        // Closer scales were checked during the solve, where rounding may have ended it.
        Ok(match self.unsolved(r) {
            unsolved @ Outcome::Unsolved { ratio, .. } if ratio >= APART => unsolved,
            _ => outcome,
        })
    }

    /// Returns the outcome of a failed solve with balanced equations.
    fn failed(&self, r: &Vector, outcome: Outcome) -> Outcome {
        let may = outcome.is_hard() || matches!(outcome, Outcome::NotFinite | Outcome::Overflow);
        match self.unsolved(r) {
            unsolved @ Outcome::Unsolved { ratio, .. } if ratio >= APART && may => unsolved,
            _ => outcome,
        }
    }

    /// Names the field with the largest residual relative to its scale, and the ratio of this scale to the largest or
    /// smallest one.
    fn unsolved(&self, r: &Vector) -> Outcome {
        let left = norms(&self.scales.fields, r);
        let scales: Vec<f64> = (0..left.len()).map(|f| self.scales.of(f)).collect();
        let part = |&f: &usize| left[f].log2() - scales[f].log2();
        let worst = (0..left.len()).filter(|f| left[*f] > 0.0);
        let field = worst.max_by(|a, b| part(a).total_cmp(&part(b))).unwrap_or(0);
        let apart = scales.iter().map(|scale| (scale.log2() - scales[field].log2()).abs());
        let apart = apart.filter(|apart| apart.is_finite()).fold(0.0, f64::max);
        Outcome::Unsolved { field, ratio: apart.exp2() }
    }

    /// Returns whether the next step would still change a field.
    fn is_moving(
        &mut self,
        system: &dyn NonlinearSystem,
        step: &CompletedStep<'_>,
    ) -> Result<bool, OperatorError> {
        let CompletedStep { delta, u, after, reduction: ratio, .. } = *step;
        let (fields, part) = (&self.scales.fields, self.rtol.sqrt());
        let (steps, mut sizes) = (norms(fields, delta), norms(fields, u));
        let surely = |(step, size): (&f64, &f64)| step * ratio <= SURELY * part * size;
        if steps.iter().zip(&sizes).all(surely) {
            return Ok(false);
        }
        sizes = norms(fields, &moved(u, delta));
        // Before the step, ‖u‖ was at most the sum of the norms of u and δ.
        let all = self.sizes.iter_mut().zip(sizes.iter().zip(&steps));
        all.for_each(|(most, (size, step))| *most = most.max(size + step));
        let moves = |&f: &usize| sizes[f] > 0.0 && steps[f] * ratio > part * sizes[f];
        let mut moving: Vec<usize> = (0..fields.len()).filter(moves).collect();
        if moving.is_empty() {
            return Ok(false);
        }
        let left = norms(fields, after);
        let mut without_size = Vec::new();
        for &f in moving.iter().filter(|&&f| steps[f] * ratio <= part * self.sizes[f]) {
            if is_homogeneous(system, step, (f, &fields[f]), left[f])? {
                without_size.push(f);
            }
        }
        moving.retain(|f| !without_size.contains(f));
        self.are_real(system, (u, after), &left, moving)
    }

    /// Returns whether the residual of one of some fields exceeds the rounding-error level.
    fn are_real(
        &self,
        system: &dyn NonlinearSystem,
        (u, r): (&Vector, &Vector),
        left: &[f64],
        of: Vec<usize>,
    ) -> Result<bool, OperatorError> {
        if of.is_empty() {
            return Ok(false);
        }
        let noise = norms(&self.scales.fields, &noise(system, u, r)?);
        Ok(of.into_iter().any(|f| left[f] > FAR * noise[f]))
    }
}

/// Returns whether the residual of a field is homogeneous in its free DoFs; `left` is its norm after the step.
fn is_homogeneous(
    system: &dyn NonlinearSystem,
    step: &CompletedStep<'_>,
    (number, field): (usize, &FieldDofs),
    left: f64,
) -> Result<bool, OperatorError> {
    let CompletedStep { delta, u, .. } = *step;
    // The free entries of this field alone.
    let own = moved(u, delta).restricted_to(field.dofs.clone());
    let fields = system.fields();
    let (mut trial, mut r) = (u.like(), u.like());
    let mut power = None;
    for times in 1..=TIMES {
        let exponent = SMALLER * times;
        trial.copy_from(u);
        trial.axpy(-1.0, &own);
        trial.axpy(2f64.powi(-exponent), &own);
        system.residual(&trial, &mut r)?;
        let found = norms(&fields, &r)[number];
        let fall = (left / found).log2() / f64::from(exponent);
        let power = *power.get_or_insert(fall);
        // Underflow after at least one comparison: homogeneous.
        if found == 0.0 && left * 2f64.powf(-power * f64::from(exponent)) < f64::MIN_POSITIVE {
            return Ok(times > 1);
        }
        if !(power > 0.0 && (fall - power).abs() <= ALIKE) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Estimates the rounding error of R(u): ε J(u) (u ∘ s) with random signs s, as a difference quotient with 0 in
/// constrained rows. `r` is R(u).
pub(super) fn noise(
    system: &dyn NonlinearSystem,
    u: &Vector,
    r: &Vector,
) -> Result<Vector, OperatorError> {
    let epsilon = epsilon(u.precision());
    let step = epsilon.sqrt();
    let (mut trial, mut turned, mut difference) = (u.clone(), u.clone(), u.like());
    turned.flip_signs();
    trial.axpy(step, &turned);
    system.residual(&trial, &mut difference)?;
    difference.axpy(-1.0, r);
    difference.scale(epsilon / step);
    Ok(difference)
}

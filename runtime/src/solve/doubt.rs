//! Convergence check: what a residual below its tolerance says of the solution.
//!
//! A tolerance is relative to the residual at the start. That says nothing where the start is far away, so that the
//! tolerance is wide, or where fields have units of their own, so that the largest residual hides the others. So u is in doubt
//! where for a field f
//!
//! ```text
//! ‖δ_f‖ · ‖R(u + δ)‖ / ‖R(u)‖ > √rtol · ‖u_f‖        it is still on its way, or
//! ‖R_f(u + δ)‖ > rtol · s_f                          its equations were not solved,
//! ```
//!
//! with the last step δ, whose successor is about as much smaller as the residual has become, and the scale s_f of the field's own
//! equations ([`Scales`]); unless rounding leaves no less, which [`noise`] estimates. The u_f of the first
//! line are those of free unknowns, which are the ones that a step has changed: values that are prescribed say nothing of
//! what is to be found.
//!
//! A field that tends to 0 never comes to rest relative to itself. Where its equations are homogeneous in it, R_f(s u_f) = s^m R_f(u_f),
//! nothing but the start gives it a size, and it is compared with the largest that it has had.

use super::goal::FAR;
use super::scale::{Scales, norms};
use super::{FieldDofs, NonlinearSystem, OperatorError, Outcome};
use crate::algebra::vector::{Vector, epsilon};

/// Where so much less than what is allowed moves, prescribed values make no difference.
const SURELY: f64 = 1e-4;
/// The powers of two by which a field is made smaller to see whether its equations are homogeneous in it: in steps of this one,
const SMALLER: i32 = 10;
/// so many times,
const TIMES: i32 = 10;
/// with so much of a power between the residuals for each.
const ALIKE: f64 = 1e-6;
/// Scales of fields that are further apart than this are named where a solve fails.
const APART: f64 = 1e16;

/// The entries of a vector that a step has changed.
fn moved(u: &Vector, delta: &Vector) -> Vector {
    let mut entries = u.clone();
    entries.vanish_with(delta);
    entries
}

/// A step that has been taken.
pub(super) struct Step<'a> {
    /// R before it.
    pub(super) before: &'a Vector,
    /// δ.
    pub(super) delta: &'a Vector,
    /// u after it.
    pub(super) u: &'a Vector,
    /// R there.
    pub(super) after: &'a Vector,
}

/// Why a solution is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It is still on its way.
    Moves,
    /// The equations of a field were not solved.
    Unsolved,
}

/// What is known of the fields of a solve.
pub(super) struct Doubt {
    pub(super) scales: Scales,
    rtol: f64,
    /// The largest norm of what is free of each field so far.
    sizes: Vec<f64>,
}

impl Doubt {
    /// Before the first step, with the residual at the start.
    pub(super) fn new(system: &dyn NonlinearSystem, rtol: f64, start: &Vector) -> Self {
        let scales = Scales::new(system, start);
        let sizes = vec![0.0; scales.fields.len()];
        Self { scales, rtol: rtol.max(epsilon(start.precision())), sizes }
    }

    /// The part of its scale that may be left of each field's residual.
    pub(super) fn rtol(&self) -> f64 {
        self.rtol
    }

    /// Whether a solution after this step, whose residual is within the tolerance, is in doubt.
    pub(super) fn of(
        &mut self,
        system: &dyn NonlinearSystem,
        step: &Step<'_>,
    ) -> Result<Option<Reason>, OperatorError> {
        self.scales.see(&norms(&self.scales.fields, step.before));
        if self.is_unsolved(system, step.u, step.after)? {
            return Ok(Some(Reason::Unsolved));
        }
        Ok(self.is_moving(system, step)?.then_some(Reason::Moves))
    }

    /// Whether the equations of a field are not solved at u, where R is `r`, relative to their own scale.
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
        let unsolved = |scales: &Scales, rtol: f64| -> Vec<usize> {
            (0..count).filter(|&f| left[f] > rtol * scales.of(f)).collect()
        };
        if unsolved(&self.scales, self.rtol).is_empty() {
            return Ok(false);
        }
        self.scales.evaluate(system, u, r)?;
        self.are_real(system, (u, r), &left, unsolved(&self.scales, self.rtol))
    }

    /// The outcome with each field's residual `r` at u judged by its own scale; `balanced` where a solve has brought
    /// the equations of all fields to one size.
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
        // Nearer scales were looked at on the way, where rounding may have been the end.
        Ok(match self.unsolved(r) {
            unsolved @ Outcome::Unsolved { ratio, .. } if ratio >= APART => unsolved,
            _ => outcome,
        })
    }

    /// The outcome of a solve that fails with the equations of all fields brought to one size.
    fn failed(&self, r: &Vector, outcome: Outcome) -> Outcome {
        let may = outcome.is_hard() || matches!(outcome, Outcome::NotFinite | Outcome::Overflow);
        match self.unsolved(r) {
            unsolved @ Outcome::Unsolved { ratio, .. } if ratio >= APART && may => unsolved,
            _ => outcome,
        }
    }

    /// The field whose residual is largest relative to its scale, and how far this is from the largest scale, or the least.
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

    /// Whether a step is followed by one that still changes a field.
    fn is_moving(
        &mut self,
        system: &dyn NonlinearSystem,
        step: &Step<'_>,
    ) -> Result<bool, OperatorError> {
        let Step { before, delta, u, after } = *step;
        let (fields, part) = (&self.scales.fields, self.rtol.sqrt());
        let ratio = after.norm() / before.norm();
        let (steps, mut sizes) = (norms(fields, delta), norms(fields, u));
        let surely = |(step, size): (&f64, &f64)| step * ratio <= SURELY * part * size;
        if steps.iter().zip(&sizes).all(surely) {
            return Ok(false);
        }
        sizes = norms(fields, &moved(u, delta));
        // u was no larger before than it is now and δ together.
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

    /// Whether the residual of one of some fields is more than rounding.
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

/// Whether the residual of a field is homogeneous in what is free of it: `left` is its norm after the step.
fn is_homogeneous(
    system: &dyn NonlinearSystem,
    step: &Step<'_>,
    (number, field): (usize, &FieldDofs),
    left: f64,
) -> Result<bool, OperatorError> {
    let Step { delta, u, .. } = *step;
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
        // What underflows has shown enough.
        if found == 0.0 && left * 2f64.powf(-power * f64::from(exponent)) < f64::MIN_POSITIVE {
            return Ok(times > 1);
        }
        if !(power > 0.0 && (fall - power).abs() <= ALIKE) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What rounding leaves of R(u), about: ε J(u) (u ∘ s) with random signs s, as a quotient of differences, in which
/// the rows of constrained unknowns are 0. `r` is R(u).
pub(super) fn noise(
    system: &dyn NonlinearSystem,
    u: &Vector,
    r: &Vector,
) -> Result<Vector, OperatorError> {
    let epsilon = epsilon(u.precision());
    let step = epsilon.sqrt();
    let (mut trial, mut turned, mut difference) = (u.clone(), u.clone(), u.like());
    turned.turn();
    trial.axpy(step, &turned);
    system.residual(&trial, &mut difference)?;
    difference.axpy(-1.0, r);
    difference.scale(epsilon / step);
    Ok(difference)
}

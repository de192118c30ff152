//! Whether a residual that has come below its tolerance says anything of the solution.
//!
//! A tolerance is relative to the residual at the start. That says nothing where the start is far away, so that the
//! tolerance is wide, or where fields have units of their own, so that the largest residual hides the others. Both are
//! seen in the last step, u ← u + δ, whose successor is about as much smaller as the residual has become. So u is in doubt
//! where for a field f
//!
//! ```text
//! ‖δ_f‖ · ‖R(u + δ)‖ / ‖R(u)‖ > √rtol · ‖u_f‖        it is still on its way, or
//! ‖R_f(u + δ)‖ > √rtol · max ‖R_f‖                   its equations were not solved,
//! ```
//!
//! with the maximum over the states before; unless rounding leaves no less, which [`noise`] estimates. The u_f of the first
//! line are those of free unknowns, which are the ones that a step has changed: values that are prescribed say nothing of
//! what is to be found.

use super::goal::FAR;
use super::{NonlinearSystem, OperatorError};
use crate::vector::{Vector, epsilon};
use std::ops::Range;

/// Where so much less than what is allowed moves, prescribed values make no difference.
const SURELY: f64 = 1e-4;

/// The norms of the parts of a vector.
fn parts(fields: &[Range<usize>], vector: &Vector) -> Vec<f64> {
    match fields {
        [_] => vec![vector.norm()],
        _ => norms(fields, vector, &vector.to_vec()),
    }
}

/// Those of entries of a vector like another.
fn norms(fields: &[Range<usize>], like: &Vector, entries: &[f64]) -> Vec<f64> {
    let norm = |part: &Range<usize>| {
        let of = entries.get(part.clone()).unwrap_or_default();
        let largest = of.iter().fold(0.0_f64, |largest, entry| largest.max(entry.abs()));
        let largest = like.largest(largest);
        let square = |range: Range<usize>| {
            let of = entries.get(range).unwrap_or_default();
            of.iter().map(|entry| (entry / largest).powi(2)).sum::<f64>()
        };
        let squares = like.total_of(part.clone(), square);
        if largest > 0.0 { largest * squares.sqrt() } else { largest }
    };
    fields.iter().map(norm).collect()
}

/// The norms of what a step has changed.
fn moved(fields: &[Range<usize>], u: &Vector, delta: &Vector) -> Vec<f64> {
    let mut entries = u.clone();
    entries.vanish_with(delta);
    parts(fields, &entries)
}

/// A step that has been taken.
pub(super) struct Step<'a> {
    /// R before it.
    pub(super) before: &'a Vector,
    /// δ.
    pub(super) delta: &'a Vector,
    /// u behind it.
    pub(super) u: &'a Vector,
    /// R there.
    pub(super) after: &'a Vector,
}

/// What is known of the fields of a solve.
pub(super) struct Doubt {
    fields: Vec<Range<usize>>,
    /// The part of a field that may change yet.
    part: f64,
    /// The largest norm of each field's residual so far.
    largest: Vec<f64>,
}

impl Doubt {
    /// Before the first step, with the residual at the start.
    pub(super) fn new(system: &dyn NonlinearSystem, rtol: f64, start: &Vector) -> Self {
        let fields = system.fields();
        let largest = parts(&fields, start);
        Self { fields, part: rtol.max(epsilon(start.precision())).sqrt(), largest }
    }

    /// Whether a solution behind this step, whose residual is within the tolerance, is in doubt.
    pub(super) fn of(
        &mut self,
        system: &dyn NonlinearSystem,
        step: &Step<'_>,
    ) -> Result<bool, OperatorError> {
        let Step { before, delta, u, after } = *step;
        let left = parts(&self.fields, after);
        let grown = self.largest.iter_mut().zip(parts(&self.fields, before));
        grown.for_each(|(largest, norm)| *largest = largest.max(norm));
        let ratio = after.norm() / before.norm();
        let (steps, mut sizes) = (parts(&self.fields, delta), parts(&self.fields, u));
        let surely = |(step, size): (&f64, &f64)| step * ratio <= SURELY * self.part * size;
        if !steps.iter().zip(&sizes).all(surely) {
            sizes = moved(&self.fields, u, delta);
        }
        let doubtful = |f: usize| {
            let moves = sizes[f] > 0.0 && steps[f] * ratio > self.part * sizes[f];
            let unsolved = self.fields.len() > 1
                && self.largest[f] > 0.0
                && left[f] > self.part * self.largest[f];
            moves || unsolved
        };
        let doubtful: Vec<usize> = (0..self.fields.len()).filter(|&f| doubtful(f)).collect();
        if doubtful.is_empty() {
            return Ok(false);
        }
        let noise = parts(&self.fields, &noise(system, u, after)?);
        Ok(doubtful.into_iter().any(|f| left[f] > FAR * noise[f]))
    }
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

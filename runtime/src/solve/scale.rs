//! Scale of each field's equations: the size of their terms.
//!
//! Fields have their own units, and so have their equations. The residual of a field is meaningful only relative to the
//! terms of its own equations. Their size is
//!
//! ```text
//! s_f = max(‖R_f‖ at every state so far, t_f),      t_f = max over w of ‖R_f(u + ε w ∘ u) − R_f(u)‖ / ε
//! ```
//!
//! with weights w that are constant for each component of each field. The terms of a divergence cancel at the solution,
//! but not with different weights for each component. Hence t_f has the size of ∫ φ ∂_c u_c.
//!
//! Weights D = S / s_f with S² = Σ s_f², rounded to powers of two, make residuals of all fields comparable: ‖D r‖ ≤ τ S
//! implies ‖r_f‖ ≤ τ s_f, up to that rounding.

use super::{FieldDofs, LinearOperator, NonlinearSystem, OperatorError, Preconditioner};
use crate::algebra::vector::{ComplexPairs, Precision, Vector, epsilon, norm};
use crate::support::random::random_entries;
use std::sync::{Mutex, PoisonError};

/// Largest binary exponent of weights in double precision,
const FARTHEST: f64 = 500.0;
/// and in single precision.
const FARTHEST_OF_SINGLE: f64 = 60.0;
/// Number of weight vectors: for a single one, terms might cancel.
const SAMPLES: u64 = 2;

/// Returns the norm of each field's part of a vector.
pub(super) fn norms(fields: &[FieldDofs], vector: &Vector) -> Vec<f64> {
    match fields {
        [_] => vec![vector.norm()],
        _ => fields.iter().map(|own| vector.restricted_to(own.dofs.clone()).norm()).collect(),
    }
}

/// Scales of the fields of a system.
pub(super) struct FieldScales {
    pub(super) fields: Vec<FieldDofs>,
    /// The largest ‖R_f‖ so far.
    largest: Vec<f64>,
    /// t_f at the last evaluation; 0 before.
    terms: Vec<f64>,
    /// Real and imaginary parts, which have one scale.
    complex: Option<ComplexPairs>,
}

impl FieldScales {
    /// Creates the scales from the initial residual.
    pub(super) fn new(system: &dyn NonlinearSystem, start: &Vector) -> Self {
        let fields = system.fields();
        let largest = norms(&fields, start);
        let complex = system.jacobian().complex_pairs().cloned();
        Self { terms: vec![0.0; fields.len()], fields, largest, complex }
    }

    /// Updates the largest residual norms.
    pub(super) fn see(&mut self, residual: &[f64]) {
        let grown = self.largest.iter_mut().zip(residual);
        grown.for_each(|(largest, norm)| *largest = largest.max(*norm));
    }

    /// Returns s_f.
    pub(super) fn of(&self, field: usize) -> f64 {
        self.largest[field].max(self.terms[field])
    }

    /// Returns the scale of a field, the larger one of the two parts of a complex field.
    fn of_both_parts(&self, field: usize) -> f64 {
        let own = &self.fields[field].dofs;
        let pairs = self.complex.iter().flat_map(ComplexPairs::pairs);
        let pair = pairs.into_iter().find(|pair| pair.contains(own));
        let is_part = |other: &usize| {
            *other == field || pair.is_some_and(|pair| pair.contains(&self.fields[*other].dofs))
        };
        let parts = (0..self.fields.len()).filter(is_part);
        parts.map(|part| self.of(part)).fold(0.0, f64::max)
    }

    /// Evaluates the terms at a state; `r` is R(u).
    pub(super) fn evaluate(
        &mut self,
        system: &dyn NonlinearSystem,
        u: &Vector,
        r: &Vector,
    ) -> Result<(), OperatorError> {
        let step = epsilon(u.precision()).sqrt();
        self.terms.fill(0.0);
        for sample in 1..=SAMPLES {
            let (weighted, mut trial, mut difference) =
                (self.weighted(u, sample), u.clone(), u.like());
            trial.axpy(step, &weighted);
            system.residual(&trial, &mut difference)?;
            difference.axpy(-1.0, r);
            let found = norms(&self.fields, &difference);
            let grown = self.terms.iter_mut().zip(found);
            grown.for_each(|(terms, norm)| *terms = terms.max(norm / step));
        }
        // Terms that are not finite are ignored.
        self.terms.iter_mut().filter(|terms| !terms.is_finite()).for_each(|terms| *terms = 0.0);
        Ok(())
    }

    /// Returns w ∘ u, with weights of magnitude ½ to 1 that are equal at all nodes.
    fn weighted(&self, u: &Vector, sample: u64) -> Vector {
        let mut weighted = u.clone();
        for (number, FieldDofs { dofs, components }) in self.fields.iter().enumerate() {
            let seed = sample + SAMPLES * number as u64;
            let entries = random_entries(*components, seed).into_iter();
            let weights: Vec<f64> = entries.map(|w| 0.5 * (w + w.signum())).collect();
            weighted.weigh(dofs.clone(), &weights);
        }
        weighted
    }

    /// Returns D.
    pub(super) fn balance(&self, like: &Vector) -> BalanceWeights {
        let scales: Vec<f64> =
            (0..self.fields.len()).map(|field| self.of_both_parts(field)).collect();
        let all = norm(scales.iter().copied());
        // As a difference: quotients may overflow.
        let exponents: Vec<f64> =
            scales.iter().map(|scale| (all.log2() - scale.log2()).round()).collect();
        let finite = exponents.iter().copied().filter(|exponent| exponent.is_finite());
        let most = match like.precision() {
            Precision::F64 => FARTHEST,
            Precision::F32 => FARTHEST_OF_SINGLE,
        };
        // Weights and their squares must be representable.
        let lift = (finite.fold(0.0, f64::max) - most).clamp(0.0, most);
        let factor = |exponent: f64| {
            let exponent = if exponent.is_finite() { exponent } else { 0.0 };
            (exponent - lift).clamp(-most, most).exp2()
        };
        let factors: Vec<f64> = exponents.into_iter().map(factor).collect();
        let mut ones = like.like();
        ones.fill(1.0);
        let entries = |of: &dyn Fn(f64) -> f64| {
            let mut made = like.like();
            for (FieldDofs { dofs, .. }, &factor) in self.fields.iter().zip(&factors) {
                made.axpy(of(factor), &ones.restricted_to(dofs.clone()));
            }
            made
        };
        let (weights, inverse) = (entries(&|factor| factor), entries(&|factor| 1.0 / factor));
        BalanceWeights { weights, inverse, lift: lift.exp2(), size: all }
    }
}

/// Weights D that balance the equations of all fields.
pub(super) struct BalanceWeights {
    weights: Vector,
    inverse: Vector,
    /// Ratio of D to the stored weights, for scales that are far apart.
    pub(super) lift: f64,
    /// S.
    pub(super) size: f64,
}

impl BalanceWeights {
    /// Returns ‖D r‖.
    pub(super) fn norm(&self, r: &Vector) -> f64 {
        self.of(r).norm() * self.lift
    }

    /// Returns D r / `lift`.
    pub(super) fn of(&self, r: &Vector) -> Vector {
        let mut balanced = r.like();
        balanced.product_of(r, &self.weights);
        balanced
    }

    /// Returns D⁻¹ x · `lift`.
    pub(super) fn inverse_of(&self, x: &Vector) -> Vector {
        let mut balanced = x.like();
        balanced.product_of(x, &self.inverse);
        balanced
    }

    /// Returns D A D / `lift`².
    pub(super) fn operator<'a>(&'a self, a: &'a dyn LinearOperator) -> BalancedOperator<'a> {
        BalancedOperator {
            by: &self.weights,
            of: BalancedObject::Operator(a),
            work: Mutex::default(),
        }
    }

    /// Returns D⁻¹ M⁻¹ D⁻¹ · `lift`².
    pub(super) fn preconditioner<'a>(&'a self, of: Preconditioner<'a>) -> BalancedOperator<'a> {
        BalancedOperator {
            by: &self.inverse,
            of: BalancedObject::Preconditioner(of),
            work: Mutex::default(),
        }
    }
}

/// A balanced operator or preconditioner.
enum BalancedObject<'a> {
    Operator(&'a dyn LinearOperator),
    Preconditioner(Preconditioner<'a>),
}

/// An operator with diagonal scaling on both sides.
pub(super) struct BalancedOperator<'a> {
    by: &'a Vector,
    of: BalancedObject<'a>,
    work: Mutex<Option<Vector>>,
}

impl LinearOperator for BalancedOperator<'_> {
    fn size(&self) -> usize {
        self.by.len()
    }

    fn complex_pairs(&self) -> Option<&ComplexPairs> {
        match &self.of {
            BalancedObject::Operator(a) => a.complex_pairs(),
            BalancedObject::Preconditioner(_) => None,
        }
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let work = work.get_or_insert_with(|| x.like());
        work.product_of(x, self.by);
        match &self.of {
            BalancedObject::Operator(a) => a.apply(work, y)?,
            BalancedObject::Preconditioner(of) => of.apply(work, y)?,
        }
        y.multiply(self.by);
        Ok(())
    }
}

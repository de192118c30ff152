//! Operators with conditions on combinations of degrees of freedom: oblique conditions ([`super::oblique`]) and affine
//! constraints ([`super::affine`]). Kernels are unaware of them; vectors are pre- and post-processed.

use super::engine::{AffineTreatment, ConstrainedRows, ObliqueTreatment};
use super::{Operator, affine};
use crate::algebra::coupling::Coupling;
use crate::algebra::vector::Vector;
use crate::device::DeviceError;
use crate::solve::{LinearOperator, OperatorError};
use crate::space::constraint::affine::AffineConstraints;
use crate::space::discretisation::Discretisation;
use kernels_gen::plan::Task;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Data of oblique conditions ([`super::oblique`]) and affine constraints ([`super::affine`]).
pub(super) struct CombinedConditions {
    pub(super) is_oblique: bool,
    pub(super) is_affine: bool,
    /// D of oblique conditions at the last linearisation.
    pub(super) diagonal: Option<Vector>,
    /// Work vector that satisfies the conditions.
    pub(super) held: Mutex<Vector>,
    /// Pattern of the columns that the diagonal needs with affine constraints.
    pub(super) columns: OnceLock<Coupling>,
}

/// An operator without its affine constraints.
pub(super) struct UnconstrainedOperator<'a>(pub(super) &'a Operator);

impl LinearOperator for UnconstrainedOperator<'_> {
    fn size(&self) -> usize {
        self.0.n()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.0.act(x, ConstrainedRows::Identity(x), y)
    }
}

impl Operator {
    pub(super) fn combine(&self) -> Option<CombinedConditions> {
        let (is_oblique, is_affine) = (self.engine.is_oblique(), !self.blocks.on.affine.is_empty());
        (is_oblique || is_affine).then(|| CombinedConditions {
            is_oblique,
            is_affine,
            diagonal: is_oblique.then(|| self.vector()),
            held: Mutex::new(self.vector()),
            columns: OnceLock::new(),
        })
    }

    /// Replaces the affine constraints. Dependent degrees of freedom remain in vectors, but their values in states and
    /// directions are ignored. Returns the constrained discretisation.
    ///
    /// # Errors
    ///
    /// A device failure.
    pub fn constrain(
        &mut self,
        affine: AffineConstraints,
    ) -> Result<Arc<Discretisation>, DeviceError> {
        self.engine.constrain(&affine)?;
        let affine = Arc::new(affine);
        self.blocks.on = Arc::new(Discretisation { affine, ..(*self.blocks.on).clone() });
        self.combined = self.combine();
        self.constants = self.find_constants();
        Ok(Arc::clone(&self.blocks.on))
    }

    /// Applies the conditions to a copy of x, a state if `values` is true, otherwise a direction.
    pub(super) fn held<'a>(
        &self,
        combined: &'a CombinedConditions,
        x: &Vector,
        values: bool,
    ) -> Result<MutexGuard<'a, Vector>, OperatorError> {
        self.fits(x)?;
        let mut held = combined.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.copy_from(x);
        if combined.is_oblique && !values {
            self.engine.hold(ObliqueTreatment::Homogeneous, &mut held)?;
        }
        if combined.is_affine {
            let what = if values { AffineTreatment::Values } else { AffineTreatment::Direction };
            self.engine.close(what, &mut held)?;
        }
        Ok(held)
    }

    /// Computes the diagonal with all conditions.
    pub(super) fn closed_diagonal(
        &self,
        combined: &CombinedConditions,
        diagonal: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.pass(Task::Diagonal, self.linearised(), ConstrainedRows::One, diagonal)?;
        if combined.is_affine {
            let on = &self.blocks.on;
            let columns = combined.columns.get_or_init(|| affine::columns(on, self.symmetric));
            let columns = columns.matrix(&UnconstrainedOperator(self), diagonal)?;
            let mut entries = diagonal.to_vec();
            affine::close_diagonal(&on.affine, &columns, self.symmetric, &mut entries);
            diagonal.set(&entries);
        }
        if combined.is_oblique {
            self.engine.hold(ObliqueTreatment::Even, diagonal)?;
        }
        Ok(())
    }

    /// Sets the constrained degrees of freedom of a rate to these values, in the order of [`Self::set_conditions`];
    /// they replace the values of the conditions. Dependent degrees of freedom follow, without the constants of their
    /// constraints.
    ///
    /// # Errors
    ///
    /// A device failure, a vector of another device.
    pub fn impose_rate(&mut self, values: &[f64], rate: &mut Vector) -> Result<(), OperatorError> {
        self.fits(rate)?;
        self.engine.set_conditions(values)?;
        self.engine.impose(rate)?;
        if !self.blocks.on.affine.is_empty() {
            let mut constants = rate.like();
            self.engine.close(AffineTreatment::Values, &mut constants)?;
            self.engine.close(AffineTreatment::Values, rate)?;
            rate.axpy(-1.0, &constants);
        }
        rate.agree();
        Ok(())
    }
}

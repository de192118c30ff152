//! Operators with conditions on combinations of degrees of freedom: oblique conditions ([`super::constraints`]) and affine
//! constraints. Kernels are unaware of them; vectors are pre- and post-processed.

use super::Operator;
use super::constraints::{ConstrainedRows, affine};
use crate::algebra::coupling::Coupling;
use crate::algebra::vector::Vector;
use crate::device::DeviceError;
use crate::solve::{LinearOperator, OperatorError};
use crate::space::constraint::affine::AffineConstraints;
use crate::space::discretisation::Discretisation;
use kernels_gen::plan::Task;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Data of oblique conditions and affine constraints.
pub(super) struct CombinedConditions {
    /// D of oblique conditions at the last linearisation.
    pub(super) diagonal: Option<Vector>,
    /// Work vector that satisfies the conditions.
    copy: Mutex<Vector>,
    /// Pattern of the columns that the diagonal needs with affine constraints.
    pub(super) columns: OnceLock<Coupling>,
}

/// Kind of a vector, which determines the conditions that it satisfies.
#[derive(Clone, Copy)]
pub(super) enum VectorKind {
    /// A state, with the values of affine constraints.
    State,
    /// A direction, with homogeneous conditions.
    Direction,
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
        let is_oblique = self.engine.constraints().is_oblique();
        (is_oblique || !self.blocks.on.affine.is_empty()).then(|| CombinedConditions {
            diagonal: is_oblique.then(|| self.vector()),
            copy: Mutex::new(self.vector()),
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
        self.engine.constraints_mut().set_affine(&affine)?;
        let affine = Arc::new(affine);
        self.blocks.on = Arc::new(Discretisation { affine, ..(*self.blocks.on).clone() });
        self.combined = self.combine();
        self.constants = self.find_constants();
        Ok(Arc::clone(&self.blocks.on))
    }

    /// Applies the conditions to a copy of x.
    pub(super) fn constrained_copy<'a>(
        &self,
        combined: &'a CombinedConditions,
        x: &Vector,
        kind: VectorKind,
    ) -> Result<MutexGuard<'a, Vector>, OperatorError> {
        self.fits(x)?;
        let mut copy = combined.copy.lock().unwrap_or_else(PoisonError::into_inner);
        copy.copy_from(x);
        match kind {
            VectorKind::State => self.engine.constraints().distribute(&mut copy)?,
            VectorKind::Direction => self.engine.constraints().homogenise(&mut copy)?,
        }
        Ok(copy)
    }

    /// Computes the diagonal with all conditions.
    pub(super) fn condensed_diagonal(
        &self,
        combined: &CombinedConditions,
        diagonal: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.pass(Task::Diagonal, self.linearised(), ConstrainedRows::One, diagonal)?;
        if !self.blocks.on.affine.is_empty() {
            let on = &self.blocks.on;
            let columns = combined.columns.get_or_init(|| affine::columns(on, self.symmetric));
            let columns = columns.matrix(&UnconstrainedOperator(self), diagonal)?;
            let mut entries = diagonal.to_vec();
            affine::condense_diagonal(&on.affine, &columns, self.symmetric, &mut entries);
            diagonal.set(&entries);
        }
        if self.engine.constraints().is_oblique() {
            self.engine.constraints().average(diagonal)?;
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
        self.engine.constraints_mut().set_values(values)?;
        self.engine.constraints().impose(rate)?;
        if !self.blocks.on.affine.is_empty() {
            let mut constants = rate.like();
            self.engine.constraints().distribute(&mut constants)?;
            self.engine.constraints().distribute(rate)?;
            rate.axpy(-1.0, &constants);
        }
        rate.synchronise();
        Ok(())
    }
}

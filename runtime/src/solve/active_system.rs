//! A system whose degrees of freedom in an active set keep their values: J becomes P J P + I − P, with P the projection
//! onto the others.
//!
//! Bounds change the active set from solve to solve. The kernels, their tables and the conditions stay as they are.

use super::{
    Approximation, LinearOperator, MultigridStatistics, NonlinearSystem, OperatorError, Wrapper,
};
use crate::algebra::sparse::Csc;
use crate::algebra::vector::Vector;
use crate::device::DeviceError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The diagonals of P and I − P, with a work vector.
pub(crate) struct ActiveMask {
    free: Vector,
    active: Vector,
    work: Mutex<Vector>,
}

impl ActiveMask {
    /// Creates the mask of an active set, given by 1 in its degrees of freedom and 0 in others.
    pub(crate) fn new(active: Vector) -> Self {
        let mut free = active.like();
        free.fill(1.0);
        free.axpy(-1.0, &active);
        let work = Mutex::new(active.like());
        Self { free, active, work }
    }

    fn work(&self) -> MutexGuard<'_, Vector> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Computes r = P r.
    pub(crate) fn free(&self, r: &mut Vector) {
        r.multiply(&self.free);
    }

    /// Computes y = P `apply`(P x) + (I − P) x.
    fn around(
        &self,
        x: &Vector,
        y: &mut Vector,
        apply: impl FnOnce(&Vector, &mut Vector) -> Result<(), OperatorError>,
    ) -> Result<(), OperatorError> {
        let mut work = self.work();
        work.copy_from(x);
        work.multiply(&self.free);
        apply(&work, y)?;
        y.multiply(&self.free);
        work.copy_from(x);
        work.multiply(&self.active);
        y.axpy(1.0, &work);
        Ok(())
    }
}

/// A system with an active set.
pub(crate) struct ActiveSystem<'a> {
    pub(crate) system: &'a mut dyn NonlinearSystem,
    pub(crate) mask: Arc<ActiveMask>,
}

impl Wrapper for ActiveSystem<'_> {
    fn inner(&self) -> &dyn NonlinearSystem {
        self.system
    }

    fn inner_mut(&mut self) -> &mut dyn NonlinearSystem {
        self.system
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        self.system.residual(u, r)?;
        self.mask.free(r);
        Ok(())
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        self
    }

    fn same_jacobian(&self) -> bool {
        false
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        self.system.diagonal(diagonal)?;
        self.mask.free(diagonal);
        diagonal.axpy(1.0, &self.mask.active);
        Ok(())
    }
}

impl LinearOperator for ActiveSystem<'_> {
    fn size(&self) -> usize {
        self.system.size()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.mask.around(x, y, |x, y| self.system.jacobian().apply(x, y))
    }

    fn apply_sparse(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.mask.around(x, y, |x, y| self.system.jacobian().apply_sparse(x, y))
    }

    fn matrix(&self) -> Result<Option<Csc>, OperatorError> {
        let Some(Csc { starts, rows, values }) = self.system.jacobian().matrix()? else {
            return Ok(None);
        };
        let active: Vec<bool> = self.mask.active.to_vec().iter().map(|one| *one != 0.0).collect();
        let n = active.len();
        let mut own = Csc { starts: vec![0], rows: Vec::new(), values: Vec::new() };
        for column in 0..n {
            if active[column] {
                own.rows.push(column as u32);
                own.values.push(1.0);
            } else {
                let range = starts[column]..starts[column + 1];
                let entries = rows[range.clone()].iter().zip(&values[range]);
                for (&row, &value) in entries.filter(|(row, _)| !active[**row as usize]) {
                    own.rows.push(row);
                    own.values.push(value);
                }
            }
            own.starts.push(own.rows.len());
        }
        Ok(Some(own))
    }
}

/// The approximate inverse of a system with an active set, from that of the system without it.
pub(crate) struct ActiveApproximation {
    pub(crate) inner: Box<dyn Approximation>,
    /// The mask of the current active set.
    pub(crate) mask: Arc<Mutex<Arc<ActiveMask>>>,
}

impl ActiveApproximation {
    fn mask(&self) -> Arc<ActiveMask> {
        Arc::clone(&self.mask.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Approximation for ActiveApproximation {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn take_state(
        &mut self,
        system: &dyn NonlinearSystem,
        u: &Vector,
    ) -> Result<Result<(), String>, OperatorError> {
        self.inner.take_state(system, u)
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.inner.set_params(params)
    }

    fn apply_inverse(
        &self,
        j: &dyn LinearOperator,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.mask().around(r, z, |r, z| self.inner.apply_inverse(j, r, z))
    }

    fn apply_unsymmetric_inverse(
        &self,
        j: &dyn LinearOperator,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.mask().around(r, z, |r, z| self.inner.apply_unsymmetric_inverse(j, r, z))
    }

    fn figures(&self) -> Vec<MultigridStatistics> {
        self.inner.figures()
    }
}

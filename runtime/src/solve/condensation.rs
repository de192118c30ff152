//! Static condensation of degrees of freedom that are coupled among themselves only inside a cell.
//!
//! ```text
//! [A B; C D] [u; s] = [f; g]     S u = f − B D⁻¹ g,   S = A − B D⁻¹ C,   s = D⁻¹ (g − C u)
//! ```
//!
//! D has one block per cell, [inverted](BlockInverse). S is applied by two products with the Jacobian. One suffices if no
//! other equation contains s (B = 0): then S equals A. Vectors keep all entries; in the condensed system those of s are
//! 0, with identity rows.

use super::local_dofs::{BlockInverse, LocalDofs};
use super::{LinearOperator, NonlinearSystem, OperatorError, Wrapper};
use crate::algebra::coupling::Coupling;
use crate::algebra::linear::{Multiply, SPARSE, WHOLE};
use crate::algebra::vector::Vector;
use std::sync::Arc;

/// S, with identity rows for s.
struct SchurComplement<'a> {
    jacobian: &'a dyn LinearOperator,
    local: &'a LocalDofs,
    inverse: &'a BlockInverse,
    multiply: Multiply,
}

impl SchurComplement<'_> {
    /// Computes y −= B D⁻¹ r in all other rows.
    fn subtract_local(&self, r: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let (mut z, mut product) = (r.like(), r.like());
        self.inverse.apply(self.local, r, &mut z);
        (self.multiply)(self.jacobian, &z, &mut product)?;
        y.axpy(-1.0, &product);
        Ok(())
    }

    /// Computes y = S x.
    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let others = &self.inverse.others;
        let mut own = x.clone();
        own.multiply(others);
        (self.multiply)(self.jacobian, &own, y)?;
        if self.local.is_read {
            let r = y.clone();
            self.subtract_local(&r, y)?;
        }
        y.multiply(others);
        y.axpy(1.0, x);
        y.axpy(-1.0, &own);
        Ok(())
    }
}

/// The condensed system at the last linearisation.
pub(super) struct CondensedSystem<'a> {
    system: &'a mut dyn NonlinearSystem,
    local: Arc<LocalDofs>,
    inverse: &'a BlockInverse,
}

impl<'a> CondensedSystem<'a> {
    pub(super) fn new(
        system: &'a mut dyn NonlinearSystem,
        local: Arc<LocalDofs>,
        inverse: &'a BlockInverse,
    ) -> Self {
        Self { system, local, inverse }
    }

    fn schur(&self, multiply: Multiply) -> SchurComplement<'_> {
        let jacobian = self.system.jacobian();
        SchurComplement { jacobian, local: &self.local, inverse: self.inverse, multiply }
    }

    /// Returns f − B D⁻¹ g, with 0 in the rows of s.
    pub(super) fn load(&self, rhs: &Vector) -> Result<Vector, OperatorError> {
        let mut load = rhs.clone();
        if self.local.is_read {
            self.schur(WHOLE).subtract_local(rhs, &mut load)?;
        }
        load.multiply(&self.inverse.others);
        Ok(load)
    }

    /// Adds s = D⁻¹ (g − C u) to a solution u.
    pub(super) fn complete(&self, rhs: &Vector, u: &mut Vector) -> Result<(), OperatorError> {
        u.multiply(&self.inverse.others);
        let (mut left, mut s) = (u.like(), u.like());
        self.system.jacobian().apply(u, &mut left)?;
        left.axpby(1.0, rhs, -1.0);
        self.inverse.apply(&self.local, &left, &mut s);
        u.axpy(1.0, &s);
        Ok(())
    }
}

impl LinearOperator for CondensedSystem<'_> {
    fn size(&self) -> usize {
        self.system.size()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.schur(WHOLE).apply(x, y)
    }

    /// Applies the sparse part of S: the vectors in the projections of A are 0 in s.
    fn apply_sparse(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.schur(SPARSE).apply(x, y)
    }
}

impl Wrapper for CondensedSystem<'_> {
    fn inner(&self) -> &dyn NonlinearSystem {
        self.system
    }

    fn inner_mut(&mut self) -> &mut dyn NonlinearSystem {
        self.system
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        self
    }

    /// Approximates the diagonal of S by that of A.
    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        self.system.diagonal(diagonal)?;
        diagonal.multiply(&self.inverse.others);
        let mut ones = diagonal.like();
        ones.fill(1.0);
        diagonal.axpy(1.0, &ones);
        diagonal.axpy(-1.0, &self.inverse.others);
        Ok(())
    }

    fn symmetric(&self) -> bool {
        self.local.symmetric
    }

    fn local(&self) -> Option<Arc<LocalDofs>> {
        None
    }

    fn coupling(&self) -> Option<Coupling> {
        self.system.coupling().map(|coupling| coupling.without(&self.local.dofs))
    }
}

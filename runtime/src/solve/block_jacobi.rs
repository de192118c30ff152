//! Block Jacobi: J⁻¹ is approximated by the inverse of its diagonal blocks, one for the degrees of freedom of each cell.
//!
//! On processors the blocks are factorised. On a device their inverses are the rows of a sparse matrix there.

use super::local_dofs::{BlockInverse, LocalDofs};
use super::{Approximation, LinearOperator, NonlinearSystem, OperatorError};
use crate::algebra::sparse::Csr;
use crate::algebra::vector::Vector;

/// A matrix in the memory of a device.
pub(super) type RemoteMatrix = Box<dyn LinearOperator + Send + Sync>;

/// Copies a matrix to the device of a vector; `None` for vectors on the host, or without memory for it.
pub type MatrixCopy = fn(&Csr, &Vector) -> Result<Option<RemoteMatrix>, OperatorError>;

/// The preconditioner of discontinuous fields whose cells are coupled by facets.
pub struct BlockJacobi {
    blocks: LocalDofs,
    copy: MatrixCopy,
    inverse: Option<Inverse>,
}

/// The inverse of all blocks.
enum Inverse {
    /// On processors.
    Factors(BlockInverse),
    /// On a device.
    Matrix(RemoteMatrix),
}

impl BlockJacobi {
    /// Creates the preconditioner with these blocks, which need a state; `copy` copies their inverses to a device.
    pub fn new(blocks: LocalDofs, copy: MatrixCopy) -> Self {
        Self { blocks, copy, inverse: None }
    }

    /// Returns the factors, or their inverses on the device of a vector.
    fn placed(&self, factors: BlockInverse, u: &Vector) -> Result<Inverse, OperatorError> {
        let matrix = match u.array() {
            Some(_) => (self.copy)(&factors.matrix(&self.blocks, u.len()), u)?,
            None => None,
        };
        Ok(matrix.map_or(Inverse::Factors(factors), Inverse::Matrix))
    }
}

impl Approximation for BlockJacobi {
    fn name(&self) -> &'static str {
        "block Jacobi"
    }

    fn take_state(
        &mut self,
        system: &dyn NonlinearSystem,
        u: &Vector,
    ) -> Result<Result<(), String>, OperatorError> {
        let factors = self.blocks.invert(system.jacobian(), u)?;
        self.inverse = factors.map(|factors| self.placed(factors, u)).transpose()?;
        Ok(match self.inverse {
            Some(_) => Ok(()),
            None => Err("the block of a cell is singular".to_owned()),
        })
    }

    fn apply_inverse(
        &self,
        _: &dyn LinearOperator,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError> {
        match &self.inverse {
            Some(Inverse::Factors(factors)) => factors.apply(&self.blocks, r, z),
            Some(Inverse::Matrix(matrix)) => matrix.apply(r, z)?,
            None => return Err(OperatorError::new("block Jacobi needs a state")),
        }
        z.synchronise();
        Ok(())
    }
}

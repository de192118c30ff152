//! Block Jacobi: J⁻¹ is approximated by the inverse of its diagonal blocks, one for the degrees of freedom of each cell.

use super::local_dofs::{BlockInverse, LocalDofs};
use super::{Approximation, LinearOperator, NonlinearSystem, OperatorError};
use crate::algebra::vector::Vector;

/// The preconditioner of discontinuous fields whose cells are coupled by facets.
pub struct BlockJacobi {
    blocks: LocalDofs,
    inverse: Option<BlockInverse>,
}

impl BlockJacobi {
    /// Creates the preconditioner with these blocks, which need a state.
    pub fn new(blocks: LocalDofs) -> Self {
        Self { blocks, inverse: None }
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
        self.inverse = self.blocks.invert(system.jacobian(), u)?;
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
            Some(inverse) => inverse.apply(&self.blocks, r, z),
            None => return Err(OperatorError::new("block Jacobi needs a state")),
        }
        z.synchronise();
        Ok(())
    }
}

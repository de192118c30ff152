//! Increments of an operator's state: 0 in constrained degrees of freedom.

use super::Operator;
use crate::algebra::linear::OperatorError;
use crate::algebra::vector::Vector;

impl Operator {
    /// Subtracts the values of the conditions from a vector, so that it is 0 in constrained degrees of freedom.
    ///
    /// # Errors
    ///
    /// As for [`Operator::impose`].
    pub(crate) fn without_conditions(&self, mut x: Vector) -> Result<Vector, OperatorError> {
        let mut given = self.zeros();
        self.impose(&mut given)?;
        self.impose(&mut x)?;
        x.axpy(-1.0, &given);
        Ok(x)
    }

    /// Returns a random increment.
    ///
    /// # Errors
    ///
    /// As for [`Operator::impose`].
    pub(crate) fn random_direction(&self, seed: u64) -> Result<Vector, OperatorError> {
        let mut x = self.zeros();
        x.randomise(self.blocks.on.seed(seed));
        x.synchronise();
        self.without_conditions(x)
    }
}

//! Transfer kernels between a space and a finer one, [`Task::Prolong`] and [`Task::Restrict`], as operations of an
//! operator.
//!
//! The operator's own vectors belong to the coarser space; those of the finer one belong to another operator, addressed
//! by [`Targets`](crate::space::discretisation::TransferTargets).

use super::Operator;
use super::blocks::PassInputs;
use super::constraints::ConstrainedRows;
use crate::algebra::vector::Vector;
use crate::processes::interface_exchange::InterfaceExchange;
use crate::solve::OperatorError;
use kernels_gen::plan::Task;
use std::sync::Arc;

impl Operator {
    /// Computes fine += P coarse for a coarse vector that is 0 in constrained degrees of freedom, as corrections are.
    /// `naming` synchronises interface degrees of freedom if their owner is not the lowest
    /// rank.
    ///
    /// # Errors
    ///
    /// Vectors of other spaces, a device failure.
    pub fn prolong(
        &self,
        coarse: &Vector,
        fine: &mut Vector,
        naming: Option<&Arc<InterfaceExchange>>,
    ) -> Result<(), OperatorError> {
        self.holds(coarse)?;
        self.is_finer(fine)?;
        let inputs = PassInputs { direction: Some(coarse), ..PassInputs::default() };
        self.engine.prolong(self.blocks.pass(Task::Prolong, inputs), fine)?;
        // Exactly one process has written each degree of freedom.
        match naming {
            Some(naming) => fine.synchronise_with(naming),
            None => fine.synchronise(),
        }
        Ok(())
    }

    /// Computes coarse = Pᵀ fine, with 0 in the rows of constrained degrees of freedom.
    ///
    /// # Errors
    ///
    /// As for [`Operator::prolong`].
    pub fn restrict(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError> {
        self.holds(coarse)?;
        self.is_finer(fine)?;
        let inputs = PassInputs { fine: Some(fine), ..PassInputs::default() };
        self.engine.sum(self.blocks.pass(Task::Restrict, inputs), ConstrainedRows::Zero, coarse)
    }

    /// Checks that a vector belongs to the coarser space, of this operator or of one with the same layout.
    fn holds(&self, vector: &Vector) -> Result<(), OperatorError> {
        let other = vector.array().map(|(arithmetic, _)| arithmetic);
        let alike = match (other, self.arithmetic()) {
            (Some(other), Some(own)) => {
                Arc::ptr_eq(other.device(), own.device())
                    && own.layout().begins_as(other.layout())
                    && other.layout().begins_as(own.layout())
            }
            (other, own) => other.is_none() && own.is_none(),
        };
        let own = (self.n(), self.precision());
        match alike && (vector.len(), vector.precision()) == own {
            true => Ok(()),
            false => Err(OperatorError::new("a vector of the coarser space does not fit")),
        }
    }

    fn is_finer(&self, vector: &Vector) -> Result<(), OperatorError> {
        let expected = self.blocks.on.targets.as_ref().map(|targets| targets.len);
        let len = vector.array().map_or(vector.len(), |(_, array)| array.len());
        let same = vector.array().is_some() == self.is_on_device();
        match same && expected == Some(len) && vector.precision() == self.precision() {
            true => Ok(()),
            false => Err(OperatorError::new("a vector of the finer space does not fit")),
        }
    }
}

//! Compatibility checks of vectors and operators.

use super::Operator;
use crate::algebra::linear::OperatorError;
use crate::algebra::vector::Vector;
use std::sync::Arc;

impl Operator {
    /// Checks that a vector belongs to this operator.
    ///
    /// # Errors
    ///
    /// A vector of another length, precision, location or system.
    pub fn fits(&self, vector: &Vector) -> Result<(), OperatorError> {
        let (len, precision) = (vector.len(), crate::algebra::vector::name(vector.precision()));
        let other = vector.array().map(|(arithmetic, _)| arithmetic);
        let is_local = match (other, self.arithmetic()) {
            (Some(other), Some(own)) => Arc::ptr_eq(other, own),
            (other, own) => other.is_none() && own.is_none(),
        };
        if is_local && len == self.n() && vector.precision() == self.precision() {
            return self.numbered_alike(vector);
        }
        let n = self.n();
        Err(OperatorError::new(match self.arithmetic() {
            None => format!(
                "a vector of {len} entries in {precision}{} does not fit an operator of {n} unknowns in {}",
                if is_local { "" } else { " on a device" },
                crate::algebra::vector::name(self.precision()),
            ),
            Some(own) => format!(
                "a vector of {len} entries {} does not fit an operator of {n} unknowns on {}",
                if is_local { "there" } else { "of another system, or elsewhere," },
                own.device().name(),
            ),
        }))
    }

    /// Checks that the entries of a vector have the same numbering, if it is known.
    fn numbered_alike(&self, vector: &Vector) -> Result<(), OperatorError> {
        match vector.numbering() {
            Some(other) if other != self.numbering() => Err(OperatorError::new(
                "a vector of a system on another mesh or in other spaces does not fit: its entries belong to other nodes\n\
                 help: take one that this system makes, by `vector`, `initial` or `interpolate`",
            )),
            _ => Ok(()),
        }
    }
}

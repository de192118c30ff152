//! Time derivatives of the state as vectors: what conditions say of them.

use super::engine::Affine;
use super::{Operator, OperatorError};
use crate::vector::Vector;

impl Operator {
    /// Gives the constrained unknowns of a rate these values, in the order of [`Self::set_conditions`]; they replace those of the
    /// conditions. Unknowns that others give follow, without the constants of their constraints.
    ///
    /// # Errors
    ///
    /// A device that fails, a vector of another place.
    pub fn impose_rate(&mut self, values: &[f64], rate: &mut Vector) -> Result<(), OperatorError> {
        self.fits(rate)?;
        self.engine.set_conditions(values)?;
        self.engine.impose(rate)?;
        if !self.blocks.on.affine.is_empty() {
            let mut constants = rate.like();
            self.engine.close(Affine::Values, &mut constants)?;
            self.engine.close(Affine::Values, rate)?;
            rate.axpy(-1.0, &constants);
        }
        rate.agree();
        Ok(())
    }
}

//! Stubs of builds without the feature `direct`.

use super::FactorError;
use crate::algebra::sparse::Csc;
use std::convert::Infallible;

/// A factorised matrix; never constructed.
pub struct Factors(Infallible);

/// Data reused between matrices: none.
#[derive(Default)]
pub struct SymbolicAnalysis;

impl SymbolicAnalysis {
    /// Returns an error.
    ///
    /// # Errors
    ///
    /// Always, [`FactorError::Absent`].
    pub fn factorise(&mut self, _: &Csc, _: bool) -> Result<Factors, FactorError> {
        Err(FactorError::Absent)
    }

    /// Returns an error.
    ///
    /// # Errors
    ///
    /// Always, [`FactorError::Absent`].
    pub fn definite(&mut self, _: &Csc) -> Result<Option<Factors>, FactorError> {
        Err(FactorError::Absent)
    }
}

impl Factors {
    /// Returns the kind of factorisation.
    pub fn word(&self) -> &'static str {
        match self.0 {}
    }

    /// Returns the number of degrees of freedom.
    pub fn unknowns(&self) -> usize {
        match self.0 {}
    }

    /// Returns whether the matrix is positive definite, well above the rounding-error level.
    pub fn is_definite(&self) -> bool {
        match self.0 {}
    }

    /// Computes x = A⁻¹ x.
    pub fn solve(&self, _: &mut [f64]) {
        match self.0 {}
    }
}

//! A build without the feature `direct`: no matrix has factors.

use super::FactorError;
use crate::algebra::coupling::Columns;
use std::convert::Infallible;

/// A matrix, factorised; there is none.
pub struct Factors(Infallible);

/// What is kept from one matrix to the next: nothing.
#[derive(Default)]
pub struct Analysis;

impl Analysis {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always, [`FactorError::Absent`].
    pub fn factorise(&mut self, _: &Columns, _: bool) -> Result<Factors, FactorError> {
        Err(FactorError::Absent)
    }

    /// Refuses.
    ///
    /// # Errors
    ///
    /// Always, [`FactorError::Absent`].
    pub fn definite(&mut self, _: &Columns) -> Result<Option<Factors>, FactorError> {
        Err(FactorError::Absent)
    }
}

impl Factors {
    /// How they were made.
    pub fn word(&self) -> &'static str {
        match self.0 {}
    }

    /// The number of unknowns.
    pub fn unknowns(&self) -> usize {
        match self.0 {}
    }

    /// Whether the matrix is positive definite, well above the rounding-error level.
    pub fn is_definite(&self) -> bool {
        match self.0 {}
    }

    /// x = A⁻¹ x.
    pub fn solve(&self, _: &mut [f64]) {
        match self.0 {}
    }
}

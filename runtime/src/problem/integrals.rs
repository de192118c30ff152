//! Integrals by kernels: a form with additional `L2(0)` fields, appended to those of a solution, yields the integral of
//! each of their components over the mesh.
//!
//! Cellwise constant test functions make the residual of an additional field hold the integral over each cell. Pairwise
//! summation gives the total. Tables of the solution's own fields come from earlier operators, and so does the state
//! vector if it fits.

use super::RunError;
use super::evaluation_state::EvaluationState;
use super::kernels::{SharedResources, cell_integrals};
use crate::algebra::vector::Vector;
use crate::operator::CellIntegrals;
use fem_dsl::point::PointForm;
use kernels_gen::plan::Elements;
use std::borrow::Cow;

/// Integrals of a state.
pub(super) struct Integrals<'a> {
    pub(super) kernels: CellIntegrals,
    state: Cow<'a, Vector>,
}

impl<'a> Integrals<'a> {
    /// Compiles the integrals of a state; `params` are the values of the form's parameters.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, fields that cannot be numbered.
    pub(super) fn new(
        form: &PointForm,
        elements: &Elements,
        of: EvaluationState<'a>,
        params: &[f64],
        beside: SharedResources<'_>,
    ) -> Result<Self, RunError> {
        Ok(Self::of(cell_integrals(form, elements, of.on, params, beside)?, of))
    }

    /// Gives kernels a state on their discretisation.
    pub(super) fn of(kernels: CellIntegrals, of: EvaluationState<'a>) -> Self {
        let state = of.vector_for(kernels.operator());
        Self { kernels, state }
    }

    /// Replaces the time and the parameters.
    ///
    /// # Errors
    ///
    /// A device failure.
    pub(super) fn set_params(&mut self, params: &[f64]) -> Result<(), RunError> {
        Ok(self.kernels.set_params(params)?)
    }

    /// Returns the integrals of all components of the additional fields, concatenated.
    ///
    /// # Errors
    ///
    /// A device failure.
    pub(super) fn evaluate(&mut self) -> Result<Vec<f64>, RunError> {
        Ok(self.kernels.evaluate(&self.state)?)
    }
}

#[cfg(test)]
mod tests;

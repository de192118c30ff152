//! Integrals by kernels: a form with additional `L2(0)` fields, appended to those of a solution, yields the integral of
//! each of their components over the mesh.
//!
//! Cellwise constant test functions make the residual of an additional field hold the integral over each cell. Pairwise
//! summation gives the total. Tables of the solution's own fields come from earlier operators, and so does the state
//! vector if it fits.

use super::RunError;
use super::evaluation_state::EvaluationState;
use super::kernels::compile_for;
use super::platform::Platform;
use crate::algebra::vector::Vector;
use crate::kernels::compile::Target;
use crate::operator::{CellIntegrals, Operator, TableCache};
use crate::space::discretisation::Discretisation;
use fem_dsl::point::PointForm;
use kernels_gen::plan::{Elements, Task};
use std::borrow::Cow;
use std::sync::Arc;

/// Integrals of a state.
pub(super) struct Integrals<'a> {
    pub(super) kernels: CellIntegrals,
    state: Cow<'a, Vector>,
}

/// Resources for a residual on a mesh with existing operators.
pub(super) struct SharedResources<'a> {
    /// Processor and device.
    pub(super) platform: &'a Platform,
    /// Shared table cache.
    pub(super) table_cache: &'a mut TableCache,
}

/// Compiles the integrals of the fields of a form after those of a discretisation; `params` are the values of the form's
/// parameters.
///
/// # Errors
///
/// Kernels that cannot be compiled, fields that cannot be numbered.
pub(super) fn cell_integrals(
    form: &PointForm,
    elements: &Elements,
    on: &Discretisation,
    params: &[f64],
    beside: SharedResources<'_>,
) -> Result<CellIntegrals, RunError> {
    let own = on.fields.len();
    let further = elements.spaces().split_off(own);
    let on = on.with_fields(form, &further)?;
    let components: Vec<usize> = further.into_iter().map(|(_, components)| components).collect();
    Ok(CellIntegrals::new(residual_of(form, elements, on, params, beside)?, own, &components))
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

/// Compiles a form's residual, without the program's linked kernels, which belong to its own forms.
pub(super) fn residual_of(
    form: &PointForm,
    elements: &Elements,
    on: Discretisation,
    params: &[f64],
    beside: SharedResources<'_>,
) -> Result<Operator, RunError> {
    let SharedResources { platform, table_cache } = beside;
    let platform = platform.with_target(Target { linked: &[], ..platform.target });
    let (on, known) = (Arc::new(on), table_cache.clone());
    let (operator, _) =
        compile_for(form, elements, &on, params, &[Task::Residual], &platform, known)?;
    table_cache.keep(operator.table_cache());
    Ok(operator)
}

#[cfg(test)]
mod tests;

//! Unknown numbers of a problem: the operators of their equations.

use super::kernels::{SharedResources, cell_integrals, residual_of};
use super::platform::Platform;
use super::{RunError, SetupError};
use crate::operator::{NumberEquations, Operator};
use crate::space::discretisation::Discretisation;
use crate::support::expression::Parameters;
use fem_dsl::problem::Problem;
use kernels_gen::plan::Elements;

/// Compiles the equations of the unknown numbers of a problem, if it has any, for its operator.
///
/// # Errors
///
/// Kernels that cannot be compiled, a device failure.
pub(super) fn attach(
    operator: &mut Operator,
    (problem, of_form): (&Problem, &Elements),
    on: &Discretisation,
    parameters: &Parameters,
    platform: &Platform,
) -> Result<(), RunError> {
    let Some(numbers) = &problem.numbers else { return Ok(()) };
    let forms = &numbers.forms;
    let made = |form| Elements::new(form, of_form.cell, of_form.degree, of_form.rule);
    let params = parameters.values.clone();
    let mut table_cache = operator.table_cache();
    let elements = made(&forms.integrals).map_err(SetupError::from)?;
    let beside = SharedResources { platform, table_cache: &mut table_cache };
    let integrals = cell_integrals(&forms.integrals, &elements, on, &params, beside)?;
    let border = if forms.border.integrals.is_empty() {
        None
    } else {
        let elements = made(&forms.border).map_err(SetupError::from)?;
        let mut on = on.clone();
        on.find_regions(&forms.border).map_err(SetupError::from)?;
        let mut all = params.clone();
        all.resize(params.len() + 2 * forms.count(), 0.0);
        let beside = SharedResources { platform, table_cache: &mut table_cache };
        Some(residual_of(&forms.border, &elements, on, &all, beside)?)
    };
    operator.with_number_equations(NumberEquations {
        first: parameters.range(forms.first).start,
        count: forms.count(),
        params,
        integrals,
        border,
        free: numbers.free.clone(),
        affine: forms.linear,
    });
    Ok(())
}

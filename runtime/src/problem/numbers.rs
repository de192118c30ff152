//! Unknown numbers of a problem: the operators of their equations, and their values after a solve.

use super::context::Context;
use super::integrals::{SharedResources, cell_integrals, residual_of};
use super::platform::Platform;
use super::{RunError, SetupError};
use crate::operator::{NumberEquations, Operator};
use crate::support::expression::Parameters;
use kernels_gen::plan::Elements;

/// Compiles the equations of the unknown numbers of a problem, if it has any, for its operator.
///
/// # Errors
///
/// Kernels that cannot be compiled, a device failure.
pub(super) fn attach(
    operator: &mut Operator,
    context: &Context,
    platform: &Platform,
) -> Result<(), RunError> {
    let Some(numbers) = &context.problem.numbers else { return Ok(()) };
    let (forms, of_form) = (&numbers.forms, &context.elements);
    let made = |form| Elements::new(form, of_form.cell, of_form.degree, of_form.rule);
    let params = context.parameters.values.clone();
    let mut table_cache = operator.table_cache();
    let elements = made(&forms.integrals).map_err(SetupError::from)?;
    let beside = SharedResources { platform, table_cache: &mut table_cache };
    let integrals = cell_integrals(&forms.integrals, &elements, &context.on, &params, beside)?;
    let border = if forms.border.integrals.is_empty() {
        None
    } else {
        let elements = made(&forms.border).map_err(SetupError::from)?;
        let mut on = (*context.on).clone();
        on.find_regions(&forms.border).map_err(SetupError::from)?;
        let mut all = params.clone();
        all.resize(params.len() + 2 * forms.count(), 0.0);
        let beside = SharedResources { platform, table_cache: &mut table_cache };
        Some(residual_of(&forms.border, &elements, on, &all, beside)?)
    };
    operator.with_number_equations(NumberEquations {
        first: context.parameters.range(forms.first).start,
        count: forms.count(),
        params,
        integrals,
        border,
        free: numbers.free.clone(),
        affine: forms.linear,
    });
    Ok(())
}

impl Context {
    /// Returns the parameters with unknown numbers as NaN: no coefficient that reads one is 0.
    pub(super) fn undetermined_parameters(&self) -> Parameters {
        let mut parameters = self.parameters.clone();
        if let Some(numbers) = &self.problem.numbers {
            let first = parameters.range(numbers.forms.first).start;
            parameters.values[first..first + numbers.forms.count()].fill(f64::NAN);
        }
        parameters
    }

    /// The same with the unknown numbers of an operator as parameters.
    pub(super) fn with_numbers_of(&self, operator: &Operator) -> Self {
        let Some((first, values)) = operator.number_values() else { return self.clone() };
        let mut parameters = self.parameters.clone();
        parameters.values[first..first + values.len()].copy_from_slice(values);
        self.with_parameters(parameters)
    }
}

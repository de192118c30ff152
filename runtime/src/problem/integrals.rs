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
use crate::operator::{Operator, TableCache};
use crate::solve::NonlinearSystem;
use crate::space::discretisation::Discretisation;
use fem_dsl::point::PointForm;
use kernels_gen::plan::{Elements, Task};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Kernels that integrate functionals.
pub(super) struct IntegralKernels {
    operator: Operator,
    found: Vector,
    /// Degrees of freedom and number of components of each additional field.
    further: Vec<(Range<usize>, usize)>,
}

/// The same with a state.
pub(super) struct Integrals<'a> {
    pub(super) kernels: IntegralKernels,
    state: Cow<'a, Vector>,
}

/// Resources for a residual on a mesh with existing operators.
pub(super) struct SharedResources<'a> {
    /// Processor and device.
    pub(super) platform: &'a Platform,
    /// Shared table cache.
    pub(super) table_cache: &'a mut TableCache,
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
        let own = of.on.fields.len();
        let further = elements.spaces().split_off(own);
        let on = of.on.with_fields(form, &further)?;
        let unknowns = (own..on.fields.len()).map(|field| on.dofs_of(field));
        let components = further.into_iter().map(|(_, components)| components);
        let further = unknowns.zip(components).collect();
        let operator = residual_of(form, elements, on, params, beside)?.of_first(own);
        let found = operator.zeros();
        Ok(Self::of(IntegralKernels { operator, found, further }, of))
    }

    /// Gives kernels a state on their discretisation.
    pub(super) fn of(kernels: IntegralKernels, of: EvaluationState<'a>) -> Self {
        let state = of.vector_for(&kernels.operator);
        Self { kernels, state }
    }

    /// Replaces the time and the parameters.
    ///
    /// # Errors
    ///
    /// A device failure.
    pub(super) fn set_params(&mut self, params: &[f64]) -> Result<(), RunError> {
        Ok(self.kernels.operator.set_params(params)?)
    }

    /// Returns the integrals of all components of the additional fields, concatenated.
    ///
    /// # Errors
    ///
    /// A device failure.
    pub(super) fn evaluate(&mut self) -> Result<Vec<f64>, RunError> {
        let IntegralKernels { operator, found, further } = &mut self.kernels;
        operator.residual(&self.state, found)?;
        operator.finish()?;
        let mut sums = Vec::new();
        for (unknowns, components) in further {
            let mut field = found.part(unknowns.clone());
            // Unknowns of cells beyond a part count where their cell is.
            let others = found.sharing().map_or(&[][..], |sharing| sharing.others());
            for others in others {
                let (start, end) = (others.start.max(unknowns.start), others.end.min(unknowns.end));
                (start..end).for_each(|unknown| field[unknown - unknowns.start] = 0.0);
            }
            sums.extend((0..*components).map(|at| sum(&field, at, *components)));
        }
        operator.discretisation().mesh.sum_in_all(&mut sums);
        Ok(sums)
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

/// Sums every `stride`-th number from `first` pairwise, so that rounding grows with the logarithm of their count.
fn sum(numbers: &[f64], first: usize, stride: usize) -> f64 {
    let count = numbers.len() / stride;
    if count <= 64 {
        return numbers.iter().skip(first).step_by(stride).sum();
    }
    let (left, right) = numbers.split_at(count / 2 * stride);
    sum(left, first, stride) + sum(right, first, stride)
}

#[cfg(test)]
mod tests;

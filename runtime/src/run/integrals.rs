//! Integrals by kernels: a form with further fields of `L2(0)` behind a solution's own → the integral of each of their
//! components over the mesh.
//!
//! Constants of one cell each test what is integrated, so that the further fields' part of the residual has the integral over
//! each cell as an entry. Their sum, by halves, is the integral.

use super::RunError;
use super::kernels::compile_for;
use crate::compile::Target;
use crate::device::Device;
use crate::discretisation::Discretisation;
use crate::operator::Operator;
use crate::solve::NonlinearSystem;
use crate::vector::Vector;
use fem_dsl::point::PointForm;
use kernels_gen::plan::{Elements, Task};
use std::sync::Arc;

/// Kernels that integrate something of one state.
pub(super) struct Integrals {
    operator: Operator,
    state: Vector,
    /// Unknowns of the solution.
    own: usize,
    cells: usize,
    /// Components of the further fields.
    further: Vec<usize>,
}

impl Integrals {
    /// Compiles what integrates; `on` is what the solution `u` is on, `params` are the values of the form's parameters.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be made, fields that cannot be numbered.
    pub(super) fn new(
        form: &PointForm,
        elements: &Elements,
        (on, u): (&Discretisation, &[f64]),
        params: &[f64],
        target: &Target,
        device: Option<&Arc<dyn Device>>,
    ) -> Result<Self, RunError> {
        let further = elements.spaces().split_off(on.fields.len());
        let cells = on.mesh.n_cells();
        let mut on = on.with_fields(form, &further)?;
        on.aux.truncate(form.aux.len());
        let mut entries = u.to_vec();
        entries.resize(on.n_dofs(), 0.0);
        let operator = residual_of(form, elements, on, params, target, device)?;
        let mut state = operator.vector();
        state.set(&entries);
        let further = further.into_iter().map(|(_, components)| components).collect();
        Ok(Self { operator, state, own: u.len(), cells, further })
    }

    /// Replaces the time and the parameters.
    ///
    /// # Errors
    ///
    /// A device that fails.
    pub(super) fn set_params(&mut self, params: &[f64]) -> Result<(), RunError> {
        Ok(self.operator.set_params(params)?)
    }

    /// The integrals of the further fields' components, one after another.
    ///
    /// # Errors
    ///
    /// A device that fails.
    pub(super) fn evaluate(&mut self) -> Result<Vec<f64>, RunError> {
        let mut r = self.state.like();
        self.operator.residual(&self.state, &mut r)?;
        self.operator.finish()?;
        let found = r.to_vec();
        let mut sums = Vec::new();
        let mut rest = &found[self.own..];
        for &components in &self.further {
            let (field, behind) = rest.split_at(rest.len().min(components * self.cells));
            rest = behind;
            sums.extend((0..components).map(|at| sum(field, at, components)));
        }
        Ok(sums)
    }
}

/// A form's residual, without the kernels that came with the program: those are of its own forms.
pub(super) fn residual_of(
    form: &PointForm,
    elements: &Elements,
    on: Discretisation,
    params: &[f64],
    target: &Target,
    device: Option<&Arc<dyn Device>>,
) -> Result<Operator, RunError> {
    let target = Target { linked: &[], ..*target };
    let (on, device) = (Arc::new(on), device.cloned());
    let (operator, _) =
        compile_for(form, elements, &on, params, &[Task::Residual], &target, device)?;
    Ok(operator)
}

/// Σ of every `stride`-th number from one on, by halves, so that rounding grows with the logarithm of their number.
fn sum(numbers: &[f64], first: usize, stride: usize) -> f64 {
    let count = numbers.len() / stride;
    if count <= 64 {
        return numbers.iter().skip(first).step_by(stride).sum();
    }
    let (left, right) = numbers.split_at(count / 2 * stride);
    sum(left, first, stride) + sum(right, first, stride)
}

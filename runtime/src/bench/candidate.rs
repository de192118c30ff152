//! A kernel of a problem as it is planned with some wishes → the seconds of one launch over all cells.

use super::{BenchError, device, input, median_seconds};
use crate::compile::Target;
use crate::device::Device;
use crate::operator::Operator;
use crate::run::{Kernels, RunError, Setup, compile_operator_for};
use crate::solve::{NonlinearSystem, OperatorError};
use fem_dsl::point::PointForm;
use kernels_gen::plan::{Plan, Task};
use std::sync::Arc;

/// What was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The plan that was made of the wishes: the compiler of a GPU may have asked for another residency.
    pub plan: Plan,
    /// Seconds of the residual, of J(u)·w or of the diagonal, the median.
    pub seconds: f64,
}

/// Measures a task of a problem that is set up, on the processor's current threads or on a device.
///
/// # Errors
///
/// Wishes that go with no kernel, kernels that cannot be made, a device that fails.
pub fn measure(
    form: &PointForm,
    setup: &Setup,
    task: Task,
    target: &Target,
    on: Option<&Arc<dyn Device>>,
) -> Result<Measured, BenchError> {
    let (mut operator, kernels) = compile_operator_for(form, setup, &[task], target, on.cloned())?;
    let seconds = seconds(&mut operator, task, on)?;
    let plan = plan(&kernels, task)?;
    Ok(Measured { plan, seconds })
}

fn plan(kernels: &Kernels, task: Task) -> Result<Plan, BenchError> {
    let plan = kernels.plans.iter().find(|plan| plan.task == task);
    plan.cloned().ok_or(BenchError::Form("the problem"))
}

fn seconds(
    operator: &mut Operator,
    task: Task,
    on: Option<&Arc<dyn Device>>,
) -> Result<f64, BenchError> {
    let mut state = operator.vector();
    let numbers: Vec<f64> = input(state.len()).into_iter().map(|x| 1.0 + 0.1 * x).collect();
    state.set(&numbers);
    let (direction, mut result) = (state.clone(), state.like());
    operator.linearise(&state)?;
    let mut once = || -> Result<(), OperatorError> {
        match task {
            Task::Residual => operator.residual(&state, &mut result),
            Task::Diagonal => operator.diagonal(&mut result),
            _ => operator.jacobian().apply(&direction, &mut result),
        }
    };
    let Some(device) = on else { return Ok(median_seconds(once)?) };
    device::median(&**device, 3, || Ok(once()?))
}

impl From<RunError> for BenchError {
    fn from(error: RunError) -> Self {
        Self::Run(Box::new(error))
    }
}

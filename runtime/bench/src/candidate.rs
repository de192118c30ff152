//! Timing of one launch over all cells, for a problem's kernel planned with some wishes.

use super::{BenchError, device, input, median_seconds};
use kernels_gen::plan::Task;
use runtime::problem::{Context, RunError};
use runtime::solve::{NonlinearSystem, OperatorError};

/// Returns the median seconds of a task: residual, J(u)·w or diagonal. It runs on the host's current threads or on the
/// device of the context.
///
/// # Errors
///
/// Overrides that match no kernel, kernels that cannot be compiled, a device failure.
pub fn measure(context: &Context, task: Task) -> Result<f64, BenchError> {
    let (mut operator, _) = context.operator_with(&[task])?;
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
    let Some(device) = &context.platform.device else { return Ok(median_seconds(once)?) };
    device::median(&**device, 3, || Ok(once()?))
}

impl From<RunError> for BenchError {
    fn from(error: RunError) -> Self {
        Self::Run(Box::new(error))
    }
}

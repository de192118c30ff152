//! Output of a state as a [`Solution`].

use super::super::clock::{Clock, Phase};
use super::super::measure::{State, measure};
use super::super::{Kernels, RunError, Solution};
use super::stages::ProblemStages;
use crate::operator::TableCache;
use crate::solve::time::TimeState;

/// Measures a state of a time integration.
pub(super) fn solution(
    state: &TimeState,
    staged: &ProblemStages<'_>,
    kernels: &Kernels,
    clock: &mut Clock,
) -> Result<Solution, RunError> {
    let reached = State {
        kernels: kernels.clone(),
        u: state.u.to_vec(),
        report: staged.report(),
        linear_iterations: staged.iterations(),
        multigrid: Vec::new(),
        residual: staged.last_residual(),
        throughput: 0.0,
        notes: Vec::new(),
    };
    let seen = staged.seen(state)?;
    let mut solution = measure(staged.context(), &seen, reached, None, TableCache::default())?;
    // The context goes on from the time of the state.
    solution.context.parameters = seen.parameters;
    clock.end(Phase::Measure);
    solution.seconds = clock.seconds();
    Ok(solution)
}

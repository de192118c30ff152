//! Driver of a run: one solve, an adaptive loop or a time integration, by the statements of the problem.

use super::adaptive::solve_adaptively;
use super::platform::Platform;
use super::steady::{StartState, solve_steady};
use super::step::{Monitor, Step, StepKind};
use super::time::march;
use super::{RunError, Solution};
use crate::mesh::Mesh;
use fem_dsl::problem::Problem;
use std::sync::Arc;

/// Solves a problem with all its steps, from an earlier solution on the same mesh if there is one; returns the last
/// solution.
///
/// # Errors
///
/// Errors of the problem on this mesh, a solve that does not converge.
pub fn run_steps(
    problem: &Problem,
    mesh: impl Into<Arc<Mesh>>,
    start_at: Option<&[f64]>,
    platform: &Platform,
    monitor: &mut dyn Monitor,
) -> Result<Solution, RunError> {
    let (problem, mesh) = (&Arc::new(problem.clone()), mesh.into());
    if let Some(adapt) = &problem.adapt {
        return solve_adaptively(problem, adapt, mesh, platform, monitor);
    }
    if let Some(stepping) = &problem.stepping {
        return march(problem, stepping, mesh, start_at, platform, monitor);
    }
    let observe = &mut |now| monitor.iteration(now);
    let at = start_at.map_or(StartState::Problem, StartState::Solution);
    let solution = solve_steady(problem, mesh, at, platform, observe)?;
    // The last step: the answer of the monitor does not matter.
    monitor.step(&Step::of(StepKind::Solve, &solution), &solution);
    Ok(solution)
}

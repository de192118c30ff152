//! Driver of a run: one solve, an adaptive loop or a time integration, by the statements of the problem.

use super::adaptive::solve_adaptively;
use super::nested::solve_nested;
use super::platform::Platform;
use super::stages::run_stages;
use super::steady::StartState;
use super::step::{Monitor, Step, StepKind};
use super::time::march;
use super::{RunError, Solution};
use crate::files::input::cells::cell_field;
use crate::mesh::Mesh;
use crate::solve::{Continue, Progress};
use crate::support::progress::doing;
use fem_dsl::problem::{Problem, Stages, ValueSource};
use std::sync::Arc;

/// Solves a problem with all its steps and returns the last solution. A single solve starts from an earlier solution on
/// the same mesh if there is one; steps through time, stages and adaptive steps start from the state of the problem.
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
    let mesh = mesh.into();
    let problem = &Arc::new(with_solutions(problem, &mesh, platform, monitor)?);
    if let (Some(adapt), None) = (&problem.adapt, &problem.stepping) {
        return solve_adaptively(problem, adapt, mesh, platform, monitor);
    }
    if let Some(stages) = &problem.stages {
        let before = stages.before.iter();
        let before =
            before.map(|stage| with_solutions(stage, &mesh, platform, monitor).map(Arc::new));
        let before = before.collect::<Result<Vec<_>, _>>()?;
        let stages = Stages { before, ..stages.clone() };
        return run_stages(problem, &stages, mesh, platform, monitor);
    }
    if let Some(stepping) = &problem.stepping {
        return march(problem, stepping, mesh, platform, monitor);
    }
    let observe = &mut |now| monitor.iteration(now);
    let at = start_at.map_or(StartState::Problem, StartState::Solution);
    let solution = solve_nested(problem, mesh, at, platform, observe)?;
    // The last step: the answer of the monitor does not matter.
    monitor.step(&Step::of(StepKind::Solve, &solution), &solution);
    Ok(solution)
}

/// Observer of the solve of a source: its steps are not those of the run.
struct SourceMonitor<'a>(&'a mut dyn Monitor);

impl Monitor for SourceMonitor<'_> {
    fn iteration(&mut self, now: Progress) -> Continue {
        self.0.iteration(now)
    }

    fn step(&mut self, _: &Step, _: &Solution) -> Continue {
        Continue::Yes
    }
}

/// Solves the problems whose solutions a problem takes, each once, and returns it with their fields as data.
fn with_solutions(
    problem: &Problem,
    mesh: &Arc<Mesh>,
    platform: &Platform,
    monitor: &mut dyn Monitor,
) -> Result<Problem, RunError> {
    let mut own = problem.clone();
    let mut solved: Vec<(String, Solution)> = Vec::new();
    let data = own.aux.iter_mut().map(|data| &mut data.value);
    let starts = own.initial.iter_mut().chain(&mut own.initial_rate).map(|(_, value)| value);
    for value in data.chain(starts) {
        let ValueSource::Solution(taken) = value else { continue };
        let Some(source) = &taken.source else { continue };
        let known = solved.iter().position(|(name, _)| *name == taken.problem);
        let at = match known {
            Some(at) => at,
            None => {
                let _solving = doing("solving the problem whose solution is data");
                let mut quiet = SourceMonitor(&mut *monitor);
                let mesh = Arc::clone(mesh);
                let solution = run_steps(source, mesh, None, platform, &mut quiet)?;
                solved.push((taken.problem.clone(), solution));
                solved.len() - 1
            }
        };
        let Solution { context, u, .. } = &solved[at].1;
        let field = source.form.fields.iter().position(|own| own.name == taken.field);
        let Some(field) = field else { continue };
        let on = &context.on;
        let origin = format!("{} of {}", taken.field, taken.problem);
        let found = cell_field(&on.fields[field].space, &u[on.dofs_of(field)], origin);
        *value = ValueSource::Cells(Arc::new(found));
    }
    Ok(own)
}

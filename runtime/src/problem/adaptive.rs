//! Adaptive mesh refinement: solves a problem on a sequence of meshes refined by an error estimate.
//!
//! ```text
//! solve → estimate → mark → refine, coarsen, balance → transfer → solve …
//! ```
//!
//! The loop ends when the estimate reaches `until`, the next mesh would exceed `max_dofs`, or all steps are taken. Each
//! solve starts from the last solution.
//!
//! With several processes, each solves and estimates on its subdomain, and receives the solution values of the cells of its
//! next part.

use super::adaptation::{MeshAdaptation, NextMesh, estimated};
use super::clock::{Clock, Phase, Seconds};
use super::platform::Platform;
use super::steady::{StartState, solve_steady};
use super::step::{Monitor, Step, StepKind};
use super::{AdaptivityError, LastState, RunError, Solution};
use crate::estimate::ErrorEstimate;
use crate::mesh::Mesh;
use crate::solve::Continue;
use crate::support::timers::step;
use fem_dsl::problem::{AdaptiveRefinement, Problem};
use std::sync::Arc;
use std::time::Instant;

/// Last complete state of an adaptive run whose next step failed.
#[derive(Debug)]
pub struct InterruptedRun {
    /// Number of the failed step.
    pub step: usize,
    /// Cause.
    pub source: RunError,
    /// Solution of the previous step.
    pub last: LastState,
}

/// Solves a problem adaptively and returns the last solution.
pub(super) fn solve_adaptively(
    problem: &Arc<Problem>,
    adapt: &AdaptiveRefinement,
    mesh: Arc<Mesh>,
    platform: &Platform,
    monitor: &mut dyn Monitor,
) -> Result<Solution, RunError> {
    let meshes = MeshAdaptation::new(problem, adapt, mesh)?;
    let mut next = Some(meshes.part()?);
    let mut steps = AdaptiveLoop { problem, adapt, platform, meshes, taken: 0 };
    let (mut last, mut before): (Option<Solution>, _) = (None, Seconds::default());
    while let Some(mesh) = next.take() {
        match steps.take(mesh, (last.as_ref(), before), monitor) {
            Ok((solution, mesh)) => {
                before = solution.seconds;
                (last, next) = (Some(solution), mesh);
            }
            Err(source) => {
                return Err(match last {
                    None => source,
                    Some(last) => {
                        let step = steps.taken;
                        let last = LastState { on: last.context.on, u: last.u };
                        AdaptivityError::Interrupted(Box::new(InterruptedRun {
                            step,
                            source,
                            last,
                        }))
                        .into()
                    }
                });
            }
        }
    }
    last.ok_or_else(|| RunError::Setting("`adapt` took no step".to_owned()))
}

/// Adaptive loop.
struct AdaptiveLoop<'a> {
    problem: &'a Arc<Problem>,
    adapt: &'a AdaptiveRefinement,
    platform: &'a Platform,
    meshes: MeshAdaptation,
    taken: usize,
}

impl AdaptiveLoop<'_> {
    /// Takes one step. Returns its solution and the next mesh, if there is one.
    fn take(
        &mut self,
        mesh: Arc<Mesh>,
        (last, before): (Option<&Solution>, Seconds),
        monitor: &mut dyn Monitor,
    ) -> Result<(Solution, Option<Arc<Mesh>>), RunError> {
        let begun = Instant::now();
        let start = last
            .map_or(StartState::Problem, |last| StartState::OtherMesh(&last.context.on, &last.u));
        let mut solution = self.solve(mesh, start, monitor)?;
        let mut clock = Clock::start();
        clock.after(before);
        clock.after(solution.seconds);
        let on = Arc::clone(&solution.context.on);
        let estimate = estimated(&solution.context, &solution.u)?;
        let refining = step("next mesh");
        let next = match self.end(&estimate) {
            Some(note) => NextMesh::Same(note),
            None => self.meshes.refine(&on, &estimate)?,
        };
        drop(refining);
        let next = match next {
            NextMesh::Mesh(mesh) => Some(mesh),
            NextMesh::Same(note) => {
                solution.notes.extend(note);
                None
            }
        };
        self.taken += 1;
        let seconds = begun.elapsed().as_secs_f64();
        let step = Step::of(StepKind::Adapt, &solution);
        let step = Step { estimate: estimate.relative(), seconds, ..step };
        clock.end(Phase::Solve);
        solution.seconds = clock.seconds();
        let go_on = monitor.step(&step, &solution) == Continue::Yes;
        clock.end(Phase::Write);
        solution.seconds = clock.seconds();
        Ok((solution, next.filter(|_| go_on)))
    }

    fn solve(
        &self,
        mesh: Arc<Mesh>,
        start: StartState<'_>,
        monitor: &mut dyn Monitor,
    ) -> Result<Solution, RunError> {
        let observe = &mut |now| monitor.iteration(now);
        solve_steady(self.problem, mesh, start, self.platform, observe)
    }

    /// Returns `Some` at the last step, with an optional note.
    fn end(&self, estimate: &ErrorEstimate) -> Option<Option<String>> {
        let AdaptiveRefinement { steps, until, .. } = *self.adapt;
        let relative = estimate.relative();
        if until.is_some_and(|until| relative.is_some_and(|found| found <= until)) {
            return Some(None);
        }
        (self.taken >= steps).then(|| {
            let (until, found) = (until?, relative?);
            Some(format!(
                "`adapt` ends after {steps} steps with an estimate of {found:.2e}, not {until:.2e}: take more, `steps`"
            ))
        })
    }
}

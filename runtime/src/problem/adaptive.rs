//! Adaptive mesh refinement: solves a problem on a sequence of meshes refined by an error estimate.
//!
//! ```text
//! solve → estimate → mark → refine, coarsen, balance → transfer → solve …
//! ```
//!
//! The loop ends when the estimate reaches `until`, the next mesh would exceed `max_dofs`, or all steps are taken. Each
//! solve starts from the last solution.
//!
//! With several processes, each solves and estimates on its subdomain; all gather the squared indicators and mark
//! identically. For quadrilaterals and hexahedra, each process builds its part of the next forest and receives the
//! solution values of those leaves. Triangles and tetrahedra are bisected redundantly on every process.

use super::clock::{Clock, Phase, Seconds};
use super::collective_errors::{agree_on_error, together};
use super::context::{Context, with_periodic_sides};
use super::platform::Platform;
use super::steady::{StartState, solve_steady};
use super::step::{Monitor, Step, StepKind};
use super::{AdaptivityError, LastState, RunError, Solution};
use crate::estimate::adapt::AdaptiveMesh;
use crate::estimate::{ErrorEstimate, Estimator};
use crate::mesh::Mesh;
use crate::mesh::distributed::PartInterface;
use crate::mesh::refine::mark::{MarkError, coarsen, mark};
use crate::processes::{ProcessGroup, SingleProcess};
use crate::solve::Continue;
use crate::space::Space;
use crate::space::discretisation::Discretisation;
use crate::support::timers::step;
use fem_dsl::problem::{AdaptiveRefinement, Problem};
use std::borrow::Cow;
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
    let group = mesh.cut().map(|cut| Arc::clone(cut.group()));
    let mesh = match mesh.cut() {
        Some(cut) => Arc::clone(cut.whole()?),
        None => mesh,
    };
    let adaptive = AdaptiveMesh::new(with_periodic_sides(problem, mesh)?)?;
    let group = group.unwrap_or_else(|| Arc::new(SingleProcess));
    let mut next = Some(adaptive.part(&group)?);
    let mut steps = AdaptiveLoop { problem, adapt, platform, adaptive, taken: 0, group };
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
    adaptive: AdaptiveMesh,
    taken: usize,
    group: Arc<dyn ProcessGroup>,
}

/// Gathers cell values of all subdomains, in leaf order.
fn by_leaves(mesh: &Mesh, own: &[f64]) -> Result<Vec<f64>, RunError> {
    let whole = |cut: &Arc<PartInterface>| -> Result<Vec<u32>, RunError> {
        let leaves = cut.whole()?.leaves().unwrap_or_default();
        Ok(cut.cells()?.iter().map(|&cell| leaves[cell as usize]).collect())
    };
    let leaves = match (mesh.leaves(), mesh.cut()) {
        (None, Some(cut)) => Cow::Owned(whole(cut)?),
        (leaves, _) => leaves.unwrap_or_default(),
    };
    let mut all = vec![0.0; mesh.cells_in_all()];
    let mut put = |leaf: u32, number: f64| all[leaf as usize] = number;
    let Some(cut) = mesh.cut() else {
        leaves.iter().zip(own).for_each(|(&leaf, &number)| put(leaf, number));
        return Ok(all);
    };
    let mut bytes = Vec::with_capacity(12 * own.len());
    for (leaf, number) in leaves.iter().zip(own) {
        bytes.extend_from_slice(&leaf.to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    for bytes in cut.group().gather(&bytes) {
        for one in bytes.chunks_exact(12) {
            let (leaf, number) = one.split_at(4);
            let leaf = u32::from_le_bytes(leaf.try_into().unwrap_or_default());
            put(leaf, f64::from_le_bytes(number.try_into().unwrap_or_default()));
        }
    }
    Ok(all)
}

/// Outcome of an adaptive step.
enum AdaptiveOutcome {
    Mesh(Arc<Mesh>),
    /// End of the loop, with an optional note.
    End(Option<String>),
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
        let estimating = step("error estimate");
        let estimate = together(&on.mesh, self.estimate(&solution))?;
        drop(estimating);
        let refining = step("next mesh");
        let next = match self.end(&estimate) {
            Some(note) => AdaptiveOutcome::End(note),
            None => self.refine(&on, &estimate)?,
        };
        drop(refining);
        let next = match next {
            AdaptiveOutcome::Mesh(mesh) => Some(mesh),
            AdaptiveOutcome::End(note) => {
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

    fn estimate(&self, solution: &Solution) -> Result<ErrorEstimate, RunError> {
        let Context { elements, on, parameters, platform, .. } = &solution.context;
        let (form, params) = (solution.context.form(), &parameters.values);
        let Platform { target, device, .. } = platform;
        let estimator = Estimator::new(form, elements, on, params, target, device.as_ref())?;
        Ok(estimator.estimate(&solution.u)?)
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

    /// Marks cells and builds the next mesh.
    fn refine(
        &mut self,
        on: &Discretisation,
        estimate: &ErrorEstimate,
    ) -> Result<AdaptiveOutcome, RunError> {
        let adapt = self.adapt;
        let squares = by_leaves(&on.mesh, &estimate.squares)?;
        let refine = match mark(&squares, adapt.fraction) {
            Ok(refine) => refine,
            Err(error @ MarkError::Nothing) => {
                return Ok(AdaptiveOutcome::End(Some(error.to_string())));
            }
            Err(error) => return Err(error.into()),
        };
        let mut coarser = match adapt.coarsen > 0.0 {
            true => coarsen(&squares, adapt.coarsen)?,
            false => vec![false; squares.len()],
        };
        coarser.iter_mut().zip(&refine).for_each(|(coarser, refine)| *coarser &= !refine);
        let mut adaptive = self.adaptive.clone();
        match adaptive.adapt_leaves(&refine, &coarser) {
            Err(finest) if finest.is_finest() => {
                return Ok(AdaptiveOutcome::End(Some(format!("`adapt` stops: {finest}"))));
            }
            adapted => adapted?,
        };
        // Cells may fold on one process only.
        let next = agree_on_error(&on.mesh, adaptive.part(&self.group).map_err(RunError::from))?;
        let unknowns = on.fields.iter().map(|field| {
            Space::count_in_all(&next, field.space.element()) * field.space.components()
        });
        let unknowns: usize = unknowns.sum();
        if adapt.max_dofs.is_some_and(|most| unknowns > most) {
            return Ok(AdaptiveOutcome::End(Some(format!(
                "`adapt` stops: the next step would have {unknowns} unknowns, more than `max_dofs`"
            ))));
        }
        self.adaptive = adaptive;
        Ok(AdaptiveOutcome::Mesh(next))
    }
}

//! Adaptive steps: a problem on its mesh → solutions on meshes that follow them.
//!
//! ```text
//! solve → estimate → mark → refine, coarsen, balance → transfer → solve …
//! ```
//!
//! until the estimate is what `until` asks for, the next mesh would have more unknowns than `max_dofs` allows, or all steps
//! are taken. Each solve starts from the last solution.
//!
//! Of several processes each solves on a part of the mesh, gathers the solution, and does all the rest on the whole mesh, as all
//! do, to the same bits.

use super::step::{Monitor, Step, StepKind};
use super::{Reached, RunError, Setup, Solution, Start, run_started, set_up, with_periodic_sides};
use crate::adapt::Adaptive;
use crate::compile::Target;
use crate::device::Device;
use crate::discretisation::Discretisation;
use crate::estimate::{Estimate, Estimator};
use crate::expression::Parameters;
use crate::laps::Laps;
use crate::mark::{MarkError, coarsen, mark};
use crate::mesh::Mesh;
use crate::processes::Group;
use crate::solve::Continue;
use crate::space::Space;
use fem_dsl::problem::{Adapt, Problem};
use kernels_gen::plan::Elements;
use std::sync::Arc;
use std::time::Instant;

/// What is told of parts that take long.
pub(super) const STEP: &str = "an adaptive step";

/// What a run in steps had when one of them failed.
#[derive(Debug)]
pub struct Interrupted {
    /// The number of the step that failed.
    pub step: usize,
    /// Why.
    pub source: RunError,
    /// The solution of the step before.
    pub last: Reached,
}

/// Solves a problem in adaptive steps and gives the last solution.
pub(super) fn solve_adaptively(
    problem: &Problem,
    adapt: &Adapt,
    mesh: Arc<Mesh>,
    target: &Target,
    device: Option<&Arc<dyn Device>>,
    monitor: &mut dyn Monitor,
) -> Result<Solution, RunError> {
    let group = mesh.cut().map(|cut| Arc::clone(cut.group()));
    let mesh = match mesh.cut() {
        Some(cut) => Arc::clone(cut.whole()?),
        None => mesh,
    };
    let adaptive = Adaptive::new(with_periodic_sides(problem, mesh)?)?;
    let mut next = Some(Arc::new(adaptive.mesh()?));
    let (taken, whole) = (0, None);
    let mut steps = Steps { problem, adapt, target, device, adaptive, taken, group, whole };
    let mut last: Option<Solution> = None;
    while let Some(mesh) = next.take() {
        match steps.take(mesh, last.as_ref(), monitor) {
            Ok((solution, mesh)) => (last, next) = (Some(solution), mesh),
            Err(source) => {
                return Err(match last {
                    None => source,
                    Some(last) => {
                        let step = steps.taken;
                        let last = Reached { on: last.on, u: last.u };
                        RunError::Interrupted(Box::new(Interrupted { step, source, last }))
                    }
                });
            }
        }
    }
    last.ok_or_else(|| RunError::Setting("`adapt` took no step".to_owned()))
}

/// Steps that are taken one after another.
struct Steps<'a> {
    problem: &'a Problem,
    adapt: &'a Adapt,
    target: &'a Target,
    device: Option<&'a Arc<dyn Device>>,
    adaptive: Adaptive,
    taken: usize,
    /// The processes, where there are several.
    group: Option<Arc<dyn Group>>,
    /// Their last solution on the whole mesh.
    whole: Option<(Arc<Discretisation>, Vec<f64>)>,
}

/// What follows a step.
enum Next {
    Mesh(Arc<Mesh>),
    /// The end, and what should be said of it.
    End(Option<String>),
}

impl Steps<'_> {
    /// The next step: its solution, and the mesh of the one behind it, if there is to be one.
    fn take(
        &mut self,
        mesh: Arc<Mesh>,
        last: Option<&Solution>,
        monitor: &mut dyn Monitor,
    ) -> Result<(Solution, Option<Arc<Mesh>>), RunError> {
        let begun = Instant::now();
        let mut laps = Laps::new(STEP);
        let (mut solution, estimate, on) = match self.group.clone() {
            None => {
                let start = last.map_or(Start::OfProblem, |last| Start::On(&last.on, &last.u));
                let solution = self.solve(mesh, start, monitor)?;
                laps.tell("it is solved");
                let on = Arc::clone(&solution.on);
                let estimate = self.estimate(&solution.elements, &on, &solution.u)?;
                (solution, estimate, on)
            }
            Some(group) => self.take_apart(mesh, &group, monitor, &mut laps)?,
        };
        laps.tell("its error is estimated");
        let next = match self.end(&estimate) {
            Some(note) => Next::End(note),
            None => self.refine(&on, &estimate)?,
        };
        laps.tell("the next mesh is made");
        let next = match next {
            Next::Mesh(mesh) => Some(mesh),
            Next::End(note) => {
                solution.notes.extend(note);
                None
            }
        };
        self.taken += 1;
        let seconds = begun.elapsed().as_secs_f64();
        let step = Step::of(StepKind::Adapt, &solution);
        let step = Step { estimate: estimate.relative(), seconds, ..step };
        let go_on = monitor.step(&step, &solution) == Continue::Yes;
        Ok((solution, next.filter(|_| go_on)))
    }

    fn solve(
        &self,
        mesh: Arc<Mesh>,
        start: Start<'_>,
        monitor: &mut dyn Monitor,
    ) -> Result<Solution, RunError> {
        let observe = &mut |now| monitor.iteration(now);
        run_started(self.problem, mesh, start, self.target, self.device.cloned(), observe)
    }

    /// A step of several processes, on parts of a mesh: the solution on the part of this one, and what it is on the whole mesh with its
    /// estimate there.
    fn take_apart(
        &mut self,
        mesh: Arc<Mesh>,
        group: &Arc<dyn Group>,
        monitor: &mut dyn Monitor,
        laps: &mut Laps,
    ) -> Result<(Solution, Estimate, Arc<Discretisation>), RunError> {
        let Setup { elements, on, .. } = set_up(self.problem, Arc::clone(&mesh))?;
        let moved = self.whole.as_ref().and_then(|(before, u)| Adaptive::transfer(before, u, &on));
        let start = moved.as_ref().map_or(Start::OfProblem, |u| Start::Whole(&on, u));
        let solution = self.solve(mesh.part(group), start, monitor)?;
        laps.tell("it is solved");
        let missing = || RunError::Setting("the parts of the mesh do not fit".to_owned());
        let u = solution.on.gathered(&on, &solution.u).ok_or_else(missing)?;
        let estimate = self.estimate(&elements, &on, &u)?;
        self.whole = Some((Arc::clone(&on), u));
        Ok((solution, estimate, on))
    }

    fn estimate(
        &self,
        elements: &Elements,
        on: &Arc<Discretisation>,
        u: &[f64],
    ) -> Result<Estimate, RunError> {
        let Self { problem, target, device, .. } = *self;
        let form = &problem.form;
        let parameters =
            Parameters::new(&form.params, problem.time, &problem.params, problem.degree);
        let estimator = Estimator::new(form, elements, on, &parameters.values, target, device)?;
        Ok(estimator.estimate(u)?)
    }

    /// Whether this step is the last, and what should be said of that.
    fn end(&self, estimate: &Estimate) -> Option<Option<String>> {
        let Adapt { steps, until, .. } = *self.adapt;
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

    /// The cells of the next step.
    fn refine(&mut self, on: &Discretisation, estimate: &Estimate) -> Result<Next, RunError> {
        let adapt = self.adapt;
        let refine = match mark(&estimate.squares, adapt.fraction) {
            Ok(refine) => refine,
            Err(error @ MarkError::Nothing) => return Ok(Next::End(Some(error.to_string()))),
            Err(error) => return Err(error.into()),
        };
        let coarser = match adapt.coarsen > 0.0 {
            true => coarsen(&estimate.squares, adapt.coarsen)?,
            false => Vec::new(),
        };
        let mut adaptive = self.adaptive.clone();
        adaptive.adapt(&on.mesh, &refine, &coarser)?;
        let next = adaptive.mesh()?;
        let unknowns = on
            .fields
            .iter()
            .map(|field| Space::count(&next, field.space.element()) * field.space.components());
        let unknowns: usize = unknowns.sum();
        if adapt.max_dofs.is_some_and(|most| unknowns > most) {
            return Ok(Next::End(Some(format!(
                "`adapt` ends where the next step would have {unknowns} unknowns, more than `max_dofs`"
            ))));
        }
        self.adaptive = adaptive;
        Ok(Next::Mesh(Arc::new(next)))
    }
}

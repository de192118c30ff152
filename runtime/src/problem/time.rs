//! Time integration of a problem: its scheme ([`crate::solve::time`]), the solves of its stages, and solutions at the
//! output times.
//!
//! ```text
//! step → stages: t, s and r into the operator, conditions and data at t, F = 0 → state → output → step …
//! ```
//!
//! Factors and levels are kept while the Jacobian is unchanged: s depends on the step size, and coefficients may depend
//! on t or the solution. A step with a failed solve is repeated with half its length.

mod checkpoint;
mod constrained_dofs;
mod explicit;
mod identity;
mod mass;
mod recorded_steps;
mod stability;
mod stages;
mod state_output;
mod step_size;
mod times;
mod trajectory;
mod whole_mesh;

use super::clock::{Clock, Phase};
use super::context::{Context, Platform};
use super::measure::throughput;
use super::step::{Monitor, Step, StepKind};
use super::{LastState, RunError, Solution, TimeError, check_fixed, check_unique, initial};
use crate::mesh::Mesh;
use crate::solve::time::{StepResult, Stepper, TimeState, time_scheme};
use crate::solve::{Continue, NonlinearSystem};
use crate::support::expression::Parameters;
use crate::support::progress::doing;
pub use checkpoint::Checkpoint;

use explicit::ExplicitIntegrator;
use fem_dsl::point::PointForm;
use fem_dsl::problem::{Problem, Scheme, Stepping};
use mass::FormMass;
pub(crate) use stages::at_nodes;
pub use stages::rate_data;
use stages::{ProblemStages, StageMemory, StageSettings};
use std::sync::Arc;
use step_size::StepSizeController;
use times::Times;
pub use trajectory::Trajectory;
use whole_mesh::WholeMeshMap;

/// Time integrator.
enum Integrator {
    /// Stages with a nonlinear solve.
    Implicit(Stepper<RunError>),
    /// Explicit, with the inverse of a mass.
    Explicit(Box<ExplicitIntegrator>),
}

impl Integrator {
    /// Initialises the integrator from the initial data, for a first step length; adds notes on unknown rates.
    fn begin(
        scheme: Scheme,
        (mut state, length): (TimeState, f64),
        staged: &mut ProblemStages<'_>,
        notes: &mut Vec<String>,
    ) -> Result<Self, RunError> {
        staged.length = length;
        staged.start(&mut state, notes)?;
        let (state, mass) = explicit::begin(scheme, state, staged, notes)?;
        Self::new(scheme, state, mass, staged)
    }

    /// Creates the integrator from a state with its rates, and a mass if it is known.
    fn new(
        scheme: Scheme,
        state: TimeState,
        mass: Option<FormMass>,
        staged: &mut ProblemStages<'_>,
    ) -> Result<Self, RunError> {
        let second = state.a.is_some();
        Ok(match time_scheme(scheme) {
            None => Self::Explicit(Box::new(ExplicitIntegrator::new(scheme, state, mass, staged)?)),
            Some(scheme) => Self::Implicit(Stepper::new(scheme, second, state, mass.is_some())),
        })
    }

    fn state(&self) -> &TimeState {
        match self {
            Self::Implicit(stepper) => stepper.state(),
            Self::Explicit(explicit) => explicit.state(),
        }
    }

    fn order(&self) -> usize {
        match self {
            Self::Implicit(stepper) => stepper.order(),
            Self::Explicit(_) => 1,
        }
    }

    /// Takes a step; an implicit result awaits [`Self::accept`], an explicit one (`None`) is final.
    fn step(
        &mut self,
        length: f64,
        staged: &mut ProblemStages<'_>,
    ) -> Result<Option<StepResult>, RunError> {
        staged.length = length;
        match self {
            Self::Implicit(stepper) => stepper.step(length, staged).map(Some),
            Self::Explicit(explicit) => explicit.step(length, staged).map(|()| None),
        }
    }

    /// Accepts a step; `time` replaces its rounded end time.
    fn accept(&mut self, taken: Option<StepResult>, time: Option<f64>) {
        match (self, taken) {
            (Self::Implicit(stepper), Some(StepResult { mut state, .. })) => {
                state.time = time.unwrap_or(state.time);
                stepper.accept(state);
            }
            (Self::Explicit(explicit), None) => {
                time.into_iter().for_each(|time| explicit.arrive(time));
            }
            _ => unreachable!("a step was taken in one of both ways"),
        }
    }

    /// Prepares steps of a length; checks the stability limit of an explicit scheme.
    fn prepare(&mut self, length: f64, staged: &mut ProblemStages<'_>) -> Result<(), RunError> {
        match self {
            Self::Implicit(_) => Ok(()),
            Self::Explicit(explicit) => {
                explicit.check(length, staged.ends)?;
                explicit.quieten(staged)
            }
        }
    }

    /// Completes the state of an explicit scheme (see [`ExplicitIntegrator::confirm`]).
    fn confirm(&mut self, staged: &mut ProblemStages<'_>) -> Result<(), RunError> {
        match self {
            Self::Implicit(_) => Ok(()),
            Self::Explicit(explicit) => explicit.confirm(staged),
        }
    }
}

/// Integrates a problem over its time interval and returns the last solution.
pub(super) fn march(
    problem: &Arc<Problem>,
    stepping: &Stepping,
    mesh: Arc<Mesh>,
    start_at: Option<&[f64]>,
    platform: &Platform,
    monitor: &mut dyn Monitor,
) -> Result<Solution, RunError> {
    let mut clock = Clock::start();
    let setting_up = doing("numbering the degrees of freedom");
    let form = &problem.form;
    stepping.scheme.check(&form.rates, form.fields.len())?;
    stepping.check()?;
    let (mut context, plan) = Context::planned(problem, mesh, platform)?;
    let first = stepping.first();
    // The checks before the first step need the Jacobian of that step.
    parameters_at(
        form,
        &mut context.parameters,
        stepping.from,
        [1.0 / first, 1.0 / (first * first)],
    );
    let (context, on) = (&context, &context.on);
    check_fixed(form, on, &context.parameters)?;
    let (mut operator, kernels) = context.operator_for(&plan)?;
    drop(setting_up);
    let mut notes = check_unique(&mut operator, context)?;
    let mut u = operator.initial()?;
    notes.extend(initial::begin(problem, on, &context.parameters, start_at, &operator, &mut u)?);
    let mut v = u.like();
    if let Some(rates) = initial::rates(problem, on, &context.parameters)? {
        v.set(&rates);
        v.agree();
    }
    let second = form.rates.iter().any(|rate| rate.order == 2);
    let restart = monitor.restart();
    let points = restart.is_some() || monitor.wants_checkpoints();
    let whole = points.then(|| WholeMeshMap::of(on)).transpose()?;
    let state = TimeState { time: stepping.from, u, v, a: second.then(|| operator.vector()) };
    clock.end(Phase::SetUp);
    let settings = StageSettings::of(problem, plan);
    let mut staged =
        ProblemStages::new(context, &mut operator, settings, monitor, StageMemory::default());
    staged.ends = stepping.to;
    let who = (&**problem, stepping.scheme);
    let mut way = match restart.as_ref().zip(whole.as_ref()) {
        Some((left, whole)) => left.resume(who, &state.u, &mut staged, whole, &mut notes)?,
        None => {
            let begun = (state, first);
            let mut way = Integrator::begin(stepping.scheme, begun, &mut staged, &mut notes)?;
            way.prepare(first, &mut staged)?;
            way
        }
    };
    let times = Times::new(stepping);
    let mut controller =
        StepSizeController::new(stepping, first, restart.as_ref().map(|left| left.length));
    let mut count_shown = restart.as_ref().map_or(0, |left| left.shown);
    let mut going = Continue::Yes;
    let mut last = None;
    if let Some(left) = &restart {
        let now = left.time();
        if times.next(now).is_none() {
            return Err(RunError::Setting(format!(
                "the checkpoint is at t = {now}, where the time of the problem has ended\nhelp: write a later `to` in `time`"
            )));
        }
        way.prepare(controller.length(), &mut staged)?;
        notes.push(format!("the run goes on from t = {now}"));
    } else if times.shows_start() {
        count_shown += 1;
        clock.end(Phase::Solve);
        let solution = state_output::solution(way.state(), &staged, &kernels, &mut clock)?;
        going = state_output::tell(&solution, way.state().time, staged.monitor());
        clock.end(Phase::Write);
        last = Some(solution);
    }
    while going == Continue::Yes
        && let Some(next) = times.next(way.state().time)
    {
        let (own, ends) = controller.towards(next - way.state().time);
        let taken = match way.step(own, &mut staged) {
            Ok(taken) => taken,
            Err(error) if staged.cancelled() => return Err(error),
            Err(_) if !stepping.scheme.is_explicit() && controller.halve(own) => continue,
            Err(error) => return Err(failed(error, way.state(), own, &staged)),
        };
        let estimate = taken.as_ref().and_then(|taken| taken.estimate);
        let stands = controller.judge(own, way.order(), estimate);
        if !stands.map_err(|error| failed(error, way.state(), own, &staged))? {
            continue;
        }
        way.accept(taken, ends.then_some(next));
        controller.take(own);
        let now = way.state().time;
        staged.monitor().time(now, stepping.to);
        if times.shows(now) || now >= stepping.to {
            if let Err(error) = way.confirm(&mut staged) {
                return Err(failed(error, way.state(), own, &staged));
            }
            clock.end(Phase::Solve);
            let solution = state_output::solution(way.state(), &staged, &kernels, &mut clock)?;
            if times.shows(now) {
                count_shown += 1;
                going = state_output::tell(&solution, now, staged.monitor());
                if let Some(whole) = whole.as_ref().filter(|_| staged.monitor().wants_checkpoints())
                {
                    let point = (controller.length(), count_shown);
                    let left = Checkpoint::leave(&mut way, who, point, &mut staged, whole)?;
                    going = if going == Continue::Yes {
                        staged.monitor().checkpoint(&left)
                    } else {
                        going
                    };
                }
            }
            clock.end(Phase::Write);
            last = Some(solution);
        }
    }
    clock.end(Phase::Solve);
    let mut solution = match last {
        Some(solution) => solution,
        None => state_output::solution(way.state(), &staged, &kernels, &mut clock)?,
    };
    notes.extend(staged.notes().iter().cloned());
    notes.push(controller.told(stepping.scheme));
    solution.notes = [context.notes(), kernels.notes.clone(), notes].concat();
    solution.report = staged.report();
    solution.linear_iterations = staged.iterations();
    solution.multigrid = staged.figures();
    let (mut r, u) = (way.state().u.like(), &way.state().u);
    staged.quiet(way.state())?;
    staged.operator.precondition_by(None);
    staged.operator.residual(u, &mut r)?;
    solution.residual = staged.last_residual();
    solution.throughput = throughput(staged.operator, u, &mut r)?;
    staged.operator.finish()?;
    clock.end(Phase::Measure);
    solution.seconds = clock.seconds();
    Ok(solution)
}

/// Returns the error of a failed time integration, with the last state.
fn failed(
    source: RunError,
    state: &TimeState,
    length: f64,
    staged: &ProblemStages<'_>,
) -> RunError {
    let source = Box::new(RunError::from(TimeError::Step {
        time: state.time,
        length,
        source: Box::new(source),
    }));
    let u = state.u.to_vec();
    match u.iter().all(|value| value.is_finite()) {
        true => RunError::Unconverged {
            source,
            reached: Box::new(LastState { on: Arc::clone(staged.on()), u }),
        },
        false => *source,
    }
}

impl Step {
    /// Returns the figures of a solution at a time.
    fn at(time: f64, solution: &Solution) -> Self {
        Self { time: Some(time), ..Self::of(StepKind::Time, solution) }
    }
}

/// Sets time and s in the parameters.
fn parameters_at(form: &PointForm, parameters: &mut Parameters, time: f64, s: [f64; 2]) {
    parameters.values[0] = time;
    for rate in &form.rates {
        let range = parameters.range(rate.param);
        parameters.values[range].fill(s[rate.order - 1]);
    }
}

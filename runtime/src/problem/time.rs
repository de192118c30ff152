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
mod mass;
mod point_states;
mod recorded_steps;
mod remeshing;
mod stability;
mod stages;
mod state_output;
mod step_size;
mod stored_states;
mod times;
mod trajectory;

use super::checkpoint::{Checkpoint, WholeMeshMap};
use super::clock::{Clock, Phase};
use super::context::Context;
use super::measure::throughput;
use super::platform::Platform;
use super::step::{Monitor, Step, StepKind};
use super::{
    Kernels, LastState, RunError, Solution, TimeError, check_fixed, check_unique, initial,
};
use crate::mesh::Mesh;
use crate::operator::Operator;
use crate::solve::Continue;
use crate::solve::time::{StepResult, Stepper, TimeState, time_scheme};
use crate::support::expression::Parameters;
use crate::support::progress::doing;
use crate::support::timers::{in_step, step};
use explicit::ExplicitIntegrator;
use fem_dsl::point::PointForm;
use fem_dsl::problem::{Problem, Scheme, Stepping};
use mass::FormMass;
use remeshing::{LeftRun, Remeshing, again};
pub(crate) use stages::at_nodes;
pub use stages::rate_data;
use stages::{ProblemStages, StageSettings};
use std::sync::Arc;
use step_size::StepSizeController;
use times::Times;
pub use trajectory::Trajectory;

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
    mut mesh: Arc<Mesh>,
    platform: &Platform,
    monitor: &mut dyn Monitor,
) -> Result<Solution, RunError> {
    let has_states = !problem.states.is_empty();
    stepping.scheme.check(&problem.form.rates, problem.form.fields.len(), has_states)?;
    stepping.check()?;
    let mut clock = Clock::start();
    let mut remeshing = Remeshing::new(problem, &mesh)?;
    let mut left = None;
    if let Some(remeshing) = &remeshing {
        mesh = remeshing.part()?;
    }
    let of = MarchedProblem { problem, stepping, platform };
    loop {
        let begun = (left.take(), clock);
        match march_on(&of, mesh, begun, remeshing.as_mut(), monitor)? {
            Outcome::End(solution) => return Ok(*solution),
            Outcome::Mesh { mesh: next, left: run, clock: time } => {
                (mesh, left, clock) = (next, run, time);
            }
        }
    }
}

/// A problem in time, for any mesh.
struct MarchedProblem<'a> {
    problem: &'a Arc<Problem>,
    stepping: &'a Stepping,
    platform: &'a Platform,
}

/// Result of the part of a run on one mesh.
enum Outcome {
    /// The last solution.
    End(Box<Solution>),
    /// The next mesh, with the run so far; it begins again without it.
    Mesh { mesh: Arc<Mesh>, left: Option<Box<LeftRun>>, clock: Clock },
}

/// Integrates a problem on a mesh, from its beginning or from another mesh, to the end or the next mesh.
fn march_on(
    of: &MarchedProblem<'_>,
    mesh: Arc<Mesh>,
    (mut left, mut clock): (Option<Box<LeftRun>>, Clock),
    mut remeshing: Option<&mut Remeshing>,
    monitor: &mut dyn Monitor,
) -> Result<Outcome, RunError> {
    let MarchedProblem { problem, stepping, platform } = *of;
    let set_up = step("set-up");
    let setting_up = doing("numbering the degrees of freedom");
    let (mut context, plan) = Context::planned(problem, Arc::clone(&mesh), platform)?;
    let (form, first) = (&problem.form, stepping.first());
    // The checks before the first step need the Jacobian of that step.
    let s = [1.0 / first, 1.0 / (first * first)];
    parameters_at(form, &mut context.parameters, stepping.from, s);
    let context = &context;
    let _prefetch = context.prefetch(&plan);
    check_fixed(form, &context.on, &context.undetermined_parameters())?;
    let (mut operator, kernels) = context.operator_for(&plan)?;
    drop(setting_up);
    let (memory, mut notes) = left.as_mut().map(|left| left.take()).unwrap_or_default();
    if left.is_none() {
        notes.extend(check_unique(&mut operator, context)?);
        notes.extend(amplified(stepping.scheme, form));
    }
    let (restart, whole) = match &left {
        None => restart(problem, context, monitor)?,
        Some(_) => (None, None),
    };
    let state = match &left {
        None => Some(initial_state(context, stepping, &operator, &mut notes)?),
        Some(_) => None,
    };
    drop(set_up);
    clock.end(Phase::SetUp);
    let settings = StageSettings::of(problem, plan);
    let mut staged = ProblemStages::new(context, &mut operator, settings, monitor, memory);
    staged.ends = stepping.to;
    let run = Run { stepping, staged, times: Times::new(stepping), kernels, whole, notes, clock };
    let mut march = match (left, state) {
        (Some(left), _) => March::resume(run, *left)?,
        (None, Some(state)) => {
            let mut march = March::begin(run, state, restart.as_ref())?;
            if let Some(remeshing) = remeshing.as_deref_mut().filter(|own| own.tries()) {
                let next = march.trial(remeshing)?;
                return Ok(again(next.unwrap_or(mesh), march.run.clock));
            }
            march.show_start(restart.is_some())?;
            march
        }
        (None, None) => unreachable!("a run that begins has a state"),
    };
    if let Some(remeshing) = remeshing.as_deref_mut() {
        march.count(remeshing);
    }
    while march.going == Continue::Yes
        && let Some(next) = march.run.times.next(march.integrator.state().time)
    {
        if let Some(remeshing) = remeshing.as_deref_mut().filter(|own| march.is_due(own))
            && let Some(mesh) = march.next_mesh(remeshing, true)?
        {
            return Ok(march.leave(mesh, remeshing));
        }
        in_step("time step", || march.step(next))?;
    }
    if let Some(remeshing) = remeshing {
        march.note(remeshing);
    }
    Ok(Outcome::End(Box::new(in_step("measure", || march.finish())?)))
}

/// Returns a note on a scheme that amplifies what nothing damps: the region of stability of BDF of order 3 and more lacks
/// parts of the imaginary axis (Hairer and Wanner, Solving Ordinary Differential Equations II, section V.1).
fn amplified(scheme: Scheme, form: &PointForm) -> Option<String> {
    let Scheme::Bdf { order: order @ 3.. } = scheme else { return None };
    let oscillates = form.rates.iter().any(|rate| rate.order == 2 && rate.read);
    oscillates.then(|| {
        format!(
            "bdf of order {order} amplifies oscillations that nothing damps, without end; \
             take order 2, `newmark` or `generalised_alpha` for them"
        )
    })
}

/// Returns the checkpoint from which a run goes on, and the map to the whole mesh if the run reads or writes any.
fn restart(
    problem: &Problem,
    context: &Context,
    monitor: &mut dyn Monitor,
) -> Result<(Option<Checkpoint>, Option<WholeMeshMap>), RunError> {
    let restart = monitor.restart();
    if restart.is_none() && !monitor.wants_checkpoints() {
        return Ok((None, None));
    }
    let lacks = match (&problem.numbers, &problem.adapt) {
        (Some(_), _) => Some("a checkpoint does not hold unknown numbers"),
        (None, Some(_)) => Some("a checkpoint does not hold the mesh that `adapt` has made"),
        (None, None) => None,
    };
    if let Some(lacks) = lacks {
        let message = format!("{lacks}\nhelp: leave --checkpoint and --restart out");
        return Err(RunError::Setting(message));
    }
    let whole = WholeMeshMap::of(&context.on)?;
    Ok((restart, Some(whole)))
}

/// Returns the initial state of a problem in time.
fn initial_state(
    context: &Context,
    stepping: &Stepping,
    operator: &Operator,
    notes: &mut Vec<String>,
) -> Result<TimeState, RunError> {
    let (problem, on, parameters) = (&*context.problem, &*context.on, &context.parameters);
    let mut u = operator.initial()?;
    notes.extend(initial::begin(problem, on, parameters, None, operator, &mut u)?);
    let mut v = u.like();
    if let Some(rates) = initial::rates(problem, on, parameters)? {
        v.set(&rates);
        v.synchronise();
    }
    let second = problem.form.rates.iter().any(|rate| rate.order == 2);
    Ok(TimeState { time: stepping.from, u, v, a: second.then(|| operator.vector()) })
}

/// The fixed parts of a time integration, with its notes and timers.
struct Run<'a> {
    stepping: &'a Stepping,
    staged: ProblemStages<'a>,
    times: Times,
    kernels: Kernels,
    /// Map to the whole mesh, for checkpoints.
    whole: Option<WholeMeshMap>,
    notes: Vec<String>,
    clock: Clock,
}

impl Run<'_> {
    /// Measures a state.
    fn solution(&mut self, state: &TimeState) -> Result<Solution, RunError> {
        state_output::solution(state, &self.staged, &self.kernels, &mut self.clock)
    }

    /// Returns the error of a failed step.
    fn failed(&self, error: RunError, integrator: &Integrator, length: f64) -> RunError {
        failed(error, integrator.state(), length, &self.staged)
    }
}

/// A time integration between two steps.
struct March<'a> {
    run: Run<'a>,
    integrator: Integrator,
    controller: StepSizeController,
    /// Number of solutions that the monitor has seen.
    count_shown: usize,
    /// Number of steps on this mesh.
    count_taken: usize,
    going: Continue,
    last: Option<Solution>,
}

impl<'a> March<'a> {
    /// Prepares the first step, from the initial state or a checkpoint.
    fn begin(
        mut run: Run<'a>,
        state: TimeState,
        restart: Option<&Checkpoint>,
    ) -> Result<Self, RunError> {
        let (stepping, first) = (run.stepping, run.stepping.first());
        let controller = StepSizeController::new(stepping, first, restart.map(|left| left.length));
        let problem = Arc::clone(&run.staged.context().problem);
        let Run { staged, notes, whole, times, .. } = &mut run;
        let mut integrator = match restart.zip(whole.as_ref()) {
            Some((left, whole)) => {
                left.resume((&problem, stepping.scheme), &state.u, staged, whole, notes)?
            }
            None => Integrator::begin(stepping.scheme, (state, first), staged, notes)?,
        };
        if let Some(left) = restart {
            let now = left.time();
            if times.next(now).is_none() {
                return Err(RunError::Setting(format!(
                    "the checkpoint is at t = {now}, where the time of the problem has ended\nhelp: write a later `to` in `time`"
                )));
            }
            notes.push(format!("the run goes on from t = {now}"));
        }
        integrator.prepare(controller.length(), staged)?;
        let count_shown = restart.map_or(0, |left| left.shown);
        Ok(Self::with((run, integrator), controller, count_shown))
    }

    fn with(
        (run, integrator): (Run<'a>, Integrator),
        controller: StepSizeController,
        count_shown: usize,
    ) -> Self {
        let (count_taken, going, last) = (0, Continue::Yes, None);
        Self { run, integrator, controller, count_shown, count_taken, going, last }
    }

    /// Shows the initial state if it is an output time of a run that begins.
    fn show_start(&mut self, restarts: bool) -> Result<(), RunError> {
        if !restarts && self.run.times.shows_start() {
            self.run.clock.end(Phase::Solve);
            let solution = self.run.solution(self.integrator.state())?;
            self.show(&solution);
            self.run.clock.end(Phase::Write);
            self.last = Some(solution);
        }
        Ok(())
    }

    /// Passes a solution at the current time to the monitor.
    fn show(&mut self, solution: &Solution) {
        self.count_shown += 1;
        let time = self.integrator.state().time;
        self.going = self.run.staged.monitor().step(&Step::at(time, solution), solution);
    }

    /// Takes one step towards a mandatory time, or shortens the next one; returns its length if it was taken.
    fn advance(&mut self, next: f64) -> Result<Option<f64>, RunError> {
        let Self { run, integrator, controller, .. } = self;
        let (own, ends) = controller.towards(next - integrator.state().time);
        let taken = match integrator.step(own, &mut run.staged) {
            Ok(taken) => taken,
            Err(error) if run.staged.cancelled() => return Err(error),
            Err(_) if !run.stepping.scheme.is_explicit() && controller.halve(own) => {
                return Ok(None);
            }
            Err(error) => return Err(run.failed(error, integrator, own)),
        };
        let estimate = taken.as_ref().and_then(|taken| taken.estimate);
        let accepted = controller.judge(own, integrator.order(), estimate);
        if !accepted.map_err(|error| run.failed(error, integrator, own))? {
            return Ok(None);
        }
        integrator.accept(taken, ends.then_some(next));
        controller.take(own);
        self.count_taken += 1;
        Ok(Some(own))
    }

    /// Takes one step towards a mandatory time, or shortens the next one, and shows its solution at output times.
    fn step(&mut self, next: f64) -> Result<(), RunError> {
        let Some(own) = self.advance(next)? else { return Ok(()) };
        let Self { run, integrator, .. } = self;
        let now = integrator.state().time;
        run.staged.monitor().time(now, run.stepping.to);
        if run.times.shows(now) || now >= run.stepping.to {
            if let Err(error) = integrator.confirm(&mut run.staged) {
                return Err(run.failed(error, integrator, own));
            }
            self.reach(now)?;
        } else {
            point_states::update(&run.staged, integrator.state())?;
        }
        Ok(())
    }

    /// Measures the state at an output time or the end; shows it, and leaves a checkpoint.
    fn reach(&mut self, now: f64) -> Result<(), RunError> {
        self.run.clock.end(Phase::Solve);
        let solution = self.run.solution(self.integrator.state())?;
        point_states::update(&self.run.staged, self.integrator.state())?;
        if self.run.times.shows(now) {
            self.show(&solution);
            self.checkpoint()?;
        }
        self.run.clock.end(Phase::Write);
        self.last = Some(solution);
        Ok(())
    }

    /// Passes a checkpoint to a monitor that wants one.
    fn checkpoint(&mut self) -> Result<(), RunError> {
        let Run { stepping, staged, whole, .. } = &mut self.run;
        if let Some(whole) = whole.as_ref().filter(|_| staged.monitor().wants_checkpoints()) {
            let problem = Arc::clone(&staged.context().problem);
            let (who, at) =
                ((&*problem, stepping.scheme), (self.controller.length(), self.count_shown));
            let left = Checkpoint::take(&mut self.integrator, who, at, staged, whole)?;
            if self.going == Continue::Yes {
                self.going = staged.monitor().checkpoint(&left);
            }
        }
        Ok(())
    }

    /// Returns the last solution with the figures of the whole run.
    fn finish(mut self) -> Result<Solution, RunError> {
        self.run.clock.end(Phase::Solve);
        let state = self.integrator.state();
        let mut solution = match self.last {
            Some(solution) => solution,
            None => self.run.solution(state)?,
        };
        let Run { stepping, mut staged, kernels, mut notes, mut clock, .. } = self.run;
        notes.extend(staged.notes().iter().cloned());
        notes.push(self.controller.summary(stepping.scheme));
        solution.notes = [staged.context().notes(), kernels.notes, notes].concat();
        solution.report = staged.report();
        solution.linear_iterations = staged.iterations();
        solution.multigrid = staged.figures();
        let (mut r, u) = (state.u.like(), &state.u);
        staged.quiet(state)?;
        staged.operator.precondition_by(None);
        solution.residual = staged.last_residual();
        solution.throughput = throughput(staged.operator, u, &mut r)?;
        staged.operator.finish()?;
        clock.end(Phase::Measure);
        solution.seconds = clock.seconds();
        Ok(solution)
    }
}

/// Returns the error of a failed time integration, with the last state.
fn failed(
    source: RunError,
    state: &TimeState,
    length: f64,
    staged: &ProblemStages<'_>,
) -> RunError {
    // An unstable step names its time and its length itself.
    let source = Box::new(match source {
        source @ RunError::Time(TimeError::Unstable { .. }) => source,
        source => TimeError::Step { time: state.time, length, source: Box::new(source) }.into(),
    });
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

//! Newton's method with an inexact Krylov solver and a line search: R(u) = 0.
//!
//! Each step solves J(u) δ = −R(u) to ‖J δ + R‖ ≤ η‖R‖ and goes u ← u + λ δ with the largest λ ≤ 1,
//! found by backtracking, for which ‖R(u + λ δ)‖ ≤ (1 − 10⁻⁴ λ)‖R(u)‖. The forcing term η follows
//! Eisenstat and Walker's second choice: loose while R is far from linear, tight at the end.
//!
//! Backtracking stalls at penalties and switches: with a contact force k max(0, g(u)) the residual of a good step is k times
//! what it penetrates. There a watchdog takes full steps with exact linear solves, as a semismooth Newton method does, and
//! goes back to the state where it began if these have not reduced the residual ([`NewtonSettings::full_steps`]).

mod forcing;

use super::direction::{Direction, Linear};
use super::doubt::{Doubt, Reason, Step, noise};
use super::goal::{FAR, NEAR};
use super::ranges::{at_least_one, tolerances};
use super::watchdog::{Iterate, Watchdog};
use super::{
    CgSettings, Continue, NonlinearSystem, Observer, OperatorError, Outcome, Progress, Report,
};
use crate::algebra::vector::{Vector, epsilon};
pub use forcing::Forcing;
use std::time::Instant;

/// Part of the predicted decrease that a step must reach.
const SUFFICIENT: f64 = 1e-4;
/// The smallest λ tried.
const SMALLEST_STEP: f64 = 1e-8;
/// Relative tolerance of the linear solve where the residual is small enough, but u still moves.
const DOUBTFUL: f64 = 1e-3;
/// Linear solves of an affine system after the first.
const AGAIN: usize = 10;
/// Multiples of what a linear solve has left that the residual of an affine system may be.
const SLACK: f64 = 2.0;
/// Backtracking stalls where it leaves more than this part of the residual.
const STALLED: f64 = 0.9;
/// η of full steps, whose linear solves are exact.
const EXACT: f64 = 1e-10;

/// When to stop, and how to go on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewtonSettings {
    /// Stop at ‖R‖ ≤ rtol·‖R(u₀)‖.
    pub rtol: f64,
    /// Stop at ‖R‖ ≤ atol.
    pub atol: f64,
    /// Limit of steps.
    pub max_iterations: usize,
    /// Limit of iterations of each linear solve.
    pub max_inner: usize,
    /// Tolerance of the linear solves.
    pub forcing: Forcing,
    /// How the linear systems are solved.
    pub linear: Linear,
    /// Whether steps are shortened until they reduce ‖R‖.
    pub line_search: bool,
    /// Limit of full steps with exact linear solves in a row, which are tried where shortened ones stall; 0 for none.
    pub full_steps: usize,
    /// True for systems that switch with the state, as at a contact: backtracking that hardly reduces ‖R‖ has stalled then. Smooth
    /// systems go on with short steps.
    pub switches: bool,
    /// Whether it is a failure that rounding leaves more than the tolerance: see [`CgSettings::strict`].
    pub strict: bool,
}

impl NewtonSettings {
    fn check(self) -> Result<(), OperatorError> {
        tolerances(self.rtol, self.atol)?;
        at_least_one("max_iterations", self.max_iterations)?;
        at_least_one("max_inner", self.max_inner)?;
        at_least_one("restart", self.linear.restart)?;
        self.forcing.check()
    }
}

impl Default for NewtonSettings {
    fn default() -> Self {
        Self {
            rtol: 1e-10,
            atol: 0.0,
            max_iterations: 50,
            max_inner: 10_000,
            forcing: Forcing::default(),
            linear: Linear::default(),
            line_search: true,
            full_steps: 5,
            switches: false,
            strict: false,
        }
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub struct NewtonStep {
    /// ‖R‖ before the step.
    pub residual: f64,
    /// η.
    pub forcing: f64,
    /// The linear solver that gave the direction.
    pub solver: &'static str,
    /// Its iterations.
    pub inner_iterations: usize,
    /// How it ended.
    pub inner_outcome: Outcome,
    /// λ.
    pub damping: f64,
    /// How often λ was reduced.
    pub backtracks: usize,
}

impl NewtonStep {
    /// Writes the step, by its number from 1 on, to the log.
    fn log(&self, number: usize) {
        let Self { residual, damping, inner_iterations, solver, .. } = self;
        tracing::info!(
            "newton step {number}: residual {residual:.3e}, step {damping:.3e}, {inner_iterations} linear iterations ({solver})"
        );
    }
}

/// Solves R(u) = 0 from the given `u`, whose constrained unknowns have their values already.
/// `observe` is called with (step, ‖R‖) after each step, `observe_inner` after each linear iteration.
pub fn newton(
    system: &mut dyn NonlinearSystem,
    u: &mut Vector,
    settings: NewtonSettings,
    observe: Observer<'_>,
    observe_inner: Observer<'_>,
) -> Result<Report, OperatorError> {
    let mut alone = Newton { direction: Direction::new(u, settings.linear) };
    alone.solve(system, u, settings, observe, observe_inner)
}

/// Solves nonlinear systems one after another that follow each other closely, as the steps through time do: the factors of a Jacobian
/// precondition the next ones as long as that is of use, and so is kept what has shown to be needed.
pub struct Newton {
    direction: Direction,
}

impl Newton {
    /// For systems whose states are like `u`.
    pub fn new(u: &Vector, linear: Linear) -> Self {
        Self { direction: Direction::keeping(u, linear) }
    }

    /// As [`newton`], with the linear solver that it was made with.
    ///
    /// # Errors
    ///
    /// As [`newton`].
    pub fn solve(
        &mut self,
        system: &mut dyn NonlinearSystem,
        u: &mut Vector,
        settings: NewtonSettings,
        observe: Observer<'_>,
        observe_inner: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        settings.check()?;
        let start = Instant::now();
        self.direction.begin();
        let mut state = State::new(&mut self.direction, system, u, settings)?;
        let outcome = loop {
            if let Some(outcome) = state.finished() {
                break outcome;
            }
            let taken = state.steps.len();
            if let Some(outcome) = state.step(system, u, observe_inner)? {
                break outcome;
            }
            // Full steps begin, or end without one.
            if state.steps.len() == taken {
                continue;
            }
            let progress = Progress {
                iteration: state.steps.len(),
                residual: state.norm,
                target: state.target,
            };
            if observe(progress) == Continue::No {
                break Outcome::Cancelled;
            }
        };
        let (at, balanced) = ((&*u, &state.r), state.direction.balance.is_some());
        let asked = state.plain <= settings.atol;
        let outcome =
            if asked { outcome } else { state.doubt.settled(system, at, outcome, balanced)? };
        state.notes.extend(state.watchdog.note());
        system.complete(u)?;
        let mut report = Report {
            solver: "newton",
            outcome,
            iterations: state.steps.len(),
            history: state.history,
            target: state.target,
            seconds: start.elapsed().as_secs_f64(),
            notes: state.notes,
            newton: state.steps,
        };
        report.note_rounding();
        Ok(report)
    }
}

/// Solves an affine system, J δ = −R(u), u ← u + δ, with one linear solve; with another from there where the start was so
/// far away, or one field's residual so large, that the tolerance says nothing of the solution.
pub fn solve_affine(
    system: &mut dyn NonlinearSystem,
    u: &mut Vector,
    settings: CgSettings,
    linear: Linear,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    Affine::new(u, linear).solve(system, u, settings, observe)
}

/// Solves affine systems one after another. Where a system says that its Jacobian is the [same](NonlinearSystem::same_jacobian), the
/// factors of its matrix are taken again, and so is what has shown to be needed.
pub struct Affine {
    direction: Direction,
}

impl Affine {
    /// For systems whose states are like `u`.
    pub fn new(u: &Vector, linear: Linear) -> Self {
        Self { direction: Direction::new(u, linear) }
    }

    /// As [`solve_affine`].
    ///
    /// # Errors
    ///
    /// As [`solve_affine`].
    pub fn solve(
        &mut self,
        system: &mut dyn NonlinearSystem,
        u: &mut Vector,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        settings.check()?;
        at_least_one("restart", self.direction.restart())?;
        solve_with(&mut self.direction, system, u, settings, observe)
    }
}

/// −r.
fn negative(r: &Vector) -> Vector {
    let mut negative = r.clone();
    negative.scale(-1.0);
    negative
}

fn solve_with(
    direction: &mut Direction,
    system: &mut dyn NonlinearSystem,
    u: &mut Vector,
    settings: CgSettings,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    let start = Instant::now();
    direction.begin();
    let mut r = u.like();
    system.residual(u, &mut r)?;
    let mut doubt = Doubt::new(system, settings.rtol, &r);
    let mut report = direction.solve(system, u, &negative(&r), settings, observe)?;
    let target = report.target;
    for pass in 1.. {
        if !matches!(report.outcome, Outcome::NotFinite | Outcome::Overflow) {
            u.axpy(1.0, &direction.delta);
        }
        if !report.outcome.is_success() || r.norm() == 0.0 {
            let balanced = direction.balance.is_some();
            report.outcome = doubt.settled(system, (u, &r), report.outcome, balanced)?;
            break;
        }
        let mut after = u.like();
        system.residual(u, &mut after)?;
        let left = after.norm();
        let claimed = SLACK * target.max(report.residual());
        report.history.last_mut().into_iter().for_each(|last| *last = left);
        if left <= settings.atol {
            break;
        }
        let step = Step { before: &r, delta: &direction.delta, u, after: &after };
        let reason = doubt.of(system, &step)?;
        // A residual that is no affine function of u is not what the linear solve has left.
        let kept = left <= claimed || left <= FAR * noise(system, u, &after)?.norm();
        if kept && (reason.is_none() || pass > AGAIN) {
            report.outcome = doubt.settled(system, (u, &after), report.outcome, true)?;
            break;
        }
        if pass > AGAIN || !left.is_finite() {
            report.outcome = Outcome::Stagnated;
            break;
        }
        let mut next = settings;
        if reason == Some(Reason::Unsolved) {
            let balance = doubt.scales.balance(u);
            let rtol = 0.5 * doubt.rtol() * balance.size / balance.norm(&after);
            next.rtol = rtol.clamp(epsilon(u.precision()), 0.5);
            direction.balance = Some(balance);
        }
        let (before, iterations) = (u.clone(), report.iterations);
        let mut told = |progress: Progress| {
            observe(Progress { iteration: iterations + progress.iteration, ..progress })
        };
        let next = direction.solve(system, &before, &negative(&after), next, &mut told)?;
        let history = std::mem::take(&mut report.history);
        report = Report {
            iterations: iterations + next.iterations,
            history: [history, next.history].concat(),
            ..next
        };
        r = after;
    }
    report.target = target;
    system.complete(u)?;
    report.note_rounding();
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

/// The state between steps.
struct State<'a> {
    settings: NewtonSettings,
    direction: &'a mut Direction,
    /// R(u).
    r: Vector,
    /// u + λ δ and R there.
    trial: Vector,
    trial_r: Vector,
    /// The norm of R(u) by which steps are judged; ‖R(u)‖ unless the equations of fields were balanced.
    norm: f64,
    /// ‖R(u)‖.
    plain: f64,
    target: f64,
    /// (η, ‖R‖) of the step before.
    previous: Option<(f64, f64)>,
    history: Vec<f64>,
    steps: Vec<NewtonStep>,
    /// What linear solves had to say, once each.
    notes: Vec<String>,
    doubt: Doubt,
    /// Why a residual within the tolerance is no end yet.
    doubtful: Option<Reason>,
    watchdog: Watchdog,
}

impl<'a> State<'a> {
    fn new(
        direction: &'a mut Direction,
        system: &dyn NonlinearSystem,
        u: &Vector,
        settings: NewtonSettings,
    ) -> Result<Self, OperatorError> {
        let mut r = u.like();
        system.residual(u, &mut r)?;
        let norm = r.norm();
        Ok(Self {
            settings,
            direction,
            doubt: Doubt::new(system, settings.rtol, &r),
            doubtful: None,
            watchdog: Watchdog::default(),
            r,
            trial: u.like(),
            trial_r: u.like(),
            norm,
            plain: norm,
            target: (settings.rtol * norm).max(settings.atol),
            previous: None,
            history: vec![norm],
            steps: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Whether there is nothing left to do.
    fn finished(&self) -> Option<Outcome> {
        if !self.norm.is_finite() {
            Some(Outcome::NotFinite)
        } else if self.plain <= self.target && self.doubtful.is_none() {
            Some(Outcome::Converged)
        } else if self.steps.len() >= self.settings.max_iterations + self.watchdog.discarded() {
            Some(Outcome::IterationLimit)
        } else {
            None
        }
    }

    /// One step; an outcome where it ends the solve.
    fn step(
        &mut self,
        system: &mut dyn NonlinearSystem,
        u: &mut Vector,
        observe: Observer<'_>,
    ) -> Result<Option<Outcome>, OperatorError> {
        let eta = self.forcing(u);
        let max_iterations = self.settings.max_inner;
        let linear = CgSettings { rtol: eta, max_iterations, ..CgSettings::default() };
        self.r.scale(-1.0);
        self.direction.exactly(self.watchdog.is_exact());
        let mut inner = self.direction.solve(system, u, &self.r, linear, &mut *observe)?;
        let affine = self.settings.forcing == Forcing::Target;
        if matches!(inner.outcome, Outcome::Singular { .. }) && !affine {
            // J may be singular where one begins, and the problem not.
            let again = self.direction.solve_singular(system, &self.r, linear, observe)?;
            inner = again.unwrap_or(inner);
        }
        self.r.scale(-1.0);
        let failed = match inner.outcome {
            Outcome::Cancelled => return Ok(Some(inner.outcome)),
            Outcome::NotFinite
            | Outcome::Overflow
            | Outcome::Underflow
            | Outcome::Singular { .. } => true,
            Outcome::Indefinite { .. } => inner.iterations == 0,
            _ => false,
        };
        if failed {
            return Ok((!self.go_back(u)).then_some(inner.outcome));
        }
        for note in std::mem::take(&mut inner.notes) {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        let mut search = self.search(system, u)?;
        if self.may_try_full_steps(u, &search) {
            let (norm, previous) = (self.norm, self.previous);
            let state = Iterate { u: u.clone(), r: self.r.clone(), norm, previous };
            self.watchdog.start(state);
            if inner.residual() > EXACT * self.norm {
                return Ok(None);
            }
            search = self.search(system, u)?;
        }
        // A linear solve that promised more than its whole step has kept: what is left is noise, if it is small enough for that.
        if search.found && search.damping == 1.0 && inner.outcome.is_success() {
            let hardly = self.direction.norm(&self.trial_r) > STALLED * self.norm;
            search.noise |= hardly && self.norm <= FAR * self.noise(system, u)?;
        }
        let Search { damping, backtracks, found, noise } = search;
        let step = NewtonStep {
            residual: self.plain,
            forcing: eta,
            solver: inner.solver,
            inner_iterations: inner.iterations,
            inner_outcome: inner.outcome,
            damping,
            backtracks,
        };
        step.log(self.steps.len() + 1);
        self.steps.push(step);
        // The noise of one field may be all that is seen of the others.
        if noise && self.direction.balance.is_none() && self.balance(system, u)? {
            return Ok(None);
        }
        if !found && noise && self.plain <= self.target {
            return Ok(Some(Outcome::Converged));
        }
        if !found {
            let outcome = if noise { self.met_rounding(u) } else { self.failed(u, inner.outcome) };
            return Ok(Some(outcome));
        }
        if !noise
            && !self.watchdog.accepts(self.direction.norm(&self.trial_r), self.settings.full_steps)
        {
            self.history.push(self.plain);
            self.go_back(u);
            return Ok(None);
        }
        self.previous = Some((eta, self.norm));
        std::mem::swap(u, &mut self.trial);
        std::mem::swap(&mut self.r, &mut self.trial_r);
        (self.norm, self.plain) = (self.direction.norm(&self.r), self.r.norm());
        self.history.push(self.plain);
        if self.plain <= self.target {
            let (before, after) = (&self.trial_r, &self.r);
            let step = Step { before, delta: &self.direction.delta, u, after };
            let asked = noise || self.plain <= self.settings.atol;
            self.doubtful = if asked { None } else { self.doubt.of(system, &step)? };
            if self.doubtful == Some(Reason::Unsolved) {
                self.balanced(u);
            }
            return Ok(None);
        }
        if noise {
            return Ok(Some(self.met_rounding(u)));
        }
        // A linear solve that rounding has stopped is not to be repeated, where all that is left is that.
        let stopped = inner.outcome == Outcome::Rounding;
        if stopped && self.norm <= NEAR * self.noise(system, u)? {
            return Ok(Some(self.solved_until_rounding(true)));
        }
        Ok(None)
    }

    /// The norm of what rounding leaves of R(u).
    fn noise(&self, system: &dyn NonlinearSystem, u: &Vector) -> Result<f64, OperatorError> {
        Ok(self.direction.norm(&noise(system, u, &self.r)?))
    }

    /// Judges steps by the scales of all fields from here on.
    fn balanced(&mut self, u: &Vector) {
        self.direction.balance = Some(self.doubt.scales.balance(u));
        self.norm = self.direction.norm(&self.r);
    }

    /// The same where the equations of a field are not solved; whether they are not.
    fn balance(&mut self, system: &dyn NonlinearSystem, u: &Vector) -> Result<bool, OperatorError> {
        let unsolved = self.doubt.is_unsolved(system, u, &self.r)?;
        if unsolved {
            self.doubtful = Some(Reason::Unsolved);
            self.balanced(u);
        }
        Ok(unsolved)
    }

    /// η of the next step.
    fn forcing(&self, u: &Vector) -> f64 {
        let smallest = epsilon(u.precision());
        match self.settings.forcing {
            Forcing::Target if self.doubtful.is_some() => self.settings.rtol.max(smallest),
            _ if self.doubtful.is_some() => DOUBTFUL,
            Forcing::Target => Forcing::Target.next(self.previous, self.norm, self.target),
            _ if self.watchdog.is_exact() => EXACT.min(0.5 * self.target / self.norm).max(smallest),
            forcing => forcing.next(self.previous, self.norm, self.target),
        }
    }

    /// Whether backtracking has stalled and full steps are to be tried in its place.
    fn may_try_full_steps(&self, u: &Vector, search: &Search) -> bool {
        let NewtonSettings { line_search, full_steps, switches, forcing, .. } = self.settings;
        let is_left = || self.direction.norm(&self.trial_r) > STALLED * self.norm;
        let has_stalled = if search.found {
            switches && search.backtracks > 0 && is_left()
        } else {
            !search.noise && !self.is_below_rounding(u)
        };
        let may = line_search && full_steps > 0 && forcing != Forcing::Target;
        may && has_stalled && self.watchdog.may_start(self.norm)
    }

    /// Returns to the state where full steps began; false where there are none under way.
    fn go_back(&mut self, u: &mut Vector) -> bool {
        let Some(state) = self.watchdog.take_back() else { return false };
        self.r = state.r;
        self.norm = self.direction.norm(&self.r);
        self.plain = self.r.norm();
        self.previous = state.previous;
        u.copy_from(&state.u);
        if let Some(last) = self.history.last_mut() {
            *last = self.plain;
        }
        true
    }

    /// Whether the step is below the rounding of u.
    fn is_below_rounding(&self, u: &Vector) -> bool {
        self.direction.delta.norm() <= 8.0 * epsilon(u.precision()) * u.norm()
    }

    /// The end where R(u) is noise. A step from there shows what noise does to u, of whose digits a quarter must be left.
    fn met_rounding(&self, u: &Vector) -> Outcome {
        let useless = epsilon(u.precision()).sqrt().sqrt() * u.norm();
        self.solved_until_rounding(self.direction.delta.norm() <= useless)
    }

    fn solved_until_rounding(&self, useful: bool) -> Outcome {
        if useful && !self.settings.strict { Outcome::Rounding } else { Outcome::BelowRounding }
    }

    /// A step below the rounding of u says that u is as good as the precision allows.
    fn failed(&self, u: &Vector, inner: Outcome) -> Outcome {
        if inner.is_success() && self.is_below_rounding(u) {
            self.met_rounding(u)
        } else if let Outcome::Indefinite { .. } = inner {
            inner
        } else {
            Outcome::LineSearchFailed
        }
    }

    /// Leaves u + λ δ in `trial` and its residual in `trial_r`.
    fn search(
        &mut self,
        system: &dyn NonlinearSystem,
        u: &Vector,
    ) -> Result<Search, OperatorError> {
        let mut search = Search { damping: 1.0, backtracks: 0, found: true, noise: false };
        loop {
            let lambda = search.damping;
            self.trial.copy_from(u);
            self.trial.axpy(lambda, &self.direction.delta);
            system.residual(&self.trial, &mut self.trial_r)?;
            let norm = self.direction.norm(&self.trial_r);
            if norm <= (1.0 - SUFFICIENT * lambda) * self.norm {
                return Ok(search);
            }
            // A whole step that is of no use is one from noise to noise, or too long.
            if search.backtracks == 0 && self.norm <= FAR * self.noise(system, u)? {
                search.noise = true;
                search.found = norm < self.norm;
                return Ok(search);
            }
            if !self.settings.line_search || self.watchdog.is_on() {
                return Ok(search);
            }
            if lambda <= SMALLEST_STEP {
                search.found = false;
                return Ok(search);
            }
            search.damping *= reduction(self.norm, norm, lambda);
            search.backtracks += 1;
        }
    }
}

/// What a line search has found.
struct Search {
    /// λ.
    damping: f64,
    /// How often it was reduced.
    backtracks: usize,
    /// Whether the step is good.
    found: bool,
    /// Whether the residual before it was noise.
    noise: bool,
}

/// The factor for λ that minimises the parabola through ‖R‖² at 0 and λ with the slope −2‖R(0)‖²
/// at 0, kept between 1/10 and 1/2.
fn reduction(before: f64, after: f64, lambda: f64) -> f64 {
    if !after.is_finite() {
        return 0.25;
    }
    // Of the quotient alone, whose square is a number where those of the norms may be none.
    let factor = lambda / ((after / before).powi(2) - 1.0 + 2.0 * lambda);
    if factor.is_finite() { factor.clamp(0.1, 0.5) } else { 0.5 }
}

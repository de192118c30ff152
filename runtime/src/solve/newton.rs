//! Inexact Newton method with line search: R(u) = 0.
//!
//! Each step solves J(u) δ = −R(u) to ‖J δ + R‖ ≤ η‖R‖. The update u ← u + λ δ takes the largest λ ≤ 1 found by
//! backtracking with ‖R(u + λ δ)‖ ≤ (1 − 10⁻⁴ λ)‖R(u)‖. The forcing term η follows Eisenstat and Walker's second
//! choice: loose while R is far from linear, tight at the end.
//!
//! Backtracking stalls at penalties and switches: with a contact force k max(0, g(u)), the residual of a good step is k
//! times its penetration. In that case a watchdog takes full steps with exact linear solves, like a semismooth Newton
//! method. If these do not reduce the residual, it returns to the state before them ([`NewtonOptions::full_steps`]).

mod forcing;

use super::convergence::{CompletedStep, ConvergenceCheck, RejectionReason, noise};
use super::linear_solver::{LinearOptions, LinearSolver};
use super::ranges::{at_least_one, tolerances};
use super::scale::norms;
use super::stopping::{FAR, NEAR};
use super::watchdog::{NewtonIterate, Watchdog};
use super::{
    CgSettings, Continue, NonlinearSystem, Observer, OperatorError, Outcome, Progress, Report,
};
use crate::algebra::vector::{Vector, epsilon};
use crate::support::timers::in_step;
pub use forcing::Forcing;
use std::time::Instant;

/// Fraction of the predicted decrease that a step must reach.
const SUFFICIENT: f64 = 1e-4;
/// Smallest λ.
const SMALLEST_STEP: f64 = 1e-8;
/// Relative tolerance of the linear solve if the residual is small enough, but u still changes.
const DOUBTFUL: f64 = 1e-3;
/// Maximum number of linear solves of an affine system after the first.
const AGAIN: usize = 10;
/// Allowed residual of an affine system, relative to that of its linear solve.
const SLACK: f64 = 2.0;
/// Residual ratio above which backtracking has stalled.
const STALLED: f64 = 0.9;
/// η of full steps with exact linear solves.
const EXACT: f64 = 1e-10;

/// Stopping criterion and algorithm settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewtonOptions {
    /// Stop at ‖R‖ ≤ rtol·‖R(u₀)‖.
    pub rtol: f64,
    /// Stop at ‖R‖ ≤ atol.
    pub atol: f64,
    /// Maximum number of steps.
    pub max_iterations: usize,
    /// Maximum number of iterations of each linear solve.
    pub max_inner: usize,
    /// Tolerance of the linear solves.
    pub forcing: Forcing,
    /// Linear solver.
    pub linear: LinearOptions,
    /// True for a line search on ‖R‖.
    pub line_search: bool,
    /// Maximum number of consecutive full steps with exact linear solves, which follow stalled backtracking; 0 for
    /// none.
    pub full_steps: usize,
    /// True for systems that switch with the state, e.g. contact: a small reduction of ‖R‖ by backtracking then counts
    /// as stalled. Smooth systems continue with short steps.
    pub switches: bool,
    /// True if the tolerance is mandatory: see [`CgSettings::strict`].
    pub strict: bool,
}

impl NewtonOptions {
    fn check(self) -> Result<(), OperatorError> {
        tolerances(self.rtol, self.atol)?;
        at_least_one("max_iterations", self.max_iterations)?;
        at_least_one("max_inner", self.max_inner)?;
        at_least_one("restart", self.linear.restart)?;
        self.forcing.check()
    }
}

impl Default for NewtonOptions {
    fn default() -> Self {
        Self {
            rtol: 1e-10,
            atol: 0.0,
            max_iterations: 50,
            max_inner: 10_000,
            forcing: Forcing::default(),
            linear: LinearOptions::default(),
            line_search: true,
            full_steps: 5,
            switches: false,
            strict: false,
        }
    }
}

/// A Newton step.
#[derive(Clone, Debug, PartialEq)]
pub struct NewtonStep {
    /// ‖R‖ before the step.
    pub residual: f64,
    /// ‖R_f‖ of each field before the step, in the order of the form.
    pub fields: Vec<f64>,
    /// η.
    pub forcing: f64,
    /// Linear solver of the step.
    pub solver: &'static str,
    /// Number of linear iterations.
    pub inner_iterations: usize,
    /// Outcome of the linear solve.
    pub inner_outcome: Outcome,
    /// λ.
    pub damping: f64,
    /// Number of reductions of λ.
    pub backtracks: usize,
}

impl NewtonStep {
    /// Logs the step with its number, from 1.
    fn log(&self, number: usize) {
        let Self { residual, damping, inner_iterations, solver, .. } = self;
        let own: Vec<String> = self.fields.iter().map(|norm| format!("{norm:.3e}")).collect();
        let fields = match own.len() {
            0 | 1 => String::new(),
            _ => format!(" (by field {})", own.join(", ")),
        };
        tracing::info!(
            "newton step {number}: residual {residual:.3e}{fields}, step {damping:.3e}, {inner_iterations} linear iterations ({solver})"
        );
    }
}

/// Solves R(u) = 0 from the given `u`, which must satisfy the essential conditions. `observe` is called with (step,
/// ‖R‖) after each step, `observe_inner` after each linear iteration.
pub fn newton(
    system: &mut dyn NonlinearSystem,
    u: &mut Vector,
    settings: NewtonOptions,
    observe: Observer<'_>,
    observe_inner: Observer<'_>,
) -> Result<Report, OperatorError> {
    let mut alone = Newton { direction: LinearSolver::new(u, settings.linear) };
    alone.solve(system, u, settings, observe, observe_inner)
}

/// Newton solver for sequences of nearby systems, such as time steps: factors of one Jacobian precondition later ones
/// while that pays off, and solver fallbacks are remembered.
pub struct Newton {
    direction: LinearSolver,
}

impl Newton {
    /// Creates a solver for states like `u`.
    pub fn new(u: &Vector, linear: LinearOptions) -> Self {
        Self { direction: LinearSolver::keeping(u, linear) }
    }

    /// Solves like [`newton`], with the linear solver of its creation.
    ///
    /// # Errors
    ///
    /// As for [`newton`].
    pub fn solve(
        &mut self,
        system: &mut dyn NonlinearSystem,
        u: &mut Vector,
        settings: NewtonOptions,
        observe: Observer<'_>,
        observe_inner: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        settings.check()?;
        let start = Instant::now();
        self.direction.begin();
        let mut state = NewtonState::new(&mut self.direction, system, u, settings)?;
        let outcome = loop {
            if let Some(outcome) = state.finished() {
                break outcome;
            }
            let taken = state.steps.len();
            if let Some(outcome) = state.step(system, u, observe_inner)? {
                break outcome;
            }
            // Full steps began or ended without a step.
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
        let outcome = if asked {
            outcome
        } else {
            state.convergence.settled(system, at, outcome, balanced)?
        };
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

/// Solves an affine system, J δ = −R(u), u ← u + δ, with one linear solve. Further ones follow if the initial state was
/// too far away, or one field's residual too large, for a meaningful tolerance.
pub fn solve_affine(
    system: &mut dyn NonlinearSystem,
    u: &mut Vector,
    settings: CgSettings,
    linear: LinearOptions,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    AffineSolver::new(u, linear).solve(system, u, settings, observe)
}

/// Solver for sequences of affine systems. While a system's Jacobian is the [same](NonlinearSystem::same_jacobian), its
/// factors are reused; solver fallbacks are remembered.
pub struct AffineSolver {
    direction: LinearSolver,
}

impl AffineSolver {
    /// Creates a solver for states like `u`.
    pub fn new(u: &Vector, linear: LinearOptions) -> Self {
        Self { direction: LinearSolver::new(u, linear) }
    }

    /// Solves like [`solve_affine`].
    ///
    /// # Errors
    ///
    /// As for [`solve_affine`].
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

fn solve_with(
    direction: &mut LinearSolver,
    system: &mut dyn NonlinearSystem,
    u: &mut Vector,
    settings: CgSettings,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    let start = Instant::now();
    direction.begin();
    let mut r = direction.residual.take().unwrap_or_else(|| u.like());
    system.residual(u, &mut r)?;
    let mut convergence =
        in_step("convergence check", || ConvergenceCheck::new(system, settings.rtol, &r));
    r.scale(-1.0);
    let mut report = direction.solve(system, u, &r, settings, observe)?;
    r.scale(-1.0);
    let target = report.target;
    for pass in 1.. {
        if !matches!(report.outcome, Outcome::NotFinite | Outcome::Overflow) {
            u.axpy(1.0, &direction.delta);
        }
        if !report.outcome.is_success() || r.norm() == 0.0 {
            let balanced = direction.balance.is_some();
            report.outcome = convergence.settled(system, (u, &r), report.outcome, balanced)?;
            break;
        }
        let mut after = direction.take_spare(u);
        system.residual(u, &mut after)?;
        let left = after.norm();
        let claimed = SLACK * target.max(report.residual());
        report.history.last_mut().into_iter().for_each(|last| *last = left);
        if left <= settings.atol {
            direction.put_spare(after);
            break;
        }
        // The balance is that of the solve that has just ended.
        let reduction = direction.norm(&after) / direction.norm(&r);
        let (before, delta) = (&r, &direction.delta);
        let step = CompletedStep { before, delta, u, after: &after, reduction };
        let reason = in_step("convergence check", || convergence.of(system, &step))?;
        // The linear solve's residual does not apply to a system that is not affine.
        let kept = left <= claimed || left <= FAR * noise(system, u, &after)?.norm();
        if kept && (reason.is_none() || pass > AGAIN) {
            let checked = || convergence.settled(system, (u, &after), report.outcome, true);
            report.outcome = in_step("convergence check", checked)?;
            direction.put_spare(after);
            break;
        }
        if pass > AGAIN || !left.is_finite() {
            report.outcome = Outcome::Stagnated;
            direction.put_spare(after);
            break;
        }
        let mut next = settings;
        if reason == Some(RejectionReason::Unsolved) {
            let balance = convergence.scales.balance(u);
            let rtol = 0.5 * convergence.rtol() * balance.size / balance.norm(&after);
            next.rtol = rtol.clamp(epsilon(u.precision()), 0.5);
            direction.balance = Some(balance);
        }
        let (before, iterations) = (u.clone(), report.iterations);
        let mut counted = |progress: Progress| {
            observe(Progress { iteration: iterations + progress.iteration, ..progress })
        };
        direction.put_spare(std::mem::replace(&mut r, after));
        r.scale(-1.0);
        let next = direction.solve(system, &before, &r, next, &mut counted)?;
        r.scale(-1.0);
        let history = std::mem::take(&mut report.history);
        report = Report {
            iterations: iterations + next.iterations,
            history: [history, next.history].concat(),
            ..next
        };
    }
    direction.residual = Some(r);
    report.target = target;
    in_step("mean values", || system.complete(u))?;
    report.note_rounding();
    report.seconds = start.elapsed().as_secs_f64();
    Ok(report)
}

/// State between steps.
struct NewtonState<'a> {
    settings: NewtonOptions,
    direction: &'a mut LinearSolver,
    /// R(u).
    r: Vector,
    /// u + λ δ and R there.
    trial: Vector,
    trial_r: Vector,
    /// Norm of R(u) for the acceptance of steps; ‖R(u)‖ unless the equations of fields are balanced.
    norm: f64,
    /// ‖R(u)‖.
    plain: f64,
    target: f64,
    /// (η, ‖R‖) of the last step.
    previous: Option<(f64, f64)>,
    history: Vec<f64>,
    steps: Vec<NewtonStep>,
    /// Notes of linear solves, without duplicates.
    notes: Vec<String>,
    convergence: ConvergenceCheck,
    /// Reason to continue although the residual is within the tolerance.
    doubtful: Option<RejectionReason>,
    watchdog: Watchdog,
}

impl<'a> NewtonState<'a> {
    fn new(
        direction: &'a mut LinearSolver,
        system: &dyn NonlinearSystem,
        u: &Vector,
        settings: NewtonOptions,
    ) -> Result<Self, OperatorError> {
        let mut r = u.like();
        system.residual(u, &mut r)?;
        let norm = r.norm();
        Ok(Self {
            settings,
            direction,
            convergence: ConvergenceCheck::new(system, settings.rtol, &r),
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

    /// Returns the outcome if the iteration ends before another step.
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

    /// Takes one step; returns an outcome if it ends the solve.
    fn step(
        &mut self,
        system: &mut dyn NonlinearSystem,
        u: &mut Vector,
        observe: Observer<'_>,
    ) -> Result<Option<Outcome>, OperatorError> {
        let eta = self.forcing(u);
        let mut inner = self.solve_linear(system, u, eta, observe)?;
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
            let state = NewtonIterate { u: u.clone(), r: self.r.clone(), norm, previous };
            self.watchdog.start(state);
            if inner.residual() > EXACT * self.norm {
                return Ok(None);
            }
            search = self.search(system, u)?;
        }
        // A whole step that reduces the residual far less than its linear solve promised: it is at the rounding-error
        // level, if it is small enough.
        if search.found && search.damping == 1.0 && inner.outcome.is_success() {
            let hardly = self.direction.norm(&self.trial_r) > STALLED * self.norm;
            search.noise |= hardly && self.norm <= FAR * self.noise(system, u)?;
        }
        let LineSearch { damping, backtracks, found, noise } = search;
        let step = NewtonStep {
            residual: self.plain,
            fields: norms(&self.convergence.scales.fields, &self.r),
            forcing: eta,
            solver: inner.solver,
            inner_iterations: inner.iterations,
            inner_outcome: inner.outcome,
            damping,
            backtracks,
        };
        step.log(self.steps.len() + 1);
        self.steps.push(step);
        // Rounding error of one field may hide the others.
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
        self.accept(system, u, noise, inner.outcome)
    }

    /// Solves for the direction δ with the relative tolerance η.
    fn solve_linear(
        &mut self,
        system: &mut dyn NonlinearSystem,
        u: &Vector,
        eta: f64,
        observe: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        let max_iterations = self.settings.max_inner;
        let linear = CgSettings { rtol: eta, max_iterations, ..CgSettings::default() };
        self.r.scale(-1.0);
        self.direction.exactly(self.watchdog.is_exact());
        let mut inner = self.direction.solve(system, u, &self.r, linear, &mut *observe)?;
        let affine = self.settings.forcing == Forcing::Target;
        if matches!(inner.outcome, Outcome::Singular { .. }) && !affine {
            // J may be singular at the initial state only.
            let again = self.direction.solve_singular(system, &self.r, linear, observe)?;
            inner = again.unwrap_or(inner);
        }
        self.r.scale(-1.0);
        Ok(inner)
    }

    /// Moves to the trial state; returns an outcome if that ends the solve. `noise` means that its residual is at the
    /// rounding-error level.
    fn accept(
        &mut self,
        system: &dyn NonlinearSystem,
        u: &mut Vector,
        noise: bool,
        inner: Outcome,
    ) -> Result<Option<Outcome>, OperatorError> {
        std::mem::swap(u, &mut self.trial);
        std::mem::swap(&mut self.r, &mut self.trial_r);
        (self.norm, self.plain) = (self.direction.norm(&self.r), self.r.norm());
        self.history.push(self.plain);
        if self.plain <= self.target {
            let (before, after) = (&self.trial_r, &self.r);
            let (delta, reduction) = (&self.direction.delta, after.norm() / before.norm());
            let step = CompletedStep { before, delta, u, after, reduction };
            let asked = noise || self.plain <= self.settings.atol;
            self.doubtful = if asked { None } else { self.convergence.of(system, &step)? };
            if self.doubtful == Some(RejectionReason::Unsolved) {
                self.balanced(u);
            }
            return Ok(None);
        }
        if noise {
            return Ok(Some(self.met_rounding(u)));
        }
        // A linear solve at the rounding-error level is not repeated if the residual is at that level, too.
        let stopped = inner == Outcome::Rounding;
        if stopped && self.norm <= NEAR * self.noise(system, u)? {
            return Ok(Some(self.solved_until_rounding(true)));
        }
        Ok(None)
    }

    /// Estimates the norm of the rounding error of R(u).
    fn noise(&self, system: &dyn NonlinearSystem, u: &Vector) -> Result<f64, OperatorError> {
        Ok(self.direction.norm(&noise(system, u, &self.r)?))
    }

    /// Switches to a norm weighted by the scales of all fields.
    fn balanced(&mut self, u: &Vector) {
        self.direction.balance = Some(self.convergence.scales.balance(u));
        self.norm = self.direction.norm(&self.r);
    }

    /// Does so if the equations of a field are not solved; returns whether it did.
    fn balance(&mut self, system: &dyn NonlinearSystem, u: &Vector) -> Result<bool, OperatorError> {
        let unsolved = self.convergence.is_unsolved(system, u, &self.r)?;
        if unsolved {
            self.doubtful = Some(RejectionReason::Unsolved);
            self.balanced(u);
        }
        Ok(unsolved)
    }

    /// Returns η of the next step.
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

    /// Returns whether backtracking has stalled and full steps should replace it.
    fn may_try_full_steps(&self, u: &Vector, search: &LineSearch) -> bool {
        let NewtonOptions { line_search, full_steps, switches, forcing, .. } = self.settings;
        let is_left = || self.direction.norm(&self.trial_r) > STALLED * self.norm;
        let has_stalled = if search.found {
            switches && search.backtracks > 0 && is_left()
        } else {
            !search.noise && !self.is_below_rounding(u)
        };
        let may = line_search && full_steps > 0 && forcing != Forcing::Target;
        may && has_stalled && self.watchdog.may_start(self.norm)
    }

    /// Returns to the state before the full steps; false if none are in progress.
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

    /// Returns whether the step is below the rounding error of u.
    fn is_below_rounding(&self, u: &Vector) -> bool {
        self.direction.delta.norm() <= 8.0 * epsilon(u.precision()) * u.norm()
    }

    /// Returns the outcome of an R(u) at the rounding-error level. The step shows its effect on u, a quarter of whose
    /// digits must remain.
    fn met_rounding(&self, u: &Vector) -> Outcome {
        let useless = epsilon(u.precision()).sqrt().sqrt() * u.norm();
        self.solved_until_rounding(self.direction.delta.norm() <= useless)
    }

    fn solved_until_rounding(&self, useful: bool) -> Outcome {
        if useful && !self.settings.strict { Outcome::Rounding } else { Outcome::BelowRounding }
    }

    /// Returns the outcome of a failed step; a step below the rounding error of u means that u is as accurate as the
    /// precision allows.
    fn failed(&self, u: &Vector, inner: Outcome) -> Outcome {
        if inner.is_success() && self.is_below_rounding(u) {
            self.met_rounding(u)
        } else if let Outcome::Indefinite { .. } = inner {
            inner
        } else {
            Outcome::LineSearchFailed
        }
    }

    /// Runs the line search: leaves u + λ δ in `trial` and its residual in `trial_r`.
    fn search(
        &mut self,
        system: &dyn NonlinearSystem,
        u: &Vector,
    ) -> Result<LineSearch, OperatorError> {
        let mut search = LineSearch { damping: 1.0, backtracks: 0, found: true, noise: false };
        loop {
            let lambda = search.damping;
            self.trial.copy_from(u);
            self.trial.axpy(lambda, &self.direction.delta);
            system.residual(&self.trial, &mut self.trial_r)?;
            let norm = self.direction.norm(&self.trial_r);
            if norm <= (1.0 - SUFFICIENT * lambda) * self.norm {
                return Ok(search);
            }
            // A useless whole step is either rounding error or too long.
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

/// Result of a line search.
struct LineSearch {
    /// λ.
    damping: f64,
    /// Number of reductions of λ.
    backtracks: usize,
    /// True for an acceptable step.
    found: bool,
    /// True if the residual before the step was at the rounding-error level.
    noise: bool,
}

/// Returns the factor of λ that minimises the parabola through ‖R‖² at 0 and λ with slope −2‖R(0)‖² at 0, clamped to
/// [1/10, 1/2].
fn reduction(before: f64, after: f64, lambda: f64) -> f64 {
    if !after.is_finite() {
        return 0.25;
    }
    // From the quotient: its square is finite even if the squares of the norms overflow.
    let factor = lambda / ((after / before).powi(2) - 1.0 + 2.0 * lambda);
    if factor.is_finite() { factor.clamp(0.1, 0.5) } else { 0.5 }
}

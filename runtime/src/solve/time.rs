//! Time integration schemes for F(t, u, u̇, ü) = 0: each step consists of stages, each a solve for x in
//!
//! ```text
//! F(t*, x, s₁ x + r₁, s₂ x + r₂) = 0        s: factors of the scheme, r: history terms
//! ```
//!
//! from which the next state follows. Constrained degrees of freedom are functions of time and are not integrated: in
//! each stage and state, their x, u̇ and ü are the condition's value and its derivatives. Schemes for first derivatives
//! treat ü as the derivative of an additional velocity v = u̇, which their own formula eliminates: s₂ = s₁², r₂ = s₁ r₁
//! + q, with v̇ = s₁ v + q. No scheme needs more unknowns than the form has.
//!
//! | scheme | order | stages |
//! | --- | --- | --- |
//! | `theta` | 2 at θ = ½, else 1 | x = u at t + θ Δt |
//! | `bdf` | 1 to 5 | backward differences with variable steps; started by Runge-Kutta |
//! | `sdirk` | 2, 3, 3 | Alexander (1977), and one of four stages with γ = ¼; L-stable, stiffly accurate |
//! | `newmark` | 2 at γ = ½, else 1 | Newmark (1959) |
//! | `generalised_alpha` | 2 | Chung and Hulbert (1993) |
//!
//! A field without time derivatives takes the values of the last stage.

mod backward_differences;
mod newmark;
mod sdirk;
#[cfg(test)]
mod tests;
mod theta;
mod weights;

use crate::algebra::vector::Vector;
use backward_differences::BackwardDifferences;
use fem_dsl::problem::Scheme;
use newmark::NewmarkScheme;
use sdirk::Tableau;
use std::collections::VecDeque;
use theta::ThetaScheme;
pub use weights::derivative;
use weights::{combined, lagrange};

/// Initial states with a norm below this fraction of the first steps' results count as 0.
const FROM_REST: f64 = 1e-3;
/// Norms of u below this fraction of its largest norm count as 0.
const SMALL: f64 = 1e-12;

/// State at a time.
#[derive(Clone)]
pub struct TimeState {
    /// t.
    pub time: f64,
    /// u.
    pub u: Vector,
    /// u̇.
    pub v: Vector,
    /// ü, for second-order forms.
    pub a: Option<Vector>,
}

/// A stage: one nonlinear solve.
pub struct Stage<'a> {
    /// t*.
    pub time: f64,
    /// s₁ and s₂.
    pub factors: [f64; 2],
    /// r₁ and r₂.
    pub rates: [&'a Vector; 2],
}

impl<'a> Stage<'a> {
    /// Creates a stage with an eliminated velocity, s₂ = s₁².
    fn at(time: f64, s: f64, rates: [&'a Vector; 2]) -> Self {
        Self { time, factors: [s, s * s], rates }
    }
}

/// Solver of stages.
pub trait StageSolver {
    /// Error of a failed stage.
    type Error;

    /// Solves for x, with x as the initial guess.
    ///
    /// # Errors
    ///
    /// A solve that fails.
    fn solve(&mut self, stage: &Stage<'_>, x: &mut Vector) -> Result<(), Self::Error>;

    /// Copies the entries of fields without time derivatives.
    fn keep_algebraic(&self, from: &Vector, to: &mut Vector);

    /// Sets the constrained degrees of freedom of a state, and of its derivatives, from their conditions at its time.
    ///
    /// # Errors
    ///
    /// A condition without a value.
    fn constrain(&mut self, state: &mut TimeState) -> Result<(), Self::Error>;
}

/// Result of a step.
pub struct StepResult {
    /// State at its end.
    pub state: TimeState,
    /// Error estimate relative to u, if there is one. If u starts at 0, it is relative to the largest trial result of
    /// the first step.
    pub estimate: Option<f64>,
}

/// States that a scheme reads.
pub struct History {
    /// True for second-order forms.
    pub second: bool,
    /// States, newest first.
    past: VecDeque<TimeState>,
    /// Largest ‖u‖ so far.
    largest: f64,
    begun: InitialState,
}

impl History {
    /// Returns the current state.
    pub fn state(&self) -> &TimeState {
        &self.past[0]
    }

    /// Returns the stored states, newest first.
    pub fn past(&self) -> impl Iterator<Item = &TimeState> {
        self.past.iter()
    }

    /// Extrapolates u to a time through the last states, as an initial guess.
    pub fn extrapolated(&self, time: f64) -> Vector {
        let states: Vec<&TimeState> = self.past.iter().take(3).collect();
        let times: Vec<f64> = states.iter().map(|state| state.time).collect();
        let weights = lagrange(time, &times);
        let terms: Vec<(f64, &Vector)> =
            weights.into_iter().zip(states.iter().map(|state| &state.u)).collect();
        combined(&terms)
    }

    /// Returns an error relative to ‖u‖.
    fn relative(&self, error: f64, size: f64) -> f64 {
        let InitialState { norm, tried, .. } = self.begun;
        // From u = 0, both u and the local error are proportional to the step length.
        let least = if norm <= FROM_REST * tried { tried } else { 0.0 };
        let size = size.max(SMALL * self.largest).max(least);
        if error == 0.0 { 0.0 } else { error / size }
    }
}

/// A scheme whose steps solve stages; E is the error of a failed stage. A new one is a file of this folder, a line in
/// [`time_scheme`], and its words in the language.
pub trait TimeScheme<E>: Send {
    /// Returns the order p of the error estimate: a step's local error is O(Δt^(p+1)).
    fn order(&self) -> usize;

    /// Returns the number of states to keep for the next steps.
    fn kept_states(&self) -> usize {
        2
    }

    /// Returns whether the first step reads the highest rates of the initial state.
    fn needs_initial_rates(&self) -> bool {
        false
    }

    /// Returns whether the rates after a step always belong to its end.
    fn gives_rates_at_end(&self) -> bool {
        true
    }

    /// Takes a step, without conditions on constrained degrees of freedom.
    ///
    /// # Errors
    ///
    /// A stage that cannot be solved.
    fn step(
        &self,
        history: &History,
        length: f64,
        stages: &mut dyn StageSolver<Error = E>,
    ) -> Result<StepResult, E>;
}

/// Returns an implicit scheme; `None` for an explicit one, which solves no stages.
pub fn time_scheme<E>(scheme: Scheme) -> Option<Box<dyn TimeScheme<E>>> {
    Some(match scheme {
        Scheme::Theta { theta } => Box::new(ThetaScheme { theta }),
        Scheme::Bdf { order } => Box::new(BackwardDifferences { order }),
        Scheme::Sdirk { stages } => Box::new(Tableau::of(stages)),
        Scheme::Newmark { beta, gamma } => {
            Box::new(NewmarkScheme { beta, gamma, of_rates: 0.0, of_states: 0.0 })
        }
        Scheme::GeneralisedAlpha { rho } => Box::new(NewmarkScheme::of_radius(rho)),
        _ => return None,
    })
}

/// Time integrator.
pub struct Stepper<E> {
    scheme: Box<dyn TimeScheme<E>>,
    history: History,
}

/// Properties of the initial state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InitialState {
    /// True if its highest rates are known.
    pub rates: bool,
    /// Its ‖u‖.
    pub norm: f64,
    /// Largest ‖u‖ of steps from it, rejected ones included.
    pub tried: f64,
}

impl<E> Stepper<E> {
    /// Creates an integrator from a state; `rates` states that its rates are known.
    pub fn new(
        scheme: Box<dyn TimeScheme<E>>,
        second: bool,
        state: TimeState,
        rates: bool,
    ) -> Self {
        let largest = state.u.norm();
        let begun = InitialState { rates, norm: largest, tried: 0.0 };
        Self::resume(scheme, second, VecDeque::from([state]), (largest, begun))
    }

    /// Restores an integrator from saved states, newest first, with its largest ‖u‖ and the properties of its initial
    /// state.
    pub fn resume(
        scheme: Box<dyn TimeScheme<E>>,
        second: bool,
        past: VecDeque<TimeState>,
        (largest, begun): (f64, InitialState),
    ) -> Self {
        Self { scheme, history: History { second, past, largest, begun } }
    }

    /// Returns the properties of the initial state.
    pub fn begun(&self) -> InitialState {
        self.history.begun
    }

    /// Returns the stored states, newest first.
    pub fn past(&self) -> impl Iterator<Item = &TimeState> {
        self.history.past()
    }

    /// Returns the largest ‖u‖ so far.
    pub fn largest(&self) -> f64 {
        self.history.largest
    }

    /// Returns the current state.
    pub fn state(&self) -> &TimeState {
        self.history.state()
    }

    /// Returns the order p of the error estimate: a step's local error is O(Δt^(p+1)).
    pub fn order(&self) -> usize {
        self.scheme.order()
    }

    /// Takes a step. No state changes before [`Self::accept`].
    ///
    /// # Errors
    ///
    /// A stage that cannot be solved.
    pub fn step(
        &mut self,
        length: f64,
        stages: &mut dyn StageSolver<Error = E>,
    ) -> Result<StepResult, E> {
        let Self { scheme, history } = self;
        let mut taken = scheme.step(history, length, stages)?;
        stages.constrain(&mut taken.state)?;
        let size = taken.state.u.norm();
        if (history.past.len() == 1 || history.largest == 0.0) && size.is_finite() {
            history.begun.tried = history.begun.tried.max(size);
        }
        taken.estimate = taken.estimate.map(|error| history.relative(error, size));
        Ok(taken)
    }

    /// Accepts the state of a step.
    pub fn accept(&mut self, taken: TimeState) {
        let history = &mut self.history;
        history.largest = history.largest.max(taken.u.norm());
        history.past.push_front(taken);
        history.past.truncate(self.scheme.kept_states());
    }
}

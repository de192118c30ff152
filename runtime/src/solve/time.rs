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

mod tableau;
#[cfg(test)]
mod tests;

use crate::algebra::vector::Vector;
use fem_dsl::problem::Scheme;
use std::collections::VecDeque;
use tableau::Tableau;

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
    fn hold(&mut self, state: &mut TimeState) -> Result<(), Self::Error>;
}

/// Result of a step.
pub struct StepResult {
    /// State at its end.
    pub state: TimeState,
    /// Error estimate relative to u, if there is one. If u starts at 0, it is relative to the largest trial result of
    /// the first step.
    pub estimate: Option<f64>,
}

/// Time integrator.
pub struct Stepper {
    scheme: Scheme,
    /// True for second-order forms.
    second: bool,
    /// States, newest first.
    past: VecDeque<TimeState>,
    /// Largest ‖u‖ so far.
    largest: f64,
    begun: InitialState,
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

/// Computes Σ cᵢ xᵢ.
fn combined(terms: &[(f64, &Vector)]) -> Vector {
    let mut terms = terms.iter();
    let Some((c, x)) = terms.next() else { unreachable!("combinations have terms") };
    let mut sum = (*x).clone();
    sum.scale(*c);
    terms.for_each(|(c, x)| sum.axpy(*c, x));
    sum
}

/// Returns the derivatives of the Lagrange polynomials of some times, at the first of them.
fn differences(times: &[f64]) -> Vec<f64> {
    let at = times[0];
    let weight = |j: usize| {
        let others = || times.iter().enumerate().filter(move |(i, _)| *i != j);
        let terms = others().map(|(i, ti)| {
            let rest = others().filter(|(k, _)| *k != i);
            let product: f64 = rest.map(|(_, tk)| (at - tk) / (times[j] - tk)).product();
            product / (times[j] - ti)
        });
        terms.sum()
    };
    (0..times.len()).map(weight).collect()
}

/// Returns the finite-difference weights of a derivative of this order at one of some times.
pub fn derivative(order: usize, times: &[f64], at: usize) -> Vec<f64> {
    // Row i holds the first derivative at time i.
    let row = |i: usize| -> Vec<f64> {
        let mut turned = times.to_vec();
        turned.swap(0, i);
        let mut weights = differences(&turned);
        weights.swap(0, i);
        weights
    };
    let mut weights = row(at);
    for _ in 1..order {
        let rows: Vec<Vec<f64>> = (0..times.len()).map(row).collect();
        let sum = |j: usize| weights.iter().zip(&rows).map(|(w, row)| w * row[j]).sum();
        weights = (0..times.len()).map(sum).collect();
    }
    weights
}

/// Evaluates the Lagrange polynomials of some times.
fn lagrange(at: f64, times: &[f64]) -> Vec<f64> {
    let weight = |j: usize| {
        let others = times.iter().enumerate().filter(|(i, _)| *i != j);
        others.map(|(_, t)| (at - t) / (times[j] - t)).product()
    };
    (0..times.len()).map(weight).collect()
}

impl Stepper {
    /// Creates an integrator from a state; `rates` states that its rates are known.
    pub fn new(scheme: Scheme, second: bool, state: TimeState, rates: bool) -> Self {
        let largest = state.u.norm();
        let begun = InitialState { rates, norm: largest, tried: 0.0 };
        Self { scheme, second, past: VecDeque::from([state]), largest, begun }
    }

    /// Restores an integrator from saved states, newest first, with its largest ‖u‖ and the properties of its initial
    /// state.
    pub fn resume(
        scheme: Scheme,
        second: bool,
        past: VecDeque<TimeState>,
        (largest, begun): (f64, InitialState),
    ) -> Self {
        Self { scheme, second, past, largest, begun }
    }

    /// Returns the properties of the initial state.
    pub fn begun(&self) -> InitialState {
        self.begun
    }

    /// Returns the stored states, newest first.
    pub fn past(&self) -> impl Iterator<Item = &TimeState> {
        self.past.iter()
    }

    /// Returns the largest ‖u‖ so far.
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// Returns the current state.
    pub fn state(&self) -> &TimeState {
        &self.past[0]
    }

    /// Returns the order p of the error estimate: a step's local error is O(Δt^(p+1)).
    pub fn order(&self) -> usize {
        match self.scheme {
            Scheme::Theta { theta: 0.5 } => 2,
            Scheme::Theta { .. } => 1,
            Scheme::Bdf { order } => order,
            Scheme::Sdirk { stages } => Tableau::of(stages).embedded_order,
            Scheme::RungeKutta { order, .. } => order,
            _ => 2,
        }
    }

    /// Takes a step. No state changes before [`Self::accept`].
    ///
    /// # Errors
    ///
    /// A stage that cannot be solved.
    pub fn step<S: StageSolver>(
        &mut self,
        length: f64,
        stages: &mut S,
    ) -> Result<StepResult, S::Error> {
        let mut taken = self.by_formula(length, stages)?;
        stages.hold(&mut taken.state)?;
        let size = taken.state.u.norm();
        if (self.past.len() == 1 || self.largest == 0.0) && size.is_finite() {
            self.begun.tried = self.begun.tried.max(size);
        }
        taken.estimate = taken.estimate.map(|error| self.relative(error, size));
        Ok(taken)
    }

    /// Takes a step without conditions on constrained degrees of freedom.
    fn by_formula<S: StageSolver>(
        &self,
        length: f64,
        stages: &mut S,
    ) -> Result<StepResult, S::Error> {
        match self.scheme {
            Scheme::Theta { theta } => self.theta(theta, length, stages),
            Scheme::Bdf { order } if self.past.len() < order => self.begin(order, length, stages),
            Scheme::Bdf { order } => self.backward_differences(order, length, stages),
            Scheme::Sdirk { stages: count } => {
                self.runge_kutta(self.state(), &Tableau::of(count), length, stages)
            }
            Scheme::Newmark { beta, gamma } => self.newmark(
                NewmarkParameters { beta, gamma, of_rates: 0.0, of_states: 0.0 },
                length,
                stages,
            ),
            Scheme::GeneralisedAlpha { rho } => {
                self.newmark(NewmarkParameters::of_radius(rho), length, stages)
            }
            _ => unreachable!("explicit schemes solve no stages"),
        }
    }

    /// Accepts the state of a step.
    pub fn accept(&mut self, taken: TimeState) {
        self.largest = self.largest.max(taken.u.norm());
        self.past.push_front(taken);
        let kept = match self.scheme {
            // One more than a step needs, for the estimate.
            Scheme::Bdf { order } => order + 1,
            _ => 2,
        };
        self.past.truncate(kept);
    }

    /// Returns an error relative to ‖u‖.
    fn relative(&self, error: f64, size: f64) -> f64 {
        let InitialState { norm, tried, .. } = self.begun;
        // From u = 0, both u and the local error are proportional to the step length.
        let least = if norm <= FROM_REST * tried { tried } else { 0.0 };
        let size = size.max(SMALL * self.largest).max(least);
        if error == 0.0 { 0.0 } else { error / size }
    }

    /// Extrapolates a rate from the stage of a θ-step to its end, linearly through that of the last step, the
    /// difference quotient of `of`. The first step uses the initial rate, if it is known.
    fn at_end(
        &self,
        (theta, length): (f64, f64),
        stage: Vector,
        of: impl Fn(&TimeState) -> &Vector,
        begun: Option<&Vector>,
    ) -> Vector {
        let ahead = (1.0 - theta) * length;
        let known = begun.filter(|_| self.begun.rates);
        let (share, older) = match (self.past.get(1), known) {
            _ if theta == 1.0 => return stage,
            (Some(older), _) => {
                let (last, h) = (of(self.state()), self.state().time - older.time);
                let apart = (1.0 - theta) * h + theta * length;
                (ahead / apart, combined(&[(1.0 / h, last), (-1.0 / h, of(older))]))
            }
            (None, Some(begun)) => (ahead / (theta * length), begun.clone()),
            (None, None) => return stage,
        };
        combined(&[(1.0 + share, &stage), (-share, &older)])
    }

    /// Extrapolates u to a time through the last states, as an initial guess.
    fn extrapolated(&self, time: f64) -> Vector {
        let states: Vec<&TimeState> = self.past.iter().take(3).collect();
        let times: Vec<f64> = states.iter().map(|state| state.time).collect();
        let weights = lagrange(time, &times);
        let terms: Vec<(f64, &Vector)> =
            weights.into_iter().zip(states.iter().map(|state| &state.u)).collect();
        combined(&terms)
    }

    fn theta<S: StageSolver>(
        &self,
        theta: f64,
        length: f64,
        stages: &mut S,
    ) -> Result<StepResult, S::Error> {
        let before = self.state();
        let s = 1.0 / (theta * length);
        let r = combined(&[(-s, &before.u)]);
        let r2 = combined(&[(-s * s, &before.u), (-s, &before.v)]);
        let (time, end) = (before.time + theta * length, before.time + length);
        let mut x = self.extrapolated(time);
        stages.solve(&Stage::at(time, s, [&r, &r2]), &mut x)?;
        let v = combined(&[(s, &x), (1.0, &r)]);
        let behind =
            |old: &Vector, at: &Vector| combined(&[(1.0 / theta, at), (1.0 - 1.0 / theta, old)]);
        let mut u = behind(&before.u, &x);
        stages.keep_algebraic(&x, &mut u);
        // The newest rates belong to a time within the step; nothing depends on them.
        let step = (theta, length);
        let a = self.second.then(|| {
            let stage = combined(&[(s * s, &x), (1.0, &r2)]);
            self.at_end(step, stage, |state| &state.v, before.a.as_ref())
        });
        let v = match self.second {
            true => behind(&before.v, &v),
            false => self.at_end(step, v, |state| &state.u, Some(&before.v)),
        };
        Ok(StepResult { state: TimeState { time: end, u, v, a }, estimate: None })
    }

    fn backward_differences<S: StageSolver>(
        &self,
        order: usize,
        length: f64,
        stages: &mut S,
    ) -> Result<StepResult, S::Error> {
        let time = self.state().time + length;
        let past: Vec<&TimeState> = self.past.iter().take(order).collect();
        let times: Vec<f64> =
            std::iter::once(time).chain(past.iter().map(|state| state.time)).collect();
        let weights = differences(&times);
        let (s, rest) = (weights[0], &weights[1..]);
        let of = |part: fn(&TimeState) -> &Vector| {
            let terms: Vec<(f64, &Vector)> =
                rest.iter().copied().zip(past.iter().map(|state| part(state))).collect();
            combined(&terms)
        };
        let r = of(|state| &state.u);
        let r2 = match self.second {
            true => combined(&[(s, &r), (1.0, &of(|state| &state.v))]),
            false => r.like(),
        };
        let known: Vec<&TimeState> = self.past.iter().collect();
        let predicted = {
            let times: Vec<f64> = known.iter().map(|state| state.time).collect();
            let terms: Vec<(f64, &Vector)> = lagrange(time, &times)
                .into_iter()
                .zip(known.iter().map(|state| &state.u))
                .collect();
            combined(&terms)
        };
        let mut x = predicted.clone();
        stages.solve(&Stage::at(time, s, [&r, &r2]), &mut x)?;
        // The error of the polynomial through one more value estimates that of the formula.
        let estimate = (known.len() > order).then(|| {
            let reach = time - known[order].time;
            let difference = combined(&[(length / reach, &x), (-length / reach, &predicted)]);
            difference.norm()
        });
        let v = combined(&[(s, &x), (1.0, &r)]);
        let a = self.second.then(|| combined(&[(s * s, &x), (1.0, &r2)]));
        Ok(StepResult { state: TimeState { time, u: x, v, a }, estimate })
    }

    /// Starts backward differences with too few values: Runge-Kutta steps of one order less, which suffices for a few
    /// steps. Order 5 combines order-3 results of two and four substeps by Richardson extrapolation, with an error
    /// ratio of 8.
    fn begin<S: StageSolver>(
        &self,
        order: usize,
        length: f64,
        stages: &mut S,
    ) -> Result<StepResult, S::Error> {
        let tableau = Tableau::of(order.clamp(2, 3));
        if order < 5 {
            return self.runge_kutta(self.state(), &tableau, length, stages);
        }
        let mut in_parts = |parts: usize| {
            let part = length / parts as f64;
            let mut taken = self.runge_kutta(self.state(), &tableau, part, stages)?;
            for _ in 1..parts {
                taken = self.runge_kutta(&taken.state, &tableau, part, stages)?;
            }
            Ok(taken)
        };
        let (coarse, fine) = (in_parts(2)?, in_parts(4)?);
        let better =
            |fine: &Vector, coarse: &Vector| combined(&[(8.0 / 7.0, fine), (-1.0 / 7.0, coarse)]);
        let (old, new) = (coarse.state, fine.state);
        let u = better(&new.u, &old.u);
        let estimate = Some(combined(&[(1.0, &u), (-1.0, &new.u)]).norm());
        let (v, a) =
            (better(&new.v, &old.v), new.a.zip(old.a).map(|(new, old)| better(&new, &old)));
        Ok(StepResult { state: TimeState { time: self.state().time + length, u, v, a }, estimate })
    }

    fn runge_kutta<S: StageSolver>(
        &self,
        before: &TimeState,
        tableau: &Tableau,
        length: f64,
        stages: &mut S,
    ) -> Result<StepResult, S::Error> {
        let s = 1.0 / (tableau.gamma * length);
        // Derivatives of u and of v at the stages.
        let (mut of_u, mut of_v): (Vec<Vector>, Vec<Vector>) = (Vec::new(), Vec::new());
        let mut x = self.extrapolated(before.time + tableau.nodes[0] * length);
        let mut r2 = x.like();
        for (row, node) in tableau.rows.iter().zip(&tableau.nodes) {
            let base = |old: &Vector, rates: &[Vector]| {
                let known = row.iter().zip(rates).map(|(a, rate)| (length * a, rate));
                combined(&std::iter::once((1.0, old)).chain(known).collect::<Vec<_>>())
            };
            let mut r = base(&before.u, &of_u);
            r.scale(-s);
            let v_base = self.second.then(|| base(&before.v, &of_v));
            if let Some(v_base) = &v_base {
                r2 = combined(&[(s, &r), (-s, v_base)]);
            }
            let time = before.time + node * length;
            stages.solve(&Stage::at(time, s, [&r, &r2]), &mut x)?;
            let rate = combined(&[(s, &x), (1.0, &r)]);
            if let Some(v_base) = &v_base {
                of_v.push(combined(&[(s, &rate), (-s, v_base)]));
            }
            of_u.push(rate);
        }
        let difference: Vec<(f64, &Vector)> =
            tableau.error.iter().zip(&of_u).map(|(e, rate)| (length * e, rate)).collect();
        let mut difference = combined(&difference);
        stages.keep_algebraic(&x.like(), &mut difference);
        let estimate = Some(difference.norm());
        let time = before.time + length;
        let v = of_u.pop().unwrap_or_else(|| x.like());
        Ok(StepResult { state: TimeState { time, u: x, v, a: of_v.pop() }, estimate })
    }

    fn newmark<S: StageSolver>(
        &self,
        NewmarkParameters { beta, gamma, of_rates, of_states }: NewmarkParameters,
        length: f64,
        stages: &mut S,
    ) -> Result<StepResult, S::Error> {
        let before = self.state();
        let none = before.u.like();
        let old_a = before.a.as_ref().unwrap_or(&none);
        // a = p u + q, v = b u + c at the end.
        let p = 1.0 / (beta * length * length);
        let q = combined(&[(-p, &before.u), (-p * length, &before.v), (1.0 - 0.5 / beta, old_a)]);
        let b = gamma * length * p;
        let c =
            combined(&[(1.0, &before.v), (length * (1.0 - gamma), old_a), (length * gamma, &q)]);
        // x = (1 − α_f) u + α_f u_before, likewise for rates.
        let share = 1.0 - of_states;
        let (s1, s2) = (b, (1.0 - of_rates) * p / share);
        let r1 = combined(&[(share, &c), (of_states, &before.v), (-of_states * b, &before.u)]);
        let r2 = combined(&[
            (1.0 - of_rates, &q),
            (of_rates, old_a),
            (-of_states * (1.0 - of_rates) * p / share, &before.u),
        ]);
        let (time, end) = (before.time + share * length, before.time + length);
        let mut x = self.extrapolated(time);
        stages.solve(&Stage { time, factors: [s1, s2], rates: [&r1, &r2] }, &mut x)?;
        let mut u = combined(&[(1.0 / share, &x), (-of_states / share, &before.u)]);
        stages.keep_algebraic(&x, &mut u);
        let a = combined(&[(p, &u), (1.0, &q)]);
        let v = combined(&[(b, &u), (1.0, &c)]);
        Ok(StepResult { state: TimeState { time: end, u, v, a: Some(a) }, estimate: None })
    }
}

/// Parameters of Newmark's formulas and of the averaged equation.
#[derive(Clone, Copy)]
struct NewmarkParameters {
    beta: f64,
    gamma: f64,
    /// α_m.
    of_rates: f64,
    /// α_f.
    of_states: f64,
}

impl NewmarkParameters {
    /// Returns the parameters of Chung and Hulbert (1993) from the spectral radius in the limit of long steps.
    fn of_radius(rho: f64) -> Self {
        let of_rates = (2.0 * rho - 1.0) / (rho + 1.0);
        let of_states = rho / (rho + 1.0);
        let beta = (1.0 - of_rates + of_states).powi(2) / 4.0;
        Self { beta, gamma: 0.5 - of_rates + of_states, of_rates, of_states }
    }
}

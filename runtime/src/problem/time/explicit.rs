//! Explicit schemes, and initial rates of all schemes, which follow from the form by the inverse of its mass.
//!
//! ```text
//! M w = −F(t, u, u̇, 0)        Δt λ ≤ c    for the largest eigenvalue λ of M⁻¹ ∂F/∂u
//! ```
//!
//! Power iteration bounds λ for each new step length, and regularly if ∂F/∂u depends on t or the solution. If the rate
//! itself has grown, iteration starts from it: the fastest growing mode dominates it, so that the bound is sharp.

use super::super::context::Context;
use super::super::{RunError, kernels};
use super::error::TimeError;
use super::mass::{FormMass, highest, scattered};
use super::recorded_steps::RecordedSteps;
use super::stability::{ConjugatePair, KrylovProducts, longest_step};
use super::stages::ProblemStages;
use crate::algebra::vector::Vector;
use crate::solve::LinearOperator;
use crate::solve::time::TimeState;
use fem_dsl::point::{Input, masses_follow, stationary};
use fem_dsl::problem::{Mass as Kind, Scheme};
use kernels_gen::plan::Task;
use std::sync::Arc;

/// Power iterations for the largest eigenvalue.
const POWERS: usize = 30;
/// Power iterations for an update, from the last eigenvector.
const FEWER: usize = 6;
/// Growth factor of the rate that triggers a stability check.
const GROWN: f64 = 10.0;
/// Relative tolerance of equal step lengths.
const SAME: f64 = 1e-9;
/// Extent of the stability region on the negative real axis, by order of the formula.
const REAL: [f64; 4] = [2.0, 2.0, 2.512, 2.785];

/// Interval of checks that the solution is finite, in steps.
const CHECKED: usize = 64;

/// Computes initial rates from the form, with the mass that yields them; adds notes on unknown rates.
pub(super) fn begin(
    scheme: Scheme,
    mut state: TimeState,
    staged: &mut ProblemStages<'_>,
    notes: &mut Vec<String>,
) -> Result<(TimeState, Option<FormMass>), RunError> {
    let rates = &staged.context().form().rates;
    let read = |order: usize| rates.iter().any(|rate| rate.order == order && rate.read);
    let needs = match scheme {
        Scheme::Newmark { .. }
        | Scheme::GeneralisedAlpha { .. }
        | Scheme::Leapfrog { .. }
        | Scheme::RungeKutta { .. } => true,
        _ => staged.is_reported(),
    };
    if !needs || rates.is_empty() {
        return Ok((state, None));
    }
    if staged.is_algebraic() {
        let of_middle = match scheme {
            Scheme::Theta { theta } if theta < 1.0 => {
                ", and after the first step as those inside of it"
            }
            _ => "",
        };
        notes.push(format!(
            "time derivatives at the start are reported as 0: they follow from fields that are not known there{of_middle}"
        ));
        return Ok((state, None));
    }
    let form = staged.context().form();
    let mut mass = FormMass::new(&state.u, staged)?;
    if let Scheme::Leapfrog { mass: Kind::Lumped } | Scheme::RungeKutta { mass: Kind::Lumped, .. } =
        scheme
    {
        mass = mass.lumped(&state.u, staged)?;
    }
    // The velocity of a first-order field is the unknown of this solve.
    let of_order =
        |order: usize| (0..form.fields.len()).filter(move |&field| highest(form, field) == order);
    let mut first = state.u.like();
    for field in of_order(1) {
        first.axpy(1.0, &mass.free.restricted_to(staged.on().dofs_of(field)));
    }
    let mut known = state.v.clone();
    known.multiply(&first);
    known.scale(-1.0);
    known.axpy(1.0, &state.v);
    // A diagonal mass does not couple free DoFs with the rates of constrained ones.
    let lumped = mass.kind == Kind::Lumped;
    let second = read(2) && !lumped;
    let held = if second { staged.held_rate(2, state.time)? } else { None };
    let mut u = state.u.clone();
    let mut r = state.u.like();
    let velocities = if lumped && !read(2) { None } else { Some(&known) };
    staged.residual_at(state.time, &mut u, [velocities, held.as_ref()], &mut r)?;
    let mut w = r.like();
    mass.solve(&mut r, &mut w)?;
    let mut a = w.clone();
    w.multiply(&first);
    if read(2) {
        a.axpy(-1.0, &w);
        staged.hold_rate(2, state.time, &mut a)?;
        state.a = Some(a);
    }
    state.v = known;
    state.v.axpy(1.0, &w);
    staged.hold_rate(1, state.time, &mut state.v)?;
    Ok((state, Some(mass)))
}

/// Evaluates the rate at a state and a time, which is given as a fraction of the step.
type RateFunction<'a> = dyn FnMut(f64, &mut Vector, &mut Vector) -> Result<(), RunError> + 'a;

/// Explicit time integrator.
pub(super) struct ExplicitIntegrator {
    scheme: Scheme,
    /// State; for the leapfrog with a diagonal mass, the velocity lags half a step while `pending` is set.
    state: TimeState,
    mass: FormMass,
    /// F at the state.
    r: Vector,
    /// Length of the last step while its F is not yet applied to the velocity.
    pending: Option<f64>,
    /// Buffer of the next u.
    next: Vector,
    /// Buffers of a Runge-Kutta formula: the weighted sum, and the rate of a stage.
    stages: Option<[Vector; 2]>,
    alike: RecordedSteps,
    steps: usize,
    /// True after the solution became infinite: the run cannot continue.
    lost: bool,
    /// Longest step checked for stability.
    checked: f64,
    /// Largest ‖u̇‖ at which no instability was found.
    calm: f64,
    /// True if ∂F/∂u depends on t or the solution.
    varies: bool,
    /// Last vector of the power iteration.
    fastest: Option<Vector>,
}

impl ExplicitIntegrator {
    /// Creates the integrator from a state, and a mass if it is known.
    pub(super) fn new(
        scheme: Scheme,
        state: TimeState,
        mass: Option<FormMass>,
        staged: &mut ProblemStages<'_>,
    ) -> Result<Self, RunError> {
        let kind = match scheme {
            Scheme::RungeKutta { mass, .. } | Scheme::Leapfrog { mass } => mass,
            _ => unreachable!("the scheme is explicit"),
        };
        let data = staged.data_follows_time();
        let changes = |input| match input {
            Input::State(_) | Input::Time => true,
            Input::Aux(_) => data,
            _ => false,
        };
        if masses_follow(staged.context().form(), changes) {
            return Err(RunError::Setting(format!(
                "`{}` takes the inverse of a mass that stays the same, and what `dt` is multiplied with here follows the solution or t\n\
                 help: take an implicit scheme, such as `bdf` or `newmark`",
                scheme.word()
            )));
        }
        let mass = mass.map_or_else(|| FormMass::new(&state.u, staged), Ok)?;
        let mass = if kind == Kind::Lumped { mass.lumped(&state.u, staged)? } else { mass };
        let (r, next) = (state.u.like(), state.u.like());
        let (calm, varies) = (state.v.norm(), !staged.is_steady());
        Ok(Self {
            scheme,
            state,
            mass,
            r,
            pending: None,
            next,
            stages: None,
            alike: RecordedSteps::default(),
            steps: 0,
            lost: false,
            checked: 0.0,
            calm,
            varies,
            fastest: None,
        })
    }

    /// Replaces the system's operator by one of F(t, u, 0, 0), which reads no history, if the mass is lumped.
    pub(super) fn quieten(&self, staged: &mut ProblemStages<'_>) -> Result<(), RunError> {
        let form = stationary(staged.context().form());
        if self.mass.kind != Kind::Lumped {
            return Ok(());
        }
        let Context { elements, on, platform, .. } = staged.context();
        let (params, table_cache) = (&staged.parameters().values, staged.operator.table_cache());
        let tasks = [Task::Residual, Task::Action];
        let made = kernels::compile_for(&form, elements, on, params, &tasks, platform, table_cache);
        *staged.operator = made?.0;
        Ok(())
    }

    /// Returns the state; before [`Self::confirm`] only its t and u are up to date.
    pub(super) fn state(&self) -> &TimeState {
        &self.state
    }

    /// Replaces the rounded time of the state.
    pub(super) fn arrive(&mut self, time: f64) {
        self.state.time = time;
    }

    /// Advances velocity and acceleration to the state's time, and checks that the state is finite.
    pub(super) fn confirm(&mut self, staged: &mut ProblemStages<'_>) -> Result<(), RunError> {
        if let Some(length) = self.pending.take() {
            let TimeState { time, u, v, a } = &mut self.state;
            let a = a.get_or_insert_with(|| u.like());
            v.kick(0.5 * length, a, &self.r, &self.mass.inverse);
            if staged.settings.timed[0] {
                staged.hold_rate(1, *time, v)?;
                staged.hold_rate(2, *time, a)?;
            }
        }
        self.lost |= !self.state.u.norm().is_finite();
        match self.lost {
            true => Err(RunError::Setting("the solution has no finite value any more".to_owned())),
            false => Ok(()),
        }
    }

    /// Checks that steps of a length are stable at the state.
    ///
    /// # Errors
    ///
    /// Steps beyond the stability limit.
    pub(super) fn check(&mut self, length: f64, ends: f64) -> Result<(), RunError> {
        let mut x = self.state.u.like();
        x.set(&scattered(x.len()));
        x.agree();
        self.bound((length, ends), x, POWERS)?;
        self.checked = self.checked.max(length);
        Ok(())
    }

    /// Compares a length with the stability limit of λ of M⁻¹ ∂F/∂u over the rest of a run, after some power iterations
    /// from a vector.
    fn bound(
        &mut self,
        (length, ends): (f64, f64),
        mut x: Vector,
        powers: usize,
    ) -> Result<(), RunError> {
        let (mut y, mut next, mut largest) = (x.like(), x.like(), 0.0);
        for _ in 0..powers {
            let norm = x.norm();
            if norm == 0.0 || !norm.is_finite() {
                break;
            }
            x.scale(1.0 / norm);
            self.mass.without.apply(&x, &mut y)?;
            y.scale(-1.0);
            self.mass.solve(&mut y, &mut next)?;
            largest = next.norm();
            std::mem::swap(&mut x, &mut next);
        }
        let pair = match self.scheme {
            Scheme::RungeKutta { .. } if largest > 0.0 => self.pair(&x)?,
            _ => None,
        };
        self.fastest = (largest > 0.0).then_some(x);
        let left = ends - self.state.time;
        let most = match (self.scheme, pair) {
            (Scheme::RungeKutta { order, .. }, Some(pair)) => {
                longest_step(order, pair, length, left).unwrap_or(f64::INFINITY)
            }
            (Scheme::RungeKutta { order, .. }, None) => REAL[order - 1] / largest,
            _ => 2.0 / f64::sqrt(largest),
        };
        if largest > 0.0 && length > most * (1.0 + SAME) {
            let (scheme, time) = (self.scheme.word(), self.state.time);
            return Err(TimeError::Unstable { scheme, time, length, most }.into());
        }
        Ok(())
    }

    /// Returns the complex eigenvalue pair of M⁻¹ ∂F/∂u in the space of x and its image; `None` if the eigenvalue is
    /// real.
    fn pair(&self, x: &Vector) -> Result<Option<ConjugatePair>, RunError> {
        let (mut r, mut y, mut z) = (x.like(), x.like(), x.like());
        let mut times = |x: &Vector, y: &mut Vector| -> Result<(), RunError> {
            self.mass.without.apply(x, &mut r)?;
            r.scale(-1.0);
            self.mass.solve(&mut r, y)
        };
        times(x, &mut y)?;
        times(&y, &mut z)?;
        let products = KrylovProducts {
            of_two: [x.dot(x), x.dot(&y), y.dot(&y)],
            with_last: [x.dot(&z), y.dot(&z)],
            last: z.dot(&z),
        };
        Ok(products.pair())
    }

    /// Monitors ‖u̇‖ for instability, and regularly updates λ if ∂F/∂u varies.
    fn watch(&mut self, length: f64, staged: &ProblemStages<'_>) -> Result<(), RunError> {
        let (looks, at) = (self.steps.is_multiple_of(CHECKED), (length, staged.ends));
        if !looks && !self.varies {
            return Ok(());
        }
        let size = self.state.v.norm();
        let has_grown = size.is_finite() && size > GROWN * self.calm;
        let renews = looks && self.varies;
        if !has_grown && !renews {
            return Ok(());
        }
        if self.varies {
            self.mass.renew(self.state.time, &self.state.u, staged)?;
        }
        match self.fastest.take().filter(|_| !has_grown) {
            Some(x) => self.bound(at, x, FEWER)?,
            None => {
                self.bound(at, self.state.v.clone(), if self.varies { POWERS } else { FEWER })?
            }
        }
        self.calm = self.calm.max(size);
        Ok(())
    }

    /// Takes a step; it cannot be undone.
    pub(super) fn step(
        &mut self,
        length: f64,
        staged: &mut ProblemStages<'_>,
    ) -> Result<(), RunError> {
        if self.lost {
            return self.confirm(staged);
        }
        if length > self.checked * (1.0 + SAME) {
            self.check(length, staged.ends)?;
        }
        self.steps += 1;
        let taken = match self.scheme {
            Scheme::RungeKutta { order, .. } => self.by_stages(order, length, staged),
            _ => self.leap(length, staged),
        };
        self.lost |= taken.is_err();
        taken?;
        let stable = self.watch(length, staged);
        self.lost |= stable.is_err();
        stable?;
        if self.steps.is_multiple_of(CHECKED) { self.confirm(staged) } else { Ok(()) }
    }

    /// Takes a step of an explicit Runge-Kutta formula; a device replays it if nothing depends on t.
    fn by_stages(
        &mut self,
        order: usize,
        length: f64,
        staged: &mut ProblemStages<'_>,
    ) -> Result<(), RunError> {
        // Nodes, which are also the coefficients of the preceding stage, and the weights of the sum.
        let (nodes, weights): (&[f64], &[f64]) = match order {
            1 => (&[0.0], &[1.0]),
            2 => (&[0.0, 1.0], &[0.5, 0.5]),
            3 => (&[0.0, 1.0 / 3.0, 2.0 / 3.0], &[0.25, 0.0, 0.75]),
            _ => (&[0.0, 0.5, 0.5, 1.0], &[1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0]),
        };
        let TimeState { time, u, v, .. } = &mut self.state;
        let [sum, rate] = self.stages.get_or_insert_with(|| [u.like(), u.like()]);
        let (now, mass, r, next) = (*time, &self.mass, &mut self.r, &mut self.next);
        let lumped = mass.kind == Kind::Lumped;
        let repeatable = lumped && staged.is_repeatable() && !staged.follows_time();
        let on = next.array().map(|(on, _)| Arc::clone(on)).filter(|_| repeatable);
        let mut all = |rate_at: &mut RateFunction<'_>| -> Result<(), RunError> {
            // The first stage is the final rate of the last step.
            sum.copy_from(u);
            sum.axpy(length * weights[0], v);
            rate.copy_from(v);
            for (node, weight) in nodes.iter().zip(weights).skip(1) {
                next.copy_from(u);
                next.axpy(length * node, rate);
                rate_at(*node, next, rate)?;
                sum.axpy(length * weight, rate);
            }
            rate_at(1.0, sum, rate)
        };
        match on {
            Some(on) => {
                staged.arrive(now, [None; 2])?;
                let mut rate_at = |_: f64, u: &mut Vector, rate: &mut Vector| {
                    staged.residual_here(u, r)?;
                    mass.solve(r, rate)
                };
                self.alike.step(length, &on, || all(&mut rate_at))?;
            }
            None => all(&mut |node, u, rate| {
                let time = now + node * length;
                // A diagonal mass does not couple free DoFs with the rates of constrained ones.
                let held = if lumped { None } else { staged.held_rate(1, time)? };
                staged.residual_at(time, u, [held.as_ref(), None], r)?;
                mass.solve(r, rate)?;
                if staged.settings.timed[0] { staged.hold_rate(1, time, rate) } else { Ok(()) }
            })?,
        }
        std::mem::swap(u, sum);
        std::mem::swap(v, rate);
        self.alike.swapped();
        (*time, self.state.a) = (now + length, None);
        Ok(())
    }

    /// Takes a leapfrog step: v ← v + c ü, with c from the middle of the last step to that of this one, then u ← u + Δt
    /// v. With a diagonal mass, ü is fused into one pass over the vectors, and a device replays steps of equal length.
    fn leap(&mut self, length: f64, staged: &mut ProblemStages<'_>) -> Result<(), RunError> {
        let TimeState { time, u, v, a } = &mut self.state;
        let on = self.next.array().map(|(on, _)| Arc::clone(on));
        if let Some(on) = on.filter(|_| self.pending == Some(length) && staged.is_repeatable()) {
            *time += length;
            staged.arrive(*time, [None; 2])?;
            let (next, r, inverse) = (&mut self.next, &mut self.r, &self.mass.inverse);
            self.alike.step(length, &on, || {
                next.leap((length, length), v, u, r, inverse);
                staged.residual_here(next, r)
            })?;
            std::mem::swap(u, &mut self.next);
            self.alike.swapped();
            return Ok(());
        }
        let (next, r, inverse) = (&mut self.next, &mut self.r, &self.mass.inverse);
        match (self.pending, &a) {
            (Some(before), _) => next.leap((length, 0.5 * (before + length)), v, u, r, inverse),
            (None, Some(a)) => next.drift((length, 0.5 * length), v, u, a),
            (None, None) => next.drift((length, 0.0), v, u, u),
        }
        *time += length;
        let lumped = self.mass.kind == Kind::Lumped;
        // A diagonal mass does not couple free DoFs with the rates of constrained ones.
        let held = if lumped { None } else { staged.held_rate(2, *time)? };
        staged.residual_at(*time, next, [None, held.as_ref()], r)?;
        std::mem::swap(u, next);
        self.alike.swapped();
        if lumped {
            self.pending = Some(length);
        } else {
            let rate = a.get_or_insert_with(|| u.like());
            self.mass.solve(r, rate)?;
            if held.is_some() {
                staged.hold_rate(2, *time, rate)?;
            }
            v.axpy(0.5 * length, rate);
            if held.is_some() {
                staged.hold_rate(1, *time, v)?;
            }
        }
        Ok(())
    }
}

//! Explicit schemes, and what a state begins with: rates that follow from the form, by the inverse of its mass.
//!
//! ```text
//! M w = −F(t, u, u̇, 0)        Δt λ ≤ c    for the largest eigenvalue λ of M⁻¹ ∂F/∂u
//! ```
//!
//! Powers bound λ where a length of steps is new, again where ∂F/∂u follows t or the solution, and from the rate itself wherever that has grown:
//! an instability is what has grown then, so that the bound is sharp.

use super::super::solver::Levels;
use super::super::{RunError, kernels};
use super::alike::Alike;
use super::error::TimeError;
use super::mass::{Mass, highest, scattered};
use super::stability::{ConjugatePair, Products, longest_step};
use super::stages::Staged;
use crate::algebra::vector::Vector;
use crate::solve::LinearOperator;
use crate::solve::time::State;
use fem_dsl::point::{Input, masses_follow, still};
use fem_dsl::problem::{Mass as Kind, Scheme};
use kernels_gen::plan::Task;
use std::sync::Arc;

/// Powers that find the largest eigenvalue.
const POWERS: usize = 30;
/// Powers that follow it, from the vector that was found before.
const FEWER: usize = 6;
/// The growth of the rate after which stability is looked at.
const GROWN: f64 = 10.0;
/// Lengths that differ by less than this part are the same.
const SAME: f64 = 1e-9;
/// How far from 0 the negative real axis is stable, by the order of the formula.
const REAL: [f64; 4] = [2.0, 2.0, 2.512, 2.785];

/// Steps after which it is looked whether the solution is finite, if nobody has asked before.
const CHECKED: usize = 64;

/// The state with the rates that its form gives it where time begins, and the mass that gives
/// them; what is not known is said.
pub(super) fn begin(
    scheme: Scheme,
    mut state: State,
    staged: &mut Staged<'_>,
    notes: &mut Vec<String>,
) -> Result<(State, Option<Mass>), RunError> {
    let rates = &staged.system().form.rates;
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
    let form = staged.system().form;
    let mut mass = Mass::new(&state.u, staged)?;
    if let Scheme::Leapfrog { mass: Kind::Lumped } | Scheme::RungeKutta { mass: Kind::Lumped, .. } =
        scheme
    {
        mass = mass.lumped(&state.u, staged)?;
    }
    // What a field of the first order has as its velocity is what is looked for.
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
    // Where the mass couples nothing, what is held elsewhere does not matter.
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

/// What gives a rate from a state and the time of it, as a share of the step.
type RateAt<'a> = dyn FnMut(f64, &mut Vector, &mut Vector) -> Result<(), RunError> + 'a;

/// Goes through time without solving anything but a mass.
pub(super) struct Explicit {
    scheme: Scheme,
    /// Of the leapfrog with a diagonal mass the velocity is half a step behind while `pending`.
    state: State,
    mass: Mass,
    /// F at the state.
    r: Vector,
    /// The length of the last step, where what F gives is not yet in the state.
    pending: Option<f64>,
    /// Where the next u comes.
    next: Vector,
    /// What a Runge-Kutta formula adds up, and the rate of a stage.
    stages: Option<[Vector; 2]>,
    alike: Alike,
    steps: usize,
    /// The solution is finite no more: there is no way on.
    lost: bool,
    /// The longest step that was found to be stable.
    checked: f64,
    /// The largest ‖u̇‖ that was found to be no instability.
    calm: f64,
    /// Whether ∂F/∂u follows t or the solution.
    varies: bool,
    /// What the last powers led to.
    fastest: Option<Vector>,
}

impl Explicit {
    /// From a state, whose mass may be known.
    pub(super) fn new(
        scheme: Scheme,
        state: State,
        mass: Option<Mass>,
        staged: &mut Staged<'_>,
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
        if masses_follow(staged.system().form, changes) {
            return Err(RunError::Setting(format!(
                "`{}` takes the inverse of a mass that stays the same, and what `dt` is multiplied with here follows the solution or t\n\
                 help: take an implicit scheme, such as `bdf` or `newmark`",
                scheme.word()
            )));
        }
        let mass = mass.map_or_else(|| Mass::new(&state.u, staged), Ok)?;
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
            alike: Alike::default(),
            steps: 0,
            lost: false,
            checked: 0.0,
            calm,
            varies,
            fastest: None,
        })
    }

    /// Gives the system an operator of F(t, u, 0, 0) for the one that it has, where nothing more is asked of it: it reads nothing of the past.
    pub(super) fn quieten(&self, staged: &mut Staged<'_>) -> Result<(), RunError> {
        let form = still(staged.system().form);
        let levels = staged.system().levels.filter(|_| self.mass.kind == Kind::Lumped);
        let Some(Levels { elements, target, device }) = levels else { return Ok(()) };
        let (params, shelf) = (&staged.parameters().values, staged.operator.shelf());
        let tasks = [Task::Residual, Task::Action];
        let (on, device) = (staged.on(), device.cloned());
        let made = kernels::compile_for(&form, elements, on, params, &tasks, target, device, shelf);
        *staged.operator = made?.0;
        Ok(())
    }

    /// The state, of which only t and u are what they should be before [`Self::confirm`].
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Takes a time for what rounding has made of it.
    pub(super) fn arrive(&mut self, time: f64) {
        self.state.time = time;
    }

    /// Brings the velocity and the acceleration up to the state's time, and sees that it is finite.
    pub(super) fn confirm(&mut self, staged: &mut Staged<'_>) -> Result<(), RunError> {
        if let Some(length) = self.pending.take() {
            let State { time, u, v, a } = &mut self.state;
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
    /// Steps that are too long.
    pub(super) fn check(&mut self, length: f64, ends: f64) -> Result<(), RunError> {
        let mut x = self.state.u.like();
        x.set(&scattered(x.len()));
        x.agree();
        self.bound((length, ends), x, POWERS)?;
        self.checked = self.checked.max(length);
        Ok(())
    }

    /// Compares a length with what λ of M⁻¹ ∂F/∂u allows over the rest of a run, by so many powers of some vector.
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

    /// The pair of eigenvalues of M⁻¹ ∂F/∂u by which x turns; none where it does not.
    fn pair(&self, x: &Vector) -> Result<Option<ConjugatePair>, RunError> {
        let (mut r, mut y, mut z) = (x.like(), x.like(), x.like());
        let mut times = |x: &Vector, y: &mut Vector| -> Result<(), RunError> {
            self.mass.without.apply(x, &mut r)?;
            r.scale(-1.0);
            self.mass.solve(&mut r, y)
        };
        times(x, &mut y)?;
        times(&y, &mut z)?;
        let products = Products {
            of_two: [x.dot(x), x.dot(&y), y.dot(&y)],
            with_last: [x.dot(&z), y.dot(&z)],
            last: z.dot(&z),
        };
        Ok(products.pair())
    }

    /// Looks whether the solution grows as an unstable one does, which ‖u̇‖ shows, and now and then how ∂F/∂u has changed.
    fn watch(&mut self, length: f64, staged: &Staged<'_>) -> Result<(), RunError> {
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

    /// A step, which cannot be taken back.
    pub(super) fn step(&mut self, length: f64, staged: &mut Staged<'_>) -> Result<(), RunError> {
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

    /// A step by an explicit Runge-Kutta formula, which a device repeats as it has recorded it where nothing in it follows t.
    fn by_stages(
        &mut self,
        order: usize,
        length: f64,
        staged: &mut Staged<'_>,
    ) -> Result<(), RunError> {
        // Nodes, what each stage has of the one before, and the weights at the end.
        let (nodes, weights): (&[f64], &[f64]) = match order {
            1 => (&[0.0], &[1.0]),
            2 => (&[0.0, 1.0], &[0.5, 0.5]),
            3 => (&[0.0, 1.0 / 3.0, 2.0 / 3.0], &[0.25, 0.0, 0.75]),
            _ => (&[0.0, 0.5, 0.5, 1.0], &[1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0]),
        };
        let State { time, u, v, .. } = &mut self.state;
        let [sum, rate] = self.stages.get_or_insert_with(|| [u.like(), u.like()]);
        let (now, mass, r, next) = (*time, &self.mass, &mut self.r, &mut self.next);
        let lumped = mass.kind == Kind::Lumped;
        let repeatable = lumped && staged.is_repeatable() && !staged.follows_time();
        let on = next.array().map(|(on, _)| Arc::clone(on)).filter(|_| repeatable);
        let mut all = |rate_at: &mut RateAt<'_>| -> Result<(), RunError> {
            // The first is what the step before ended with.
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
                // Where the mass couples nothing, what is held elsewhere does not matter.
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

    /// v ← v + c ü with the c that leads from the middle of the step before to that of this one, u ← u + Δt v. With a diagonal mass ü
    /// comes and goes in one pass over the vectors, and a device repeats steps of one length as it has recorded them.
    fn leap(&mut self, length: f64, staged: &mut Staged<'_>) -> Result<(), RunError> {
        let State { time, u, v, a } = &mut self.state;
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
        // Where the mass couples nothing, what is held elsewhere does not matter.
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

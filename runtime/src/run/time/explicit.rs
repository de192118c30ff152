//! Explicit schemes, and what a state begins with: rates that follow from the form, by the inverse of its mass.
//!
//! ```text
//! M w = −F(t, u, u̇, 0)        s M = J with some s, less J with s = 0,     M = ∂F/∂u̇ or ∂F/∂ü
//! ```
//!
//! s is so large that s M has the most of their difference. Lumped, M is the sum of its rows, M 1. With quadrature at the nodes M is diagonal: that is
//! seen, and its inverse taken as what it is.

use super::super::solver::Levels;
use super::super::{RunError, kernels};
use super::alike::Alike;
use super::parameters_at;
use super::stages::Staged;
use crate::operator::Operator;
use crate::solve::{
    CgSettings, Continue, LinearOperator, NonlinearSystem, OperatorError, Preconditioner, cg,
};
use crate::time::State;
use crate::vector::Vector;
use fem_dsl::point::{Input, masses_follow, still};
use fem_dsl::problem::{Mass as Kind, Scheme};
use kernels_gen::plan::Task;
use std::sync::{Arc, Mutex};

/// How far residuals of solves with a mass fall.
const RTOL: f64 = 1e-12;
/// s M over what is taken from it, on the diagonal.
const SHARE: f64 = 1e3;
/// Powers that find the largest eigenvalue.
const POWERS: usize = 30;
/// How far from 0 the negative real axis is stable, by the order of the formula.
const REAL: [f64; 4] = [2.0, 2.0, 2.512, 2.785];

/// Steps after which it is looked whether the solution is finite, if nobody has asked before.
const CHECKED: usize = 64;
/// What rounding may make of a product with a diagonal matrix.
const DIAGONAL: f64 = 1e-10;

/// Numbers between −½ and ½ without order.
fn scattered(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + 13) % 1009) as f64 / 1009.0 - 0.5).collect()
}

/// The mass of a form.
pub(super) struct Mass {
    with: Operator,
    without: Operator,
    s: f64,
    /// Of the lumped mass, or of the diagonal of the one that is not.
    inverse: Vector,
    /// 0 for unknowns with conditions, whose rows of M are 0, and 1 for the others.
    free: Vector,
    /// Lumped where it is diagonal, too.
    kind: Kind,
    work: Mutex<Vector>,
}

impl Mass {
    /// Of the derivatives of an order, at a state, as it is.
    fn new(order: usize, u: &Vector, staged: &Staged<'_>) -> Result<Self, RunError> {
        let form = staged.system().form;
        let missing = || RunError::Setting("the elements of the system are not known".to_owned());
        let Levels { elements, target, device } = staged.system().levels.ok_or_else(missing)?;
        let parameters = |s: f64| {
            let (mut parameters, mut factors) = (staged.parameters().clone(), [0.0; 2]);
            factors[order - 1] = s;
            let time = parameters.values[0];
            parameters_at(form, &mut parameters, time, factors);
            parameters.values
        };
        let made = |s: f64| {
            let (params, tasks) = (parameters(s), [Task::Action, Task::Diagonal]);
            let (on, shelf) = (staged.on(), staged.operator.shelf());
            let device = device.cloned();
            let made =
                kernels::compile_for(form, elements, on, &params, &tasks, target, device, shelf);
            let (mut made, _) = made?;
            made.linearise(u)?;
            Ok::<_, RunError>(made)
        };
        let (mut with, without) = (made(1.0)?, made(0.0)?);
        let (mut own, mut less) = (u.like(), u.like());
        with.diagonal(&mut own)?;
        without.diagonal(&mut less)?;
        let ratios = own.to_vec().into_iter().zip(less.to_vec());
        let ratios = ratios.map(|(with, without)| (without / (with - without)).abs());
        let largest = u.largest(ratios.filter(|ratio| ratio.is_finite()).fold(0.0, f64::max));
        let s = SHARE * largest.max(1.0);
        with.set_params(&parameters(s))?;
        with.linearise(u)?;
        let work = Mutex::new(u.like());
        let mut numbers = vec![1.0; staged.on().n_dofs()];
        staged.on().conditions().for_each(|(dof, _)| numbers[dof] = 0.0);
        let mut free = u.like();
        free.set(&numbers);
        let kind = Kind::Consistent;
        let mut own = Self { with, without, s, inverse: u.like(), free, kind, work };
        own.with.diagonal(&mut own.inverse)?;
        own.inverse.axpy(-1.0, &less);
        own.inverse.scale(1.0 / s);
        if own.is_diagonal()? {
            own.kind = Kind::Lumped;
        }
        own.inverse.invert();
        Ok(own)
    }

    /// The sums of its rows in its place.
    fn lumped(mut self) -> Result<Self, RunError> {
        if self.kind == Kind::Consistent {
            let (mut ones, mut sums) = (self.free.like(), self.free.like());
            ones.fill(1.0);
            self.times(&ones, &mut sums)?;
            sums.invert();
            (self.inverse, self.kind) = (sums, Kind::Lumped);
        }
        Ok(self)
    }

    /// Whether M x is what the diagonal makes of x, some numbers without order: with quadrature at the nodes it is.
    fn is_diagonal(&self) -> Result<bool, OperatorError> {
        let (mut x, mut y) = (self.inverse.like(), self.inverse.like());
        x.set(&scattered(self.inverse.len()));
        x.agree();
        x.multiply(&self.free);
        self.times(&x, &mut y)?;
        y.multiply(&self.free);
        x.multiply(&self.inverse);
        let norm = x.norm();
        y.axpy(-1.0, &x);
        Ok(y.norm() <= DIAGONAL * norm)
    }

    fn times(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let mut work = self.work.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.with.apply(x, y)?;
        self.without.apply(x, &mut work)?;
        y.axpy(-1.0, &work);
        y.scale(1.0 / self.s);
        Ok(())
    }

    /// w ← −M⁻¹ r; nothing is left of r.
    fn solve(&self, r: &mut Vector, w: &mut Vector) -> Result<(), RunError> {
        r.scale(-1.0);
        r.multiply(&self.free);
        match self.kind {
            Kind::Lumped => {
                w.copy_from(r);
                w.multiply(&self.inverse);
            }
            Kind::Consistent => {
                let stop = CgSettings { rtol: RTOL, ..CgSettings::default() };
                let by = Preconditioner::Jacobi(&self.inverse);
                w.fill(0.0);
                let report = cg(self, r, w, by, stop, &mut |_| Continue::Yes)?;
                report.converged()?;
            }
        }
        Ok(())
    }
}

impl LinearOperator for Mass {
    fn size(&self) -> usize {
        self.inverse.len()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.times(x, y)
    }
}

/// The state with the rates that its form gives it where time begins, before a step of some length, and the mass that gives
/// them; what is not known is said.
pub(super) fn begin(
    scheme: Scheme,
    (mut state, length): (State, f64),
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
        notes.push("time derivatives at the start are reported as 0: they follow from fields that are not known there".to_owned());
        return Ok((state, None));
    }
    let order = if read(2) { 2 } else { 1 };
    let mass = Mass::new(order, &state.u, staged)?;
    let mut r = state.u.like();
    let rates = if order == 2 { [Some(&state.v), None] } else { [None, None] };
    let mut u = state.u.clone();
    let held = staged.held(order, state.time, length)?;
    let rates = match (&held, order) {
        (None, _) => rates,
        (held, 2) => [rates[0], held.as_ref()],
        (held, _) => [held.as_ref(), None],
    };
    staged.residual_at(state.time, &mut u, rates, &mut r)?;
    let mut w = r.like();
    mass.solve(&mut r, &mut w)?;
    held.iter().for_each(|held| w.axpy(1.0, held));
    match order {
        2 => state.a = Some(w),
        _ => state.v = w,
    }
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
}

impl Explicit {
    /// From a state, whose mass may be known.
    pub(super) fn new(
        scheme: Scheme,
        state: State,
        mass: Option<Mass>,
        staged: &mut Staged<'_>,
    ) -> Result<Self, RunError> {
        let (order, kind) = match scheme {
            Scheme::RungeKutta { mass, .. } => (1, mass),
            Scheme::Leapfrog { mass } => (2, mass),
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
        let mass = mass.map_or_else(|| Mass::new(order, &state.u, staged), Ok)?;
        let mass = if kind == Kind::Lumped { mass.lumped()? } else { mass };
        let (r, next) = (state.u.like(), state.u.like());
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
    pub(super) fn confirm(&mut self, staged: &Staged<'_>) -> Result<(), RunError> {
        if let Some(length) = self.pending.take() {
            let State { time, u, v, a } = &mut self.state;
            let a = a.get_or_insert_with(|| u.like());
            v.kick(0.5 * length, a, &self.r, &self.mass.inverse);
            for (order, rate) in [(1, &mut *v), (2, a)] {
                if let Some(held) = staged.held(order, *time, length)? {
                    rate.multiply(&self.mass.free);
                    rate.axpy(1.0, &held);
                }
            }
        }
        self.lost |= !self.state.u.norm().is_finite();
        match self.lost {
            true => Err(RunError::Setting("the solution has no finite value any more".to_owned())),
            false => Ok(()),
        }
    }

    /// Whether steps of a length are stable: λ of M⁻¹ ∂F/∂u, by powers.
    pub(super) fn check(&self, length: f64) -> Result<(), RunError> {
        let mut x = self.state.u.like();
        x.set(&scattered(x.len()));
        x.agree();
        let (mut y, mut next, mut largest) = (x.like(), x.like(), 0.0);
        for _ in 0..POWERS {
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
        let most = match self.scheme {
            Scheme::RungeKutta { order, .. } => REAL[order - 1] / largest,
            _ => 2.0 / f64::sqrt(largest),
        };
        if largest > 0.0 && length > most {
            return Err(RunError::Setting(format!(
                "steps of {length:.3e} are too long: `{}` is stable up to {most:.3e} here\n\
                 help: write `step: {:.1e}`, or take an implicit scheme",
                self.scheme.word(),
                0.9 * most
            )));
        }
        Ok(())
    }

    /// A step, which cannot be taken back.
    pub(super) fn step(&mut self, length: f64, staged: &mut Staged<'_>) -> Result<(), RunError> {
        if self.lost {
            return self.confirm(staged);
        }
        self.steps += 1;
        let taken = match self.scheme {
            Scheme::RungeKutta { order, .. } => self.by_stages(order, length, staged),
            _ => self.leap(length, staged),
        };
        self.lost |= taken.is_err();
        taken?;
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
                let held = staged.held(1, time, length)?;
                // Where the mass couples nothing, what is held elsewhere does not matter.
                let coupled = held.as_ref().filter(|_| !lumped);
                staged.residual_at(time, u, [coupled, None], r)?;
                mass.solve(r, rate)?;
                held.iter().for_each(|held| rate.axpy(1.0, held));
                Ok(())
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
        let held = if lumped { None } else { staged.held(2, *time, length)? };
        staged.residual_at(*time, next, [None, held.as_ref()], r)?;
        std::mem::swap(u, next);
        self.alike.swapped();
        if lumped {
            self.pending = Some(length);
        } else {
            let rate = a.get_or_insert_with(|| u.like());
            self.mass.solve(r, rate)?;
            held.iter().for_each(|held| rate.axpy(1.0, held));
            v.axpy(0.5 * length, rate);
        }
        Ok(())
    }
}

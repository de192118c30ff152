//! Explicit schemes, and what a state begins with: rates that follow from the form, by the inverse of its mass.
//!
//! ```text
//! M w = −F(t, u, u̇, 0)        s M = J with some s, less J with s = 0,     M = ∂F/∂u̇ or ∂F/∂ü
//! ```
//!
//! s is so large that s M has the most of their difference. Lumped, M is the sum of its rows, M 1; with quadrature at the nodes that is M itself.

use super::super::solver::Levels;
use super::super::{RunError, kernels};
use super::parameters_at;
use super::stages::Staged;
use crate::operator::Operator;
use crate::solve::{
    CgSettings, Continue, LinearOperator, NonlinearSystem, OperatorError, Preconditioner, cg,
};
use crate::time::{State, Taken};
use crate::vector::Vector;
use fem_dsl::problem::{Mass as Kind, Scheme};
use kernels_gen::plan::Task;
use std::sync::Mutex;

/// How far residuals of solves with a mass fall.
const RTOL: f64 = 1e-12;
/// s M over what is taken from it, on the diagonal.
const SHARE: f64 = 1e3;
/// Powers that find the largest eigenvalue.
const POWERS: usize = 30;
/// How far from 0 the negative real axis is stable, by the order of the formula.
const REAL: [f64; 4] = [2.0, 2.0, 2.512, 2.785];

/// The mass of a form.
struct Mass {
    with: Operator,
    without: Operator,
    s: f64,
    /// Of the lumped mass, or of the diagonal.
    inverse: Vector,
    /// 0 for unknowns with conditions, whose rows of M are 0, and 1 for the others.
    free: Vector,
    kind: Kind,
    work: Mutex<Vector>,
}

impl Mass {
    /// Of the derivatives of an order, at a state.
    fn new(order: usize, kind: Kind, u: &Vector, staged: &Staged<'_>) -> Result<Self, RunError> {
        let form = staged.system().form;
        let missing = || RunError::Setting("the elements of the system are not known".to_owned());
        let Levels { elements, target, device } = staged.system().levels.ok_or_else(missing)?;
        let mut parameters = staged.parameters().clone();
        let mut made = |s: f64| {
            let mut factors = [0.0; 2];
            factors[order - 1] = s;
            let time = parameters.values[0];
            parameters_at(form, &mut parameters, time, factors);
            let tasks = [Task::Action, Task::Diagonal];
            let made = kernels::compile_for(
                form,
                elements,
                staged.on(),
                &parameters.values,
                &tasks,
                target,
                device.cloned(),
                staged.operator.shelf(),
            );
            let (mut made, _) = made?;
            made.linearise(u)?;
            Ok::<_, RunError>(made)
        };
        let (small, without) = (made(1.0)?, made(0.0)?);
        let (mut own, mut less) = (u.like(), u.like());
        small.diagonal(&mut own)?;
        without.diagonal(&mut less)?;
        let ratios = own.to_vec().into_iter().zip(less.to_vec());
        let ratios = ratios.map(|(with, without)| (without / (with - without)).abs());
        let largest = ratios.filter(|ratio| ratio.is_finite()).fold(0.0, f64::max);
        let s = SHARE * largest.max(1.0);
        let with = made(s)?;
        let work = Mutex::new(u.like());
        let mut numbers = vec![1.0; staged.on().n_dofs()];
        staged.on().conditions().for_each(|(dof, _)| numbers[dof] = 0.0);
        let mut free = u.like();
        free.set(&numbers);
        let mut own = Self { with, without, s, inverse: u.like(), free, kind, work };
        match kind {
            Kind::Lumped => {
                let (mut ones, mut sums) = (u.like(), u.like());
                ones.fill(1.0);
                own.times(&ones, &mut sums)?;
                own.inverse = sums;
            }
            Kind::Consistent => {
                own.with.diagonal(&mut own.inverse)?;
                own.inverse.axpy(-1.0, &less);
                own.inverse.scale(1.0 / s);
            }
        }
        own.inverse.invert();
        Ok(own)
    }

    fn times(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let mut work = self.work.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.with.apply(x, y)?;
        self.without.apply(x, &mut work)?;
        y.axpy(-1.0, &work);
        y.scale(1.0 / self.s);
        Ok(())
    }

    /// −M⁻¹ r.
    fn solve(&self, r: &mut Vector) -> Result<Vector, RunError> {
        r.scale(-1.0);
        r.multiply(&self.free);
        let mut w = r.like();
        match self.kind {
            Kind::Lumped => {
                w.copy_from(r);
                w.multiply(&self.inverse);
            }
            Kind::Consistent => {
                let stop = CgSettings { rtol: RTOL, ..CgSettings::default() };
                let by = Preconditioner::Jacobi(&self.inverse);
                let report = cg(self, r, &mut w, by, stop, &mut |_| Continue::Yes)?;
                report.converged()?;
            }
        }
        Ok(w)
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

/// The state with the rates that its form gives it where time begins; what is not known is said.
pub(super) fn begin(
    scheme: Scheme,
    mut state: State,
    staged: &mut Staged<'_>,
    notes: &mut Vec<String>,
) -> Result<State, RunError> {
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
        return Ok(state);
    }
    if staged.is_algebraic() {
        notes.push("time derivatives at the start are reported as 0: they follow from fields that are not known there".to_owned());
        return Ok(state);
    }
    let order = if read(2) { 2 } else { 1 };
    let mass = Mass::new(order, Kind::Consistent, &state.u, staged)?;
    let (mut r, none) = (state.u.like(), state.u.like());
    let rates = if order == 2 { [&state.v, &none] } else { [&none, &none] };
    let mut u = state.u.clone();
    staged.residual_at(state.time, &mut u, rates, &mut r)?;
    let w = mass.solve(&mut r)?;
    match order {
        2 => state.a = Some(w),
        _ => state.v = w,
    }
    Ok(state)
}

/// Goes through time without solving anything but a mass.
pub(super) struct Explicit {
    scheme: Scheme,
    state: State,
    mass: Mass,
}

impl Explicit {
    pub(super) fn new(
        scheme: Scheme,
        state: State,
        staged: &mut Staged<'_>,
    ) -> Result<Self, RunError> {
        let (order, kind) = match scheme {
            Scheme::RungeKutta { mass, .. } => (1, mass),
            Scheme::Leapfrog { mass } => (2, mass),
            _ => unreachable!("the scheme is explicit"),
        };
        let mass = Mass::new(order, kind, &state.u, staged)?;
        Ok(Self { scheme, state, mass })
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn accept(&mut self, state: State) {
        self.state = state;
    }

    /// Whether steps of a length are stable: λ of M⁻¹ ∂F/∂u, by powers.
    pub(super) fn check(&self, length: f64) -> Result<(), RunError> {
        let n = self.state.u.len();
        let mut x = self.state.u.like();
        x.set(&(0..n).map(|i| ((i * 7919 + 13) % 1009) as f64 / 1009.0 - 0.5).collect::<Vec<_>>());
        let (mut y, mut largest) = (x.like(), 0.0);
        for _ in 0..POWERS {
            let norm = x.norm();
            if norm == 0.0 || !norm.is_finite() {
                break;
            }
            x.scale(1.0 / norm);
            self.mass.without.apply(&x, &mut y)?;
            y.scale(-1.0);
            let next = self.mass.solve(&mut y)?;
            largest = next.norm();
            x = next;
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

    /// u̇, or ü, at a state.
    fn rate(
        &self,
        time: f64,
        u: &mut Vector,
        v: &Vector,
        staged: &mut Staged<'_>,
    ) -> Result<Vector, RunError> {
        let (mut r, none) = (u.like(), u.like());
        staged.residual_at(time, u, [v, &none], &mut r)?;
        self.mass.solve(&mut r)
    }

    pub(super) fn step(&self, length: f64, staged: &mut Staged<'_>) -> Result<Taken, RunError> {
        let State { time, u, v, a } = &self.state;
        let end = time + length;
        let state = match self.scheme {
            Scheme::RungeKutta { order, .. } => {
                // Nodes, what each stage has of the one before, and the weights at the end.
                let (nodes, weights): (&[f64], &[f64]) = match order {
                    1 => (&[0.0], &[1.0]),
                    2 => (&[0.0, 1.0], &[0.5, 0.5]),
                    3 => (&[0.0, 1.0 / 3.0, 2.0 / 3.0], &[0.25, 0.0, 0.75]),
                    _ => (&[0.0, 0.5, 0.5, 1.0], &[1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0]),
                };
                let none = u.like();
                // The first is what the step before ended with.
                let (mut sum, mut rate) = (u.clone(), v.clone());
                sum.axpy(length * weights[0], &rate);
                for (node, weight) in nodes.iter().zip(weights).skip(1) {
                    let mut at = u.clone();
                    at.axpy(length * node, &rate);
                    rate = self.rate(time + node * length, &mut at, &none, staged)?;
                    sum.axpy(length * weight, &rate);
                }
                let mut r = u.like();
                staged.residual_at(end, &mut sum, [&none, &none], &mut r)?;
                let v = self.mass.solve(&mut r)?;
                State { time: end, u: sum, v, a: None }
            }
            _ => {
                let none = u.like();
                let a = a.as_ref().unwrap_or(&none);
                let mut half = v.clone();
                half.axpy(0.5 * length, a);
                let mut next = u.clone();
                next.axpy(length, &half);
                let a = self.rate(end, &mut next, &none, staged)?;
                let mut v = half;
                v.axpy(0.5 * length, &a);
                State { time: end, u: next, v, a: Some(a) }
            }
        };
        let norm = state.u.norm();
        if !norm.is_finite() {
            return Err(RunError::Setting("the solution has no finite value any more".to_owned()));
        }
        Ok(Taken { state, estimate: None })
    }
}

//! Solves with bounds by a primal–dual active set, a semismooth Newton method (Hintermüller, Ito and Kunisch 2002).
//!
//! ```text
//! A = { i : u_i at its bound, λ_i pushes towards the inside }     u_i = ψ_i in A,  R_i(u) = 0 elsewhere
//! leaves A: λ_i = R_i(u) has the wrong sign        enters A: u_i violates its bound
//! ```
//!
//! A linear form is solved for each set. A nonlinear one takes one Newton step for each, until the set settles.

use super::{Context, newton_options, precondition};
use crate::algebra::vector::{Vector, epsilon};
use crate::operator::Operator;
use crate::problem::bounds::{BoundedDof, Bounds};
use crate::problem::plan::SolvePlan;
use crate::problem::{ConvergenceError, RunError};
use crate::processes::Reduction;
use crate::solve::{
    ActiveApproximation, ActiveMask, ActiveSystem, Continue, Forcing, NonlinearSystem, Outcome,
    Preconditioning, Progress, Report, join, newton, silent, solve_affine,
};
use crate::support::progress::doing;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of active sets.
const SETS: usize = 200;
/// Relative violation up to which a value counts as admissible.
const ADMISSIBLE: f64 = 1e-10;
/// Relative tolerance of the linear solve of a Newton step before the set has settled.
const UNSETTLED: f64 = 1e-6;
/// Relative violation up to which a set that repeats is accepted: its last digits differ by rounding.
const REPEATS: f64 = 1e-7;

/// The state of a bounded degree of freedom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Activity {
    Lower,
    Free,
    Upper,
}

/// Bounds with their active set.
struct ActiveSet<'a> {
    context: &'a Context,
    bounds: Bounds,
    /// The activity of each bounded degree of freedom.
    own: Vec<Activity>,
    /// True where a smaller rank counts the degree of freedom.
    is_of_others: Vec<bool>,
}

/// A change of the active set.
struct Change {
    next: Vec<Activity>,
    /// Number of changes, and of active degrees of freedom, over all processes.
    changed: usize,
    active: usize,
    /// The largest relative violation of a bound or of the sign of a multiplier.
    violation: f64,
}

impl ActiveSet<'_> {
    /// Returns the number of these bounded degrees of freedom, over all processes.
    fn count(&self, counts: impl Fn(usize) -> bool) -> usize {
        let own = (0..self.own.len()).filter(|&at| !self.is_of_others[at] && counts(at)).count();
        self.context.on.mesh.in_all(own)
    }

    fn largest(&self, values: impl Iterator<Item = f64>) -> f64 {
        let mut most = [values.fold(0.0, f64::max)];
        self.context.on.mesh.reduce_in_all(Reduction::Largest, &mut most);
        most[0]
    }

    /// Returns the set that a state and its residual ask for; `weights` are those of bounds against residuals in the
    /// first set, and `noise` is the residual that a solve leaves.
    fn next(
        &self,
        (u, r): (&[f64], &[f64]),
        weights: Option<&[f64]>,
        (unit, noise): (f64, f64),
    ) -> Change {
        let dofs = &self.bounds.dofs;
        let finite = |own: &BoundedDof| {
            [own.lower, own.upper].into_iter().filter(|own| own.is_finite()).map(f64::abs)
        };
        let sizes = dofs.iter().flat_map(|own| finite(own).chain([u[own.dof].abs()]));
        let size = self.largest(sizes);
        let force = self.largest(dofs.iter().map(|own| r[own.dof].abs()));
        let (of_value, of_force) = (unit * size, (unit * force).max(noise));
        let mut violation = 0.0_f64;
        let mut decide = |(at, own): (usize, &BoundedDof)| {
            let (u, r) = (u[own.dof], r[own.dof]);
            let (below, above) = (own.lower - u, u - own.upper);
            if let Some(weights) = weights {
                let weight = weights[own.dof].abs();
                return match (r + weight * below > of_force, weight * above - r > of_force) {
                    (true, _) => Activity::Lower,
                    (false, true) => Activity::Upper,
                    (false, false) => Activity::Free,
                };
            }
            let (wrong, next) = match self.own[at] {
                Activity::Lower if r < -of_force && own.upper > own.lower => {
                    (-r / force, Activity::Free)
                }
                Activity::Upper if r > of_force && own.upper > own.lower => {
                    (r / force, Activity::Free)
                }
                Activity::Free if below > of_value => (below / size, Activity::Lower),
                Activity::Free if above > of_value => (above / size, Activity::Upper),
                same => (0.0, same),
            };
            violation = violation.max(wrong);
            next
        };
        let next: Vec<Activity> = dofs.iter().enumerate().map(&mut decide).collect();
        let next = self.synchronised(next);
        let violation = self.largest([violation].into_iter());
        let changed = self.count(|at| next[at] != self.own[at]);
        let active = self.count(|at| next[at] != Activity::Free);
        Change { next, changed, active, violation }
    }

    /// Makes shared degrees of freedom alike on all processes.
    fn synchronised(&self, own: Vec<Activity>) -> Vec<Activity> {
        let Some(sharing) = self.context.on.sharing() else { return own };
        let mut all = vec![0.0_f64; self.context.on.n_dofs()];
        for (bounded, own) in self.bounds.dofs.iter().zip(&own) {
            all[bounded.dof] = f64::from(*own as u8) - 1.0;
        }
        sharing.synchronise(&mut all);
        let read = |own: &BoundedDof| match all[own.dof] {
            value if value < 0.0 => Activity::Lower,
            value if value > 0.0 => Activity::Upper,
            _ => Activity::Free,
        };
        self.bounds.dofs.iter().map(read).collect()
    }

    /// Returns the values of the active degrees of freedom.
    fn values(&self) -> impl Iterator<Item = (usize, f64)> {
        self.bounds.dofs.iter().zip(&self.own).filter_map(|(bounded, own)| match own {
            Activity::Lower => Some((bounded.dof, bounded.lower)),
            Activity::Upper => Some((bounded.dof, bounded.upper)),
            Activity::Free => None,
        })
    }

    /// Sets the active degrees of freedom of a state, and returns the mask of the set.
    fn impose(&self, u: &mut Vector) -> Arc<ActiveMask> {
        let (mut values, mut mask) = (u.to_vec(), vec![0.0; u.len()]);
        for (dof, value) in self.values() {
            (values[dof], mask[dof]) = (value, 1.0);
        }
        let mut active = u.like();
        active.set(&mask);
        u.set(&values);
        Arc::new(ActiveMask::new(active))
    }
}

/// A solve with bounds.
struct BoundedSolve<'a> {
    set: ActiveSet<'a>,
    plan: &'a SolvePlan,
    preconditioning: Preconditioning,
    /// The mask of the preconditioner, which follows the set.
    shared: Arc<Mutex<Arc<ActiveMask>>>,
    mask: Arc<ActiveMask>,
    /// The largest initial residual norm.
    largest: f64,
    /// True if the set has settled, so that Newton's method goes on to the end.
    settled: bool,
}

impl BoundedSolve<'_> {
    /// Solves with the current set: a linear form to the end, a nonlinear one by a step until the set has settled. Returns
    /// the report, and true for such a step.
    fn solve(
        &mut self,
        operator: &mut Operator,
        u: &mut Vector,
        observe: &mut dyn FnMut(Progress) -> Continue,
    ) -> Result<(Report, bool), RunError> {
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&self.mask);
        let (plan, mut r) = (self.plan, u.like());
        let mut system = ActiveSystem { system: operator, mask: Arc::clone(&self.mask) };
        NonlinearSystem::residual(&system, u, &mut r)?;
        self.largest = self.largest.max(r.norm());
        let Some(by) = &plan.newton else {
            let linear = plan.linear.with(self.preconditioning);
            let report = solve_affine(&mut system, u, plan.stop(self.largest), linear, observe)?;
            return Ok((report, false));
        };
        let mut options = newton_options((plan, by, self.largest), self.preconditioning);
        if !self.settled {
            (options.max_iterations, options.forcing) = (1, Forcing::Fixed(UNSETTLED));
        }
        let report = newton(&mut system, u, options, observe, &mut silent)?;
        let is_step = !self.settled && report.outcome == Outcome::IterationLimit;
        Ok((report, is_step))
    }
}

/// Solves R(u) = 0 with the bounds of the context's problem; returns the report and the linear iterations in all.
///
/// # Errors
///
/// Bounds that cannot be evaluated, an active set that does not settle, an operator that cannot be applied.
pub(super) fn solve_bounded(
    operator: &mut Operator,
    context: &Context,
    u: &mut Vector,
    (plan, floor): (&SolvePlan, f64),
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<(Report, usize), RunError> {
    let unit = ADMISSIBLE.max(8.0 * epsilon(u.precision()));
    let (set, mut active) = first_set(operator, context, u, unit)?;
    operator.precondition_by(None);
    let (preconditioning, note) = precondition(operator, context, &plan.linear)?;
    let mask = set.impose(u);
    let shared = Arc::new(Mutex::new(Arc::clone(&mask)));
    if let Some(inner) = operator.take_approximation() {
        let mask = Arc::clone(&shared);
        operator.precondition_by(Some(Box::new(ActiveApproximation { inner, mask })));
    }
    let bounded = set.count(|_| true);
    let mut seen = BTreeSet::from([set.own.clone()]);
    let (largest, settled) = (floor, false);
    let mut own = BoundedSolve { set, plan, preconditioning, shared, mask, largest, settled };
    let (mut all, mut r, mut sets): (Option<Report>, Vector, usize) = (None, u.like(), 0);
    loop {
        sets += 1;
        let _said = doing(format!("active set {sets}: {active} of {bounded} at their bound"));
        let (report, is_step) = own.solve(operator, u, observe)?;
        let (outcome, noise) = (report.outcome, if is_step { 0.0 } else { report.target });
        let mut report = match all.take() {
            None => report,
            Some(before) => join(before, report),
        };
        if !outcome.is_success() && !is_step {
            let linear = linear_iterations(&report);
            return Ok((report, linear));
        }
        operator.residual(u, &mut r)?;
        let change = own.set.next((&u.to_vec(), &r.to_vec()), None, (unit, noise));
        let Change { changed, violation, .. } = change;
        active = change.active;
        tracing::info!(
            "active set {sets}: {changed} of {bounded} degrees of freedom change, {active} at their bound, violation {violation:.1e}"
        );
        let known = usize::from(changed > 0 && seen.contains(&change.next));
        let repeats = context.on.mesh.in_all(known) > 0;
        if !is_step && (changed == 0 || repeats && violation <= REPEATS) {
            let s = if sets == 1 { "" } else { "s" };
            report.notes.extend(note);
            report.notes.push(format!(
                "bounds: {sets} active set{s}, {active} of {bounded} degrees of freedom at their bound"
            ));
            let linear = linear_iterations(&report);
            return Ok((report, linear));
        }
        if sets == SETS || (repeats && own.settled) {
            return Err(ConvergenceError::ActiveSet { sets, changed }.into());
        }
        own.settled = changed == 0 || repeats;
        own.set.own = change.next;
        seen.insert(own.set.own.clone());
        own.mask = own.set.impose(u);
        all = Some(report);
    }
}

/// Returns the set that the initial state asks for, and the number of its degrees of freedom.
fn first_set<'a>(
    operator: &mut Operator,
    context: &'a Context,
    u: &Vector,
    unit: f64,
) -> Result<(ActiveSet<'a>, usize), RunError> {
    let (problem, on) = (&context.problem, &context.on);
    let bounds = Bounds::new(&problem.bounds, (&problem.form, on), &context.parameters)?;
    let sharing = on.sharing();
    let is_of_others =
        |own: &BoundedDof| sharing.as_ref().is_some_and(|sharing| sharing.is_of_others(own.dof));
    let is_of_others = bounds.dofs.iter().map(is_of_others).collect();
    let own = vec![Activity::Free; bounds.dofs.len()];
    let mut set = ActiveSet { context, bounds, own, is_of_others };
    let (mut r, mut diagonal) = (u.like(), u.like());
    operator.residual(u, &mut r)?;
    operator.linearise(u)?;
    operator.diagonal(&mut diagonal)?;
    let first = set.next((&u.to_vec(), &r.to_vec()), Some(&diagonal.to_vec()), (unit, 0.0));
    set.own = first.next;
    Ok((set, first.active))
}

/// Returns the number of linear iterations of a report.
fn linear_iterations(report: &Report) -> usize {
    match report.newton[..] {
        [] => report.iterations,
        _ => report.inner_iterations(),
    }
}

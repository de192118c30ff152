//! Mass of a form, M = ∂F/∂u̇ or ∂F/∂ü, and M⁻¹ r: consistent, diagonal, or lumped.
//!
//! ```text
//! s M = J(s) − J(0)
//! ```
//!
//! s is so large that s M dominates the difference; it stands for the highest derivative of each field. Both Jacobians are
//! taken at the same derivatives u̇ = s u + r, by their own r: else a factor of u̇ that depends on u would count as mass.
//! The lumped mass is the sum of each row over its component of its field; a mass that couples components is rejected.
//! Quadrature at the nodes gives a diagonal M, which is detected and inverted as such.

use super::super::context::Context;
use super::super::{RunError, kernels};
use super::parameters_at;
use super::stages::{ProblemStages, set_rate};
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::problem::TimeError;
use crate::solve::{
    CgSettings, Continue, GmresSettings, LinearOperator, NonlinearSystem, OperatorError,
    Preconditioner, cg, gmres,
};
use fem_dsl::point::{Field, PointForm, Shape};
use fem_dsl::problem::Mass as Kind;
use kernels_gen::plan::Task;
use std::sync::Mutex;

/// Relative residual of solves with a mass.
const RTOL: f64 = 1e-12;
/// Ratio of s M to the rest of J, on the diagonal.
const SHARE: f64 = 1e3;
/// Relative tolerance of the diagonality check.
const DIAGONAL: f64 = 1e-10;

/// Returns pseudo-random numbers between −½ and ½.
pub(super) fn scattered(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + 13) % 1009) as f64 / 1009.0 - 0.5).collect()
}

/// Returns the parameter values at a time, with s for the highest derivative of each field.
fn parameters_with(s: f64, time: f64, staged: &ProblemStages<'_>) -> Vec<f64> {
    let (mut parameters, form) = (staged.parameters().clone(), staged.context().form());
    parameters_at(form, &mut parameters, time, [0.0; 2]);
    for rate in form.rates.iter().filter(|rate| highest(form, rate.field) == rate.order) {
        let range = parameters.range(rate.param);
        parameters.values[range].fill(s);
    }
    parameters.values
}

/// Returns the order of the highest time derivative of a field in a form; 0 without any.
pub(super) fn highest(form: &PointForm, field: usize) -> usize {
    let own = form.rates.iter().filter(|rate| rate.field == field && rate.read);
    own.map(|rate| rate.order).max().unwrap_or(0)
}

/// Returns the name of a component of a field.
fn component_of(form: &PointForm, field: usize, component: usize) -> String {
    let Field { name, shape, .. } = &form.fields[field];
    if *shape == Shape::Scalar { name.clone() } else { format!("{name}[{component}]") }
}

/// Sets the derivatives of a state in an operator whose parameters have `s` for the highest derivative of each field.
fn set_derivatives(
    operator: &mut Operator,
    staged: &ProblemStages<'_>,
    (u, s): (&Vector, f64),
    rates: [Option<&Vector>; 2],
) -> Result<(), RunError> {
    let form = staged.context().form();
    let shifted = rates.map(|values| {
        let mut shifted = values.map_or_else(|| u.like(), Clone::clone);
        shifted.axpy(-s, u);
        shifted
    });
    for rate in &form.rates {
        let order = rate.order - 1;
        let is_highest = highest(form, rate.field) == rate.order;
        let values = if is_highest { Some(&shifted[order]) } else { rates[order] };
        set_rate(operator, &staged.context().on, rate, values)?;
    }
    Ok(())
}

/// Mass of a form.
pub(super) struct FormMass {
    with: Operator,
    /// J with s = 0.
    pub(super) without: Operator,
    s: f64,
    /// Inverse of the lumped mass, or of the diagonal of the consistent one.
    pub(super) inverse: Vector,
    /// 1 for free degrees of freedom, 0 for constrained ones, whose rows of M are 0.
    pub(super) free: Vector,
    /// `Lumped` for a diagonal mass as well.
    pub(super) kind: Kind,
    work: Mutex<Vector>,
}

impl FormMass {
    /// Builds the consistent mass of the highest derivatives of all fields, at a state and its derivatives, 0 for `None`.
    pub(super) fn new(
        u: &Vector,
        rates: [Option<&Vector>; 2],
        staged: &ProblemStages<'_>,
    ) -> Result<Self, RunError> {
        let form = staged.context().form();
        let Context { elements, on, platform, .. } = staged.context();
        let parameters = |s: f64| parameters_with(s, staged.parameters().values[0], staged);
        let made = |s: f64| {
            let (params, tasks) = (parameters(s), [Task::Action, Task::Diagonal]);
            let table_cache = staged.operator.table_cache();
            let made =
                kernels::compile_for(form, elements, on, &params, &tasks, platform, table_cache);
            let (mut made, _) = made?;
            set_derivatives(&mut made, staged, (u, s), rates)?;
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
        set_derivatives(&mut with, staged, (u, s), rates)?;
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
        // Rows that only other columns fill, as of a skew mass.
        let inverse = own.inverse.to_vec();
        if inverse.iter().any(|x| !x.is_finite()) {
            let of_row = |x: f64| if x.is_finite() { x } else { 1.0 };
            own.inverse.set(&inverse.into_iter().map(of_row).collect::<Vec<_>>());
            own.inverse.synchronise();
        }
        Ok(own)
    }

    /// Replaces the mass by its row sums in each component of each field.
    ///
    /// # Errors
    ///
    /// A mass that couples components, or has row sums that are not positive.
    pub(super) fn lumped(
        mut self,
        u: &Vector,
        staged: &mut ProblemStages<'_>,
    ) -> Result<Self, RunError> {
        if self.kind == Kind::Lumped {
            return Ok(self);
        }
        let (form, on) = (staged.context().form(), &staged.context().on);
        let (mut x, mut y) = (self.free.like(), self.free.like());
        let free = self.free.to_vec();
        let sums = self.sums_of_rows(u, staged)?;
        for (field, of_form) in form.fields.iter().enumerate() {
            let (range, count) = (on.dofs_of(field), of_form.shape.components());
            for component in 0..count {
                let own =
                    |at: usize| range.contains(&at) && (at - range.start) % count == component;
                let mut product = |numbers: Vec<f64>| {
                    x.set(&numbers);
                    x.synchronise();
                    self.times(&x, &mut y)?;
                    Ok::<_, OperatorError>(y.to_vec())
                };
                let some = scattered(free.len()).into_iter().enumerate();
                let some = product(some.map(|(at, x)| if own(at) { x } else { 0.0 }).collect())?;
                let largest = |which: bool| {
                    let these = (0..free.len()).filter(|&at| own(at) == which && free[at] > 0.0);
                    self.free.largest(these.map(|at| some[at].abs()).fold(0.0, f64::max))
                };
                if largest(false) > DIAGONAL * largest(true) {
                    let name = component_of(form, field, component);
                    let how = format!("which couples `{name}` with another component or field");
                    return Err(TimeError::Lumped { how }.into());
                }
            }
        }
        // Row sums of a mass have the sign of the diagonal.
        let shares = sums.iter().zip(self.inverse.to_vec()).zip(&free);
        let shares =
            shares.filter(|(_, free)| **free > 0.0).map(|((sum, inverse), _)| sum * inverse);
        let least = -self.free.largest(-shares.fold(f64::INFINITY, f64::min));
        if least < DIAGONAL {
            let how = "whose rows do not all have a positive sum, as on simplices of degree 2";
            return Err(TimeError::Lumped { how: how.to_owned() }.into());
        }
        self.inverse.set(&sums);
        self.inverse.invert();
        self.kind = Kind::Lumped;
        Ok(self)
    }

    /// Computes the row sums of free degrees of freedom: (F with derivative c in all DoFs − F without) / c. They
    /// include the columns of constrained DoFs, which products with M omit.
    fn sums_of_rows(
        &self,
        u: &Vector,
        staged: &mut ProblemStages<'_>,
    ) -> Result<Vec<f64>, RunError> {
        let form = staged.context().form();
        let order = (0..form.fields.len()).map(|field| highest(form, field)).max();
        let time = staged.parameters().values[0];
        let mut at = |rate: Option<&Vector>| -> Result<Vector, RunError> {
            let (mut u, mut r) = (u.clone(), u.like());
            let rates = if order == Some(2) { [None, rate] } else { [rate, None] };
            staged.residual_at(time, &mut u, rates, &mut r)?;
            r.multiply(&self.free);
            Ok(r)
        };
        let less = at(None)?;
        // c M dominates F.
        let mut share = less.clone();
        share.multiply(&self.inverse);
        let largest = share.to_vec().iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let c = SHARE * u.largest(largest).max(1.0);
        let mut rate = u.like();
        rate.fill(c);
        let mut sums = at(Some(&rate))?;
        sums.axpy(-1.0, &less);
        sums.scale(1.0 / c);
        Ok(sums.to_vec())
    }

    /// Updates J at another state and time; the mass itself is unchanged.
    pub(super) fn renew(
        &mut self,
        time: f64,
        u: &Vector,
        staged: &ProblemStages<'_>,
    ) -> Result<(), RunError> {
        for (operator, s) in [(&mut self.with, self.s), (&mut self.without, 0.0)] {
            let parameters = parameters_with(s, time, staged);
            operator.set_params(&parameters)?;
            if staged.data_follows_time() {
                let mut at = staged.parameters().clone();
                at.values[0] = time;
                operator.set_aux(&staged.context().prescribed.aux(staged.on(), &at)?)?;
            }
            operator.linearise(u)?;
        }
        Ok(())
    }

    /// Returns whether M x equals the diagonal times x for a pseudo-random x, as for quadrature at the nodes.
    fn is_diagonal(&self) -> Result<bool, OperatorError> {
        let (mut x, mut y) = (self.inverse.like(), self.inverse.like());
        x.set(&scattered(self.inverse.len()));
        x.synchronise();
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

    /// Computes w ← −M⁻¹ r; destroys r.
    pub(super) fn solve(&self, r: &mut Vector, w: &mut Vector) -> Result<(), RunError> {
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
                if report.outcome.is_success() {
                    return Ok(());
                }
                // The mass may be indefinite, as fields may have either sign, or not symmetric.
                w.fill(0.0);
                let stop = GmresSettings { rtol: RTOL, ..GmresSettings::default() };
                gmres(self, r, w, by, stop, &mut |_| Continue::Yes)?.converged()?;
            }
        }
        Ok(())
    }
}

impl LinearOperator for FormMass {
    fn size(&self) -> usize {
        self.inverse.len()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.times(x, y)
    }
}

//! Numerical verification of a form on a problem with a known solution.
//!
//! [`VerificationProblem`] sets up the problem and interpolates the solution at the nodes. [`series`] solves and
//! measures errors, [`jacobian`] checks the derivative, [`agreement`] compares kernels with the reference. The caller
//! judges the results.

pub mod agreement;
pub mod jacobian;
pub mod series;

use crate::algebra::vector::Vector;
use crate::kernels::compile::Target;
use crate::mesh::Mesh;
use crate::operator::Operator;
use crate::problem::{
    Context, DataError, Platform, RunError, at_nodes, check_fixed, interpolant, together,
};
use crate::solve::NonlinearSystem;
use crate::space::discretisation::{AuxValues, Discretisation};
use crate::support::expression::evaluate;
use fem_dsl::point::NodeId;
use fem_dsl::problem::{Expression, Problem};
use std::sync::Arc;

/// A problem with a known solution, on a mesh.
pub struct VerificationProblem {
    /// The problem on its mesh.
    pub context: Context,
    /// Nodal values of the solution, field by field.
    pub known: Vec<f64>,
}

/// Factor s of time derivatives: neither 0 nor 1, so that a kernel that omits it is detected.
pub const RATE: f64 = 1.5;

/// Converts a form with time derivatives to a stage of a scheme: ∂u/∂t = s u + r with r from the known solution.
fn at_an_instant(context: &mut Context, s: f64) -> Result<(), RunError> {
    let problem = Arc::clone(&context.problem);
    let form = &problem.form;
    if form.rates.is_empty() {
        return Ok(());
    }
    for rate in &form.rates {
        let range = context.parameters.range(rate.param);
        context.parameters.values[range].fill(s.powi(rate.order as i32));
    }
    let (parameters, on) = (&context.parameters, Arc::make_mut(&mut context.on));
    for rate in &form.rates {
        let Some((_, known)) = problem.exact.iter().find(|(field, _)| *field == rate.field) else {
            continue;
        };
        let (value, rates) = (&known.value, &known.rates[rate.order - 1]);
        let of = |part: &[NodeId]| {
            interpolant(on, rate.field, |points| {
                evaluate(known, part, points, parameters, |_| f64::NAN)
            })
        };
        let (u, v) = (of(value)?, of(rates)?);
        let s = s.powi(rate.order as i32);
        let past: Vec<f64> = v.iter().zip(u).map(|(v, u)| v - s * u).collect();
        if past.is_empty() {
            continue;
        }
        let mut all = vec![0.0; on.n_dofs()];
        all[on.dofs_of(rate.field)].copy_from_slice(&past);
        let numbers = at_nodes(on, (rate.aux, rate.field), &all);
        if let AuxValues::Nodes(space, _) = &on.aux[rate.aux] {
            on.aux[rate.aux] = AuxValues::Nodes(Arc::clone(space), Arc::new(numbers));
        }
    }
    Ok(())
}

impl VerificationProblem {
    /// Sets up a problem for a target. Every field should have a known solution; a missing one is 0. A form with time
    /// derivatives becomes a stage with ∂u/∂t = `rate` u + r. The mesh may be a subdomain, with periodic sides already
    /// identified.
    ///
    /// # Errors
    ///
    /// Errors of the problem on this mesh; an error on one process is an error on all.
    pub fn new(
        problem: &Problem,
        mesh: Arc<Mesh>,
        rate: f64,
        target: &Target,
    ) -> Result<Self, RunError> {
        let mut context = Context::new(problem.clone(), mesh, Platform::from(*target))?;
        at_an_instant(&mut context, rate)?;
        let on = &context.on;
        let mut known = vec![0.0; on.n_dofs()];
        for (field, exact) in &problem.exact {
            let own = together(&on.mesh, at_nodes_of(&context, *field, exact))?;
            known[on.dofs_of(*field)].copy_from_slice(&own);
        }
        check_fixed(context.form(), on, &context.parameters)?;
        Ok(Self { context, known })
    }

    /// Returns the solution as a vector of an operator.
    pub fn state(&self, operator: &Operator) -> Vector {
        vector(&operator.vector(), &self.known)
    }

    /// Returns false if the form is not computable at this degree: if R(u), a product with J(u) or its diagonal is not
    /// finite at the known solution.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied.
    pub fn finite(&self, operator: &mut Operator) -> Result<bool, RunError> {
        let u = self.state(operator);
        let (mut r, mut y) = (u.like(), u.like());
        operator.residual(&u, &mut r)?;
        operator.linearise(&u)?;
        operator.jacobian().apply(&u, &mut y)?;
        let mut d = u.like();
        operator.diagonal(&mut d)?;
        Ok([r, y, d].iter().all(|vector| vector.norm().is_finite()))
    }
}

/// Evaluates a known solution at the nodes of its field.
fn at_nodes_of(context: &Context, field: usize, exact: &Expression) -> Result<Vec<f64>, RunError> {
    let on = &context.on;
    let values = interpolant(on, field, |points| {
        evaluate(exact, &exact.value, points, &context.parameters, |_| f64::NAN)
    })?;
    match values.iter().find(|value| !value.is_finite()) {
        None => Ok(values),
        Some(&value) => {
            let field = context.form().fields[field].name.clone();
            Err(DataError::ExactNotFinite { field, value }.into())
        }
    }
}

/// Creates a vector from entries that each process has computed separately.
fn vector(like: &Vector, entries: &[f64]) -> Vector {
    let mut vector = like.like();
    vector.set(entries);
    vector.synchronise();
    vector
}

/// Sets the constrained degrees of freedom of a vector to 0.
fn free(on: &Discretisation, entries: &mut [f64]) {
    for (dof, _) in on.conditions() {
        entries[dof] = 0.0;
    }
}

//! Numerical verification of a form on a problem with a known solution.
//!
//! [`VerificationProblem`] sets up the problem and interpolates the solution at the nodes. [`series`] solves and
//! measures errors, [`jacobian`] checks the derivative, [`agreement`] compares kernels with the reference. The caller
//! judges the results.

pub mod agreement;
pub mod jacobian;
pub mod series;

use crate::algebra::vector::Vector;
use crate::device::Device;
use crate::kernels::compile::Target;
use crate::mesh::Mesh;
use crate::operator::Operator;
use crate::problem::{
    Kernels, ProblemSetup, RunError, at_nodes, check_fixed, compile_operator, set_up, together,
};
use crate::solve::NonlinearSystem;
use crate::space::discretisation::{AuxValues, Discretisation};
use crate::support::expression::evaluate;
use fem_dsl::problem::{Expression, Problem};
use std::sync::Arc;

/// A problem with a known solution, on a mesh.
pub struct VerificationProblem<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// Elements, spaces, conditions and data.
    pub setup: ProblemSetup,
    /// Nodal values of the solution, field by field.
    pub known: Vec<f64>,
}

/// Factor s of time derivatives: neither 0 nor 1, so that a kernel that omits it is detected.
pub const RATE: f64 = 1.5;

/// Converts a form with time derivatives to a stage of a scheme: ∂u/∂t = s u + r with r from the known solution.
fn at_an_instant(problem: &Problem, setup: &mut ProblemSetup, s: f64) -> Result<(), RunError> {
    let form = &problem.form;
    if form.rates.is_empty() {
        return Ok(());
    }
    for rate in &form.rates {
        let range = setup.parameters.range(rate.param);
        setup.parameters.values[range].fill(s.powi(rate.order as i32));
    }
    let (parameters, on) = (&setup.parameters, Arc::make_mut(&mut setup.on));
    for rate in &form.rates {
        let space = &on.fields[rate.field].space;
        let points = space.points(&on.mesh, &on.partition)?;
        let Some((_, known)) = problem.exact.iter().find(|(field, _)| *field == rate.field) else {
            continue;
        };
        let (value, rates) = (&known.value, &known.rates[rate.order - 1]);
        let [u, v] =
            [value, rates].map(|of| evaluate(known, of, &points, parameters, |_| f64::NAN));
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

impl<'a> VerificationProblem<'a> {
    /// Sets up a problem. Every field should have a known solution; a missing one is 0. A form with time derivatives
    /// becomes a stage with ∂u/∂t = `rate` u + r. The mesh may be a subdomain, with periodic sides already identified.
    ///
    /// # Errors
    ///
    /// Errors of the problem on this mesh; an error on one process is an error on all.
    pub fn new(problem: &'a Problem, mesh: Arc<Mesh>, rate: f64) -> Result<Self, RunError> {
        let mut setup = set_up(problem, mesh)?;
        at_an_instant(problem, &mut setup, rate)?;
        let mut known = vec![0.0; setup.on.n_dofs()];
        for (field, exact) in &problem.exact {
            let own = at_nodes_of(problem, &setup, *field, exact);
            let own = together(&setup.on.mesh, own)?;
            known[setup.on.dofs_of(*field)].copy_from_slice(&own);
        }
        check_fixed(&problem.form, &setup.on, &setup.parameters)?;
        Ok(Self { problem, setup, known })
    }

    /// Compiles kernels and builds the operator, on the host or a device.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, a device failure.
    pub fn operator(
        &self,
        target: &Target,
        device: Option<Arc<dyn Device>>,
    ) -> Result<(Operator, Kernels), RunError> {
        let ProblemSetup { elements, on, parameters, .. } = &self.setup;
        compile_operator(&self.problem.form, elements, on, &parameters.values, target, device)
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
fn at_nodes_of(
    problem: &Problem,
    setup: &ProblemSetup,
    field: usize,
    exact: &Expression,
) -> Result<Vec<f64>, RunError> {
    let on = &setup.on;
    let points = on.fields[field].space.points(&on.mesh, &on.partition)?;
    let values = evaluate(exact, &exact.value, &points, &setup.parameters, |_| f64::NAN);
    match values.iter().find(|value| !value.is_finite()) {
        None => Ok(values),
        Some(&value) => {
            let field = problem.form.fields[field].name.clone();
            Err(RunError::ExactNotFinite { field, value })
        }
    }
}

/// Creates a vector from entries that each process has computed separately.
fn vector(like: &Vector, entries: &[f64]) -> Vector {
    let mut vector = like.like();
    vector.set(entries);
    vector.agree();
    vector
}

/// Sets the constrained degrees of freedom of a vector to 0.
fn free(on: &Discretisation, entries: &mut [f64]) {
    for (dof, _) in on.conditions() {
        entries[dof] = 0.0;
    }
}

//! The linear system of a solved problem: [`Solution`] → matrix, right-hand side, and what each unknown is.
//!
//! ```text
//! J(u) x = b,    b = J(u) u − R(u)
//! ```
//!
//! Of a linear form that is its system, whatever u is; of another one the last step of Newton's method, whose x is u as far
//! as u is solved for. Unknowns with an essential condition have a row and a column of the identity, and their values in b.
//! Hanging nodes are no unknowns.

use super::{Balance, RunError, Solution, compile_operator};
use crate::assemble::Csr;
use crate::compile::Target;
use crate::expression::Parameters;
use crate::solve::NonlinearSystem;
use fem_dsl::problem::Problem;

/// A linear system.
pub struct Assembled {
    /// J(u).
    pub matrix: Csr,
    /// Whether it is symmetric.
    pub symmetric: bool,
    /// b.
    pub rhs: Vec<f64>,
    /// Where the node of each unknown is.
    pub points: Vec<[f64; 3]>,
    /// Whether each has an essential condition.
    pub constrained: Vec<bool>,
}

/// Whether a problem has one system: through time it has one for each stage.
///
/// # Errors
///
/// It has not.
pub fn has_one_system(problem: &Problem) -> Result<(), RunError> {
    if problem.stepping.is_none() {
        return Ok(());
    }
    let message = "a problem with `time` has a system for each stage of each step, and no single one\n\
                   help: assemble forms without `dt`: what stands beside it, and its mass, `f0[u] = u`, by itself";
    Err(RunError::Setting(message.to_owned()))
}

/// Assembles the system of a solution, on the processor.
///
/// # Errors
///
/// A problem through time, kernels that cannot be compiled, a matrix that has no room.
pub fn assembled(
    problem: &Problem,
    solution: &Solution,
    target: &Target,
) -> Result<Assembled, RunError> {
    has_one_system(problem)?;
    let (form, on, elements) = (&problem.form, &solution.on, &solution.elements);
    let parameters = Parameters::new(&form.params, problem.time, &problem.params, problem.degree);
    let params = &parameters.values;
    let (mut operator, _) = compile_operator(form, elements, on, params, target, None)?;
    let balance = Balance::new(problem, elements, on, params, target)?;
    balance.iter().for_each(|balance| balance.put(&mut operator));
    let mut u = operator.vector();
    u.set(&solution.u);
    operator.linearise(&u)?;
    let (mut r, mut b) = (u.like(), u.like());
    operator.residual(&u, &mut r)?;
    operator.jacobian().apply(&u, &mut b)?;
    b.axpy(-1.0, &r);
    let mut points = Vec::with_capacity(on.n_dofs());
    for field in &on.fields {
        let nodes = field.space.points(&on.mesh, &on.partition)?;
        let components = field.space.components();
        points.extend(nodes.into_iter().flat_map(|point| std::iter::repeat_n(point, components)));
    }
    let mut constrained = vec![false; on.n_dofs()];
    on.conditions().for_each(|(unknown, _)| constrained[unknown] = true);
    let (matrix, symmetric) = (Csr::of(&operator)?, operator.symmetric());
    Ok(Assembled { matrix, symmetric, rhs: b.to_vec(), points, constrained })
}

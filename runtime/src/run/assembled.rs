//! The linear system of a solved problem: [`Solution`] → matrix, right-hand side, and what each unknown is.
//!
//! ```text
//! J(u) x = b,    b = J(u) u − R(u)
//! ```
//!
//! Of a linear form that is its system, whatever u is; of another one the last step of Newton's method, whose x is u as far
//! as u is solved for. Unknowns with an essential condition have a row and a column of the identity, and their values in b.
//! Hanging nodes are no unknowns. Where a field is free up to a constant, J is singular: the row of one of its unknowns i gets a
//! pin, J + α e_i e_iᵀ and b + α u_i e_i, so that x is the solution with the field's mean.
//!
//! Of several processes each assembles its own cells; what they have adds up at the first, in the numbering of the whole mesh
//! ([`Assembled::of_all`]).

use super::{RunError, Solution, compile_operator};
use crate::assemble::Csr;
use crate::compile::Target;
use crate::discretisation::Discretisation;
use crate::expression::Parameters;
use crate::solve::{NonlinearSystem, NullSpace, pinned_rows};
use fem_dsl::problem::Problem;
use std::ops::Range;

/// A linear system.
pub struct Assembled {
    /// J(u).
    pub matrix: Csr,
    /// Whether it is symmetric.
    pub symmetric: bool,
    /// b.
    pub rhs: Vec<f64>,
    /// u, which of a linear form is x.
    pub solution: Vec<f64>,
    /// Where the node of each unknown is.
    pub points: Vec<[f64; 3]>,
    /// Whether each has an essential condition.
    pub constrained: Vec<bool>,
    /// The unknowns of each field.
    pub fields: Vec<Range<usize>>,
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

/// Assembles the system of a solution, on the processor; of a part of a mesh the matrix of its own cells, as [`Csr::assemble`] says, and of
/// all else what this process has.
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
    let mut u = operator.vector();
    u.set(&solution.u);
    operator.linearise(&u)?;
    let (mut r, mut b) = (u.like(), u.like());
    operator.residual(&u, &mut r)?;
    operator.jacobian().apply(&u, &mut b)?;
    b.axpy(-1.0, &r);
    let mut constrained = vec![false; on.n_dofs()];
    on.conditions().for_each(|(unknown, _)| constrained[unknown] = true);
    let (mut matrix, symmetric) = (Csr::of(&operator)?, operator.symmetric());
    let mut rhs = b.to_vec();
    // The pins of all processes are those of the first.
    let first = on.mesh.cut().is_none_or(|cut| cut.group().rank() == 0);
    let pins = operator.null_space().filter(|_| first).map_or_else(Vec::new, NullSpace::pins);
    if !pins.is_empty() {
        let (made, alphas) = pinned_rows(&matrix, &pins);
        matrix = made;
        pins.iter().zip(alphas).for_each(|(&at, alpha)| rhs[at] += alpha * solution.u[at]);
    }
    Ok(Assembled {
        matrix,
        symmetric,
        rhs,
        solution: solution.u.clone(),
        points: points(on)?,
        constrained,
        fields: on.ranges(),
    })
}

/// Where the node of each unknown is.
fn points(on: &Discretisation) -> Result<Vec<[f64; 3]>, RunError> {
    let mut points = Vec::with_capacity(on.n_dofs());
    for field in &on.fields {
        let nodes = field.space.points(&on.mesh, &on.partition)?;
        let components = field.space.components();
        points.extend(nodes.into_iter().flat_map(|point| std::iter::repeat_n(point, components)));
    }
    Ok(points)
}

impl Assembled {
    /// The system of all processes, from what each has of it, numbered as one process numbers it: the first has it, the others
    /// none. It is this one where there is one process. All processes call it; each numbers the unknowns of the whole mesh, and
    /// the first has all entries.
    ///
    /// # Errors
    ///
    /// A mesh that is too large for one process; at the first, a matrix that is.
    pub fn of_all(self, solution: &Solution) -> Result<Option<Self>, RunError> {
        let on = &solution.on;
        let (Some(sharing), Some(whole)) = (on.sharing(), on.on_whole()?) else {
            return Ok(Some(self));
        };
        let Some(places) = on.places_in(&whole) else { return Ok(Some(self)) };
        let n = whole.n_dofs();
        let all = |numbers: &[f64]| sharing.gathered(numbers, &places, n);
        let given = self.constrained.iter().map(|&given| f64::from(u8::from(given)));
        let given = all(&given.collect::<Vec<f64>>());
        let (rhs, u) = (all(&self.rhs), all(&self.solution));
        // The last that is asked of all, for it may fail at the first alone.
        let Some(matrix) = self.matrix.gathered(&places, n, &**sharing.group())? else {
            return Ok(None);
        };
        Ok(Some(Self {
            matrix,
            symmetric: self.symmetric,
            rhs,
            solution: u,
            points: points(&whole)?,
            constrained: given.into_iter().map(|given| given > 0.0).collect(),
            fields: whole.ranges(),
        }))
    }
}

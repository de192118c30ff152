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
//! An eigenvalue problem has two matrices instead, J φ = λ M φ, at the state where it starts ([`Pencil`]).
//!
//! Of several processes each assembles its own cells; what they have adds up at the first, in the numbering of the whole mesh
//! ([`Assembled::of_all`]).

use super::{RunError, Solution, compile_operator, initial};
use crate::kernels::compile::Target;
use crate::operator::assemble::Csr;
use crate::solve::{NonlinearSystem, NullSpace, pinned_rows};
use crate::space::discretisation::Discretisation;
use crate::support::expression::Parameters;
use fem_dsl::problem::Problem;
use std::ops::Range;
use std::sync::Arc;

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

/// The matrices of an eigenvalue problem J φ = λ M φ.
pub struct Pencil {
    /// J.
    pub stiffness: Csr,
    /// M. In rows and columns of unknowns with a condition it is 0, J the identity.
    pub mass: Csr,
    /// The eigenvalues that were asked for, ascending.
    pub values: Vec<f64>,
    /// Their modes, one after another.
    pub modes: Vec<f64>,
    /// The point of each unknown's node.
    pub points: Vec<[f64; 3]>,
    /// Whether each has an essential condition.
    pub constrained: Vec<bool>,
    /// The unknowns of each field.
    pub fields: Vec<Range<usize>>,
}

/// Checks that a problem has matrices: through time it has some for each stage.
///
/// # Errors
///
/// It has none of its own.
pub fn has_matrices(problem: &Problem) -> Result<(), RunError> {
    if problem.stepping.is_none() {
        return Ok(());
    }
    let message = "a problem with `time` has a system for each stage of each step, and no single one\n\
                   help: assemble forms without `dt`: what stands beside it, and its mass, `f0[u] = u`, by itself";
    Err(RunError::Setting(message.to_owned()))
}

/// Checks that a problem has one linear system.
///
/// # Errors
///
/// It has not.
fn has_one_system(problem: &Problem) -> Result<(), RunError> {
    if problem.eigen.is_some() {
        let message = "an eigenvalue problem has a stiffness and a mass, and no linear system\n\
                       help: assemble its pencil, or leave `eigen` out of the problem";
        return Err(RunError::Setting(message.to_owned()));
    }
    has_matrices(problem)
}

/// Assembles the matrices of a solved eigenvalue problem as [`assembled`] does.
///
/// # Errors
///
/// A problem without `eigen`, kernels that cannot be compiled, a matrix that has no room.
pub fn assembled_pencil(
    problem: &Problem,
    solution: &Solution,
    target: &Target,
) -> Result<Pencil, RunError> {
    let Some(eigen) = &problem.eigen else {
        let message = "only a problem with `eigen` has a stiffness and a mass";
        return Err(RunError::Setting(message.to_owned()));
    };
    let (form, on, elements) = (&problem.form, &solution.on, &solution.elements);
    let parameters = Parameters::new(&form.params, problem.time, &problem.params, problem.degree);
    let params = &parameters.values;
    let (mut operator, _) = compile_operator(form, elements, on, params, target, None)?;
    let mut u = operator.initial()?;
    initial::begin(problem, on, &parameters, None, &operator, &mut u)?;
    operator.linearise(&u)?;
    let mut mass_on = on.of_fields(on.fields.clone());
    mass_on.find_regions(&eigen.mass)?;
    let mass_on = Arc::new(mass_on);
    let (mut of_mass, _) = compile_operator(&eigen.mass, elements, &mass_on, params, target, None)?;
    of_mass.linearise(&of_mass.zeros())?;
    let constrained = constrained(on);
    let (stiffness, mut mass) = (Csr::of(&operator)?, Csr::of(&of_mass)?);
    for row in (0..constrained.len()).filter(|&row| constrained[row]) {
        mass.values[mass.starts[row]..mass.starts[row + 1]].fill(0.0);
    }
    mass.drop_zeros();
    Ok(Pencil {
        stiffness,
        mass,
        values: solution.modes.iter().map(|mode| mode.value).collect(),
        modes: solution.modes.iter().flat_map(|mode| mode.u.iter().copied()).collect(),
        points: points(on)?,
        constrained,
        fields: on.ranges(),
    })
}

/// Whether each unknown has an essential condition.
fn constrained(on: &Discretisation) -> Vec<bool> {
    let mut constrained = vec![false; on.n_dofs()];
    on.conditions().for_each(|(unknown, _)| constrained[unknown] = true);
    constrained
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
    let constrained = constrained(on);
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

impl Pencil {
    /// The matrices of all processes, as [`Assembled::of_all`] says.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn of_all(self, solution: &Solution) -> Result<Option<Self>, RunError> {
        let on = &solution.on;
        let (Some(sharing), Some(whole)) = (on.sharing(), on.on_whole()?) else {
            return Ok(Some(self));
        };
        let Some(places) = on.places_in(&whole) else { return Ok(Some(self)) };
        let n = whole.n_dofs();
        let all = |numbers: &[f64]| sharing.gathered(numbers, &places, n);
        let given: Vec<f64> = self.constrained.iter().map(|&is| f64::from(u8::from(is))).collect();
        let constrained = all(&given).into_iter().map(|given| given > 0.0).collect();
        let modes = solution.modes.iter().flat_map(|mode| all(&mode.u)).collect();
        let group = sharing.group();
        let stiffness = self.stiffness.gathered(&places, n, &**group)?;
        let mass = self.mass.gathered(&places, n, &**group)?;
        let (Some(stiffness), Some(mass)) = (stiffness, mass) else { return Ok(None) };
        let (points, fields) = (points(&whole)?, whole.ranges());
        Ok(Some(Self { stiffness, mass, modes, points, constrained, fields, ..self }))
    }
}

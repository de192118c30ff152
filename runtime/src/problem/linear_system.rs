//! Assembled linear system of a solved problem: matrix, right-hand side and a description of each degree of freedom.
//!
//! ```text
//! J(u) x = b,    b = J(u) u − R(u)
//! ```
//!
//! A linear form yields the same system for every u. For a nonlinear form it is the last Newton system, whose solution
//! x is u up to the solver's tolerance. Constrained DoFs have identity rows and columns and their values in b. Hanging
//! nodes carry no DoFs. A field that is free up to a constant makes J singular. One of its DoFs i is then pinned, J + α
//! e_i e_iᵀ and b + α u_i e_i, so that x has the field's mean.
//!
//! An eigenvalue problem has two matrices instead, J φ = λ M φ, at its initial state ([`MatrixPencil`]).
//!
//! With several processes, each assembles its own cells; [`AssembledSystem::of_all`] sums the contributions on rank 0,
//! in the numbering of the whole mesh.

use super::{Context, Platform, RunError, Solution, compile_operator, initial};
use crate::kernels::compile::Target;
use crate::kernels::representation::{Assembly, Representation};
use crate::operator::assemble::Csr;
use crate::solve::{NonlinearSystem, NullSpace, pinned_rows};
use crate::space::discretisation::Discretisation;
use fem_dsl::problem::Problem;
use std::ops::Range;
use std::sync::Arc;

/// A linear system.
pub struct AssembledSystem {
    /// J(u).
    pub matrix: Csr,
    /// True for a symmetric matrix.
    pub symmetric: bool,
    /// b.
    pub rhs: Vec<f64>,
    /// u, which equals x for a linear form.
    pub solution: Vec<f64>,
    /// Node coordinates of each degree of freedom.
    pub points: Vec<[f64; 3]>,
    /// Mask of the constrained degrees of freedom.
    pub constrained: Vec<bool>,
    /// Range of degrees of freedom of each field.
    pub fields: Vec<Range<usize>>,
}

/// Matrices and solutions of an eigenvalue problem J φ = λ M φ.
pub struct MatrixPencil {
    /// J.
    pub stiffness: Csr,
    /// M. Rows and columns of constrained DoFs are 0 in M and the identity in J.
    pub mass: Csr,
    /// Computed eigenvalues, ascending.
    pub values: Vec<f64>,
    /// Their modes, concatenated.
    pub modes: Vec<f64>,
    /// Node coordinates of each degree of freedom.
    pub points: Vec<[f64; 3]>,
    /// Mask of the constrained degrees of freedom.
    pub constrained: Vec<bool>,
    /// Range of degrees of freedom of each field.
    pub fields: Vec<Range<usize>>,
}

/// Checks that a problem has a matrix; a time-dependent problem has one for each stage.
///
/// # Errors
///
/// The problem is time-dependent.
pub fn has_matrices(problem: &Problem) -> Result<(), RunError> {
    if problem.numbers.is_some() || problem.stages.is_some() {
        let message = "a problem with unknown numbers or stages has no matrix of its fields alone\n\
                       help: assemble a form in which each number is a `param`, and each stage by itself";
        return Err(RunError::Setting(message.to_owned()));
    }
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
/// The problem is time-dependent or an eigenvalue problem.
fn has_one_system(problem: &Problem) -> Result<(), RunError> {
    if problem.eigen.is_some() {
        let message = "an eigenvalue problem has a stiffness and a mass, and no linear system\n\
                       help: assemble its pencil, or leave `eigen` out of the problem";
        return Err(RunError::Setting(message.to_owned()));
    }
    has_matrices(problem)
}

/// Assembles the matrices of a solved eigenvalue problem, like [`assembled`].
///
/// # Errors
///
/// A problem without `eigen`, kernels that cannot be compiled, a matrix beyond the memory budget.
pub fn assembled_pencil(solution: &Solution, target: &Target) -> Result<MatrixPencil, RunError> {
    let context = &solution.context;
    let Some(eigen) = &context.problem.eigen else {
        let message = "only a problem with `eigen` has a stiffness and a mass";
        return Err(RunError::Setting(message.to_owned()));
    };
    let Context { problem, elements, on, parameters, .. } = context;
    let (platform, params) = (platform_of(on, *target), &parameters.values);
    let (mut operator, _) = context.operator_on(&platform)?;
    let mut u = operator.initial()?;
    initial::begin(problem, on, parameters, None, &operator, &mut u)?;
    operator.linearise(&u)?;
    let mut mass_on = on.of_fields(on.fields.clone());
    mass_on.find_regions(&eigen.mass)?;
    let mass_on = Arc::new(mass_on);
    let (mut of_mass, _) = compile_operator(&eigen.mass, elements, &mass_on, params, &platform)?;
    of_mass.linearise(&of_mass.zeros())?;
    let constrained = constrained(on);
    let (stiffness, mut mass) = (Csr::of(&operator)?, Csr::of(&of_mass)?);
    for row in (0..constrained.len()).filter(|&row| constrained[row]) {
        mass.values[mass.starts[row]..mass.starts[row + 1]].fill(0.0);
    }
    mass.drop_zeros();
    Ok(MatrixPencil {
        stiffness,
        mass,
        values: solution.modes.iter().map(|mode| mode.value).collect(),
        modes: solution.modes.iter().flat_map(|mode| mode.u.iter().copied()).collect(),
        points: points(on)?,
        constrained,
        fields: on.ranges(),
    })
}

/// Returns the mask of the constrained degrees of freedom.
fn constrained(on: &Discretisation) -> Vec<bool> {
    let mut constrained = vec![false; on.n_dofs()];
    on.conditions().for_each(|(unknown, _)| constrained[unknown] = true);
    constrained
}

/// Assembles the system of a solution on the host. With several processes the result is the contribution of this
/// process: the matrix of its own cells, as in [`Csr::assemble`], and its own entries of all vectors.
///
/// # Errors
///
/// A time-dependent problem, kernels that cannot be compiled, a matrix beyond the memory budget.
pub fn assembled(solution: &Solution, target: &Target) -> Result<AssembledSystem, RunError> {
    let context = &solution.context;
    has_one_system(&context.problem)?;
    let on = &context.on;
    let (mut operator, _) = context.operator_on(&platform_of(on, *target))?;
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
    // Rank 0 defines the pins of all processes.
    let first = on.mesh.cut().is_none_or(|cut| cut.group().rank() == 0);
    let pins = operator.null_space().filter(|_| first).map_or_else(Vec::new, NullSpace::pins);
    if !pins.is_empty() {
        let (made, alphas) = pinned_rows(&matrix, &pins);
        matrix = made;
        pins.iter().zip(alphas).for_each(|(&at, alpha)| rhs[at] += alpha * solution.u[at]);
    }
    Ok(AssembledSystem {
        matrix,
        symmetric,
        rhs,
        solution: solution.u.clone(),
        points: points(on)?,
        constrained,
        fields: on.ranges(),
    })
}

/// Returns the platform of matrices on the host. Operators with pairs of cells have no element matrices, and on a part
/// their products have the contributions of all processes: a matrix is assembled there.
fn platform_of(on: &Discretisation, target: Target) -> Platform {
    Platform::from(match on.has_pairs() && on.mesh.cut().is_some() {
        true => target.representing(Representation::Assembled(Assembly::Pattern)),
        false => target,
    })
}

/// Returns the node coordinates of each degree of freedom.
fn points(on: &Discretisation) -> Result<Vec<[f64; 3]>, RunError> {
    let mut points = Vec::with_capacity(on.n_dofs());
    for field in &on.fields {
        let nodes = field.space.points(&on.mesh, &on.partition)?;
        let components = field.space.components();
        points.extend(nodes.into_iter().flat_map(|point| std::iter::repeat_n(point, components)));
    }
    Ok(points)
}

impl AssembledSystem {
    /// Sums the contributions of all processes on rank 0, numbered as in a serial run; the others return `None`. A
    /// serial run returns `self`. Collective: each process numbers the whole mesh, and rank 0 holds all entries.
    ///
    /// # Errors
    ///
    /// A mesh too large for one process; on rank 0, a matrix too large.
    pub fn of_all(self, solution: &Solution) -> Result<Option<Self>, RunError> {
        let on = &solution.context.on;
        let (Some(sharing), Some(whole)) = (on.sharing(), on.on_whole()?) else {
            return Ok(Some(self));
        };
        let Some(places) = on.places_in(&whole) else { return Ok(Some(self)) };
        let n = whole.n_dofs();
        let all = |numbers: &[f64]| sharing.gathered(numbers, &places, n);
        let given = self.constrained.iter().map(|&given| f64::from(u8::from(given)));
        let given = all(&given.collect::<Vec<f64>>());
        let (rhs, u) = (all(&self.rhs), all(&self.solution));
        // The last collective call: a later one could deadlock, since only rank 0 can fail in this one.
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

impl MatrixPencil {
    /// Sums the matrices of all processes, like [`AssembledSystem::of_all`].
    ///
    /// # Errors
    ///
    /// As for [`AssembledSystem::of_all`].
    pub fn of_all(self, solution: &Solution) -> Result<Option<Self>, RunError> {
        let on = &solution.context.on;
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

//! `run`: a checked problem on its mesh → its solution.
//!
//! ```text
//! mesh → elements, spaces, conditions → plans, kernels → tables → R(u) = 0 → errors, energy
//! ```

mod mean;
mod place;
mod solver;

pub(crate) use mean::Balance;
pub use place::{Kernels, Place};
pub use solver::{System, solve, suits};

use crate::compile::{CompileError, Target};
use crate::constraint::NotFinite;
use crate::device::{Device, DeviceError};
use crate::discretisation::{AuxValues, Discretisation};
use crate::expression::{Parameters, evaluate};
use crate::functional::{energy, errors};
use crate::geometry::places;
use crate::mesh::{Mesh, MeshError};
use crate::operator::BuildError;
use crate::solve::{Continue, OperatorError, Progress, Report, SolveError};
use crate::space::SpaceError;
use crate::vector::Vector;
use fem_dsl::point::{Location, PointForm};
use fem_dsl::problem::{Dirichlet, Expression, Problem, Unfixed, unfixed};
use kernels_gen::element::ElementError;
use kernels_gen::generate::elements;
use kernels_gen::plan::{Elements, PlanError};
use std::sync::Arc;
use std::time::Instant;

/// Why a problem has no solution here.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The elements are not possible.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An element is not possible.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// The mesh lacks something.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The unknowns cannot be numbered.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// The kernels cannot be made.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The operator cannot be made.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The operator cannot be applied.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A device fails.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A condition's value is not a number.
    #[error("the condition on `{field}` has no finite value: {source}")]
    Condition {
        /// The condition's number, as they are given: in a problem, that in [`Problem::dirichlet`].
        index: usize,
        /// The field.
        field: String,
        /// Where and what.
        source: NotFinite,
    },
    /// Auxiliary data without a value.
    #[error("`aux {name}` has no value\nhelp: give it in the problem, `aux {name} = …;`")]
    NoAux {
        /// Its name.
        name: String,
    },
    /// Auxiliary data that is not a number somewhere.
    #[error("`aux {name}` is {value} at {}", shown(.point))]
    AuxNotFinite {
        /// Its name.
        name: String,
        /// Its value.
        value: f64,
        /// Where.
        point: [f64; 3],
    },
    /// A parameter that is not a number.
    #[error("`param {name}` is {value}\nhelp: a parameter must be a finite number")]
    ParamNotFinite {
        /// Its name.
        name: String,
        /// Its value.
        value: f64,
    },
    /// A field with a mean that is fixed anyway.
    #[error(
        "`{field}` is not free up to a constant: with another constant the equations do not hold\n\
         help: leave `mean {field}` out"
    )]
    NotUpToAConstant {
        /// The field.
        field: String,
    },
    /// Data that no solution fulfils.
    #[error(
        "what the conditions and sources give `{field}` does not balance: {left:.3e} of {all:.3e} is left over\n\
         help: where a field is free up to a constant, what enters through the boundary and the sources must leave; \
         mend them, or let it leave by a part of the boundary without a condition"
    )]
    Unbalanced {
        /// The field.
        field: String,
        /// What is left of its equations.
        left: f64,
        /// What there was before the solve.
        all: f64,
    },
    /// Nothing fixes a field.
    #[error("{}\nhelp: {}", .0, .0.remedy())]
    Unfixed(Unfixed),
    /// A known solution that is not a number somewhere.
    #[error("the error against the known solution of `{field}` is {value}")]
    ExactNotFinite {
        /// The field.
        field: String,
        /// The error.
        value: f64,
    },
    /// A solver's setting.
    #[error("{0}")]
    Setting(String),
    /// A matrix that is singular.
    #[error(
        "the matrix is singular: nothing fixes {field}, up to a constant or another null vector\n\
         help: add `dirichlet {name} = …;` or `mean {name} = 0;`, or give the form a term that fixes it"
    )]
    Singular {
        /// The field, and where it has several its component, in which the null vector is largest.
        field: String,
        /// The field alone.
        name: String,
    },
    /// A load step that did not converge.
    #[error("load step {step} of {steps}: {source}\nhelp: take more of them, `newton(steps: {})`", 2 * steps)]
    LoadStep {
        /// Its number, from 1 on.
        step: usize,
        /// How many there are.
        steps: usize,
        /// What happened.
        source: SolveError,
    },
    /// The solve did not converge.
    #[error(transparent)]
    Solve(#[from] SolveError),
}

fn shown(point: &[f64; 3]) -> String {
    format!("({}, {}, {})", point[0], point[1], point[2])
}

/// A problem on its mesh, before anything is compiled.
pub struct Setup {
    /// The elements.
    pub elements: Elements,
    /// Spaces, conditions, auxiliary data.
    pub on: Arc<Discretisation>,
    /// Time and parameters.
    pub parameters: Parameters,
}

/// Seconds of each phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seconds {
    /// Planning, printing and compiling kernels.
    pub compile: f64,
    /// Spaces, conditions, tables.
    pub set_up: f64,
    /// The solve.
    pub solve: f64,
}

/// A solved problem.
pub struct Solution {
    /// What it is solved on.
    pub on: Arc<Discretisation>,
    /// The elements.
    pub elements: Elements,
    /// The kernels.
    pub kernels: Kernels,
    /// The unknowns, node-major.
    pub u: Vec<f64>,
    /// How the solve went.
    pub report: Report,
    /// Linear iterations in all.
    pub linear_iterations: usize,
    /// ‖R(u)‖ over the free unknowns at the end.
    pub residual: f64,
    /// L2 and H1 error of each field with a known solution: (field, L2, H1).
    pub errors: Vec<(usize, f64, f64)>,
    /// The energy, where the Jacobian is symmetric.
    pub energy: Option<f64>,
    /// What should be known of the solution.
    pub notes: Vec<String>,
    /// Seconds of each phase.
    pub seconds: Seconds,
    /// Unknowns a second of one action of the Jacobian (or residual), as measured at the solution.
    pub throughput: f64,
}

/// The elements, spaces, conditions and data of a problem.
pub fn set_up(problem: &Problem, mesh: Mesh) -> Result<Setup, RunError> {
    let form = &problem.form;
    let parameters = Parameters::new(&form.params, problem.time, &problem.params, problem.degree);
    check_parameters(form, &parameters)?;
    let (cell, order) = (mesh.cell(), mesh.order());
    let elements = elements(form, cell, problem.degree, order, problem.quadrature)?;
    let mut on = Discretisation::new(mesh, &elements.spaces())?;
    on.find_facets(form)?;
    set_conditions(problem, &parameters, &mut on)?;
    mean::hold(problem, &mut on);
    set_aux(problem, &elements, &parameters, &mut on)?;
    Ok(Setup { elements, on: Arc::new(on), parameters })
}

/// Every parameter must be finite.
pub fn check_parameters(form: &PointForm, parameters: &Parameters) -> Result<(), RunError> {
    let names = std::iter::once("t".to_owned()).chain(
        form.params
            .iter()
            .flat_map(|param| std::iter::repeat_n(param.name.clone(), param.shape.components())),
    );
    for (name, &value) in names.zip(&parameters.values) {
        if !value.is_finite() {
            return Err(RunError::ParamNotFinite { name, value });
        }
    }
    Ok(())
}

fn set_conditions(
    problem: &Problem,
    parameters: &Parameters,
    on: &mut Discretisation,
) -> Result<(), RunError> {
    let nothing = |_: usize| f64::NAN;
    for (index, condition) in problem.dirichlet.iter().enumerate() {
        let Dirichlet { field, component, value, tags } = condition;
        let space = &on.fields[*field].space;
        let points = space.points(&on.mesh, &on.partition)?;
        let facets = match tags {
            None => on.mesh.boundary(),
            Some(tags) => on.mesh.facets_under(tags)?,
        };
        let nodes = space.nodes_on(&facets);
        let places: Vec<[f64; 3]> = nodes.iter().map(|&node| points[node as usize]).collect();
        let values = evaluate(value, &value.value, &places, parameters, nothing);
        let components = value.value.len();
        let mut next = values.chunks(components.max(1));
        let fixed = on.fields[*field].constraints.fix(&nodes, *component, &points, |_, row| {
            if let Some(values) = next.next() {
                row.copy_from_slice(values);
            }
        });
        let name = || problem.form.fields[*field].name.clone();
        fixed.map_err(|source| RunError::Condition { index, field: name(), source })?;
    }
    Ok(())
}

fn set_aux(
    problem: &Problem,
    elements: &Elements,
    parameters: &Parameters,
    on: &mut Discretisation,
) -> Result<(), RunError> {
    let mut all = Vec::new();
    for (index, aux) in problem.form.aux.iter().enumerate() {
        let given = problem.aux.iter().rev().find(|(at, _)| *at == index);
        let Some((_, expression)) = given else {
            return Err(RunError::NoAux { name: aux.name.clone() });
        };
        let (values, points) = match aux.location {
            Location::Nodes(_) => {
                let element = elements.element_of_aux(index)?;
                let space = on.aux_space(element, aux.shape.components())?;
                let points = space.points(&on.mesh, &on.partition)?;
                let values = at_points(expression, &points, parameters, |_| f64::NAN);
                (AuxValues::Nodes(space, values), points)
            }
            Location::Cells => {
                let points = places(&on.mesh, &[on.mesh.cell().centre()])?;
                let diameter = |cell: usize| on.mesh.diameter(cell);
                (AuxValues::Cells(at_points(expression, &points, parameters, diameter)), points)
            }
            Location::Points => {
                let rule = elements.rule.points();
                let points = places(&on.mesh, &rule)?;
                let diameter = |point: usize| on.mesh.diameter(point / rule.len());
                (AuxValues::Points(at_points(expression, &points, parameters, diameter)), points)
            }
        };
        let (AuxValues::Nodes(_, numbers) | AuxValues::Cells(numbers) | AuxValues::Points(numbers)) =
            &values;
        if let Some(at) = numbers.iter().position(|value| !value.is_finite()) {
            let point = points[at / aux.shape.components()];
            let name = aux.name.clone();
            return Err(RunError::AuxNotFinite { name, value: numbers[at], point });
        }
        all.push(values);
    }
    on.aux = all;
    Ok(())
}

fn at_points(
    expression: &Expression,
    points: &[[f64; 3]],
    parameters: &Parameters,
    diameter: impl Fn(usize) -> f64 + Sync,
) -> Vec<f64> {
    evaluate(expression, &expression.value, points, parameters, diameter)
}

/// Every component must be held by a condition, or by the form itself.
pub fn check_fixed(form: &PointForm, on: &Discretisation) -> Result<(), RunError> {
    let held = |field: usize, component: usize| {
        let components = form.fields[field].shape.components();
        on.fields[field].constraints.iter().any(|(dof, _)| dof % components == component)
    };
    unfixed(form, held).map_or(Ok(()), |unfixed| Err(RunError::Unfixed(unfixed)))
}

/// Solves a problem on the processor. `observe` sees each iteration.
pub fn run(
    problem: &Problem,
    mesh: Mesh,
    target: &Target,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Solution, RunError> {
    run_on(problem, mesh, target, None, observe)
}

/// Solves a problem, on a device where one is given: there the solver's vectors live from the first iteration to the
/// last, and only sums and the solution come back. `observe` sees each iteration.
pub fn run_on(
    problem: &Problem,
    mesh: Mesh,
    target: &Target,
    device: Option<Arc<dyn Device>>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Solution, RunError> {
    let start = Instant::now();
    let Setup { elements, on, parameters } = set_up(problem, mesh)?;
    let form = &problem.form;
    check_fixed(form, &on)?;
    let (mut place, kernels) =
        Place::new(form, &elements, &on, &parameters.values, target, device)?;
    let mut balance = Balance::new(problem, &elements, &on, &parameters.values, target)?;
    if let Some(balance) = &mut balance {
        balance.check()?;
        balance.put(&mut place);
    }
    let mut u = place.initial()?;
    let mut seconds = Seconds { compile: kernels.seconds, ..Seconds::default() };
    seconds.set_up = start.elapsed().as_secs_f64() - kernels.seconds;
    let solving = Instant::now();
    let system = System { form, on: &on, parameters: &parameters };
    let solved = solve(&mut place, system, &mut u, problem.solver.as_ref(), observe);
    // What went wrong on a device comes before what it made of the numbers.
    place.finish()?;
    let (report, linear_iterations) = solved?;
    seconds.solve = solving.elapsed().as_secs_f64();
    let report = report.converged()?;
    let mut r = u.like();
    place.system().residual(&u, &mut r)?;
    let residual = r.norm();
    let throughput = measure(&mut place, &u, &mut r)?;
    let mut u: Vec<f64> = u.to_vec();
    place.finish()?;
    let notes = balance.map(|balance| balance.settle(&mut u)).transpose()?.unwrap_or_default();
    let (errors, energy) = assess(problem, &elements, &on, &u, &parameters)?;
    Ok(Solution {
        on,
        elements,
        kernels,
        u,
        report,
        linear_iterations,
        residual,
        errors,
        energy,
        notes,
        seconds,
        throughput,
    })
}

/// The errors where a solution is known, and the energy where there is one.
fn assess(
    problem: &Problem,
    elements: &Elements,
    on: &Discretisation,
    u: &[f64],
    parameters: &Parameters,
) -> Result<(Vec<(usize, f64, f64)>, Option<f64>), RunError> {
    let form = &problem.form;
    let mut known = Vec::new();
    for (field, exact) in &problem.exact {
        let (l2, h1) = errors(on, *field, u, exact, parameters)?;
        if let Some(value) = [l2, h1].into_iter().find(|error| !error.is_finite()) {
            let field = form.fields[*field].name.clone();
            return Err(RunError::ExactNotFinite { field, value });
        }
        known.push((*field, l2, h1));
    }
    let energy = match form.integrals.as_slice() {
        [integral] if integral.symmetric => {
            Some(energy(on, integral, elements.rule, u, parameters)?)
        }
        _ => None,
    };
    Ok((known, energy))
}

/// Unknowns a second of one residual, the median of a few.
fn measure(place: &mut Place, u: &Vector, r: &mut Vector) -> Result<f64, RunError> {
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        place.system().residual(u, r)?;
        place.finish()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(u.len() as f64 / times[times.len() / 2])
}

//! Choice between compiled and interpreted kernels: [`interpreting_pays`].
//!
//! A compiler takes a second or more; small problems are solved by interpreted kernels before it ends. The choice
//! follows from counts, so that a run is repeated to the bit whatever the machine's speed, load and cache of kernels:
//!
//! ```text
//! interpreted seconds = evaluations · points · operations at a point · seconds of an operation
//! evaluations         = solves · steps of Newton's method · (products that read the matrix, or iterations)
//! ```
//!
//! Seconds of a core of whole runs, compiled without a cache of kernels and interpreted, and the predicted seconds:
//!
//! ```text
//!                                                 compiled   interpreted   predicted
//! heat in a bar, 123 unknowns, 64 steps               0.5          0.07        0.02
//! contact of two bodies, two problems                 1.6          0.32        0.23
//! five-spot, mixed form                               1.25         0.36        0.49
//! Poisson by three formulations                       1.28         0.25        1.4
//! nonlinear diffusion                                 0.73         0.35        0.89
//! charged plates                                      0.73         2.1         2.7
//! Poisson in a ball, 29,521 unknowns                  1.8          3.4         4.6
//! ```

use super::{ProblemProperties, SolvePlan, cost};
use crate::kernels::compile::{Execution, Target};
use crate::problem::platform::Platform;
use crate::space::discretisation::Discretisation;
use fem_dsl::problem::Problem;
use kernels_gen::choose::PlanOverrides;
use kernels_gen::plan::Elements;

/// Longest predicted interpreted run, in seconds; compiling took 0.5 to 1 s for scalar forms, 1 to 2 s for coupled ones.
const SECONDS: f64 = 0.5;
/// Seconds of an interpreted operation in one of many cells, on one core.
const AN_OPERATION: f64 = 2.5e-9;
/// Steps of Newton's method; the usual number is 4 to 10.
const STEPS: f64 = 8.0;
/// Evaluations of a linear solve by factors, beside those that read the matrix.
const WITH_FACTORS: f64 = 4.0;
/// Steps in time whose number is unknown, because an error tolerance sets their length.
const UNKNOWN_STEPS: f64 = 200.0;
/// Solves of an adaptive problem that cost as much as the last one.
const MESHES: f64 = 4.0;
/// Products with interpreted kernels for each mode of an eigenvalue problem.
const A_MODE: f64 = 50.0;

/// Returns the platform with interpreted kernels, where compiling them takes longer than all that they are for. The
/// processor's kernels are meant; the caller may have chosen, or forced a plan, which stays.
pub(in crate::problem) fn quickest(
    platform: &Platform,
    problem: &Problem,
    elements: &Elements,
    on: &Discretisation,
    plan: &SolvePlan,
) -> Platform {
    let target = platform.target;
    let is_open = target.execution == Execution::Automatic
        && platform.device.is_none()
        && target.linked.is_empty()
        && target.wishes == PlanOverrides::default();
    if is_open && interpreting_pays(platform.runs, problem, elements, on, plan) {
        return platform.with_target(Target { execution: Execution::Interpreted, ..target });
    }
    platform.clone()
}

/// Returns whether so many interpreted runs are predicted to take less time than compiling their kernels.
fn interpreting_pays(
    runs: usize,
    problem: &Problem,
    elements: &Elements,
    on: &Discretisation,
    plan: &SolvePlan,
) -> bool {
    let each = operations(problem, elements, on) * AN_OPERATION;
    let seconds = runs as f64 * evaluations(problem, plan) * each;
    tracing::debug!("interpreted kernels are predicted to take {seconds:.3e} s");
    seconds <= SECONDS
}

/// Operations of a residual or product.
fn operations(problem: &Problem, elements: &Elements, on: &Discretisation) -> f64 {
    let dim = on.mesh.dim() as f64;
    // Values and gradients of a field at a point, by lines or by a table, and the same of its test functions.
    let interpolation: f64 = elements
        .fields
        .iter()
        .zip(&elements.components)
        .map(|(element, &components)| {
            let terms = match elements.cell.is_tensor() {
                true => dim * (element.degree() + 1) as f64,
                false => element.count() as f64,
            };
            4.0 * (1.0 + dim) * components as f64 * terms
        })
        .sum();
    // The Jacobian of the map, its inverse and determinant.
    let geometry = 8.0 * dim * dim;
    let (inside, facets) = (elements.rule.count() as f64, on.mesh.cell().facets().len() as f64);
    let beside = elements.rule.on_facet().len() as f64 * facets;
    let at_points: f64 = problem
        .form
        .integrals
        .iter()
        .map(|integral| {
            let own = integral.graph.nodes().len() as f64;
            match integral.region.is_interior() {
                // Both cells of a facet, each with the tables of its place.
                true => beside * (2.0 * (interpolation + geometry) + own),
                false => inside * (interpolation + geometry + own),
            }
        })
        .sum();
    on.mesh.cells_in_all() as f64 * at_points
}

/// Residuals and products of a whole run.
fn evaluations(problem: &Problem, plan: &SolvePlan) -> f64 {
    let ProblemProperties { size, is_linear, .. } = plan.properties;
    let matrix = cost::products_of_a_matrix(size);
    if let Some(eigen) = &problem.eigen {
        return 2.0 * matrix + A_MODE * eigen.count as f64;
    }
    let steps = problem.stepping.as_ref().map_or(1.0, |stepping| match stepping.step {
        Some(step) if stepping.tolerance.is_none() => (stepping.to - stepping.from) / step,
        _ => UNKNOWN_STEPS,
    });
    let loads = plan.newton.as_ref().map_or(1, |newton| newton.load_steps) as f64;
    let solves = steps.max(1.0) * loads * if problem.adapt.is_some() { MESHES } else { 1.0 };
    match (plan.linear.is_direct(), is_linear) {
        // One factorisation serves all steps in time.
        (true, true) => matrix + WITH_FACTORS * solves,
        (true, false) => (matrix + WITH_FACTORS) * STEPS * solves,
        (false, true) => cost::iterations(&plan.properties) * solves,
        (false, false) => cost::iterations(&plan.properties) * STEPS * solves,
    }
}

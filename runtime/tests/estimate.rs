//! Error estimates: against known errors, on exact solutions, on the boundary, for all cell types.

#[path = "estimate/between.rs"]
mod between;
#[path = "estimate/exact.rs"]
mod exact;
#[path = "estimate/smooth.rs"]
mod smooth;
#[path = "estimate/vectors.rs"]
mod vectors;

use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::Problem;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use kernels_gen::plan::Elements;
use runtime::estimate::{ErrorEstimate, EstimateError, Estimator};
use runtime::kernels::compile::{Execution, Target};
use runtime::mesh::{Mesh, load};
use runtime::problem::{Context, Platform, Solution, run};
use runtime::solve::Continue;
use runtime::space::discretisation::Discretisation;
use runtime::support::expression::Parameters;
use std::path::Path;
use std::sync::Arc;

/// Returns the execution target for small meshes.
fn target() -> Target {
    Target { execution: Execution::Interpreted, ..Target::native() }
}

/// Parses a problem, and creates its mesh.
fn problem(text: &str) -> (Problem, Mesh) {
    let (program, found) = compile(&Source::new("test", text));
    let program = program.unwrap_or_else(|| panic!("{found:?}\n{text}"));
    let (source, _) = program.mesh("p", &Overrides::default()).expect("a mesh");
    let mesh = load(&source, Path::new("")).expect("a mesh");
    let problem = program.problem("p", mesh.dim(), &Overrides::default());
    (problem.unwrap_or_else(|found| panic!("{found:?}\n{text}")), mesh)
}

fn solved(problem: &Problem, mesh: Mesh) -> Solution {
    run(problem, mesh, &target().into(), &mut |_| Continue::Yes).expect("a solution")
}

fn estimator(problem: &Problem, elements: &Elements, on: &Arc<Discretisation>) -> Estimator {
    let Problem { form, time, params, degree, .. } = problem;
    let parameters = Parameters::new(&form.params, *time, params, *degree);
    let made = Estimator::new(form, elements, on, &parameters.values, &target(), None);
    made.expect("kernels")
}

/// Returns the estimate of a problem's solution.
fn of_solution(problem: &Problem, solution: &Solution) -> ErrorEstimate {
    let estimator = estimator(problem, &solution.context.elements, &solution.context.on);
    estimator.estimate(&solution.u).expect("an estimate")
}

/// Returns the solution of a problem with its estimate.
fn estimated(text: &str) -> (Solution, ErrorEstimate) {
    let (problem, mesh) = problem(text);
    let solution = solved(&problem, mesh);
    let estimate = of_solution(&problem, &solution);
    (solution, estimate)
}

/// Returns a state of a problem given by functions of the fields, with its estimate.
fn of_state(
    problem: &Problem,
    mesh: Mesh,
    state: impl Fn(usize, &[f64; 3], &mut [f64]),
) -> (Arc<Discretisation>, Result<ErrorEstimate, EstimateError>) {
    let context = Context::new(problem.clone(), mesh, Platform::native());
    let Context { on, elements, .. } = context.expect("a problem");
    let mut u = vec![0.0; on.n_dofs()];
    for (number, field) in on.fields.iter().enumerate() {
        let points = field.space.points(&on.mesh, &on.partition).expect("points");
        let own = &mut u[on.dofs_of(number)];
        for (x, values) in points.iter().zip(own.chunks_mut(field.space.components())) {
            state(number, x, values);
        }
    }
    let estimate = estimator(problem, &elements, &on).estimate(&u);
    (on, estimate)
}

/// Returns the H¹ seminorm of the error of a field.
fn error(solution: &Solution, field: usize) -> f64 {
    let (_, l2, h1) = solution.errors[field];
    (h1 * h1 - l2 * l2).sqrt()
}

//! Estimates of errors: against known errors, on solutions that are exact, for all kinds of cells.

use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::Problem;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use runtime::compile::{Execution, Target};
use runtime::estimate::{Estimate, Estimator};
use runtime::expression::Parameters;
use runtime::mesh::{Mesh, load};
use runtime::run::{Solution, run};
use runtime::solve::Continue;
use std::path::Path;

/// What the kernels of small meshes run by.
fn target() -> Target {
    Target { execution: Execution::Interpreted, ..Target::native() }
}

fn problem(text: &str) -> (Problem, Mesh) {
    let (program, found) = compile(&Source::new("test", text));
    let program = program.unwrap_or_else(|| panic!("{found:?}\n{text}"));
    let (source, _) = program.mesh("p", &Overrides::default()).expect("a mesh");
    let mesh = load(&source, Path::new("")).expect("a mesh");
    let problem = program.problem("p", mesh.dim(), &Overrides::default());
    (problem.unwrap_or_else(|found| panic!("{found:?}\n{text}")), mesh)
}

fn solved(problem: &Problem, mesh: Mesh) -> Solution {
    run(problem, mesh, &target(), &mut |_| Continue::Yes).expect("a solution")
}

fn estimated(problem: &Problem, solution: &Solution) -> Estimate {
    let parameters =
        Parameters::new(&problem.form.params, problem.time, &problem.params, problem.degree);
    let (form, on) = (&problem.form, &solution.on);
    let estimator =
        Estimator::new(form, &solution.elements, on, &parameters.values, &target(), None);
    estimator.expect("kernels").estimate(&solution.u).expect("an estimate")
}

/// The seminorm of the error of a field.
fn error(solution: &Solution, field: usize) -> f64 {
    let (_, l2, h1) = solution.errors[field];
    (h1 * h1 - l2 * l2).sqrt()
}

#[test]
fn calibrate() {
    for (mesh, degrees) in [
        ("box(dim: 2, cells: N, cell: quad)", 1..=5),
        ("box(dim: 2, cells: N, cell: quad, deform: 0.1)", 1..=4),
        ("box(dim: 2, cells: N, cell: tri)", 1..=4),
        ("box(dim: 3, cells: N, cell: hex)", 1..=4),
        ("box(dim: 3, cells: N, cell: tet)", 1..=3),
    ] {
        let three = mesh.contains("dim: 3");
        for degree in degrees {
            for cells in if three { [2, 3] } else { [4, 8] } {
                let mesh = mesh.replace('N', &cells.to_string());
                let solution = if three {
                    "sin(2 * x[0]) * exp(x[1]) * cos(x[2] + 1)"
                } else {
                    "sin(3 * x[0]) * exp(x[1])"
                };
                let text = format!(
                    "form f {{ field u: scalar; f1[u] = grad(u); }} problem p solves f {{ mesh = {mesh}; degree = {degree};
                    manufactured u = {solution}; dirichlet u on all; }}"
                );
                let (problem, mesh_of) = problem(&text);
                let solution = solved(&problem, mesh_of);
                let e = estimated(&problem, &solution);
                let error = error(&solution, 0);
                let f = &e.fields[0];
                eprintln!(
                    "{mesh} k={degree}: eff {:.3}  residual {:.3} jumps {:.3}  rel {:.2e} energy {:.4} E {:?}",
                    e.total.sqrt() / error,
                    f.residual.sqrt() / error,
                    f.jumps.sqrt() / error,
                    e.relative().unwrap(),
                    e.energy,
                    solution.energy
                );
            }
        }
    }
}

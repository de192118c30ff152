//! Multigrid of complex and of several vector-valued fields: iterations do not depend on the sizes of the coefficients,
//! insulators included.

use super::devices::devices;
use super::vector_fields::{solved, solved_on};
use runtime::kernels::compile::Target;
use runtime::problem::{Platform, ReportValue, Solution};
use std::sync::Arc;

fn value(solution: &Solution) -> f64 {
    match &solution.reports[0].value {
        ReportValue::Value(_, values) => values[0],
        other => panic!("a number should be reported: {other:?}"),
    }
}

/// Returns the solution, which must be preconditioned by levels.
fn by_levels(text: &str) -> Solution {
    let solution = solved(text, 1).unwrap_or_else(|error| panic!("{error}")).remove(0);
    let report = &solution.report;
    assert!(!solution.multigrid.is_empty(), "{:?}", report.notes);
    assert_ne!(report.solver, "direct", "{:?}", report.notes);
    solution
}

/// Eddy currents, or waves with `term`, on a box.
fn problem(dim: usize, degree: usize, cells: usize, term: &str, solver: &str) -> String {
    let load = if dim == 2 {
        "[cos(5 * x[1]) + x[0], x[0] * x[1]]"
    } else {
        "[cos(5 * x[1]) + x[0], x[0] * x[1], x[1]^2]"
    };
    format!(
        "form f {{ field E: complex vector in Hcurl(k); test v for E;
           residual = inner(curl(E), curl(v)) + {term} - inner({load}, v); }}
         problem p solves f {{ mesh = box(dim: {dim}, cells: {cells}, deform: 0.1); degree = {degree};
           dirichlet E = 0 * x on all; solver = {solver}; report e = integral(norm(E)^2); }}"
    )
}

const LEVELS: &str = "fgmres(rtol: 1e-8, preconditioner: multigrid)";

#[test]
fn eddy_currents_take_as_many_iterations_at_all_frequencies() {
    for (dim, degree, cells) in [(2, 1, 16), (2, 3, 8), (3, 1, 4)] {
        for w in ["1e-2", "10", "1e4"] {
            let term = format!("i * {w} * inner(E, v)");
            let found = by_levels(&problem(dim, degree, cells, &term, LEVELS));
            let iterations = found.report.iterations;
            println!("{dim}D, degree {degree}, {w}: {iterations}");
            assert!((3..=30).contains(&iterations), "{dim}D, {degree}, {w}: {iterations}");
            let direct = solved(&problem(dim, degree, cells, &term, "direct"), 1);
            let direct = direct.unwrap_or_else(|error| panic!("{error}")).remove(0);
            let (found, expected) = (value(&found), value(&direct));
            assert!((found - expected).abs() < 1e-6 * expected, "{found} instead of {expected}");
        }
    }
}

/// The conductivity is 0 outside of the middle, where the potential of E is left open.
#[test]
fn insulators_take_as_many_iterations() {
    let text = |field: &str, factor: &str, solver: &str, sigma: &str| {
        format!(
            "form f {{ field E: {field} in Hcurl(k); aux sigma: scalar on cells; test v for E;
               residual = inner(curl(E) - x[0] * x[1], curl(v)) + {factor} * sigma * inner(E, v); }}
             problem p solves f {{ mesh = box(dim: 2, cells: 12); degree = 2; solver = {solver};
               aux sigma = if abs(x[0] - 0.5) < 0.25 && abs(x[1] - 0.5) < 0.25 {{ 1 }} else {{ {sigma} }};
               report e = integral(sigma * norm(E)^2); }}"
        )
    };
    let cg = "cg(rtol: 1e-8, preconditioner: multigrid)";
    for (field, factor, solver, most) in
        [("vector", "30", cg, 16), ("complex vector", "30 * i", LEVELS, 30)]
    {
        let found = by_levels(&text(field, factor, solver, "0"));
        let near = by_levels(&text(field, factor, solver, "1e-7"));
        for iterations in [&found, &near].map(|solution| solution.report.iterations) {
            assert!((3..=most).contains(&iterations), "{field}: {iterations}");
        }
        let (found, expected) = (value(&found), value(&near));
        assert!((found - expected).abs() < 1e-5 * expected, "{found} instead of {expected}");
    }
}

/// A wave that leaves through the boundary: the real part is indefinite.
#[test]
fn waves_and_other_fields_are_preconditioned_by_definite_blocks() {
    let wave = "(-25 + 2 * i) * inner(E, v)";
    let iterations = by_levels(&problem(2, 2, 8, wave, LEVELS)).report.iterations;
    assert!((3..=60).contains(&iterations), "{iterations}");
    let text = "form f { field E: vector in Hcurl(k); field T: scalar; test v for E; test q for T;
           residual = curl(E) * curl(v) + dot(E, v) + 2 * dot(grad(T), grad(q)) + 0.5 * dot(grad(T), v)
             + 0.5 * dot(E, grad(q)) - dot([cos(5 * x[1]), x[0]], v) - q; }
         problem p solves f { mesh = box(dim: 2, cells: 12); degree = 2; dirichlet T = 0 on all;
           solver = cg(rtol: 1e-8, preconditioner: multigrid); report e = integral(dot(E, E)); }";
    let found = by_levels(text);
    assert_eq!(found.report.solver, "cg");
    assert!((3..=25).contains(&found.report.iterations), "{}", found.report.iterations);
    let fields = found.multigrid.iter().filter_map(|levels| levels.field.clone());
    assert_eq!(fields.collect::<Vec<_>>(), ["E", "potential of E", "T"]);
}

#[test]
fn processes_and_devices_take_as_many_iterations() {
    let text = problem(2, 2, 8, "10 * i * inner(E, v)", LEVELS);
    let alone = by_levels(&text).report.iterations;
    let same = |found: &[Solution]| {
        for solution in found {
            let iterations = solution.report.iterations;
            assert!(iterations.abs_diff(alone) <= 2, "{iterations} instead of {alone}");
        }
    };
    same(&solved(&text, 2).unwrap_or_else(|error| panic!("{error}")));
    for device in devices() {
        let platform = Platform::new(Target::native(), Some(Arc::clone(&device)));
        same(&solved_on(&platform, &text, 1).unwrap_or_else(|error| panic!("{error}")));
    }
}

#[test]
fn blocks_that_follow_other_fields_are_refused_with_a_remedy() {
    let text = "form f { field E: vector in Hcurl(k); field T: scalar; f1[E] = (1 + T^2) * curl(E); f0[E] = E;
           f1[T] = grad(T); f0[T] = T - 1; }
         problem p solves f { mesh = box(dim: 2, cells: 2); degree = 1;
           solver = newton(linear: gmres, preconditioner: multigrid); }";
    let error = solved(text, 1).err().expect("no block");
    assert!(error.contains("take these as data"), "{error}");
}

//! Problems with fields in Hcurl and Hdiv: from the text to errors against known solutions, eigenvalues aside.

use fem_dsl::check::problem::Overrides;
use fem_dsl::source::Source;
use runtime::kernels::compile::{Execution, Target};
use runtime::mesh::Mesh;
use runtime::problem::{Platform, ReportValue, Solution, run};
use runtime::processes::threads::each;
use runtime::solve::Continue;
use std::path::Path;
use std::sync::Arc;

fn target() -> Target {
    Target { execution: Execution::Interpreted, ..Target::native() }
}

pub(crate) fn solved(text: &str, size: usize) -> Result<Vec<Solution>, String> {
    solved_on(&target().into(), text, size)
}

/// Solves on a platform.
pub(crate) fn solved_on(
    platform: &Platform,
    text: &str,
    size: usize,
) -> Result<Vec<Solution>, String> {
    let (program, errors) = fem_dsl::program::compile(&Source::new("test", text));
    let program = program.unwrap_or_else(|| panic!("{errors:?}"));
    let (source, _) = program.mesh("p", &Overrides::default()).expect("a mesh");
    let mesh = Arc::new(runtime::mesh::load(&source, Path::new("..")).expect("a mesh"));
    let problem = program.problem("p", mesh.dim(), &Overrides::default()).expect("a problem");
    let solve = |mesh: Arc<Mesh>| {
        run(&problem, mesh, platform, &mut |_| Continue::Yes).map_err(|error| error.to_string())
    };
    match size {
        1 => Ok(vec![solve(mesh)?]),
        _ => each(size, |group| solve(Arc::clone(&mesh).part(&group))).into_iter().collect(),
    }
}

/// A form in each space, its known solution, and its conditions.
const CASES: [(&str, &str, &str, [&str; 2]); 4] = [
    (
        "2",
        "field E: vector in Hcurl(k); f0[E] = E; f1[E] = curl(E);",
        "manufactured E = [sin(2 * x[1]) + x[0] * x[1], cos(x[0]) * x[1]];",
        ["dirichlet E;", "dirichlet E; dirichlet cross(n, E) = -x[1] on \"x0\";"],
    ),
    (
        "3",
        "field E: vector in Hcurl(k); f0[E] = E; f1[E] = curl(E);",
        "manufactured E = [sin(2 * x[1]) + x[2], cos(x[0]) * x[2], x[0] * x[1]];",
        [
            "dirichlet E;",
            "dirichlet E; dirichlet cross(n, E) = [0, x[0] * x[1], -cos(x[0]) * x[2]] on \"x0\";",
        ],
    ),
    (
        "2",
        "field u: vector in Hdiv(k); f0[u] = u; f1[u] = div(u);",
        "manufactured u = [sin(2 * x[0]) * x[1], cos(x[1]) + x[0]];",
        ["dirichlet u;", "dirichlet u; dirichlet dot(u, n) = -cos(x[1]) - x[0] on \"y0\";"],
    ),
    (
        "3",
        "field u: vector in Hdiv(k); f0[u] = u; f1[u] = div(u);",
        "manufactured u = [sin(2 * x[0]) * x[1], cos(x[1]) + x[0], x[2]^2 + x[1]];",
        ["dirichlet u;", "dirichlet u; dirichlet dot(u, n) = -x[2]^2 - x[1] on \"z0\";"],
    ),
];

fn text(case: usize, k: usize, cells: usize, condition: usize) -> String {
    let (dim, form, known, conditions) = CASES[case];
    // Few cells in space: their orders are those of small deformations.
    let deform = if dim == "2" { 0.1 } else { 0.02 };
    format!(
        "form f {{ {form} }} problem p solves f {{ mesh = box(dim: {dim}, cells: {cells}, deform: {deform});
         degree = {k}; {known} {} solver = cg(rtol: 1e-12, max_iterations: 5000); }}",
        conditions[condition]
    )
}

/// Returns the errors of a case in L2 and with the derivative.
fn errors(case: usize, k: usize, cells: usize, condition: usize) -> (f64, f64) {
    let found =
        solved(&text(case, k, cells, condition), 1).unwrap_or_else(|error| panic!("{error}"));
    let (_, l2, all) = found[0].errors[0];
    (l2, all)
}

#[test]
fn errors_have_the_order_of_the_degree() {
    for (case, (dim, ..)) in CASES.into_iter().enumerate() {
        for k in 1..=2 {
            let coarse = if dim == "2" { 4 } else { 2 };
            let [(l2, all), (l2_fine, all_fine)] =
                [coarse, 2 * coarse].map(|cells| errors(case, k, cells, 0));
            for (coarse, fine) in [(l2, l2_fine), (all, all_fine)] {
                let order = (coarse / fine).log2();
                assert!(order > k as f64 - 0.25, "case {case}, k = {k}: {order} from {coarse}");
                assert!(fine > 0.0 && fine < 0.5, "case {case}, k = {k}: {fine}");
            }
        }
    }
}

/// A trace on a side, stated after the known field on all of them, gives the same solution.
#[test]
fn traces_are_those_of_the_known_solution() {
    for case in 0..CASES.len() {
        let whole = errors(case, 2, 3, 0);
        let trace = errors(case, 2, 3, 1);
        assert!((trace.1 - whole.1).abs() < 1e-8 * whole.1, "case {case}: {trace:?} and {whole:?}");
    }
}

#[test]
fn processes_agree() {
    for case in 0..CASES.len() {
        let alone = errors(case, 2, 3, 0);
        for size in [2, 3] {
            let parts =
                solved(&text(case, 2, 3, 0), size).unwrap_or_else(|error| panic!("{error}"));
            for part in parts {
                let (_, l2, all) = part.errors[0];
                let apart = (l2 - alone.0).abs().max((all - alone.1).abs());
                assert!(apart < 1e-8 * alone.1, "case {case}: {l2}, {all} for {alone:?}");
            }
        }
    }
}

#[test]
fn unsupported_combinations_are_refused_with_a_remedy() {
    let problem = |items: &str| {
        let form = "form f { field E: vector in Hcurl(k); f0[E] = E; f1[E] = curl(E); }";
        let text = format!("{form} problem p solves f {{ {items} }}");
        solved(&text, 1).err().unwrap_or_else(|| panic!("{items} is refused"))
    };
    for (items, part) in [
        ("mesh = box(dim: 2, cells: 2, cell: tri);", "quadrilaterals and hexahedra"),
        (
            "mesh = box(dim: 2, cells: 2); solver = gmres(preconditioner: block_jacobi);",
            "help: use `preconditioner: jacobi`",
        ),
        (
            "mesh = box(dim: 2, cells: 2); initial E = file(\"there.npy\");",
            "help: state the initial value as a formula",
        ),
    ] {
        let error = problem(items);
        assert!(error.contains(part), "{items}: {error}");
    }
}

/// Of a field without a term in its values only the curl is determined: factors do not exist, and CG finds it.
#[test]
fn curls_of_ungauged_potentials_have_the_order_of_the_degree() {
    let error = |cells: usize| -> f64 {
        let text = format!(
            "form f {{ field A: vector in Hcurl(k); f1[A] = curl(A);
                f0[A] = pi * [cos(pi * x[0]) * sin(pi * x[1]), -sin(pi * x[0]) * cos(pi * x[1])]; }}
             problem p solves f {{ mesh = box(dim: 2, cells: {cells}); dirichlet A = [0, 0] on all;
                report e = integral((curl(A) - cos(pi * x[0]) * cos(pi * x[1]))^2); }}"
        );
        let solutions = solved(&text, 1).unwrap_or_else(|error| panic!("{error}"));
        match &solutions[0].reports[0].value {
            ReportValue::Value(_, values) => values[0].sqrt(),
            other => panic!("a number should be reported: {other:?}"),
        }
    };
    let [coarse, fine] = [4, 8].map(error);
    let order = (coarse / fine).log2();
    assert!((order - 1.0).abs() < 0.1, "order {order}: {coarse:e}, {fine:e}");
}

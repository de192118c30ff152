//! Problems with fields in Hcurl and Hdiv: from the text to errors against known solutions, eigenvalues aside.

use fem_dsl::check::problem::Overrides;
use fem_dsl::source::Source;
use runtime::kernels::compile::{Execution, Target};
use runtime::mesh::Mesh;
use runtime::problem::{ReportValue, Solution, run};
use runtime::processes::threads::each;
use runtime::solve::Continue;
use std::path::Path;
use std::sync::Arc;

fn target() -> Target {
    Target { execution: Execution::Interpreted, ..Target::native() }
}

fn solved(text: &str, size: usize) -> Result<Vec<Solution>, String> {
    let (program, errors) = fem_dsl::program::compile(&Source::new("test", text));
    let program = program.unwrap_or_else(|| panic!("{errors:?}"));
    let (source, _) = program.mesh("p", &Overrides::default()).expect("a mesh");
    let mesh = Arc::new(runtime::mesh::load(&source, Path::new("..")).expect("a mesh"));
    let problem = program.problem("p", mesh.dim(), &Overrides::default()).expect("a problem");
    let solve = |mesh: Arc<Mesh>| {
        run(&problem, mesh, &target().into(), &mut |_| Continue::Yes)
            .map_err(|error| error.to_string())
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

/// The cells in each dimension.
const SHAPES: [[&str; 2]; 2] = [["quad", "tri"], ["hex", "tet"]];

/// Returns each case with each cell of its dimension.
fn cases() -> impl Iterator<Item = (usize, &'static str)> {
    let of = |(case, (dim, ..)): (usize, &(&str, _, _, _))| {
        SHAPES[usize::from(*dim == "3")].map(|cell| (case, cell))
    };
    CASES.iter().enumerate().flat_map(of)
}

fn text((case, cell): (usize, &str), k: usize, cells: usize, condition: usize) -> String {
    let (dim, form, known, conditions) = CASES[case];
    // Few cells in space: their orders are those of small deformations.
    let deform = if dim == "2" { 0.1 } else { 0.02 };
    format!(
        "form f {{ {form} }} problem p solves f {{ mesh = box(dim: {dim}, cells: {cells}, cell: {cell}, deform: {deform});
         degree = {k}; {known} {} solver = cg(rtol: 1e-12, max_iterations: 5000); }}",
        conditions[condition]
    )
}

/// Returns the errors of a case in L2 and with the derivative.
fn errors(case: (usize, &str), k: usize, cells: usize, condition: usize) -> (f64, f64) {
    let found =
        solved(&text(case, k, cells, condition), 1).unwrap_or_else(|error| panic!("{error}"));
    let (_, l2, all) = found[0].errors[0];
    (l2, all)
}

#[test]
fn errors_have_the_order_of_the_degree() {
    for case in cases() {
        for k in 1..=2 {
            let coarse = if CASES[case.0].0 == "2" { 4 } else { 2 };
            let [(l2, all), (l2_fine, all_fine)] =
                [coarse, 2 * coarse].map(|cells| errors(case, k, cells, 0));
            for (coarse, fine) in [(l2, l2_fine), (all, all_fine)] {
                let order = (coarse / fine).log2();
                assert!(order > k as f64 - 0.25, "case {case:?}, k = {k}: {order} from {coarse}");
                assert!(fine > 0.0 && fine < 0.5, "case {case:?}, k = {k}: {fine}");
            }
        }
    }
}

/// A trace on a side, stated after the known field on all of them, gives the same solution.
#[test]
fn traces_are_those_of_the_known_solution() {
    for case in cases() {
        let whole = errors(case, 2, 3, 0);
        let trace = errors(case, 2, 3, 1);
        assert!(
            (trace.1 - whole.1).abs() < 1e-8 * whole.1,
            "case {case:?}: {trace:?} and {whole:?}"
        );
    }
}

#[test]
fn processes_agree() {
    for case in cases() {
        let alone = errors(case, 2, 3, 0);
        for size in [2, 3] {
            let parts =
                solved(&text(case, 2, 3, 0), size).unwrap_or_else(|error| panic!("{error}"));
            for part in parts {
                let (_, l2, all) = part.errors[0];
                let apart = (l2 - alone.0).abs().max((all - alone.1).abs());
                assert!(apart < 1e-8 * alone.1, "case {case:?}: {l2}, {all} for {alone:?}");
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
        (
            "mesh = box(dim: 2, cells: 2); solver = cg(preconditioner: multigrid);",
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
    let cavity = "form f { field E: vector in Hcurl(k); f1[E] = curl(E); }
        problem p solves f { mesh = box(dim: 2, cells: 2); eigen = smallest(2); }";
    let error = solved(cavity, 1).err().expect("eigenvalues beside a kernel are refused");
    assert!(error.contains("the eigenvalue 0 belongs to all its gradients"), "{error}");
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
        reported(&solutions[0], 0).sqrt()
    };
    let [coarse, fine] = [4, 8].map(error);
    let order = (coarse / fine).log2();
    assert!((order - 1.0).abs() < 0.1, "order {order}: {coarse:e}, {fine:e}");
}

fn reported(solution: &Solution, number: usize) -> f64 {
    match &solution.reports[number].value {
        ReportValue::Value(_, values) => values[0],
        other => panic!("a number should be reported: {other:?}"),
    }
}

/// A flow with a given head on one side, whose velocity and pressure are functions of the spaces.
#[test]
fn mixed_flows_are_exact_on_all_cells() {
    for (cell, dim, size) in
        [("tri", 2, 1), ("quad", 2, 1), ("tet", 3, 1), ("hex", 3, 1), ("tri", 2, 3), ("tet", 3, 2)]
    {
        let velocity = if dim == 2 { "[1, 0]" } else { "[1, 0, 0]" };
        let walls = if dim == 2 { "\"y0\", \"y1\"" } else { "\"y0\", \"y1\", \"z0\", \"z1\"" };
        let text = format!(
            "form f {{ field u: vector in Hdiv(k); field p: scalar in L2(k - 1); test v for u; test q for p;
                residual = dot(u, v) - p * div(v) - div(u) * q;
                on boundary \"x0\" {{ param head = 1; residual = head * dot(v, n); }} }}
             problem p solves f {{ mesh = box(dim: {dim}, cells: 3, cell: {cell}); degree = 2;
                dirichlet dot(u, n) = 0 on {walls};
                report error_u = integral(dot(u - {velocity}, u - {velocity}));
                report error_p = integral((p - 1 + x[0])^2); report flux = integral(dot(u, n), on: \"x1\"); }}"
        );
        for solution in solved(&text, size).unwrap_or_else(|error| panic!("{cell}: {error}")) {
            for number in 0..2 {
                let error = reported(&solution, number).sqrt();
                assert!(error < 1e-9, "{cell}, report {number}: {error:e}");
            }
            assert!((reported(&solution, 2) - 1.0).abs() < 1e-9, "{cell}");
        }
    }
}

/// Terms of the boundary with fields of Hcurl, of each degree: an impedance condition on all sides.
#[test]
fn impedance_conditions_have_the_order_of_the_degree() {
    for cell in ["tri", "quad"] {
        for k in 1..=3 {
            let error = |cells: usize| -> f64 {
                // E = (sin y, cos x): curl E = -sin x - cos y, and curl curl E + E = (2 sin y, 2 cos x).
                let text = format!(
                    "form f {{ field E: vector in Hcurl(k); test v for E;
                        residual = curl(E) * curl(v) + dot(E - 2 * [sin(x[1]), cos(x[0])], v);
                        on boundary \"x0\", \"x1\", \"y0\", \"y1\" {{
                            residual = dot(tangential(E - [sin(x[1]), cos(x[0])]), v)
                                + (sin(x[0]) + cos(x[1])) * (v[1] * n[0] - v[0] * n[1]); }} }}
                     problem p solves f {{ mesh = box(dim: 2, cells: {cells}, cell: {cell}); degree = {k};
                        report e = integral(dot(E - [sin(x[1]), cos(x[0])], E - [sin(x[1]), cos(x[0])])
                            + (curl(E) + sin(x[0]) + cos(x[1]))^2); }}"
                );
                let solutions = solved(&text, 1).unwrap_or_else(|error| panic!("{error}"));
                reported(&solutions[0], 0).sqrt()
            };
            let [coarse, fine] = [2, 4].map(error);
            let order = (coarse / fine).log2();
            assert!((order - k as f64).abs() < 0.15, "{cell}, k = {k}: {order} from {coarse:e}");
        }
    }
}

/// A periodic box of one or two cells has the solution of a box of several such periods, whose cells see all entities in
/// one frame.
#[test]
fn periodic_boxes_of_few_cells_have_the_solution_of_larger_ones() {
    let known = "[sin(2 * pi * x[1]) + 0.3, cos(2 * pi * x[0]) * sin(2 * pi * x[1])]";
    let forms = [
        "field E: vector in Hcurl(k); f0[E] = E; f1[E] = curl(E);",
        "field E: vector in Hdiv(k); f0[E] = E; f1[E] = div(E);",
    ];
    for (form, cell, k) in forms
        .into_iter()
        .flat_map(|form| ["tri", "quad"].map(|cell| (form, cell)))
        .flat_map(|(form, cell)| [1, 2, 3].map(|k| (form, cell, k)))
    {
        let error = |cells: usize, periods: usize| {
            let count = cells * periods;
            let text = format!(
                "form f {{ {form} }} problem p solves f {{
                    mesh = box(dim: 2, cells: {count}, cell: {cell}, to: [{periods}, {periods}]);
                    degree = {k}; quadrature = 10; periodic \"x0\" = \"x1\"; periodic \"y0\" = \"y1\";
                    manufactured E = {known}; solver = cg(rtol: 1e-13, max_iterations: 5000); }}"
            );
            let solutions = solved(&text, 1).unwrap_or_else(|error| panic!("{error}"));
            solutions[0].errors[0].2 / periods as f64
        };
        for cells in 1..=2 {
            let (own, larger) = (error(cells, 1), error(cells, 3));
            assert!((own - larger).abs() < 1e-8 * larger, "{form} {cell} {k}: {own} and {larger}");
        }
    }
}

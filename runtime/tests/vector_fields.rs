//! Problems with fields in Hcurl and Hdiv: from the text to errors against known solutions, eigenvalues aside.

use super::multigrid::adapted;
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
    solved_changed(platform, text, size, |mesh| mesh)
}

/// Solves a problem on its mesh as changed by a function, in processes.
fn solved_changed(
    platform: &Platform,
    text: &str,
    size: usize,
    change: impl FnOnce(Mesh) -> Mesh,
) -> Result<Vec<Solution>, String> {
    let (program, errors) = fem_dsl::program::compile(&Source::new("test", text));
    let program = program.unwrap_or_else(|| panic!("{errors:?}"));
    let (source, _) = program.mesh("p", &Overrides::default()).expect("a mesh");
    let mesh = runtime::mesh::load(&source, Path::new("..")).expect("a mesh");
    let mesh = Arc::new(change(mesh));
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

/// The cells in each dimension.
const SHAPES: [[&str; 2]; 2] = [["quad", "tri"], ["hex", "tet"]];

/// Returns each case with each cell of its dimension.
fn cases() -> impl Iterator<Item = (usize, &'static str)> {
    let of = |(case, (dim, ..)): (usize, &(&str, _, _, _))| {
        SHAPES[usize::from(*dim == "3")].map(|cell| (case, cell))
    };
    CASES.iter().enumerate().flat_map(of)
}

/// The number of cells along an axis where solutions of one mesh are compared.
fn few((case, _): (usize, &str)) -> usize {
    if CASES[case].0 == "2" { 3 } else { 2 }
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
        let [whole, trace] = [0, 1].map(|condition| errors(case, 2, few(case), condition));
        assert!(
            (trace.1 - whole.1).abs() < 1e-8 * whole.1,
            "case {case:?}: {trace:?} and {whole:?}"
        );
    }
}

#[test]
fn processes_agree() {
    for case in cases() {
        let alone = errors(case, 2, few(case), 0);
        for size in [2, 3] {
            let parts = solved(&text(case, 2, few(case), 0), size)
                .unwrap_or_else(|error| panic!("{error}"));
            for part in parts {
                let (_, l2, all) = part.errors[0];
                let apart = (l2 - alone.0).abs().max((all - alone.1).abs());
                assert!(apart < 1e-8 * alone.1, "case {case:?}: {l2}, {all} for {alone:?}");
            }
        }
    }
}

/// Fields on cells of different size: linear ones are their own solutions on boxes, and constants of `Hcurl` on deformed
/// cells, also in processes and with a trace on a side.
#[test]
fn fields_live_on_hanging_meshes() {
    for (case, (dim, form, _, conditions)) in CASES.into_iter().enumerate() {
        let (linear, constant) = match dim {
            "2" => ("[1 + 2 * x[1], 3 - x[0]]", "[1, -2]"),
            _ => ("[1 + 2 * x[1], 3 - x[2], x[0] + x[1]]", "[1, -2, 3]"),
        };
        let (name, trace) = match case {
            0 | 1 => ("E", "dirichlet E;"),
            _ => ("u", "dirichlet u;"),
        };
        let condition = match case {
            2 => "dirichlet u; dirichlet dot(u, n) = -(1 + 2 * x[1]) on \"x0\";",
            0 => "dirichlet E; dirichlet cross(n, E) = -(3 - x[0]) on \"x0\";",
            _ => trace,
        };
        assert!(conditions.iter().all(|own| own.contains(trace)));
        let text = |deform: f64, known: &str, condition: &str| {
            format!(
                "form f {{ {form} }} problem p solves f {{ mesh = box(dim: {dim}, cells: 2, deform: {deform});
                 degree = 2; manufactured {name} = {known}; {condition} solver = direct; }}"
            )
        };
        let deformed =
            if case == 1 { text(0.1, constant, trace) } else { text(0.0, constant, trace) };
        let texts = [text(0.0, linear, condition), text(0.0, linear, trace), deformed];
        for (number, text) in texts.into_iter().enumerate() {
            for size in if number == 0 { vec![1, 2, 3] } else { vec![1] } {
                let found = solved_changed(&target().into(), &text, size, adapted)
                    .unwrap_or_else(|error| panic!("{error}"));
                for part in found {
                    let (_, l2, all) = part.errors[0];
                    assert!(l2.max(all) < 1e-9, "case {case}, {size} processes: {l2:e}, {all:e}");
                    assert!(part.context.on.mesh.hanging().is_some() || size > 1);
                }
            }
        }
    }
}

/// CG with the diagonal of hanging cells converges to the solution of factors.
#[test]
fn iterations_on_hanging_meshes_find_the_solution_of_factors() {
    for case in [0, 2, 3] {
        let cell = SHAPES[usize::from(CASES[case].0 == "3")][0];
        let text = text((case, cell), 2, 2, 0);
        let by_cg = solved_changed(&target().into(), &text, 1, adapted)
            .unwrap_or_else(|error| panic!("{error}"));
        let direct = text.replace("cg(rtol: 1e-12, max_iterations: 5000)", "direct");
        let exact = solved_changed(&target().into(), &direct, 1, adapted)
            .unwrap_or_else(|error| panic!("{error}"));
        let ((_, _, cg), (_, _, factors)) = (&by_cg[0].errors[0], &exact[0].errors[0]);
        assert!((cg - factors).abs() < 1e-7 * factors, "case {case}: {cg:e}, {factors:e}");
    }
}

/// A curl is known although its potential is not, also where nodes hang, with levels, too.
#[test]
fn potentials_on_hanging_meshes_have_a_curl() {
    let form = "form f { field A: vector in Hcurl(k); f1[A] = curl(A);
        f0[A] = pi * [cos(pi * x[0]) * sin(pi * x[1]), -sin(pi * x[0]) * cos(pi * x[1])]; }";
    let error = |cells: usize, solver: &str| {
        let text = format!(
            "{form} problem p solves f {{ mesh = box(dim: 2, cells: {cells}); degree = 2; {solver}
             dirichlet A = [0, 0] on all;
             report e = integral((curl(A) - cos(pi * x[0]) * cos(pi * x[1]))^2); }}"
        );
        let found = solved_changed(&target().into(), &text, 1, adapted);
        let found = found.unwrap_or_else(|error| panic!("{error}")).remove(0);
        (found.reports[0].value.number().expect("a number").sqrt(), found.report.iterations)
    };
    let [(coarse, _), (fine, _)] = [4, 8].map(|cells| error(cells, ""));
    assert!(fine < coarse / 3.5 && fine < 1e-2, "{coarse:e}, {fine:e}");
    let (same, iterations) = error(8, "solver = cg(rtol: 1e-8, preconditioner: multigrid);");
    assert!((same - fine).abs() < 1e-4 * fine, "{same:e} instead of {fine:e}");
    assert!(iterations <= 20, "{iterations}");
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
        reported(&solutions[0], 0).sqrt()
    };
    let [coarse, fine] = [4, 8].map(error);
    let order = (coarse / fine).log2();
    assert!((order - 1.0).abs() < 0.1, "order {order}: {coarse:e}, {fine:e}");
}

/// The mixed form of diffusion: −Δp = f as a flux and a pressure.
fn darcy(mesh: &str, k: usize, more: &str) -> String {
    format!(
        "form f {{ field u: vector in Hdiv(k); field p: scalar in L2(k - 1); aux a: scalar on cells;
           test v for u; test q for p; residual = a * dot(u, v) - p * div(v) - (div(u) - 1) * q; }}
         problem p solves f {{ mesh = {mesh}; degree = {k}; {more}
           solver = minres(preconditioner: multigrid, rtol: 1e-8); }}"
    )
}

/// MINRES with the diagonal and the algebraic Schur complement: iterations depend neither on the degree nor on the size,
/// nor on jumps of the coefficient, and the solution is that of factors.
#[test]
fn mixed_forms_take_few_iterations() {
    let jumps = "aux a = if x[0] < 0.5 { 1 } else { 10000 };";
    for (mesh, degrees, more) in [
        ("box(dim: 2, cells: 8, deform: 0.1)", 1..=4, "aux a = 1;"),
        ("box(dim: 2, cells: 16, deform: 0.1)", 2..=2, "aux a = 1;"),
        ("box(dim: 2, cells: 8)", 2..=3, jumps),
        ("box(dim: 2, cells: 8)", 2..=2, "aux a = 1; dirichlet dot(u, n) = 0 on \"x0\", \"y0\";"),
        ("box(dim: 3, cells: 3, deform: 0.05)", 1..=2, "aux a = 1;"),
    ] {
        for k in degrees {
            let text = darcy(mesh, k, more);
            let found = solved(&text, 1).unwrap_or_else(|error| panic!("{error}")).remove(0);
            let iterations = found.report.iterations;
            assert!((5..=65).contains(&iterations), "{mesh}, degree {k}: {iterations} iterations");
            let direct = text.replace("minres(preconditioner: multigrid, rtol: 1e-8)", "direct");
            let exact = solved(&direct, 1).unwrap_or_else(|error| panic!("{error}")).remove(0);
            let size = exact.u.iter().fold(0.0_f64, |most, u| most.max(u.abs()));
            let apart = found.u.iter().zip(&exact.u).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f64::max) < 1e-5 * size, "{mesh}, degree {k}");
        }
    }
}

/// On a device the change of basis and the levels are matrices in its memory.
#[test]
fn mixed_forms_are_solved_on_devices() {
    for device in super::devices::devices() {
        for (mesh, k) in
            [("box(dim: 2, cells: 24, deform: 0.1)", 2), ("box(dim: 3, cells: 3, deform: 0.05)", 2)]
        {
            let text = darcy(mesh, k, "aux a = 1;");
            let here = solved(&text, 1).unwrap_or_else(|error| panic!("{error}")).remove(0);
            let platform = Platform::new(target(), Some(Arc::clone(&device)));
            let there = solved_on(&platform, &text, 1).unwrap_or_else(|error| panic!("{error}"));
            let there = there.into_iter().next().expect("a solution");
            let iterations = [&here, &there].map(|solution| solution.report.iterations);
            assert!(iterations[0].abs_diff(iterations[1]) <= 2, "{iterations:?}");
            let size = here.u.iter().fold(0.0_f64, |most, u| most.max(u.abs()));
            let apart = here.u.iter().zip(&there.u).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f64::max) < 1e-5 * size, "{mesh}, degree {k}");
        }
    }
}

/// Each process has its own part of the Schur complement.
#[test]
fn mixed_forms_are_solved_in_processes() {
    let text = darcy("box(dim: 2, cells: 8, deform: 0.1)", 2, "aux a = 1; report s = integral(p);");
    let reported = |found: &Solution| found.reports[0].value.number().expect("a number");
    let alone = reported(&solved(&text, 1).unwrap_or_else(|error| panic!("{error}"))[0]);
    for size in [2, 3] {
        for part in solved(&text, size).unwrap_or_else(|error| panic!("{error}")) {
            let apart = (reported(&part) - alone).abs();
            assert!(apart < 1e-7 * alone.abs(), "{size}: {alone}, {apart}");
            assert!(part.report.iterations < 200, "{}", part.report.iterations);
        }
    }
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

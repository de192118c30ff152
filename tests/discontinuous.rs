//! Fields in L2, from text to solutions: conservation in cells, output files, and rejected problems.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use weakform::{ALL, Form, mesh};

fn example(problem: &str, form: &str) -> weakform::Solution {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/discontinuous.wf");
    let text = std::fs::read_to_string(path).expect("an example");
    let form = Form::parse(&text, form).expect("a form");
    form.problem(problem).expect("a problem").run().expect("a solution")
}

#[test]
fn a_projection_is_as_near_as_its_degree_allows() {
    let (l2, h1) = example("square", "projection").error("u").expect("known errors");
    // (h/2)^3 |u'''| / 3! and so on, with h = 1/16 and |u'''| up to 73.
    assert!(l2 > 1e-6 && l2 < 1e-4, "{l2}");
    assert!(h1 > 1e-4 && h1 < 2e-2, "{h1}");
}

#[test]
fn a_flux_that_jumps_reproduces_the_solution_of_its_space() {
    let solution = example("soil", "darcy");
    for field in ["u", "q"] {
        let (l2, h1) = solution.error(field).expect("known errors");
        assert!(l2 < 1e-10 && h1 < 1e-10, "{field}: {l2} {h1}");
    }
}

/// Stokes with a pressure of degree 0: the flux of a quadratic velocity through the sides of each cell, by Simpson's
/// rule from its nodal values, is 0.
#[test]
fn with_constant_pressures_what_enters_a_cell_leaves_it() {
    const N: i64 = 6;
    let text = format!(
        "form stokes {{ field u: vector in H1(k); field p: scalar in L2(k - 2); \
             f1[u] = grad(u) - p * I; f0[p] = -div(u); }} \
         problem cavity solves stokes {{ mesh = box(dim: 2, cells: {N}); degree = 2; \
             dirichlet u = [0, 0] on all; dirichlet u = [x[0]^2 * (1 - x[0])^2, 0] on \"y1\"; mean p = 0; }}"
    );
    let form = Form::parse(&text, "stokes").expect("a form");
    let solution = form.problem("cavity").expect("a problem").run().expect("a solution");
    assert_eq!(solution.values_of("p").expect("pressures").len() as i64, N * N);
    let place = |x: f64| (2.0 * N as f64 * x).round() as i64;
    let points = solution.points_of("u").expect("points");
    let values = solution.values_of("u").expect("values");
    let nodes: BTreeMap<[i64; 2], &[f64]> =
        points.iter().zip(values.chunks(2)).map(|(x, u)| ([place(x[0]), place(x[1])], u)).collect();
    let mut largest = 0.0_f64;
    for (i, j) in (0..N * N).map(|cell| (2 * (cell % N), 2 * (cell / N))) {
        let side = |start: [i64; 2], along: [i64; 2], component: usize| -> f64 {
            let at = |s: i64| nodes[&[start[0] + s * along[0], start[1] + s * along[1]]][component];
            (at(0) + 4.0 * at(1) + at(2)) / 6.0
        };
        let (left, right) = (side([i, j], [0, 1], 0), side([i + 2, j], [0, 1], 0));
        let (below, above) = (side([i, j], [1, 0], 1), side([i, j + 2], [1, 0], 1));
        assert!((right - left + above - below).abs() < 1e-12, "cell {i} {j}");
        largest = [left, right, below, above].into_iter().fold(largest, |a, b| a.max(b.abs()));
    }
    assert!(largest > 1e-3, "{largest}");
}

/// Runs a problem and returns its output file.
fn written(text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("case.wf");
    std::fs::write(&path, text).expect("a file");
    let output = folder.path().join("case.vtu");
    let run = Command::new(env!("CARGO_BIN_EXE_wf"))
        .args(["run", "--output"])
        .args([&output, &path])
        .output()
        .expect("wf should start");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8_lossy(&std::fs::read(&output).expect("a VTU file")).into_owned()
}

#[test]
fn files_show_jumps_as_they_are() {
    let points = |text: &str| -> usize {
        let rest = text.split("NumberOfPoints=\"").nth(1).expect("a number of points");
        rest.split('"').next().and_then(|number| number.parse().ok()).expect("a number")
    };
    let section = |text: &str, name: &str| -> String {
        let rest = text.split(&format!("<{name}>")).nth(1).unwrap_or_default();
        rest.split(&format!("</{name}>")).next().unwrap_or_default().to_owned()
    };
    let problem = "mesh = box(dim: 2, cells: 3); degree = 1;";
    // Constant in each cell: cell data; the other fields share points.
    let constant = written(&format!(
        "form a {{ field u: scalar; field c: scalar in L2(k - 1); f0[u] = u - x[0]; f0[c] = c - u; }} \
         problem p solves a {{ {problem} }}"
    ));
    assert_eq!(points(&constant), 16);
    assert!(section(&constant, "CellData").contains("Name=\"c\""), "{constant}");
    assert!(section(&constant, "PointData").contains("Name=\"u\""), "{constant}");
    // Linear in each cell: each cell has its own points.
    let linear = written(&format!(
        "form a {{ field u: scalar; field c: scalar in L2(k); f0[u] = u - x[0]; f0[c] = c - u; }} \
         problem p solves a {{ {problem} }}"
    ));
    assert_eq!(points(&linear), 9 * 4);
    assert!(section(&linear, "PointData").contains("Name=\"c\""), "{linear}");
}

#[test]
fn conditions_on_what_jumps_are_refused() {
    let text = "form a { field u: scalar in L2(k); f0[u] = u; }";
    let setup =
        Form::parse(text, "a").expect("a form").on(mesh("box(dim: 2, cells: 2)").expect("a mesh"));
    let error = setup.dirichlet("u", ALL, |_| 0.0).build().expect_err("an error");
    assert!(error.to_string().contains("`u` is discontinuous"), "{error}");
}

/// Without a term in the field itself each cell has a free constant, and a mean-value constraint does not determine
/// them.
#[test]
fn gradients_alone_do_not_fix_what_jumps() {
    let text = "form a { field u: scalar in L2(k); f1[u] = grad(u) - x; } \
                problem p solves a { mesh = box(dim: 2, cells: 2); mean u = 0; }";
    let form = Form::parse(text, "a").expect("a form");
    let error = form.problem("p").expect("a problem").run().expect_err("an error").to_string();
    assert!(error.contains("up to a constant in each cell"), "{error}");
}

/// The stress of a displacement, as an additional field that no other equation contains: GMRES on both together took
/// 2,855 iterations.
#[test]
fn a_field_that_is_local_to_cells_is_eliminated() {
    let text = |own: &str, solver: &str| {
        format!(
            "form solid {{ field u: vector; {own} let sigma = 2 * sym(grad(u)) + tr(grad(u)) * I; f0[u] = [0, 0.1]; f1[u] = sigma; }} \
             problem beam solves solid {{ mesh = box(dim: 2, cells: 6); degree = 2; dirichlet u = [0, 0] on \"x0\"; {solver} }}"
        )
    };
    let solved = |own: &str, solver: &str| {
        let form = Form::parse(&text(own, solver), "solid").expect("a form");
        form.problem("beam").expect("a problem").run().expect("a solution")
    };
    let local = "field s: tensor in L2(k - 1); f0[s] = s - sigma;";
    for solver in
        ["", "solver = cg(preconditioner: jacobi);", "solver = gmres();", "solver = newton();"]
    {
        let (with, without) = (solved(local, solver), solved("", solver));
        assert_eq!(with.inner().report.solver, without.inner().report.solver, "{solver}");
        let [many, few] = [&with, &without].map(|of| of.inner().linear_iterations);
        assert!(many <= few + 3, "{solver}: {many} iterations, {few} without the field");
        let [a, b] = [&with, &without].map(|of| of.values_of("u").expect("values"));
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-8), "{solver}");
        let stress = with.values_of("s").expect("values");
        assert!(stress.iter().all(|s| s.is_finite()) && stress.iter().any(|s| s.abs() > 0.01));
    }
}

/// Other equations contain the field: the remaining system is the Schur complement, symmetric or not.
#[test]
fn a_local_field_that_others_read_is_eliminated_too() {
    let text = |row: &str, solver: &str| {
        format!(
            "form f {{ field u: scalar; field q: vector in L2(k - 1); f1[u] = grad(u) - 0.5 * q; f0[q] = {row}; }} \
             problem p solves f {{ mesh = box(dim: 2, cells: 5); degree = 2; {solver} \
             manufactured u = x[0]^2 - x[1]; manufactured q = [x[0], 1]; dirichlet u; }}"
        )
    };
    let rows = [
        "2 * q - 0.5 * grad(u)",
        "q + [0.1 * u, 0] - grad(u)",
        "q + 0.1 * q * inner(q, q) - grad(u)",
    ];
    for (row, solvers) in rows.into_iter().zip([
        &["", "solver = cg(preconditioner: jacobi);"][..],
        &["", "solver = gmres();"],
        &[""],
    ]) {
        for solver in solvers {
            let form = Form::parse(&text(row, solver), "f").expect("a form");
            let solution = form.problem("p").expect("a problem").run();
            let solution = solution.unwrap_or_else(|error| panic!("{row}, {solver}: {error}"));
            for field in ["u", "q"] {
                let (l2, _) = solution.error(field).expect("known errors");
                assert!(l2 < 1e-7, "{row}, {solver}: {field} {l2}");
            }
        }
    }
}

#[test]
fn a_small_penalty_is_named_by_cg() {
    let text = "form sipg { field u: scalar in L2(k); param eta = 0.1; f0[u] = -1; f1[u] = grad(u);
             on interior { energy = eta * avg(penalty(u)) / 2 * jump(u)^2 - dot(avg(grad(u)), n) * jump(u); }
             on boundary \"x0\", \"x1\", \"y0\", \"y1\" { energy = eta * penalty(u) / 2 * u^2 - dot(grad(u), n) * u; } }
         problem p solves sipg { mesh = box(dim: 2, cells: 8); degree = 2; solver = cg(); }";
    let run = |text: &str| {
        let form = Form::parse(text, "sipg").expect("a form");
        form.problem("p").expect("a problem").run()
    };
    let Err(error) = run(text) else { panic!("the operator is indefinite") };
    let error = error.to_string();
    assert!(error.contains("not positive definite"), "{error}");
    assert!(error.contains("help: raise the factor of `penalty(u)`, to 2 times"), "{error}");
    assert!(run(&text.replace("eta = 0.1", "eta = 2")).is_ok());
    let other = text.replace("penalty(u)", "(8 / hn)");
    let Err(error) = run(&other.replace("f1[u] = grad(u)", "f1[u] = -grad(u)")) else {
        panic!("the operator is indefinite")
    };
    assert!(error.to_string().contains("use minres or gmres"), "{error}");
}

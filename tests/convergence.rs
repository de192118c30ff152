//! Convergence: solutions returned as solved are solved, each field on the scale of its own equations, and small values
//! are not treated as 0.

use weakform::{Execution, Form, ReportValue, Solution};

/// Solves a problem of a form of the same name, with a text instead of `HERE`.
fn solve(text: &str, name: &str, here: &str) -> Result<Solution, String> {
    let text = text.replace("HERE", here);
    let form = Form::parse(&text, name).map_err(|error| error.to_string())?;
    let problem = form.problem(name).map_err(|error| error.to_string())?;
    problem.execution(Execution::Interpreted).run().map_err(|error| error.to_string())
}

fn solved(text: &str, name: &str, here: &str) -> Solution {
    solve(text, name, here).unwrap_or_else(|error| panic!("{name}, {here}: {error}"))
}

fn number(solution: &Solution, name: &str) -> f64 {
    solution.report(name).and_then(ReportValue::number).expect("a number")
}

/// There is no u with u = 2 below 1 and u = 1/2 elsewhere; the derivative does not depend on u.
#[test]
fn a_residual_that_jumps_with_the_state_is_no_linear_one() {
    let text = "
        form skip { field u: scalar; f0[u] = u - (if u < 1 { 2 } else { 0.5 }); }
        problem skip solves skip { mesh = box(dim: 2, cells: 2); HERE }
        form decay { field u: scalar; f0[u] = dt(u) + u - (if u < 1 { 2 } else { 0.5 }); }
        problem decay solves decay { mesh = box(dim: 2, cells: 2); time = theta(theta: 1, to: 2, step: 0.5); HERE }";
    for solver in ["", "solver = newton();", "solver = newton(linear: direct, line_search: none);"]
    {
        assert!(solve(text, "skip", solver).is_err(), "{solver}");
        assert!(solve(text, "decay", solver).is_err(), "{solver}");
    }
    let said = solve(text, "skip", "solver = cg();").expect_err("no linear form");
    assert!(said.contains("is not linear"), "{said}");
}

/// A block of steel in Pa, uncoupled from a diffusion of 10⁻⁹.
#[test]
fn fields_of_unlike_units_are_each_solved() {
    let weak = "f0[c] = -1e-9 * (1 + x[0]); f1[c] = 1e-9 * (0.1 + LAW) * grad(c);";
    let text = format!(
        "form alone {{ field c: scalar; {weak} }}
        form both {{
            field u: vector;
            field c: scalar;
            f0[u] = [1e8 * x[1], -3e9];
            f1[u] = 1.6e11 * sym(grad(u)) + 1.2e11 * tr(grad(u)) * I;
            {weak}
        }}
        problem alone solves alone {{
            mesh = box(dim: 2, cells: 4); dirichlet c = 0 on \"x0\"; report most = maximum(c); HERE
        }}
        problem both solves both {{
            mesh = box(dim: 2, cells: 4); dirichlet u = [0, 0] on \"y0\"; dirichlet c = 0 on \"x0\";
            report most = maximum(c); HERE
        }}"
    );
    for (law, solvers) in [
        (
            "c^2",
            &[
                "newton(linear: direct)",
                "newton(linear: gmres)",
                "newton(linear: direct, rtol: 1e-6)",
            ][..],
        ),
        (
            "2",
            &[
                "direct()",
                "cg()",
                "cg(rtol: 1e-6)",
                "minres()",
                "gmres()",
                "fgmres()",
                "bicgstab()",
            ][..],
        ),
    ] {
        let text = text.replace("LAW", law);
        let known = number(&solved(&text, "alone", ""), "most");
        for solver in solvers {
            let solution = solved(&text, "both", &format!("solver = {solver};"));
            let found = number(&solution, "most");
            let near = if solver.contains("1e-6") { 1e-4 } else { 1e-8 };
            assert!((found - known).abs() < near * known, "{law}, {solver}: {found}, not {known}");
        }
    }
}

/// Taylor–Hood elements in an enclosed square, with a source and with a manufactured solution; the initial residual of
/// the pressure's rows is at the rounding-error level.
#[test]
fn a_row_that_begins_with_0_is_solved_to_the_scale_of_its_terms() {
    let text = "
        form source {
            field u: vector in H1(k); field p: scalar in H1(k - 1);
            let s = [sin(pi * x[0])^2 * sin(2 * pi * x[1]), -sin(2 * pi * x[0]) * sin(pi * x[1])^2];
            f0[u] = 20 * s - cos(pi * x[0]) * [1, x[1]];
            f1[u] = grad(u) - p * I;
            f0[p] = -div(u);
        }
        form made {
            field u: vector in H1(k); field p: scalar in H1(k - 1);
            f1[u] = grad(u) - p * I;
            f0[p] = -div(u);
        }
        problem source solves source {
            mesh = box(dim: 2, cells: 8); degree = 2; dirichlet u = [0, 0]; mean p = 0; HERE
        }
        problem made solves made {
            mesh = box(dim: 2, cells: 8); degree = 2; dirichlet u = [0, 0]; mean p = 0; HERE
            manufactured u = [sin(pi * x[0])^2 * sin(2 * pi * x[1]), -sin(2 * pi * x[0]) * sin(pi * x[1])^2];
            manufactured p = cos(pi * x[0]) * cos(pi * x[1]);
        }";
    let solver = "solver = fgmres(rtol: 1e-8, preconditioner: multigrid);";
    for name in ["source", "made"] {
        let solution = solved(text, name, solver);
        let report = &solution.inner().report;
        let (iterations, left) = (report.iterations, report.residual() / report.history[0]);
        assert!(iterations <= 30, "{name}: {iterations} iterations");
        assert!(left > 1e-13, "{name}: {left:e} of the residual is left");
        assert!(!solution.notes().iter().any(|note| note.contains("are many")), "{name}");
    }
}

#[test]
fn a_solution_that_tends_to_0_is_found() {
    let text = "
        form cube { field u: scalar; param f = 0; f0[u] = u^3 - f; }
        problem cube solves cube { mesh = box(dim: 2, cells: 2); initial u = HERE; report most = maximum(abs(u)); }
        form pair { field u: scalar; f0[u] = u^3 - u; }
        problem pair solves pair {
            mesh = box(dim: 2, cells: 2); initial u = HERE; report most = maximum(u);
            solver = newton(max_iterations: 100);
        }";
    assert!(number(&solved(text, "cube", "1"), "most") < 1e-3);
    // A distant start does not define the scale of an existing solution.
    let found = number(&solved(text, "pair", "1e6"), "most");
    assert!((found - 1.0).abs() < 1e-8, "{found}");
}

/// Squares of these numbers underflow or overflow.
#[test]
fn norms_of_tiny_and_huge_numbers_are_numbers() {
    let text = "
        form f { field u: scalar; f0[u] = u - x[0] * HERE; }
        problem f solves f {
            mesh = box(dim: 2, cells: 2);
            report constant = l2(HERE); report values = l2(u); report both = l2([3 * HERE, 4 * u]);
        }";
    for size in ["1e-300", "1e-200", "1", "1e200", "1e300"] {
        let unit: f64 = size.parse().expect("a number");
        let solution = solved(text, "f", size);
        for (name, expected) in [
            ("constant", 1.0),
            ("values", (1.0_f64 / 3.0).sqrt()),
            ("both", (9.0_f64 + 16.0 / 3.0).sqrt()),
        ] {
            let found = number(&solution, name) / unit;
            assert!((found - expected).abs() < 1e-9, "{name} at {size}: {found}, not {expected}");
        }
    }
}

/// A tiny error, and one that vanishes at the quadrature points of the solve, are not zero.
#[test]
fn errors_that_are_tiny_or_between_points_are_estimated() {
    let text = "
        form tiny { field u: scalar; f0[u] = -HERE * x[0]; f1[u] = grad(u); }
        problem tiny solves tiny { mesh = lshape(); dirichlet u = 0 on all; adapt(steps: 1); }
        form cells { field u: scalar in L2; f0[u] = u - exp(3 * x[0]) * HERE; }
        problem cells solves cells { mesh = box(dim: 2, cells: 2); adapt(steps: 1); }";
    for name in ["tiny", "cells"] {
        let usual = solved(text, name, "1").inner().size[0];
        for size in ["1e-300", "1e-200", "1e200"] {
            let solution = solved(text, name, size);
            let notes = solution.notes().join("\\n");
            assert!(!notes.contains("exact"), "{name} at {size}: {notes}");
            assert_eq!(solution.inner().size[0], usual, "{name} at {size}: {notes}");
        }
    }
}

#[test]
fn a_reason_for_many_iterations_is_one_that_was_found() {
    let text = "
        form p { field u: scalar; f0[u] = -1; f1[u] = HERE; }
        problem p solves p {
            mesh = box(dim: 2, cells: 32); degree = 1; dirichlet u = 0 on all;
            solver = cg(preconditioner: multigrid(smoother: jacobi, degree: 1));
        }";
    let notes = |flux: &str| solved(text, "p", flux).notes().join("\\n");
    let smooth = notes("grad(u)");
    assert!(!smooth.contains("are many"), "{smooth}");
    let jumps = notes("(if sin(17 * x[0]) * sin(17 * x[1]) > 0 { 1 } else { 1e-3 }) * grad(u)");
    assert!(jumps.contains("varies by a factor of 1e3"), "{jumps}");
    let directed = notes("[grad(u)[0], 1e-3 * grad(u)[1]]");
    assert!(directed.contains("differs by a factor of 1e3 between directions"), "{directed}");
}

//! Problems by every solver of the language: the same solution, and what is said where there is none.

use weakform::{Form, Solution};

/// Solves a problem of a form, `name`, with a statement for the solver.
fn solve(text: &str, form: &str, problem: &str, solver: &str) -> Result<Solution, String> {
    let text = text.replace("SOLVER", solver);
    let form = Form::parse(&text, form).map_err(|error| error.to_string())?;
    let problem = form.problem(problem).map_err(|error| error.to_string())?;
    problem.run().map_err(|error| error.to_string())
}

const POISSON: &str = "
    form poisson { field u: scalar; f0[u] = 2 * pi^2 * sin(pi * x[0]) * sin(pi * x[1]) * -1; f1[u] = grad(u); }
    form wind { field u: scalar; f0[u] = 3 * grad(u)[0] - 3 * cos(x[0]) - sin(x[0]); f1[u] = grad(u); }
    form wave { field u: scalar; f0[u] = -40 * u + 39 * sin(x[0]); f1[u] = grad(u); }
    problem poisson solves poisson {
        mesh = box(dim: 2, cells: 6); degree = 3; dirichlet u = 0;
        exact u = sin(pi * x[0]) * sin(pi * x[1]); SOLVER
    }
    problem wind solves wind {
        mesh = box(dim: 2, cells: 6, cell: tri); degree = 3; dirichlet u; exact u = sin(x[0]); SOLVER
    }
    problem wave solves wave {
        mesh = box(dim: 2, cells: 6); degree = 3; dirichlet u; exact u = sin(x[0]); SOLVER
    }";

#[test]
fn all_solvers_find_the_solution() {
    let cases: [(&str, &[&str]); 3] = [
        (
            "poisson",
            &["", "cg()", "minres()", "gmres(restart: 30)", "direct()", "newton(linear: direct)"],
        ),
        ("wind", &["", "gmres()", "direct()", "newton(linear: gmres)"]),
        // Symmetric, and as far below an eigenvalue as above another.
        (
            "wave",
            &[
                "",
                "minres()",
                "minres(preconditioner: none)",
                "gmres(restart: 200)",
                "direct()",
                "newton(linear: minres)",
            ],
        ),
    ];
    for (name, solvers) in cases {
        for solver in solvers {
            let statement = match solver.is_empty() {
                true => String::new(),
                false => format!("solver = {solver};"),
            };
            let solved = solve(POISSON, name, name, &statement);
            let solved = solved.unwrap_or_else(|error| panic!("{name}, {solver}: {error}"));
            let (l2, _) = solved.error("u").expect("known");
            assert!(l2 < 2e-4, "{name}, {solver}: {l2}");
            let word = &solved.inner().report.solver;
            assert!(solver.is_empty() || solver.starts_with(word), "{solver}: {word}");
        }
    }
}

#[test]
fn cg_says_what_to_use_where_the_operator_is_indefinite() {
    let said = solve(POISSON, "wave", "wave", "solver = cg();").expect_err("indefinite");
    assert!(said.contains("minres") && said.contains("not positive definite"), "{said}");
}

#[test]
fn factors_say_which_field_nothing_fixes() {
    // To the right of the middle there is no equation at all.
    let text = "
        form b { field u: scalar; let q = if x[0] < 0.5 { 1 } else { 0 }; f0[u] = -q; f1[u] = q * grad(u); }
        problem r solves b { mesh = box(dim: 2, cells: 4); dirichlet u = 0 on \"x0\"; SOLVER }";
    let said = solve(text, "b", "r", "solver = direct();").expect_err("empty rows");
    assert!(said.contains("singular") && said.contains("`u`") && said.contains("mean u"), "{said}");
}

/// A block that is pressed together by a fifth of its height and then some.
const BLOCK: &str = "
    form block {
        field u: vector;
        param mu = 1;
        param lambda = 10;
        param weight: vector = [0, -2];
        let F = I + grad(u);
        let J = det(F);
        energy = mu / 2 * (inner(F, F) - dim - 2 * log(J)) + lambda / 2 * log(J)^2 - dot(weight, u);
    }
    problem press solves block {
        mesh = box(dim: 2, cells: 6); degree = 2;
        dirichlet u = [0, 0] on \"y0\"; dirichlet u = [0, -0.4] on \"y1\"; SOLVER
    }";

#[test]
fn load_steps_go_where_newton_alone_does_not() {
    assert!(
        solve(BLOCK, "block", "press", "").is_err(),
        "cells beside the boundary are inside out"
    );
    let mut found = Vec::new();
    for solver in
        ["newton(steps: 6, load: weight)", "newton(steps: 8, linear: direct, rtol: 1e-11)"]
    {
        let solved = solve(BLOCK, "block", "press", &format!("solver = {solver};"));
        let solved = solved.unwrap_or_else(|error| panic!("{solver}: {error}"));
        assert!(solved.residual() < 1e-7, "{solver}: {}", solved.residual());
        found.push(solved.energy().expect("an energy"));
    }
    // By another way to the same place.
    assert!((found[0] - found[1]).abs() < 1e-7 * found[0].abs(), "{found:?}");
    let said =
        solve(&BLOCK.replace("-0.4", "-1.2"), "block", "press", "solver = newton(steps: 5);");
    let said = said.expect_err("a block of negative height");
    assert!(said.contains("load step") && said.contains("newton(steps: 10)"), "{said}");
}

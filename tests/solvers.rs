//! Problems with every solver of the language: the same solution, and messages if there is none.

use weakform::{Execution, Form, ReportValue, Solution};

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

/// The condition number of a plate is some 1e8, so that rounding leaves more than the tolerance.
#[test]
fn levels_that_rounding_stops_are_not_said_to_lack_conditions() {
    let plate = "form plate { field u: scalar in H1(k); let H = grad(grad(u)); energy = inner(H, H) / 2 - u;
        on interior { let kink = dot(jump(grad(u)), n);
            energy = avg(penalty(u)) * kink^2 - dot(avg(H) * n, n) * kink; } }
        problem plate solves plate { mesh = box(dim: 2, cells: 32); degree = 2; dirichlet u = 0; SOLVER }";
    let solver = "solver = cg(rtol: 1e-13, preconditioner: multigrid);";
    let said = solve(plate, "plate", "plate", solver).expect_err("an unreachable tolerance");
    assert!(said.contains("rounding leaves") && !said.contains("conditions"), "{said}");
}

#[test]
fn cg_says_what_to_use_where_the_operator_is_indefinite() {
    let said = solve(POISSON, "wave", "wave", "solver = cg();").expect_err("indefinite");
    assert!(said.contains("minres") && said.contains("not positive definite"), "{said}");
}

#[test]
fn factors_say_which_field_nothing_fixes() {
    // Two fields with the same equation, of which only the sum is determined.
    let text = "
        form b { field u: scalar; field v: scalar; f0[u] = u + v - 1; f0[v] = u + v - 1; }
        problem r solves b { mesh = box(dim: 2, cells: 4); SOLVER }";
    let said = solve(text, "b", "r", "solver = direct();").expect_err("the same rows");
    assert!(said.contains("singular to working precision, most at `"), "{said}");
    assert!(said.contains("say the same twice"), "{said}");
}

/// A field with a term or with conditions on the whole boundary is not reported as undetermined.
#[test]
fn ill_conditioned_matrices_are_not_said_to_leave_something_free() {
    let tiny = "
        form p { field u: scalar; f0[u] = u - 1; f1[u] = grad(u); }
        problem q solves p { mesh = box(dim: 2, cells: 4, to: [1e-6, 1e-6]); degree = 2; SOLVER }";
    let smaller = tiny.replace("1e-6", "1e-9");
    for (text, solver) in [(tiny, "solver = direct();"), (&smaller, "solver = direct();")] {
        let said = solve(text, "p", "q", solver).expect_err("ill-conditioned");
        assert!(said.contains("condition number is about") && said.contains("units"), "{said}");
        assert!(!said.contains("nothing fixes"), "{said}");
    }
}

/// A block compressed by a fifth of its height and more.
const BLOCK: &str = "
    form block {
        field u: vector;
        param mu = 1;
        param lambda = 10;
        param weight: vector = [0, -2];
        param pressed = 0.4;
        let F = I + grad(u);
        let J = det(F);
        energy = mu / 2 * (inner(F, F) - dim - 2 * log(J)) + lambda / 2 * log(J)^2 - dot(weight, u);
    }
    problem press solves block {
        mesh = box(dim: 2, cells: 6); degree = 2;
        dirichlet u = [0, 0] on \"y0\"; dirichlet u = [0, -pressed] on \"y1\"; SOLVER
    }";

#[test]
fn load_steps_go_where_newton_alone_does_not() {
    assert!(
        solve(BLOCK, "block", "press", "").is_err(),
        "cells beside the boundary are inside out"
    );
    let mut found = Vec::new();
    for solver in
        ["newton(steps: 6, load: pressed)", "newton(steps: 8, linear: direct, rtol: 1e-11)"]
    {
        let solved = solve(BLOCK, "block", "press", &format!("solver = {solver};"));
        let solved = solved.unwrap_or_else(|error| panic!("{solver}: {error}"));
        assert!(solved.residual() < 1e-7, "{solver}: {}", solved.residual());
        found.push(solved.energy().expect("an energy"));
    }
    // The same solution by another path.
    assert!((found[0] - found[1]).abs() < 1e-7 * found[0].abs(), "{found:?}");
    let flat = BLOCK.replace("pressed = 0.4", "pressed = 1.2");
    let said = solve(&flat, "block", "press", "solver = newton(steps: 5);");
    let said = said.expect_err("a block of negative height");
    assert!(said.contains("load step") && said.contains("newton(steps: 10)"), "{said}");
}

/// Returns the tip displacement of a cantilever of 10 × 1 in plane strain, E = 1000 and ν = 0.3, under the traction (0,
/// −1) at its end.
fn tip(degree: usize, cells: &str, solver: &str) -> (f64, Solution) {
    let text = format!(
        "form elasticity {{
            field u: vector;
            param E = 1000;
            param nu = 0.3;
            let eps = sym(grad(u));
            f1[u] = E / (1 + nu) * (nu / (1 - 2 * nu) * tr(eps) * I + eps);
            on boundary \"x1\" {{ f0[u] = [0, 1]; }}
        }}
        problem beam solves elasticity {{
            mesh = box(dim: 2, cells: {cells}, to: [10, 1]);
            degree = {degree};
            dirichlet u = [0, 0] on \"x0\";
            SOLVER
        }}"
    );
    let form = Form::parse(&text.replace("SOLVER", solver), "elasticity").expect("a form");
    let solved = form.problem("beam").expect("a problem").execution(Execution::Interpreted).run();
    let solved = solved.unwrap_or_else(|error| panic!("degree {degree}, {solver}: {error}"));
    let points = solved.points_of("u").expect("points");
    let at = points.iter().position(|x| (x[0] - 10.0).abs() + (x[1] - 0.5).abs() < 1e-9);
    let values = solved.values_of("u").expect("values");
    (values[2 * at.expect("a node") + 1], solved)
}

#[test]
fn the_cantilever_of_the_textbooks_bends() {
    let (found, solved) = tip(2, "[80, 8]", "");
    assert!((found + 3.657_885_13).abs() < 1e-7, "{found}");
    assert_eq!(solved.inner().report.solver, "direct");
    let (found, _) = tip(2, "[80, 8]", "solver = cg(rtol: 0);");
    assert!((found + 3.657_885_13).abs() < 1e-7, "{found}");
    for (degree, cells) in [(3, "[20, 2]"), (4, "[10, 1]"), (8, "[10, 1]")] {
        let (found, _) = tip(degree, cells, "");
        assert!((found + 3.658).abs() < 0.02, "degree {degree}: {found}");
    }
}

#[test]
fn loads_of_any_size_are_solved_for() {
    let text = "
        form poisson {
            field u: scalar;
            param size = 1;
            f0[u] = 2 * pi^2 * size * sin(pi * x[0]) * sin(pi * x[1]) * -1;
            f1[u] = grad(u);
        }
        problem poisson solves poisson {
            mesh = box(dim: 2, cells: 6); degree = 3; dirichlet u = 0;
            param size = SIZE; exact u = SIZE * sin(pi * x[0]) * sin(pi * x[1]); SOLVER
        }";
    for (written, size) in
        [("1e-300", 1e-300), ("1e-160", 1e-160), ("1e160", 1e160), ("1e300", 1e300)]
    {
        for solver in ["", "cg()", "minres()", "gmres()", "direct()", "newton()"] {
            let statement =
                if solver.is_empty() { String::new() } else { format!("solver = {solver};") };
            let text = text.replace("SIZE", written);
            let solved = solve(&text, "poisson", "poisson", &statement);
            let solved = solved.unwrap_or_else(|error| panic!("{written}, {solver}: {error}"));
            let (l2, h1) = solved.error("u").expect("known");
            assert!(l2 < 2e-4 * size && l2 > 1e-6 * size, "{written}, {solver}: {l2}");
            assert!(h1 < 2e-2 * size && h1 > l2, "{written}, {solver}: {h1}");
            let residual = solved.residual();
            assert!(residual < 1e-8 * size && residual > 0.0, "{written}, {solver}: {residual}");
            assert!(solved.iterations() > 0, "{written}, {solver}");
            // The square of such a number overflows.
            assert_eq!(solved.energy(), None, "{written}");
            let notes = &solved.inner().notes;
            assert!(notes.iter().any(|note| note.contains("flows and is left out")), "{notes:?}");
        }
    }
}

/// Slow multigrid convergence is reported with its reason and a remedy: stretched cells, convection that dominates
/// diffusion in a cell.
#[test]
fn slow_levels_say_why() {
    let text = "
        form poisson { field u: scalar; f0[u] = -1; f1[u] = grad(u); }
        form wind { field u: scalar; f0[u] = 400 * grad(u)[0] - 1; f1[u] = grad(u); }
        problem square solves poisson { mesh = box(dim: 2, cells: 40); degree = 2; dirichlet u = 0 on all; SOLVER }
        problem stretched solves poisson {
            mesh = box(dim: 2, cells: 40, to: [12, 1]); degree = 2; dirichlet u = 0 on all; SOLVER
        }
        problem wind solves wind { mesh = box(dim: 2, cells: 40); degree = 2; dirichlet u = 0 on all; SOLVER }";
    let notes = |form: &str, problem: &str, solver: &str| {
        let solver = format!("solver = {solver}(preconditioner: multigrid);");
        let solved = solve(text, form, problem, &solver).unwrap_or_else(|error| panic!("{error}"));
        solved.inner().notes.join("\n")
    };
    assert!(!notes("poisson", "square", "cg").contains("are many"));
    let stretched = notes("poisson", "stretched", "cg");
    assert!(stretched.contains("12 times as long as wide"), "{stretched}");
    assert!(stretched.contains("`solver = direct;`"), "{stretched}");
    let wind = notes("wind", "wind", "fgmres");
    assert!(wind.contains("not symmetric") && wind.contains("|b| h < 2 κ"), "{wind}");
}

/// Returns the largest values of two coupled fields with scaled equations.
fn coupled(scales: [&str; 2], solver: &str) -> Result<[f64; 2], String> {
    let [a, b] = scales;
    let text = format!(
        "form p {{
             field a: scalar; field b: scalar;
             f0[a] = {a} * (b - 1); f1[a] = {a} * grad(a); f0[b] = -{b} * (a + 2); f1[b] = {b} * grad(b);
         }}
         problem q solves p {{
             mesh = box(dim: 2, cells: 6); degree = 2; dirichlet a = 0; dirichlet b = 0; solver = {solver};
             report ma = maximum(a); report mb = maximum(b);
         }}"
    );
    largest(&text)
}

fn largest(text: &str) -> Result<[f64; 2], String> {
    let solved = solve(text, "p", "q", "")?;
    Ok(["ma", "mb"]
        .map(|name| solved.report(name).and_then(ReportValue::number).expect("a number")))
}

#[test]
fn equations_whose_scales_are_two_hundred_orders_apart_are_all_solved() {
    let known = coupled(["1", "1"], "direct").expect("a solution");
    let solvers = ["gmres", "newton(linear: gmres)", "direct", "newton(linear: direct)"];
    for scales in [["1e-60", "1e60"], ["1e-100", "1e100"]] {
        for solver in solvers {
            let found = coupled(scales, solver);
            let found = found.unwrap_or_else(|error| panic!("{scales:?}, {solver}: {error}"));
            for (found, known) in found.iter().zip(known) {
                assert!((found / known - 1.0).abs() < 1e-7, "{scales:?}, {solver}: {found}");
            }
        }
    }
}

#[test]
fn a_field_whose_equations_are_hidden_by_those_of_another_is_solved_or_named() {
    let text = |solver: &str| {
        format!(
            "form p {{
                 field a: scalar; field b: scalar;
                 f0[a] = -1e-120; f1[a] = 1e-120 * grad(a); f0[b] = -1 / 1e-120; f1[b] = grad(b) / 1e-120;
             }}
             problem q solves p {{
                 mesh = box(dim: 2, cells: 6); degree = 2; dirichlet a = 0; dirichlet b = 0; solver = {solver};
                 report ma = maximum(a); report mb = maximum(b);
             }}"
        )
    };
    for solver in ["cg", "direct", "gmres"] {
        let [a, b] = largest(&text(solver)).unwrap_or_else(|error| panic!("{solver}: {error}"));
        assert!((a / b - 1.0).abs() < 1e-7 && (b - 0.0736669).abs() < 1e-6, "{solver}: {a}, {b}");
    }
    let error = largest(&text("cg(preconditioner: none)")).expect_err("out of reach");
    assert!(error.contains("equations of `a`") && error.contains("1e240"), "{error}");
}

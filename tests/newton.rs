//! Newton's method on difficult forms: penalties, switches, a Jacobian that vanishes at the start; and its history.

use serde_json::Value;
use std::process::{Command, Output};
use weakform::{Execution, Form, Solution};

/// A string over a stiff floor, and an elastic block pressed on a rigid plane.
const CONTACT: &str = "
    form string {
        field u: scalar;
        param load = 10;
        param stiffness = 1e6;
        f0[u] = load - stiffness * max(-0.1 - u, 0);
        f1[u] = grad(u);
    }
    problem floor solves string {
        mesh = box(dim: 2, cells: [40, 1], to: [1, 0.025]); dirichlet u = 0 on \"x0\", \"x1\"; SOLVER
        report lowest = minimum(u);
    }
    form block {
        field u: vector;
        param stiffness = 1e4;
        f1[u] = sym(grad(u)) + tr(grad(u)) * I;
        on boundary \"y0\" {
            let gap = 0.01 - 0.08 * (x[0] - 0.5)^2 + u[1];
            f0[u] = [0, if gap < 0 { stiffness * gap } else { 0 }];
        }
    }
    problem plane solves block {
        mesh = box(dim: 2, cells: 8); dirichlet u[0] = 0 on \"x0\"; dirichlet u[1] = -0.05 on \"y1\"; SOLVER
        report push = reaction(u, on: \"y1\");
    }
    form film { field u: scalar; param p = 3; f0[u] = -1; f1[u] = norm(grad(u))^(p - 2) * grad(u); }
    problem film solves film { mesh = box(dim: 2, cells: 4); dirichlet u = 0; }
";

fn solved(form: &str, problem: &str, stiffness: &str, solver: &str) -> Result<Solution, String> {
    let form = Form::parse(&CONTACT.replace("SOLVER", solver), form).expect("a form");
    let problem = form.problem(problem).expect("a problem").execution(Execution::Interpreted);
    problem.param("stiffness", stiffness).run().map_err(|error| error.to_string())
}

#[test]
fn penalties_and_switches_converge_by_default() {
    for (form, problem) in [("string", "floor"), ("block", "plane")] {
        for stiffness in ["1e2", "1e4", "1e6", "1e9"] {
            let solution = solved(form, problem, stiffness, "");
            let solution =
                solution.unwrap_or_else(|error| panic!("{problem} {stiffness}: {error}"));
            let steps = solution.iterations();
            assert!(steps <= 15, "{problem} {stiffness}: {steps} steps");
            let stalled = solution.notes().iter().any(|note| note.contains("backtracking stalled"));
            assert!(stalled || stiffness == "1e2", "{problem} {stiffness}: {:?}", solution.notes());
        }
    }
    // The contact force per length: the load of 10 minus the reactions of the ends, 0.2 / 0.1² at each.
    let lowest = solved("string", "floor", "1e9", "").expect("a solution");
    let [[least, _]] = lowest.range("u").expect("a field") else { panic!("a number") };
    assert!((least + 0.1).abs() < 1e-6, "{least}");
}

/// On fine meshes full steps do not find the active set of the stiffest floor within their limit.
#[test]
fn a_sweep_leads_where_full_steps_do_not() {
    let text = CONTACT
        .replace("SOLVER", "")
        .replace("cells: [40, 1], to: [1, 0.025]", "cells: [300, 1], to: [1, 0.01]");
    let form = Form::parse(&text, "string").expect("a form");
    let problem = form.problem("floor").expect("a problem").execution(Execution::Interpreted);
    let solution = problem.param("stiffness", "1e9").run().expect("a solution");
    let swept = solution.notes().iter().any(|note| note.contains("a sweep of `stiffness`"));
    assert!(swept, "{:?}", solution.notes());
    let [[least, _]] = solution.range("u").expect("a field") else { panic!("a number") };
    assert!((least + 0.1).abs() < 1e-6, "{least}");
}

#[test]
fn nothing_limits_growth_where_no_line_search_is_asked_for() {
    let solver = "solver = newton(line_search: none, linear: direct, forcing: exact);";
    let solution = solved("string", "floor", "1e9", solver).expect("a solution");
    let largest = solution.inner().report.history.iter().fold(0.0, |most: f64, own| most.max(*own));
    assert!(largest > 1e6 * solution.inner().report.history[0], "{largest}");
}

#[test]
fn a_failure_names_what_the_form_contains_and_the_sweep_that_helps() {
    let solver = "solver = newton(max_iterations: 1);";
    let Err(said) = solved("string", "floor", "1e6", solver) else { panic!("one step is too few") };
    for words in ["by `max`", "--param stiffness=1e2,1e3,1e4,1e5,1e6", "load: stiffness"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let Err(said) = solved("block", "plane", "1e6", solver) else { panic!("one step is too few") };
    assert!(said.contains("by `if`"), "{said}");
}

#[test]
fn a_jacobian_that_vanishes_at_the_start_is_named() {
    let text = CONTACT.replace("SOLVER", "").replace("^(p - 2)", "");
    let form = Form::parse(&text, "film").expect("a form");
    let problem = form.problem("film").expect("a problem").execution(Execution::Interpreted);
    let Err(said) = problem.run() else { panic!("no derivative at 0") };
    let said = said.to_string();
    for words in ["the Jacobian is singular at the start", "`u`", "initial u"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// The solution with p = 2 is an initial state for the p-Laplacian: in the disc u = (p − 1)/p (1/2)^(1/(p − 1)) (1 −
/// r^(p/(p − 1))).
#[test]
fn a_p_laplacian_starts_from_the_solution_with_p_2() {
    let text = CONTACT.replace("SOLVER", "").replace(
        "mesh = box(dim: 2, cells: 4); dirichlet u = 0;",
        "mesh = ball(dim: 2, refine: 3, order: 2); degree = 2; dirichlet u = 0;",
    );
    let form = Form::parse(&text, "film").expect("a form");
    for p in [3.0, 4.0, 6.0] {
        let problem = form.problem("film").expect("a problem").execution(Execution::Interpreted);
        let solution = problem.param("p", p).run().unwrap_or_else(|error| panic!("{p}: {error}"));
        assert!(
            solution.notes().iter().any(|note| note.contains("a sweep of `p` from 2 to")),
            "{p}"
        );
        let [[_, most]] = solution.range("u").expect("a field") else { panic!("a number") };
        let known = (p - 1.0) / p * 0.5_f64.powf(1.0 / (p - 1.0));
        assert!((most / known - 1.0).abs() < 2e-3, "{p}: {most}, {known}");
    }
}

fn wf(text: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.wf"), text).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.args(["run", "a.wf", "--interpret", "--no-output"]).args(arguments);
    command.current_dir(folder.path()).env("WF_CACHE_DIR", folder.path().join("cache"));
    command.output().expect("wf should start")
}

#[test]
fn a_start_without_a_derivative_has_a_code_and_its_sweep_works() {
    // A user-defined number of steps is used; the default is the sweep.
    let text = CONTACT.replace("SOLVER", "").replace(
        "cells: 4); dirichlet u = 0;",
        "cells: 4); dirichlet u = 0; solver = newton(max_iterations: 50);",
    );
    let refused = wf(&text, &["--problem", "film"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("E0423"), "{said}");
    assert!(said.contains("--param p=2,3"), "{said}");
    let swept = wf(&text, &["--problem", "film", "--param", "p=2,3"]);
    assert!(swept.status.success(), "{}", String::from_utf8_lossy(&swept.stderr));
}

#[test]
fn json_has_newtons_history_and_the_log_too() {
    let text = CONTACT.replace("SOLVER", "");
    let output = wf(&text, &["--problem", "plane", "--json"]);
    let value: Value = serde_json::from_slice(&output.stdout).expect("an object");
    let steps = value["newton"].as_array().expect("a list");
    assert_eq!(steps.len() as u64, value["iterations"].as_u64().expect("a number"));
    let sum: u64 = steps.iter().filter_map(|step| step["linear_iterations"].as_u64()).sum();
    assert_eq!(Some(sum), value["linear_iterations"].as_u64());
    assert!(
        steps.iter().all(|step| step["residual"].is_f64() && step["step"].is_f64()),
        "{steps:?}"
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.wf"), &text).expect("a file");
    command.args(["run", "a.wf", "--interpret", "--no-output", "--problem", "plane"]);
    command.current_dir(folder.path()).env("WF_CACHE_DIR", folder.path()).env("WF_LOG", "info");
    let output = command.output().expect("wf should start");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("newton step 1: residual"), "{said}");
}

#[test]
fn seconds_add_up_to_the_wall_clock() {
    let text = CONTACT.replace("SOLVER", "");
    let begun = std::time::Instant::now();
    let output = wf(&text, &["--problem", "plane", "--json"]);
    let whole = begun.elapsed().as_secs_f64();
    let value: Value = serde_json::from_slice(&output.stdout).expect("an object");
    let seconds = value["seconds"].as_object().expect("an object");
    let of = |name: &str| seconds[name].as_f64().expect("a number");
    let phases = ["mesh", "compile", "set_up", "solve", "measure", "write"];
    let sum: f64 = phases.iter().map(|name| of(name)).sum();
    assert!(phases.iter().all(|name| of(name) >= 0.0) && of("mesh") > 0.0, "{seconds:?}");
    assert!((sum - of("total")).abs() < 1e-9 && sum <= whole, "{seconds:?} of {whole}");
}

//! `wf run` of time-dependent problems: orders, stored data, tables and files, and rejected settings.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

pub(crate) fn wf(folder: &Path, text: &str, arguments: &[&str]) -> Output {
    std::fs::write(folder.join("a.wf"), text).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.args(["run", "a.wf"]).args(arguments).current_dir(folder);
    command.output().expect("wf should start")
}

/// Solves the only problem of a text. Compiled kernels take a fifth of the time of interpreted ones for many small
/// steps.
#[track_caller]
fn solved(text: &str) -> Value {
    solved_with(text, &[])
}

#[track_caller]
pub(crate) fn solved_with(text: &str, more: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let output = wf(folder.path(), text, &[&["--no-output", "--json"], more].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Returns the messages about a text that cannot be solved.
#[track_caller]
pub(crate) fn refused(text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let output = wf(folder.path(), text, &["--interpret", "--no-output"]);
    assert!(!output.status.success(), "{text}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} should be a number in {value}"))
}

/// Returns conduction with a solution that is in the space at all times, with constant or time-dependent conditions.
fn heat(scheme: &str, follows: bool) -> String {
    let (solution, conditions) = match follows {
        true => ("exp(-t) * (x[0] + x[1]) + sin(t) * x[0]^2 * x[1]", "dirichlet u;"),
        false => ("cos(2 * t) * x[0] * (1 - x[0]) * x[1] * (1 - x[1])", "dirichlet u = 0;"),
    };
    format!(
        "form heat {{ field u: scalar; f0[u] = dt(u); f1[u] = grad(u); }}
         problem p solves heat {{ mesh = box(dim: 2, cells: 1); degree = 4; {conditions}
         solver = direct(rtol: 1e-15); manufactured u = {solution}; time = {scheme}; }}"
    )
}

fn wave(scheme: &str) -> String {
    format!(
        "form wave {{ field u: scalar; f0[u] = dt(dt(u)) + 0.3 * dt(u); f1[u] = grad(u); }}
         problem p solves wave {{ mesh = box(dim: 2, cells: 1); degree = 4; dirichlet u = 0;
         manufactured u = cos(2 * t) * x[0] * (1 - x[0]) * x[1] * (1 - x[1]);
         initial u = x[0] * (1 - x[0]) * x[1] * (1 - x[1]); time = {scheme}; }}"
    )
}

/// Returns the order of convergence of the final error.
fn order(text: impl Fn(f64) -> String, step: f64) -> f64 {
    let [coarse, fine] = [step, step / 2.0].map(|step| number(&solved(&text(step)), "error_l2"));
    (coarse / fine).log2()
}

#[test]
fn errors_fall_as_the_schemes_promise() {
    for (scheme, promised, step) in [
        ("theta(theta: 1,", 1.0, 0.05),
        ("theta(", 2.0, 0.05),
        ("bdf(order: 1,", 1.0, 0.05),
        ("bdf(order: 2,", 2.0, 0.05),
        ("bdf(order: 3,", 3.0, 0.01),
        ("bdf(order: 4,", 4.0, 0.02),
        ("bdf(order: 5,", 5.0, 0.025),
        ("sdirk(stages: 2,", 2.0, 0.02),
        // Order 3 for nonstiff problems.
        ("sdirk(stages: 3,", 2.6, 0.025),
        ("sdirk(stages: 4,", 2.6, 0.025),
        ("rk(order: 2, mass: consistent,", 2.0, 0.001),
    ] {
        let to = if scheme.starts_with("rk") { 0.1 } else { 1.0 };
        let text = |step: f64| heat(&format!("{scheme} to: {to}, step: {step}, at: {to})"), false);
        let found = order(text, step);
        // At order 5 the errors approach the rounding-error level before the asymptotic range.
        let less = match promised {
            5.0 => 0.35,
            4.0 => 0.2,
            _ => 0.1,
        };
        assert!(found > promised - less, "{scheme} {found}");
    }
    for (scheme, promised) in [
        ("theta(", 2.0),
        ("bdf(order: 2,", 2.0),
        ("bdf(order: 3,", 3.0),
        ("sdirk(stages: 3,", 3.0),
        ("newmark(", 2.0),
        ("generalised_alpha(rho: 0.5,", 2.0),
    ] {
        let found = order(|step| wave(&format!("{scheme} to: 1, step: {step}, at: 1)")), 0.01);
        assert!(found > promised - 0.1, "{scheme} of second derivatives: {found}");
    }
}

/// Time-dependent conditions are functions of time, and preserve the order of every scheme; implicit Runge-Kutta
/// schemes have a reduced order for stiff equations.
#[test]
fn conditions_that_follow_time_cost_no_scheme_its_order() {
    for (scheme, step, least, most) in [
        ("theta(", 0.05, 1.9, 2.2),
        ("bdf(order: 3,", 0.05, 2.9, 3.3),
        ("sdirk(stages: 2,", 0.05, 1.8, 2.2),
        ("sdirk(stages: 3,", 0.05, 2.3, 3.2),
        // Contributions of a coupled mass from the rates of constrained DoFs.
        ("rk(order: 1, mass: consistent,", 0.0008, 0.9, 1.1),
        ("rk(order: 2, mass: consistent,", 0.0008, 1.9, 2.3),
        ("rk(order: 4, mass: consistent,", 0.0008, 3.8, 4.3),
    ] {
        let to = if scheme.starts_with("rk") { 0.08 } else { 1.0 };
        let text = |step: f64| heat(&format!("{scheme} to: {to}, step: {step}, at: {to})"), true);
        let found = order(text, step);
        assert!(found > least && found < most, "{scheme} {found}");
    }
}

#[test]
fn steps_that_vary_keep_their_tolerance() {
    let mut counts = Vec::new();
    for tolerance in ["1e-3", "1e-5"] {
        for scheme in ["bdf(order: 3,", "sdirk(stages: 3,"] {
            let text = heat(&format!("{scheme} to: 1, tolerance: {tolerance}, at: 1)"), false);
            let found = solved(&text);
            let allowed = 30.0 * tolerance.parse::<f64>().expect("a number");
            // For a solution of size 0.01.
            assert!(number(&found, "error_l2") < allowed * 0.02, "{scheme} {tolerance}: {found}");
            let note = found["notes"].to_string();
            let steps = note.split(" steps of").next().and_then(|text| text.rsplit('"').next());
            counts.push(steps.and_then(|text| text.parse::<usize>().ok()).expect("a count"));
        }
    }
    assert!(counts[2] > counts[0] && counts[3] > counts[1], "{counts:?}");
}

const FREE: &str = "form wave { field u: scalar; f0[u] = dt(dt(u)); f1[u] = grad(u); }
     problem p solves wave { mesh = box(dim: 2, cells: 2); degree = 3; dirichlet u = 0 on \"x0\";
     initial u = sin(pi * x[0]); initial dt(u) = x[0];
     time = SCHEME;
     report kept = integral(dt(u)^2 / 2 + dot(grad(u), grad(u)) / 2); }";

#[test]
fn an_undamped_wave_keeps_its_energy() {
    for (scheme, lost) in [
        // As accurate as the solves of the stages.
        ("newmark(to: 2, step: 0.05, every: 1)", 1e-8),
        ("theta(to: 2, step: 0.05, every: 1)", 1e-8),
        ("leapfrog(mass: consistent, to: 2, step: 0.02, every: 1)", 0.02),
    ] {
        let found = solved(&FREE.replace("SCHEME", scheme));
        let steps = found["steps"].as_array().expect("steps");
        assert_eq!(steps.len(), 3);
        assert_eq!(
            steps.iter().map(|step| number(step, "time")).collect::<Vec<_>>(),
            [0.0, 1.0, 2.0]
        );
        assert!(steps.iter().all(|step| step["kind"] == "time"));
        let known = solved(&FREE.replace("SCHEME", "newmark(to: 1e-9, step: 1e-9, at: 0)"));
        let [kept, before] = [&found, &known].map(|value| number(&value["reports"], "kept"));
        assert!((kept / before - 1.0).abs() < lost, "{scheme}: {kept} of {before}");
    }
}

/// Waves excited by conditions, implicitly and explicitly. The mass matrix is coupled, or diagonal by quadrature at the
/// nodes, for which lumping makes no difference.
#[test]
fn waves_follow_conditions() {
    let text = |scheme: &str, quadrature: &str| {
        format!(
            "form wave {{ field u: scalar; f0[u] = dt(dt(u)); f1[u] = grad(u); }}
             problem p solves wave {{ mesh = box(dim: 2, cells: 1); degree = 4; {quadrature} dirichlet u;
             manufactured u = cos(2 * t) * x[0] * (1 + x[0]) * x[1];
             report moving = l2(dt(u)); time = {scheme}; }}"
        )
    };
    let scheme = |mass: &str, step: f64| format!("leapfrog({mass} to: 1, step: {step}, at: 1)");
    for implicit in ["newmark(", "generalised_alpha("] {
        let own = |step: f64| text(&format!("{implicit} to: 1, step: {step}, at: 1)"), "");
        let found = order(own, 0.04);
        assert!((found - 2.0).abs() < 0.1, "{implicit}: {found}");
    }
    for (mass, quadrature) in [("mass: consistent,", ""), ("", "quadrature = collocated;")] {
        let found = order(|step| text(&scheme(mass, step), quadrature), 0.02);
        assert!((found - 2.0).abs() < 0.1, "{mass} {quadrature}: {found}");
    }
    let moving = |mass: &str| {
        let found = solved(&text(&scheme(mass, 0.02), "quadrature = collocated;"));
        number(&found["reports"], "moving")
    };
    let [lumped, consistent] = ["mass: lumped,", "mass: consistent,"].map(moving);
    assert!((lumped - consistent).abs() < 1e-12 * lumped, "{lumped} {consistent}");
    // 2 sin(2) ‖x (1 + x) y‖, which is 2 sin(2) √(31/90).
    let known = 2.0 * 2f64.sin() * (31f64 / 90.0).sqrt();
    assert!((lumped / known - 1.0).abs() < 2e-3, "{lumped} is not {known}");
}

/// A stored mass matrix would be wrong.
#[test]
fn explicit_schemes_refuse_masses_that_change() {
    for f0 in ["(1 + u^2) * dt(u)", "(2 + sin(t)) * dt(u)", "dt(u)^2 + dt(u)"] {
        let text = format!(
            "form f {{ field u: scalar; f0[u] = {f0}; f1[u] = grad(u); }}
             problem p solves f {{ mesh = box(dim: 2, cells: 1); time = rk(to: 0.1, step: 0.01); }}"
        );
        let said = refused(&text);
        assert!(said.contains("follows the solution or t") && said.contains("`bdf`"), "{said}");
    }
}

/// Nodes of simplices are no quadrature rule.
#[test]
fn quadrature_at_nodes_is_for_squares_and_cubes() {
    let text = FREE.replace("SCHEME", "leapfrog(to: 1, step: 0.02)");
    let triangles = text.replace("degree", "quadrature = collocated; degree");
    let triangles = triangles.replace("box(", "box(cell: tri, ");
    let said = refused(&triangles);
    assert!(said.contains("nodes of a tri") && said.contains("leave `quadrature"), "{said}");
}

/// Incompressible flow: the order of the velocity, and that of the pressure, which has no time derivative.
#[test]
fn algebraic_fields_follow() {
    for (scheme, velocity, pressure) in [
        ("theta(theta: 1,", 1.0, 1.0),
        ("theta(", 2.0, 1.0),
        ("bdf(order: 2,", 2.0, 2.0),
        ("bdf(order: 3,", 3.0, 3.0),
        ("sdirk(stages: 2,", 2.0, 1.0),
        ("sdirk(stages: 3,", 2.0, 1.0),
    ] {
        let shorter = if scheme.starts_with("sdirk") { 0.25 } else { 1.0 };
        let errors = [0.1 * shorter, 0.05 * shorter].map(|step| {
            let found = solved(&flow(&format!("{scheme} to: 1, step: {step}, at: 1)")));
            [0, 1].map(|field| number(&found["errors"][field], "l2"))
        });
        for (field, promised) in [velocity, pressure].into_iter().enumerate() {
            let found = (errors[0][field] / errors[1][field]).log2();
            assert!(found > promised - 0.1, "{scheme} field {field}: {found} {errors:?}");
        }
    }
}

fn flow(scheme: &str) -> String {
    format!(
        "form stokes {{ field u: vector; field p: scalar in H1(k - 1);
             f0[u] = dt(u); f1[u] = grad(u) - p * I; f0[p] = -div(u); }}
         problem flow solves stokes {{ mesh = box(dim: 2, cells: 1); degree = 3;
             dirichlet u on \"x0\", \"y0\", \"y1\";
             manufactured u = cos(t) * [x[1]^2, x[0]^2]; manufactured p = sin(t) * (1 + x[0]);
             time = {scheme}; }}"
    )
}

#[test]
fn a_nonlinear_form_goes_through_time() {
    let text = |step: f64| {
        format!(
            "form porous {{ field u: scalar; f0[u] = dt(u^2 / 2 + u); f1[u] = (1 + u^2) * grad(u); }}
             problem p solves porous {{ mesh = box(dim: 2, cells: 2); degree = 3; dirichlet u;
                 manufactured u = sin(t) + x[0] * x[1] * exp(-t);
                 time = bdf(order: 2, to: 1, step: {step}, at: 1); }}"
        )
    };
    let found = order(text, 0.05);
    assert!((found - 2.0).abs() < 0.2, "{found}");
}

#[test]
fn times_have_rows_and_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = FREE.replace("SCHEME", "newmark(to: 0.2, step: 0.02, at: [0, 0.1, 0.2])");
    let options = ["--interpret", "-o", "u-{step}.vtu", "--report", "u.csv"];
    let output = wf(folder.path(), &text, &options);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = std::fs::read_to_string(folder.path().join("u.csv")).expect("a table");
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows[0], "t,kept");
    assert_eq!(rows.len(), 4, "{table}");
    assert!(rows[2].starts_with("0.1,"), "{table}");
    let series = std::fs::read_to_string(folder.path().join("u.pvd")).expect("a series");
    assert_eq!(series.matches("<DataSet").count(), 3);
    assert!(series.contains("timestep=\"0.1\""), "{series}");
    assert!(folder.path().join("u-2.vtu").is_file());
}

#[test]
fn what_cannot_be_is_said() {
    let long = refused(&heat("rk(to: 1, step: 0.1)", false));
    assert!(long.contains("`rk` is stable up to") && long.contains("step:"), "{long}");
    // An initial state that contradicts the conditions is replaced by them.
    let text = "form heat { field u: scalar; f0[u] = dt(u); f1[u] = grad(u); }
         problem p solves heat { mesh = box(dim: 2, cells: 2); dirichlet u = 1; initial u = 0.5;
         time = bdf(order: 1, to: 1, step: 0.5); }";
    let notes = solved(text)["notes"].to_string();
    assert!(notes.contains("differs from the conditions in 8 unknowns"), "{notes}");
    // A solution with blow-up: u̇ = u³ from 1 at t = ½.
    let blows = "form blow { field u: scalar; f0[u] = dt(u) - u^3; }
         problem p solves blow { mesh = box(dim: 2, cells: 1); initial u = 1;
         time = bdf(order: 2, to: 1, tolerance: 1e-4); }";
    let said = refused(blows);
    assert!(said.contains("at t = 0.") && said.contains("can be taken"), "{said}");
}

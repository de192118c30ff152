//! Time integration: conditions that depend on t, initial states, unsuitable schemes, impossible steps, unstable
//! explicit schemes, checkpoints of another problem.

use std::time::{Duration, Instant};

use serde_json::Value;
use weakform::{
    ALL, Error, Execution, Formula, Mass, RunError, Scheme, System, TimeError, Vector, mesh,
    weak_form,
};

use crate::time::{refused, solved_with, wf};

#[track_caller]
fn solved(text: &str) -> Value {
    solved_with(text, &["--interpret"])
}

fn report(value: &Value, name: &str) -> f64 {
    value["reports"][name].as_f64().unwrap_or_else(|| panic!("{name} should be in {value}"))
}

fn bar(condition: &str, scheme: &str) -> String {
    format!(
        "form bar {{ field u: scalar; f0[u] = dt(dt(u)); f1[u] = grad(u); }}
         problem p solves bar {{ mesh = box(dim: 2, cells: [40, 1], to: [1, 0.1]);
             dirichlet u = {condition} on \"x0\"; time = {scheme};
             report pull = reaction(u, on: \"x0\") / integral(1, on: \"x0\");
             report wall = integral(dt(u), on: \"x0\") / integral(1, on: \"x0\");
             report push = integral(dt(dt(u)), on: \"x0\") / integral(1, on: \"x0\"); }}"
    )
}

const SECOND: [&str; 6] = [
    "newmark(",
    "generalised_alpha(rho: 0.5,",
    "theta(",
    "bdf(order: 2,",
    "sdirk(stages: 3,",
    "leapfrog(mass: consistent,",
];

/// u = sin(t − x)² in the bar until the wave returns, and the reaction at the wall is sin(2 t). The velocity and the
/// acceleration of the wall are those of the condition.
#[test]
fn second_order_in_time_dirichlet_data_that_follow_t() {
    let t: f64 = 1.5;
    for scheme in SECOND {
        let found = solved(&bar("sin(t)^2", &format!("{scheme} to: {t}, step: 0.01, at: {t})")));
        let [pull, wall, push] = ["pull", "wall", "push"].map(|name| report(&found, name));
        let (rate, acceleration) = ((2.0 * t).sin(), 2.0 * (2.0 * t).cos());
        assert!((wall - rate).abs() < 1e-10, "{scheme}: {wall}, not {rate}");
        assert!((push - acceleration).abs() < 1e-9, "{scheme}: {push}, not {acceleration}");
        assert!((pull - rate).abs() < 0.02, "{scheme}: {pull}, not {rate}");
    }
}

/// The wall's velocity jumps: unresolved waves follow the front, and the wall's force stays near the exact one.
#[test]
fn a_bar_whose_end_starts_with_a_velocity_pulls_as_it_should() {
    for scheme in ["newmark(", "generalised_alpha(rho: 0.5,", "bdf(order: 2,"] {
        let found = solved(&bar("sin(t)", &format!("{scheme} to: 1.8, step: 0.02, at: 1.8)")));
        let (pull, wall) = (report(&found, "pull"), report(&found, "wall"));
        assert!((wall - 1.8f64.cos()).abs() < 1e-10, "{scheme}: {wall}");
        assert!((pull - 1.8f64.cos()).abs() < 0.2, "{scheme}: {pull}");
    }
}

/// The beam of `docs/published.md`.
#[test]
fn nafems_5t_has_its_peak() {
    let page = include_str!("../docs/published.md");
    let text = page.split("```wf\n").nth(1).and_then(|rest| rest.split("```").next());
    let found = solved_with(text.expect("a form"), &[]);
    let number = |value: &Value| value.as_f64().expect("a number");
    let steps = found["steps"].as_array().expect("steps").iter();
    let rows = steps.map(|step| {
        let reports = &step["reports"];
        [&step["time"], &reports["deflection"][1], &reports["stress"]].map(number)
    });
    let rows: Vec<[f64; 3]> = rows.collect();
    let peak = rows.iter().min_by(|a, b| a[1].total_cmp(&b[1])).expect("a step");
    let stress = rows.iter().fold(0.0, |most: f64, row| most.max(row[2]));
    assert!((peak[0] - 0.0117).abs() < 1e-9, "{peak:?}");
    assert!((1e3 * peak[1] + 1.0357).abs() < 1e-4, "{peak:?}");
    assert!((1e-6 * stress - 18.62).abs() < 1e-2, "{stress}");
}

/// An initial velocity that contradicts a condition is replaced by that of the condition, with a remark.
#[test]
fn velocities_where_time_begins_are_those_of_the_conditions() {
    let text =
        bar("0", "newmark(to: 0.1, step: 0.02)").replace("time =", "initial dt(u) = 1; time =");
    let found = solved(&text);
    assert!(
        report(&found, "wall").abs() < 1e-12 && report(&found, "push").abs() < 1e-10,
        "{found}"
    );
    let notes = found["notes"].to_string();
    assert!(notes.contains("differs from the time derivative of the conditions"), "{notes}");
}

/// With second time derivatives only, u = t has no acceleration.
#[test]
fn exact_gives_the_initial_velocity() {
    let found = solved(
        "form free { field u: scalar; f0[u] = dt(dt(u)); f1[u] = grad(u); }
         problem p solves free { mesh = box(dim: 2, cells: 2); exact u = t;
             time = newmark(to: 1, step: 0.25); }",
    );
    let error = found["error_l2"].as_f64().expect("an error");
    assert!(error < 1e-9, "{error}");
}

/// A sliding wall that is pushed: no explicit scheme is involved, and no message mentions one; explicit schemes follow
/// it, too.
#[test]
fn a_normal_component_follows_t_by_every_scheme() {
    let text = |scheme: &str| {
        format!(
            "form f {{ field u: vector; f0[u] = dt(u); f1[u] = grad(u); }}
             problem p solves f {{ mesh = ball(dim: 2, refine: 1); dirichlet dot(u, n) = t;
                 time = {scheme}; report pushed = integral(dot(dt(u), n), on: boundary) / integral(1, on: boundary); }}"
        )
    };
    for scheme in
        ["bdf(to: 0.1, step: 0.02)", "theta(to: 0.1, step: 0.02)", "rk(to: 0.01, step: 0.002)"]
    {
        let text = text(scheme).replace("on: boundary", "on: \"surface\"");
        let value = solved(&text);
        // Nodal normals are means of those of the facets.
        assert!((report(&value, "pushed") - 1.0).abs() < 0.1, "{scheme}: {value}");
    }
}

/// u = sin(t): in reports dt(u) is the rate at the row's own time, not at the middle of the step.
#[test]
fn dt_of_theta_in_reports_is_that_of_the_time() {
    let found = solved(
        "form f { field u: scalar; f0[u] = dt(u) - cos(t); }
         problem p solves f { mesh = box(dim: 2, cells: 1); time = theta(to: 1, step: 0.1);
             report rate = integral(dt(u)); }",
    );
    let steps = found["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 11);
    // The series of reports is complete, one row per step.
    for step in steps {
        let [time, rate] =
            [&step["time"], &step["reports"]["rate"]].map(|of| of.as_f64().expect("a number"));
        // Linear interpolation between rates half a step apart: error at most 3/8 Δt² |cos|.
        assert!((rate - time.cos()).abs() < 4e-3, "{rate} at {time}");
    }
}

/// The first steps are compared with a solution close to 0.
#[test]
fn a_tolerance_is_met_from_a_solution_that_is_0() {
    for (rate, exact, scheme) in [
        ("2 * t", "t^2", "sdirk(stages: 2, tolerance: 1e-3, to: 1, at: 1)"),
        ("2 * t", "t^2", "bdf(tolerance: 1e-3, to: 1, at: 1)"),
        ("3 * t^2", "t^3", "sdirk(to: 1, tolerance: 1e-4)"),
        ("3 * t^2", "t^3", "bdf(to: 1, tolerance: 1e-4)"),
    ] {
        let found = solved(&format!(
            "form f {{ field u: scalar; f0[u] = dt(u) - {rate}; f1[u] = grad(u); }}
             problem p solves f {{ mesh = box(dim: 2, cells: 1); exact u = {exact}; time = {scheme}; }}"
        ));
        let error = found["error_l2"].as_f64().expect("an error");
        assert!(error < 0.02, "{scheme}: {error}");
    }
}

/// Each before anything is counted or allocated.
#[test]
fn counts_and_lengths_of_time_are_bounded_before_they_are_used() {
    let begun = Instant::now();
    for (settings, words) in [
        ("to: 1, step: 0.1, every: 1e-300", "can be told apart"),
        ("to: 1, step: 0.1, every: 1e-10", "can be told apart"),
        ("to: 1, step: 1e-17", "can be told apart"),
        ("from: 1e16, to: 2e16, step: 0.5", "can be told apart"),
        ("from: 1e16, to: 10000000000000004, step: 1", "lost in rounding"),
        ("from: -1e308, to: 1e308, step: 1e307", "time goes from"),
        ("from: 1, to: 0, step: 0.1", "time goes from 1 to 0"),
    ] {
        let said = refused(&format!(
            "form heat {{ field u: scalar; f0[u] = dt(u); f1[u] = grad(u); }}
             problem p solves heat {{ mesh = box(dim: 2, cells: 1); time = bdf({settings}); }}"
        ));
        assert!(said.contains(words) && said.contains("help: "), "{settings}: {said}");
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "nothing was counted");
}

/// Conduction that becomes a hundred times as fast: the step size was adequate at first.
#[test]
fn explicit_steps_are_watched_where_coefficients_follow_t_or_u() {
    for (flux, scheme) in [
        ("(1 + 200 * t) * grad(u)", "rk(order: 4, mass: lumped, to: 1, step: 0.004, at: 1)"),
        ("(1 + u^2) * grad(u)", "rk(order: 2, mass: consistent, to: 1, step: 0.002, at: 1)"),
    ] {
        let said = refused(&format!(
            "form f {{ field u: scalar; f0[u] = dt(u) - 100 * u * (1 - u / 10); f1[u] = {flux}; }}
             problem p solves f {{ mesh = box(dim: 2, cells: 4); dirichlet u = 0 on \"x0\";
                 initial u = 0.1 * x[0]; time = {scheme}; }}"
        ));
        assert!(said.contains("are too long") && said.contains("at t = "), "{flux}: {said}");
    }
}

/// Row sums over components and fields would be another equation.
#[test]
fn a_coupled_mass_is_not_lumped() {
    let coupled = "form f { field u: scalar; field v: scalar; f0[u] = dt(u) + 0.5 * dt(v) + u; f0[v] = 0.5 * dt(u) + dt(v); }
         problem p solves f { mesh = box(dim: 2, cells: 2); initial u = 1; time = rk(mass: MASS, to: 1, step: 0.02, at: 1);
             report amount = integral(u); }";
    let said = refused(&coupled.replace("MASS", "lumped"));
    assert!(said.contains("couples `u`") && said.contains("consistent"), "{said}");
    // (u, v)' = −M⁻¹ (u, 0): u' = −4/3 u.
    let found = solved(&coupled.replace("MASS", "consistent"));
    assert!((report(&found, "amount") - (-4f64 / 3.0).exp()).abs() < 1e-6, "{found}");
    // Uncoupled components have separate row sums.
    let own = "form f { field u: vector; f0[u] = [dt(u[0]) + u[0], 2 * dt(u[1]) + u[1]]; }
         problem p solves f { mesh = box(dim: 2, cells: 2); initial u = [1, 1]; time = rk(mass: lumped, to: 1, step: 0.02, at: 1);
             report slow = integral(u[1]); }";
    assert!((report(&solved(own), "slow") - (-0.5f64).exp()).abs() < 1e-6);
    // Vertex functions of quadratic triangles have zero integral.
    let triangles =
        own.replace("cells: 2", "cells: 2, cell: tri").replace("initial", "degree = 2; initial");
    let said = refused(&triangles);
    assert!(said.contains("positive sum"), "{said}");
}

#[test]
fn a_checkpoint_of_another_form_is_refused_and_other_parameters_are_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "form heat { field u: scalar; param kappa = 1; f0[u] = dt(u); f1[u] = kappa * grad(u); }
         problem p solves heat { mesh = box(dim: 2, cells: 2); dirichlet u = 0 on \"x0\"; initial u = x[0];
             time = bdf(to: TO, step: 0.1); }";
    let run = |text: &str, arguments: &[&str]| {
        let output = wf(
            folder.path(),
            text,
            &[&["--interpret", "--no-output", "--json"], arguments].concat(),
        );
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said, String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let first = run(&text.replace("TO", "0.5"), &["--checkpoint", "c.npy"]);
    assert!(first.0, "{}", first.1);
    let longer = text.replace("TO", "1");
    let (done, said, told) = run(&longer, &["--restart", "c.npy"]);
    assert!(done && !told.contains("was left with"), "{said}{told}");
    let (done, said, told) = run(&longer, &["--restart", "c.npy", "--param", "kappa=2"]);
    assert!(
        done && told.contains("was left with `kappa` = 1, and the run goes on with 2"),
        "{said}{told}"
    );
    let (done, said, told) =
        run(&longer.replace("dirichlet u = 0", "dirichlet u = 1"), &["--restart", "c.npy"]);
    assert!(done && told.contains("other conditions or data"), "{said}{told}");
    let (done, _, told) =
        run(&longer.replace("f0[u] = dt(u)", "f0[u] = 2 * dt(u)"), &["--restart", "c.npy"]);
    assert!(!done && told.contains("is of another form") && told.contains("`heat`"), "{told}");
}

weak_form! {
    form steady { field u: scalar; f0[u] = u - 1; }
    form heat { field u: scalar; param kappa = 1; aux source: scalar; f0[u] = dt(u) - source; f1[u] = kappa * grad(u); }
    form wave { field u: scalar; f0[u] = dt(dt(u)); f1[u] = grad(u); }
    form follows { field u: scalar; f0[u] = u - t; }
}

fn system(form: weakform::Form) -> System {
    let setup = form.on(mesh("box(dim: 2, cells: 2)").expect("a mesh"));
    setup.execution(Execution::Interpreted).build().expect("a system")
}

fn heated() -> System {
    let setup = heat::form().on(mesh("box(dim: 2, cells: 2)").expect("a mesh"));
    let setup = setup.aux("source", |_| 1.0).execution(Execution::Interpreted);
    setup.build().expect("a system")
}

#[track_caller]
fn scheme_error(system: &mut System, scheme: Scheme) -> String {
    let start = system.vector();
    match system.begin(scheme, 0.0, &start, None) {
        Err(Error::System(error)) => match *error {
            RunError::Time(TimeError::Scheme(error)) => error.to_string(),
            other => panic!("{scheme:?}: {other}"),
        },
        Err(other) => panic!("{scheme:?}: {other}"),
        Ok(_) => panic!("{scheme:?} is accepted"),
    }
}

#[test]
fn schemes_from_rust_are_checked_as_those_of_the_language() {
    let (formula, mass) = (Formula::Classical, Mass::Consistent);
    let (mut heat, mut wave, mut steady) = (heated(), system(wave::form()), system(steady::form()));
    assert!(scheme_error(&mut heat, Scheme::Leapfrog { mass }).contains("alone"));
    assert!(
        scheme_error(&mut wave, Scheme::RungeKutta { order: 4, formula, mass }).contains("first")
    );
    assert!(scheme_error(&mut steady, Scheme::Bdf { order: 2 }).contains("no `dt(u)`"));
    for scheme in [
        Scheme::Bdf { order: 0 },
        Scheme::Bdf { order: 6 },
        Scheme::Bdf { order: 7 },
        Scheme::Bdf { order: 9 },
        Scheme::Sdirk { stages: 0 },
        Scheme::Sdirk { stages: 1 },
        Scheme::Sdirk { stages: 5 },
        Scheme::Theta { theta: 5.0 },
        Scheme::Theta { theta: f64::NAN },
        Scheme::RungeKutta { order: 5, formula, mass },
        Scheme::RungeKutta { order: 4, formula: Formula::Ssp, mass },
    ] {
        assert!(scheme_error(&mut heat, scheme).contains(scheme.word()), "{scheme:?}");
    }
    assert!(scheme_error(&mut wave, Scheme::GeneralisedAlpha { rho: 1.5 }).contains("`rho`"));
    let start = heat.vector();
    let mut motion = heat.begin(Scheme::Bdf { order: 2 }, 1.0, &start, None).expect("a beginning");
    assert!(heat.advance(&mut motion, 1e-17, None).is_err(), "t + step is t");
    let failed = heat.steps(&mut motion, 1e-11, 2.0, None).next();
    assert!(matches!(failed, Some(Err(_))), "more steps than can be told apart");
}

#[test]
fn a_form_with_dt_is_not_solved_as_a_steady_one() {
    let mut system = heated();
    let mut u = system.vector();
    let said = system.solve(&mut u).expect_err("nothing gives dt(u)").to_string();
    assert!(said.contains("`dt(u)`") && said.contains("set_rate"), "{said}");
    // Backward Euler, manually.
    let step = 0.5;
    let mut past = system.vector();
    past.axpy(-1.0 / step, &u);
    system.set_rate(1, 1.0 / step, &past).expect("the form has it");
    system.solve(&mut u).expect("a solution");
    assert!(u.to_vec().iter().all(|u| (u - step).abs() < 1e-8), "{:?}", u.to_vec());
    assert!(system.set_rate(2, 1.0, &past).is_err(), "the form has no second derivative");
    // A scheme uses its own.
    let start = system.vector();
    let mut motion =
        system.begin(Scheme::Bdf { order: 1 }, 0.0, &start, None).expect("a beginning");
    system.advance(&mut motion, 0.25, None).expect("a step");
    assert!(motion.u().to_vec().iter().all(|u| (u - 0.25).abs() < 1e-8));
    assert!(system.solve(&mut u).is_err(), "what was given is forgotten");
}

#[test]
fn time_is_set_and_names_within_are_out_of_reach() {
    let mut system = system(follows::form());
    system.set_time(0.75).expect("a time");
    let mut u = system.vector();
    system.solve(&mut u).expect("a solution");
    assert!(u.to_vec().iter().all(|u| (u - 0.75).abs() < 1e-10));
    assert!(system.set_time(f64::NAN).is_err());
    assert_eq!(system.time(), 0.75);
    let mut heat = heated();
    assert!(heat.set_param("per_dt", 1.0).is_err(), "it is none of the form's");
    assert!(heat.set_aux("dt_u", |_: &[f64; 3]| 1.0).is_err());
    let setup =
        || heat::form().on(mesh("box(dim: 2, cells: 1)").expect("a mesh")).aux("source", |_| 1.0);
    assert!(setup().param("per_dt", 1.0).build().is_err());
    assert!(setup().aux("dt_u", |_: &[f64; 3]| 1.0).build().is_err());
    let named = "form heat { field u: scalar; f0[u] = dt(u); f1[u] = grad(u); }
         problem p solves heat { mesh = box(dim: 2, cells: 1); dirichlet u = per_dt; param per_dt = 2; aux dt_u = 1;
             time = bdf(to: 1, step: 0.5); }";
    let said = refused(named);
    assert_eq!(said.matches("error").count(), 3, "{said}");
}

/// A Rust function has no formula: its derivatives are differences.
#[test]
fn functions_that_follow_t_move_walls_from_rust() {
    let setup = wave::form().on(mesh("box(dim: 2, cells: [4, 1])").expect("a mesh"));
    let setup = setup.dirichlet_of("u", ALL, ["t"], |x, [t]| x[0] * t.sin());
    let mut system = setup.execution(Execution::Interpreted).build().expect("a system");
    let newmark = Scheme::Newmark { beta: 0.25, gamma: 0.5 };
    let mut motion = system.begin(newmark, 0.0, &system.vector(), None).expect("a beginning");
    let largest = |of: &Vector| of.to_vec().into_iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    assert!((largest(motion.rate()) - 1.0).abs() < 1e-6, "{}", largest(motion.rate()));
    for _ in 0..20 {
        system.advance(&mut motion, 0.05, None).expect("a step");
    }
    let (rate, acceleration) = (motion.rate(), motion.acceleration().expect("it has one"));
    assert!((largest(rate) - 1f64.cos()).abs() < 1e-5, "{}", largest(rate));
    assert!((largest(acceleration) - 1f64.sin()).abs() < 1e-4, "{}", largest(acceleration));
}

/// The rows of a lumped mass include the columns of constrained DoFs.
#[test]
fn a_lumped_mass_counts_the_nodes_beside_a_condition() {
    for (form, of, scheme) in [("dt(u) - 1", "t", "rk"), ("dt(dt(u)) - 2", "t^2", "leapfrog")] {
        let value = solved(&format!(
            "form p {{ field u: scalar; f0[u] = {form}; }}
             problem p solves p {{ mesh = box(dim: 2, cells: [4, 1]); dirichlet u = {of} on \"x0\", \"x1\";
                 time = {scheme}(to: 1, step: 0.01, mass: lumped); report near = u([0.25, 0.5]); }}"
        ));
        assert!((report(&value, "near") - 1.0).abs() < 1e-10, "{scheme}: {value}");
    }
}

/// One Euler step with u̇ = −M u / M_L, manually, and the order of a scheme with a lumped mass.
#[test]
fn a_lumped_mass_gives_the_first_rate_too() {
    let form = "form p { field u: scalar; f0[u] = dt(u) + u; }
         problem p solves p { mesh = box(dim: 2, cells: [2, 1]); initial u = x[0]^2; time = TIME;
             report left = u([0, 0]); report middle = u([0.5, 0.5]); report right = u([1, 0]); }";
    let at = |time: &str| {
        let value = solved(&form.replace("TIME", time));
        ["left", "middle", "right"].map(|name| report(&value, name))
    };
    let found = at("rk(order: 1, to: 0.1, step: 0.1, mass: lumped)");
    let known = [-0.025 / 3.0, 0.25 - 0.1 * 2.0 / 6.0, 1.0 - 0.1 * 2.25 / 3.0];
    for (found, known) in found.into_iter().zip(known) {
        assert!((found - known).abs() < 1e-12, "{found}, {known}");
    }
    let middle = |step: f64| at(&format!("rk(order: 4, to: 1, step: {step}, mass: lumped)"))[1];
    let [coarse, fine, finer] = [0.25, 0.125, 0.0625].map(middle);
    let order = ((coarse - fine) / (fine - finer)).log2();
    assert!((order - 4.0).abs() < 0.4, "{order}");
}

/// u̇ = t − u² by steps of Shu and Osher, manually, and its order.
#[test]
fn the_formula_of_shu_and_osher_is_of_order_3() {
    let at = |formula: &str, steps: usize| {
        let value = solved(&format!(
            "form p {{ field u: scalar; f0[u] = dt(u) + u^2 - t; }}
             problem p solves p {{ mesh = box(dim: 2, cells: 1); initial u = 1;
                 time = rk({formula}, to: 1, step: {}, every: 1); report at = u([0.5, 0.5]); }}",
            1.0 / steps as f64
        ));
        report(&value, "at")
    };
    let manual = |steps: usize| {
        let length = 1.0 / steps as f64;
        let euler = |t: f64, u: f64| u + length * (t - u * u);
        (0..steps).fold(1.0, |u, step| {
            let t = length * step as f64;
            let middle = 0.75 * u + 0.25 * euler(t + length, euler(t, u));
            u / 3.0 + 2.0 / 3.0 * euler(t + 0.5 * length, middle)
        })
    };
    let formula = "order: 3, formula: ssp";
    let found = at(formula, 5);
    assert!((found - manual(5)).abs() < 1e-12, "{found} {}", manual(5));
    assert_eq!(found, at("formula: ssp", 5), "the order of the formula");
    assert!((found - at("order: 3", 5)).abs() > 1e-7, "another formula");
    let [coarse, fine, finer] = [5, 10, 20].map(|steps| at(formula, steps));
    let order = ((coarse - fine) / (fine - finer)).log2();
    assert!((order - 3.0).abs() < 0.3, "{order}");
    let [low, classical] = ["order: 2, formula: ssp", "order: 2"].map(|formula| at(formula, 5));
    assert_eq!(low, classical, "Heun's formula is one of both");
    let said = refused(
        "form p { field u: scalar; f0[u] = dt(u) + u; }
         problem p solves p { mesh = box(dim: 2, cells: 1); time = rk(order: 4, formula: ssp, to: 1, step: 0.1); }",
    );
    assert!(said.contains("from 1 to 3 with `formula: ssp`"), "{said}");
}

/// Purely oscillating modes grow with schemes of order 1 and 2 for every step size.
#[test]
fn a_mode_that_turns_is_no_stable_one_of_low_orders() {
    let advection = "form p { field u: scalar; f0[u] = dt(u) + dot([1, 0], grad(u)); }
         problem p solves p { mesh = box(dim: 2, cells: [16, 1]); periodic \"x0\" = \"x1\"; initial u = sin(2 * pi * x[0]);
             time = rk(order: ORDER, to: 20, step: STEP); report size = l2(u); }";
    let turning = "form p { field u: scalar; field w: scalar; f0[u] = dt(u) - 10 * w; f0[w] = dt(w) + 10 * u; }
         problem p solves p { mesh = box(dim: 2, cells: 1); initial u = 1; time = rk(order: ORDER, to: 20, step: STEP);
             report size = l2(u); }";
    for (text, order, step) in [
        (advection, "1", "0.02"),
        (advection, "2", "0.05"),
        (turning, "1", "0.05"),
        (turning, "2", "0.15"),
    ] {
        let said = refused(&text.replace("ORDER", order).replace("STEP", step));
        assert!(said.contains("are too long: `rk` is stable up to"), "{said}");
    }
    for (text, order, step) in
        [(advection, "2", "0.005"), (advection, "3", "0.05"), (turning, "4", "0.1")]
    {
        let value = solved(&text.replace("ORDER", order).replace("STEP", step));
        assert!(report(&value, "size") < 1.0, "order {order}: {value}");
    }
}

/// A strip of 16 cells with upwind fluxes to the right, in steps of a Courant number.
fn strip((order, degree): (usize, usize), courant: f64, steps: usize) -> String {
    let step = courant / 16.0;
    format!(
        "form p {{ field c: scalar in L2(k); f0[c] = dt(c); f1[c] = -c * [1, 0];
             on interior {{ f0[jump(c)] = n[0] * avg(c) + abs(n[0]) / 2 * jump(c); }} }}
         problem p solves p {{ mesh = box(dim: 2, cells: [16, 1]); degree = {degree}; periodic \"x0\" = \"x1\"; periodic \"y0\" = \"y1\";
             time = rk(order: {order}, to: {to}, step: {step}, every: {to}); initial c = exp(-100 * (x[0] - 0.5)^2);
             report size = l2(c); }}",
        to = step * steps as f64
    )
}

/// Limits of the Fourier symbol of upwind fluxes; orders 1 and 2 are stable with constants and linear functions alone.
#[test]
fn steps_of_upwind_fluxes_have_their_limits() {
    for (formula, limit) in [((2, 1), 0.333), ((3, 2), 0.209), ((4, 3), 0.145)] {
        let said = refused(&strip(formula, 1.2 * limit, 1000));
        let most = said.split("stable up to ").nth(1).and_then(|rest| rest.split(' ').next());
        let most: f64 = most.and_then(|text| text.parse().ok()).expect("a length");
        assert!((16.0 * most / limit - 1.0).abs() < 0.02, "{formula:?}: {said}");
        let value = solved(&strip(formula, 0.98 * limit, 400));
        assert!(report(&value, "size") < 0.36, "{formula:?}: {value}");
    }
    for (formula, limit, steps) in [((1, 1), 0.333, 1000), ((2, 2), 0.169, 4000)] {
        let said = refused(&strip(formula, limit, steps));
        assert!(said.contains("are too long: `rk` is stable up to"), "{formula:?}: {said}");
    }
    // The flow gets faster: steps are checked again, and the message is one.
    let faster = strip((3, 2), 0.1, 500)
        .replace("f1[c] = -c * [1, 0]", "f1[c] = -c * (1 + t) * [1, 0]")
        .replace("f0[jump(c)] = n[0]", "f0[jump(c)] = (1 + t) * n[0]")
        .replace("abs(n[0])", "(1 + t) * abs(n[0])");
    let said = refused(&faster);
    assert!(said.contains("too long: `rk` is stable up to") && !said.contains("no step"), "{said}");
    // Perturbations grow by 1 % at most in a short run.
    let value = solved(&strip((2, 2), 0.1, 100));
    assert!(report(&value, "size") < 0.36, "{value}");
}

/// Norms that oscillate, and solutions that grow by their own equation, are stable.
#[test]
fn growth_of_the_exact_solution_is_no_instability() {
    let sound = "form p { field q: scalar in L2(k); field v: scalar in L2(k);
             f0[q] = dt(q); f1[q] = -400 * v * [1, 0]; f0[v] = dt(v); f1[v] = -q * [1, 0];
             on interior { f0[jump(q)] = 400 * avg(v) * n[0] + 10 * abs(n[0]) * jump(q); f0[jump(v)] = avg(q) * n[0] + 10 * abs(n[0]) * jump(v); } }
         problem p solves p { mesh = box(dim: 2, cells: [CELLS, 1]); degree = 2; periodic \"x0\" = \"x1\"; periodic \"y0\" = \"y1\";
             time = rk(order: 3, to: TO, step: STEP, every: TO); initial q = sin(2 * pi * x[0]); report size = l2(q); }";
    for (cells, to, step) in [("4", "1", "2e-3"), ("8", "0.2", "1e-3"), ("16", "0.3", "6e-4")] {
        let text = sound.replace("CELLS", cells).replace("TO", to).replace("STEP", step);
        assert!(report(&solved(&text), "size") < 1.0, "{cells}");
    }
    let turning = "form p { field u: scalar; field w: scalar; f0[u] = dt(u) - 100 * w; f0[w] = dt(w) + u; }
         problem p solves p { mesh = box(dim: 2, cells: 1); initial u = 1; time = rk(order: 4, to: TO, step: STEP, every: TO);
             report size = l2(u); }";
    for (to, step) in [("300", "0.03"), ("30", "0.1"), ("1", "0.01")] {
        let value = solved(&turning.replace("TO", to).replace("STEP", step));
        assert!(report(&value, "size") < 1.01, "{step}: {value}");
    }
    let growing = "form p { field c: scalar in L2(k); f0[c] = dt(c) - 3 * c; f1[c] = -c * [1, 0];
             on interior { f0[jump(c)] = n[0] * avg(c) + abs(n[0]) / 2 * jump(c); } }
         problem p solves p { mesh = box(dim: 2, cells: [8, 1]); degree = 2; periodic \"x0\" = \"x1\"; periodic \"y0\" = \"y1\";
             time = rk(order: 3, to: 4, step: 0.02, every: 4); initial c = 1; report size = integral(c); }";
    let size = report(&solved(growing), "size") / 12f64.exp();
    assert!((size - 1.0).abs() < 1e-3, "{size}");
}

/// Each field starts with its own highest derivative: ü of one, ẇ of the other.
#[test]
fn fields_of_first_and_second_order_begin_together() {
    for scheme in ["newmark", "generalised_alpha", "theta", "bdf", "sdirk"] {
        let value = solved(&format!(
            "form p {{ field u: scalar; field w: scalar; f0[u] = dt(dt(u)) + dt(w) - 3; f0[w] = 2 - 2 * dt(w); }}
             problem p solves p {{ mesh = box(dim: 2, cells: 1); time = {scheme}(to: 1, step: 0.1);
                 report rate = integral(dt(w)); report of_w = integral(w); report of_u = integral(u); }}"
        ));
        let [rate, w, u] = ["rate", "of_w", "of_u"].map(|name| report(&value, name));
        assert!((rate - 1.0).abs() < 1e-9 && (w - 1.0).abs() < 1e-9, "{scheme}: {value}");
        // ü = 2.
        assert!((u - 1.0).abs() < 0.02, "{scheme}: {value}");
    }
}

/// ü, and u̇ of first order, follow from the equations at t = 0 also where their factor depends on u, and where the
/// equations are not linear in them.
#[test]
fn derivatives_at_the_start_solve_the_equations_there() {
    let first = "form p { field u: scalar; f0[u] = (1 + u) * dt(u) + 2; }
         problem p solves p { mesh = interval(cells: 1); initial u = 5;
             time = bdf(order: 2, to: 0.1, step: 0.1); report rate = integral(dt(u)); }";
    let second = "form p { field u: scalar; f0[u] = dt(dt(u)) + dt(dt(u))^3 - 2; }
         problem p solves p { mesh = interval(cells: 1); exact u = t^2 / 2;
             time = newmark(to: 0.1, step: 0.05); report rate = integral(dt(dt(u))); }";
    for (text, known) in [(first, -1.0 / 3.0), (second, 1.0)] {
        let value = solved(text);
        let start = value["steps"][0]["reports"]["rate"].as_f64().expect("a number");
        assert!((start - known).abs() < 1e-8, "{start} instead of {known}: {value}");
    }
    // The value at t = 5 is that of an integrator of order 8 with a tolerance of 1e-12.
    let error = |scheme: &str, step: f64| {
        let value = solved(&format!(
            "form p {{ field u: scalar; f0[u] = (1 + 5 * u^2) * dt(dt(u)) + u; }}
             problem p solves p {{ mesh = interval(cells: 1); initial u = 1;
                 time = {scheme}(to: 5, step: {step}, every: 5); report end = integral(u); }}"
        ));
        (report(&value, "end") + 0.773445061).abs()
    };
    for scheme in ["newmark", "generalised_alpha"] {
        let order = (error(scheme, 0.1) / error(scheme, 0.05)).log2();
        assert!((1.8..2.3).contains(&order), "{scheme}: order {order}");
    }
}

/// A report of a problem whose derivatives do not each have a row of their own: Schrödinger's equation, and the transport of a
/// pressure by a volume.
#[test]
fn reports_do_not_need_derivatives_at_the_start() {
    let skew = "form p { field q: scalar; field p: scalar; f0[q] = dt(p) + q; f0[p] = dt(q) + p; }
         problem p solves p { mesh = interval(cells: 1); initial q = 1; initial p = 1;
             exact p = exp(-t); exact q = exp(-t); time = bdf(order: 2, to: 1, step: 0.01); report end = integral(p); }";
    let value = solved(skew);
    assert!((report(&value, "end") - f64::exp(-1.0)).abs() < 1e-4, "{value}");
    let wave = "form p { field u: complex scalar; test v for u;
             residual = -i * dt(u) * conj(v) + inner(grad(u), grad(v)) / 2 + dot(x, x) / 2 * u * conj(v); }
         problem p solves p { mesh = interval(cells: 16, from: -8, to: 8); degree = 4; dirichlet u = 0;
             initial u = exp(-(x[0] - 1)^2 / 2) / pi^0.25; time = theta(to: 0.1, step: 0.01); report size = l2(u); }";
    assert!((report(&solved(wave), "size") - 1.0).abs() < 1e-4);
}

#[test]
fn schemes_that_amplify_waves_are_said() {
    let text = |order: usize| {
        format!(
            "form p {{ field u: scalar; f0[u] = dt(dt(u)); f1[u] = grad(u); }}
             problem p solves p {{ mesh = interval(cells: 2); dirichlet u = 0; initial u = x[0] * (1 - x[0]);
                 time = bdf(order: {order}, to: 0.1, step: 0.01); }}"
        )
    };
    for order in 2..=4 {
        let notes = solved(&text(order))["notes"].to_string();
        assert_eq!(notes.contains("amplifies"), order > 2, "{notes}");
    }
}

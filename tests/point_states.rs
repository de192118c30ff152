//! States at quadrature points: `state p: scalar on points = 0;` with `update p = EXPR;`, against difference equations
//! and after a restart.

use crate::outputs::{refused, solution};
use runtime::problem::ReportValue;
use std::process::Command;
use weakform::Execution;

weakform::weak_form! {
    /// Each step adds the value to the state, so that the value doubles.
    form doubling {
        field u: scalar;
        state a: scalar on points = 0;
        update a = a + u;
        f0[u] = u - 1 - a;
    }

    problem steps solves doubling {
        mesh = box(dim: 2, cells: 2);
        time = bdf(order: 1, to: 5, step: 1);
    }
}

#[test]
fn the_macro_reads_states() {
    let problem = doubling::form().problem("steps").expect("a problem");
    let solution = problem.execution(Execution::Interpreted).run().expect("a solution");
    assert!(solution.values().iter().all(|u| (u - 16.0).abs() < 1e-10), "{:?}", solution.values());
}

/// A bar with kinematic and isotropic hardening, pulled, pushed and pulled, against the scalar return mapping in the
/// same steps: a uniaxial strain state, where the yield function depends on the strain alone.
#[test]
fn a_bar_hardens_like_one_point() {
    let (yields, isotropic, kinematic, young) = (1.0, 20.0, 30.0, 100.0);
    let (mut p, mut a, mut stresses) = (0.0_f64, 0.0_f64, Vec::new());
    for step in 1..=12 {
        let strain = 0.04 * (0.5 * std::f64::consts::PI * f64::from(step) / 2.0).sin();
        let trial = young * (strain - p) - kinematic * p;
        let slip =
            ((trial.abs() - yields - isotropic * a) / (young + isotropic + kinematic)).max(0.0);
        (p, a) = (p + slip * trial.signum(), a + slip);
        stresses.push(young * (strain - p));
    }
    let last = *stresses.last().expect("steps");
    for cell in ["quad", "tri", "hex", "tet"] {
        let solution = solution(&format!(
            "form f {{ field u: scalar; param yields = 1;
                state p: scalar on points = 0; state a: scalar on points = 0;
                let e = grad(u)[0]; let trial = 100 * (e - p) - 30 * p;
                let excess = abs(trial) - yields - 20 * a;
                let slip = if excess > 0 {{ excess / 150 }} else {{ 0 }};
                let next = p + slip * sign(trial); let length = a + slip;
                update p = next; update a = length;
                let pull = 100 * (e - next);
                f1[u] = grad(u); }}
             problem p solves f {{ mesh = box(cells: 2, cell: {cell}); degree = 2;
                dirichlet u = 0.04 * sin(pi / 4 * t) * x[0] on \"x0\", \"x1\";
                time = theta(theta: 1, to: 12, step: 1);
                output length on cells; report stress = integral(pull); report slipped = integral(length); }}"
        ));
        let found = |name: &str| match solution.report(name) {
            Some(ReportValue::Value(_, values)) => values[0],
            other => panic!("{other:?}"),
        };
        assert!((found("stress") - last).abs() < 1e-8, "{cell}: {} {last}", found("stress"));
        assert!((found("slipped") - a).abs() < 1e-9, "{cell}: {} {a}", found("slipped"));
        let lengths = solution.output("length").expect("an output").values.numbers();
        assert!(lengths.iter().all(|own| (own - a).abs() < 1e-9), "{cell}: {lengths:?}");
    }
}

/// A body that yields: its tangent is that of the stress, a run goes on from a checkpoint to the same bits, and a
/// checkpoint without the states is refused.
#[test]
fn states_go_on_from_a_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string("examples/plasticity.wf").expect("an example");
    let text = text.replace("refine: 3", "refine: 1").replace("step: 0.1", "step: 0.25");
    std::fs::write(folder.path().join("plate.wf"), &text).expect("a file");
    std::fs::write(folder.path().join("half.wf"), text.replace("to: 2", "to: 1")).expect("a file");
    let other =
        text.replace("update a = strain;", "").replace("state a: scalar on points = 0;", "");
    let other = other.replace("- hardening * a", "").replace("a + slip", "slip");
    std::fs::write(folder.path().join("other.wf"), other).expect("a file");
    let wf = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
        command.args(arguments).current_dir(folder.path());
        command.args([
            "--problem",
            "plate",
            "--interpret",
            "--threads",
            "1",
            "--no-output",
            "--json",
        ]);
        let output = command.output().expect("wf should start");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    let reports = |text: &str| {
        let value: serde_json::Value = serde_json::from_str(text.lines().next().expect("a line"))
            .unwrap_or_else(|error| panic!("{error}: {text}"));
        value["reports"]["slipped"].as_f64().expect("a number")
    };
    let (_, whole) = wf(&["run", "plate.wf"]);
    let (_, half) = wf(&["run", "half.wf", "--checkpoint", "half.npy"]);
    let (_, rest) = wf(&["run", "plate.wf", "--restart", "half.npy"]);
    assert_eq!(reports(&whole), reports(&rest));
    assert!(reports(&half) > 1e-3 && reports(&whole) > reports(&half), "{half} {whole}");
    let (fine, message) = wf(&["run", "other.wf", "--restart", "half.npy"]);
    assert!(!fine && message.contains("checkpoint"), "{message}");
}

#[test]
fn states_without_an_update_or_time_are_refused() {
    let text = |states: &str, time: &str| {
        format!(
            "form f {{ field u: scalar; {states} f0[u] = s; f1[u] = grad(u); }}
             problem p solves f {{ mesh = box(dim: 2, cells: 2); dirichlet u = 0; {time} }}"
        )
    };
    let time = "time = theta(theta: 1, to: 1, step: 0.5);";
    let cases = [
        ("state s: scalar on points = 0;", time, "the state `s` has no update"),
        ("state s: scalar on points = 0; update s = [1, u];", time, "the state `s` is a scalar"),
        ("state s: scalar on points = 0; update s = u;", "", "this problem has no time"),
        ("aux s: scalar; update s = u;", time, "`s` is no state of the form"),
        (
            "state s: scalar on points = 0; update s = u;",
            "time = theta(to: 1, step: 0.5);",
            "write `theta(theta: 1, …)`",
        ),
        ("state s: scalar on points = 0; update s = 1 / u;", time, "the update of the state `s`"),
    ];
    for (states, time, expected) in cases {
        let message = refused(&text(states, time));
        assert!(message.contains(expected), "{states} {time}: {message}");
    }
}

/// A quarter of a square of side 200 with a hole of radius 10: cells along the hole and away from it, of order 2.
fn plate(cells: usize) -> String {
    use std::fmt::Write as _;
    let (across, half_pi) = (2 * cells + 1, std::f64::consts::FRAC_PI_2);
    let place = |i: usize, j: usize| {
        let [away, along] = [i, j].map(|at| at as f64 / (across - 1) as f64);
        let hole = [10.0 * (half_pi * along).cos(), 10.0 * (half_pi * along).sin()];
        let side =
            if along <= 0.5 { [100.0, 200.0 * along] } else { [200.0 * (1.0 - along), 100.0] };
        let part = (2.0 * away).exp_m1() / 2.0_f64.exp_m1();
        [0, 1].map(|d| hole[d] + part * (side[d] - hole[d]))
    };
    let mut text = String::from(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n3\n1 1 \"left\"\n1 2 \"bottom\"\n1 3 \"top\"\n\
         $EndPhysicalNames\n",
    );
    let _ = writeln!(text, "$Nodes\n{}", across * across);
    for (number, (j, i)) in (0..across).flat_map(|j| (0..across).map(move |i| (j, i))).enumerate() {
        let [x, y] = place(i, j);
        let _ = writeln!(text, "{} {x} {y} 0", number + 1);
    }
    let node = |i: usize, j: usize| 1 + i + across * j;
    let mut elements = Vec::new();
    for a in (0..2 * cells).step_by(2) {
        let end = across - 1;
        elements.push(format!(
            "8 2 1 1 {} {} {}",
            node(a, end),
            node(a + 2, end),
            node(a + 1, end)
        ));
        elements.push(format!("8 2 2 2 {} {} {}", node(a, 0), node(a + 2, 0), node(a + 1, 0)));
        if a >= cells {
            elements.push(format!(
                "8 2 3 3 {} {} {}",
                node(end, a),
                node(end, a + 2),
                node(end, a + 1)
            ));
        }
        for b in (0..2 * cells).step_by(2) {
            let corners = [(0, 0), (2, 0), (2, 2), (0, 2), (1, 0), (2, 1), (1, 2), (0, 1), (1, 1)];
            let nodes = corners.map(|(i, j)| node(a + i, b + j).to_string());
            elements.push(format!("10 2 4 4 {}", nodes.join(" ")));
        }
    }
    let _ = writeln!(text, "$EndNodes\n$Elements\n{}", elements.len());
    for (number, element) in elements.iter().enumerate() {
        let _ = writeln!(text, "{} {element}", number + 1);
    }
    text + "$EndElements\n"
}

/// The plate with a hole of NGSolve's tutorial 6.3 in its load steps, with hardening of the yield stress. NGSolve 6.2.2608
/// on 9,518 unknowns, with 1e-20 instead of 1e-16 under its perturbed norms: the displacements at two corners and the
/// integral over the loaded side. The plastic part of the first one, beyond ten times the first, elastic step, is 3.79e-5.
#[test]
fn a_plate_yields_as_in_ngsolve() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("plate.msh");
    std::fs::write(&file, plate(8)).expect("a file");
    let loads = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95];
    let load = loads.iter().enumerate().rev().fold("1".to_owned(), |rest, (step, load)| {
        format!("if t < {} {{ {load} }} else {{ {rest} }}", step as f64 + 1.5)
    });
    let solution = solution(&format!(
        "form f {{
            field u: vector;
            param mu = 80193.8; param bulk = 164206; param yield = 450; param hardening = 10;
            state p: tensor on points = 0; state a: scalar on points = 0;
            let radius = sqrt(2 / 3) * yield;
            let eps = sym(grad(u));
            let s = 2 * mu * (eps - p - tr(eps) / 3 * I);
            let size = sqrt(inner(s, s) + (2 * mu * (tr(p) - tr(eps) / 3))^2);
            let excess = size - radius * (1 + hardening * a);
            let slip = if excess > 0 {{ excess / (2 * mu + (radius * hardening)^2) }} else {{ 0 }};
            let ratio = if excess > 0 {{ slip / size }} else {{ 0 }};
            update p = p + ratio * s;
            update a = a + radius * hardening * slip;
            f1[u] = bulk * tr(eps) * I + (1 - 2 * mu * ratio) * s;
            on boundary \"top\" {{ f0[u] = -450 * ({load}) * [0, 1]; }}
        }}
        problem p solves f {{
            mesh = \"{}\"; degree = 3; solver = newton(linear: direct);
            dirichlet u[0] = 0 on \"left\"; dirichlet u[1] = 0 on \"bottom\";
            time = theta(theta: 1, to: 8, step: 1);
            report high = u([0, 100])[1]; report wide = u([100, 100])[0];
            report top = integral(u[1], on: \"top\");
        }}",
        file.display()
    ));
    for (name, expected) in
        [("high", 0.209_551_620_8), ("wide", -0.076_741_952_3), ("top", 20.405_183_391)]
    {
        let Some(ReportValue::Value(_, found)) = solution.report(name) else { panic!("{name}") };
        assert!((found[0] / expected - 1.0).abs() < 2e-5, "{name}: {found:?} and {expected}");
    }
}

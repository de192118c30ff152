//! A sweep restarted at its second value from the file of the first yields bitwise equal results, with the program
//! itself. So does a time-dependent run continued from a checkpoint.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn wf(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.args(arguments).arg("--json").current_dir(folder);
    let output =
        command.env("WF_CACHE_DIR", folder.join("cache")).output().expect("wf should start");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "wf {arguments:?}: {said}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// A bar of rubber, bent by a load on its end.
const BAR: &str = "form rubber {
        field u: vector;
        param load = 1;
        let F = I + grad(u);
        let J = det(F);
        energy = (inner(F, F) - dim - 2 * log(J)) / 2 + 5 * log(J)^2;
        on boundary \"x1\" { f0[u] = [0, load / 1000]; }
    }
    problem bar solves rubber {
        mesh = box(dim: 2, cells: [6, 2], to: [4, 1]);
        degree = 2;
        dirichlet u = [0, 0] on \"x0\";
        START
        solver = SOLVER;
        report tip = u([4, 0.5]);
        report volume = integral(det(I + grad(u)));
        report held = reaction(u, on: \"x0\");
    }";

/// Flow in a cavity with an accelerating lid: conditions that depend on the parameter, and a mean-value constraint.
const CAVITY: &str = "form flow {
        field u: vector;
        field p: scalar in H1(k - 1);
        param load = 1;
        f0[u] = 20 * grad(u) * u; f1[u] = grad(u) - p * I; f0[p] = -div(u);
    }
    problem cavity solves flow {
        mesh = box(dim: 2, cells: 4);
        degree = 2;
        dirichlet u = [0, 0];
        dirichlet u = [load, 0] on \"y1\";
        mean p = 0;
        START
        solver = SOLVER;
        report drag = reaction(u, on: \"y1\");
        report size = l2(u) + l2(p);
    }";

#[track_caller]
fn goes_on(text: &str, name: &str, fields: &[&str], more: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let start: String = fields
        .iter()
        .map(|field| format!("initial {field} = file(\"out/{name}-1.vtu\", \"{field}\"); "))
        .collect();
    let write =
        |file: &str, text: String| std::fs::write(folder.path().join(file), text).expect("a file");
    write("first.wf", text.replace("START", ""));
    write("again.wf", text.replace("START", &start));
    std::fs::create_dir(folder.path().join("out")).expect("a folder");
    let run = |file: &str, values: &str, output: &str| {
        wf(folder.path(), &[&["run", file, "--param", values, "-o", output], more].concat())
    };
    let bytes =
        |file: &str| std::fs::read(folder.path().join("out").join(file)).expect("a solution");
    let all = run("first.wf", "load=1,2,4", &format!("out/{name}.vtu"));
    let whole = |number: usize| &all[number]["reports"];
    // From the second value on, as a sweep and alone, with one thread and with several.
    let rest = run("again.wf", "load=2,4", "out/again.vtu");
    assert_eq!([whole(1), whole(2)], [&rest[0]["reports"], &rest[1]["reports"]]);
    for (number, again) in [(2, "again-1.vtu"), (3, "again-2.vtu")] {
        assert!(bytes(&format!("{name}-{number}.vtu")) == bytes(again), "{name} {number}");
    }
    let alone = run("again.wf", "load=2", "out/alone.vtu");
    assert_eq!(whole(1), &alone[0]["reports"]);
    assert_eq!(all[1]["iterations"], alone[0]["iterations"]);
    assert!(bytes(&format!("{name}-2.vtu")) == bytes("alone.vtu"));
    assert_ne!(whole(0), whole(1));
}

#[test]
fn a_bent_bar_goes_on_from_a_file() {
    for solver in ["newton(linear: direct)", "newton(linear: cg)"] {
        goes_on(&BAR.replace("SOLVER", solver), "bar", &["u"], &["--interpret", "--threads", "2"]);
    }
    goes_on(
        &BAR.replace("SOLVER", "newton(steps: 2, load: load)"),
        "bar",
        &["u"],
        &["--threads", "1"],
    );
}

#[test]
fn a_flow_of_two_fields_goes_on_from_a_file() {
    goes_on(&CAVITY.replace("SOLVER", "newton"), "cavity", &["u", "p"], &["--interpret"]);
}

/// The same on a device with deterministic sums.
#[test]
fn a_device_goes_on_from_a_file() {
    let required = std::env::var("WF_REQUIRE").unwrap_or_default();
    if weakform::device(weakform::Backend::OpenCl, None).is_err() {
        assert!(!required.split(' ').any(|word| word == "opencl"), "an OpenCL device is required");
        return;
    }
    let device = ["--backend", "opencl", "--scatter", "owner"];
    goes_on(&BAR.replace("SOLVER", "newton(linear: cg)"), "bar", &["u"], &device);
    goes_on_in_time(HEAT, "bdf(order: 2, to: 0.4, step: 0.02, every: 0.1)", &device);
}

/// Heat whose conductivity depends on the temperature, with a wall that is heated and cooled.
const HEAT: &str = "form heat { field u: scalar; f0[u] = dt(u) - 1; f1[u] = (1 + u^2) * grad(u); }
    problem p solves heat {
        mesh = box(dim: 2, cells: 3);
        degree = 2;
        dirichlet u = sin(3 * t) on \"x0\";
        time = SCHEME;
        report size = l2(u);
    }";

/// A constrained membrane that is plucked.
const MEMBRANE: &str = "form wave { field u: scalar; f0[u] = dt(dt(u)); f1[u] = grad(u); }
    problem p solves wave {
        mesh = box(dim: 2, cells: 3);
        degree = 2;
        QUADRATURE
        dirichlet u = 0;
        initial u = sin(3 * x[0]) * x[1] * (1 - x[0]) * (1 - x[1]);
        time = SCHEME;
        report size = l2(u);
    }";

/// Asserts that all numbers of the last checkpoint, including the history of the scheme, equal those of the
/// uninterrupted run.
#[track_caller]
fn goes_on_in_time(text: &str, scheme: &str, more: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |file: &str| folder.path().join(file);
    std::fs::write(at("p.wf"), text.replace("SCHEME", scheme)).expect("a file");
    let run = |arguments: &[&str]| {
        let common = ["run", "p.wf", "-o", "a-{step}.vtu"];
        wf(folder.path(), &[&common, arguments, more].concat())
    };
    let bytes = |file: &str| std::fs::read(at(file)).expect("a file");
    let seen = || ["a-3.vtu", "a-4.vtu", "a.pvd"].map(bytes);
    let whole = run(&["--checkpoint", "whole-{step}.npy"]);
    let first = seen();
    let again = run(&["--restart", "whole-2.npy", "--checkpoint", "again-{step}.npy"]);
    for number in [3, 4] {
        let [a, b] = ["whole", "again"].map(|run| bytes(&format!("{run}-{number}.npy")));
        assert!(a == b, "{scheme}: {number}");
    }
    assert!(bytes("whole-3.npy") != bytes("whole-4.npy"), "{scheme}");
    assert_eq!(whole[0]["reports"], again[0]["reports"], "{scheme}");
    assert!(first == seen(), "{scheme}");
}

#[test]
fn a_run_through_time_goes_on_from_a_checkpoint() {
    let more = ["--interpret", "--threads", "2"];
    for scheme in [
        "bdf(order: 3, to: 0.4, step: 0.02, every: 0.1)",
        "bdf(order: 2, to: 0.4, tolerance: 1e-3, every: 0.1)",
        "sdirk(stages: 3, to: 0.4, tolerance: 1e-3, every: 0.1)",
        "theta(theta: 0.5, to: 0.4, step: 0.05, every: 0.1)",
        "rk(order: 3, mass: consistent, to: 0.4, step: 0.0005, every: 0.1)",
    ] {
        goes_on_in_time(HEAT, scheme, &more);
        if !scheme.starts_with("rk") {
            // The setup of a linear form is reused as long as the step size is constant.
            goes_on_in_time(&HEAT.replace("(1 + u^2)", "2"), scheme, &more);
        }
    }
    for (scheme, quadrature) in [
        ("newmark(to: 0.4, step: 0.02, every: 0.1)", ""),
        ("generalised_alpha(rho: 0.8, to: 0.4, step: 0.02, every: 0.1)", ""),
        ("leapfrog(to: 0.4, step: 0.001, every: 0.1)", "quadrature = collocated;"),
        ("leapfrog(mass: consistent, to: 0.4, step: 0.01, every: 0.1)", ""),
    ] {
        goes_on_in_time(&MEMBRANE.replace("QUADRATURE", quadrature), scheme, &more);
    }
}

/// Each value of a parameter starts at the same point, and has its own checkpoints and files.
#[test]
fn each_value_of_a_parameter_has_its_own_checkpoints() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = HEAT.replace("SCHEME", "bdf(order: 2, to: 0.4, step: 0.1)");
    let text = text.replace("field u: scalar;", "field u: scalar; param load = 1;");
    std::fs::write(folder.path().join("p.wf"), text.replace("- 1;", "- load;")).expect("a file");
    let run = |arguments: &[&str]| {
        wf(folder.path(), &[&["run", "p.wf", "--interpret"], arguments].concat())
    };
    let bytes = |file: &str| std::fs::read(folder.path().join(file)).expect("a file");
    let start = ["--no-output", "--checkpoint", "begun-{step}.npy"];
    run(&start);
    let from = ["--restart", "begun-2.npy", "-o", "a-{step}.vtu", "--checkpoint"];
    let all = run(&[&from[..], &["all.npy", "--param", "load=1,2"]].concat());
    // Two solutions of each.
    assert!((0..4).all(|number| folder.path().join(format!("a-{number}.vtu")).exists()));
    assert!(!folder.path().join("all.npy").exists() && !folder.path().join("a-4.vtu").exists());
    for (number, value) in [(1, "load=1"), (2, "load=2")] {
        let one = run(&[&from[..], &["one.npy", "--param", value]].concat());
        assert_eq!(one[0]["reports"], all[number - 1]["reports"]);
        assert!(bytes("one.npy") == bytes(&format!("all-{number}.npy")), "{value}");
    }
    assert!(bytes("all-1.npy") != bytes("all-2.npy"));
}

/// A flipped bit of a state in the file: a continued run would be wrong without a message.
#[test]
fn a_damaged_checkpoint_is_refused_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let begun = "bdf(order: 2, to: 0.2, step: 0.1)";
    std::fs::write(path("heat.wf"), HEAT.replace("SCHEME", begun)).expect("a file");
    wf(folder.path(), &["run", "heat.wf", "--interpret", "--no-output", "--checkpoint", "a.npy"]);
    std::fs::write(path("on.wf"), HEAT.replace("SCHEME", &begun.replace("0.2", "0.4")))
        .expect("a file");
    let whole = std::fs::read(path("a.npy")).expect("a file");
    let restart = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
        command.args(["run", "on.wf", "--interpret", "--no-output", "--restart", "a.npy"]);
        command.current_dir(folder.path()).output().expect("wf should start")
    };
    assert!(restart().status.success());
    for from_end in [1, 2, 30, 41, 100] {
        let mut damaged = whole.clone();
        let at = damaged.len() - from_end;
        damaged[at] ^= 1 << (from_end % 8);
        std::fs::write(path("a.npy"), damaged).expect("a file");
        let output = restart();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{from_end}");
        assert!(said.contains("a.npy: the checkpoint is damaged"), "{from_end}: {said}");
        assert!(said.contains("help: "), "{said}");
    }
}

#[test]
fn checkpoints_of_something_else_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let scheme = "bdf(order: 2, to: 0.2, step: 0.1)";
    let write = |file: &str, text: String| {
        std::fs::write(folder.path().join(file), text).expect("a file");
    };
    write("heat.wf", HEAT.replace("SCHEME", scheme));
    write("other.wf", HEAT.replace("SCHEME", "sdirk(stages: 2, to: 0.4, step: 0.1)"));
    write("still.wf", "form f { field u: scalar; f0[u] = u - 1; } problem p solves f { mesh = box(dim: 2, cells: 2); }".to_owned());
    write("text.npy", "no numbers".to_owned());
    wf(folder.path(), &["run", "heat.wf", "--interpret", "--no-output", "--checkpoint", "a.npy"]);
    // The first file format, without its mesh.
    let numbers = runtime::files::input::numbers(&folder.path().join("a.npy")).expect("numbers");
    // The second one, without its equations.
    let states = &numbers[19 + numbers[18] as usize..numbers.len() - 1];
    let first = [&[numbers[0], 1.0], &numbers[2..10], states].concat();
    runtime::files::output::write_npy(&folder.path().join("first.npy"), &first, None)
        .expect("a file");
    let second = [&[numbers[0], 2.0], &numbers[2..13], states].concat();
    runtime::files::output::write_npy(&folder.path().join("second.npy"), &second, None)
        .expect("a file");
    for (arguments, words) in [
        (["heat.wf", "a.npy", "--degree", "2"], "has ended"),
        (["heat.wf", "first.npy", "--degree", "2"], "has ended"),
        (["heat.wf", "second.npy", "--degree", "2"], "has ended"),
        (["heat.wf", "a.npy", "--degree", "3"], "unknowns"),
        (
            ["heat.wf", "a.npy", "--mesh", "box(dim: 2, cells: 3, cell: tri)"],
            "with 9 cells and 16 vertices, where the problem has 18 and 16",
        ),
        (["heat.wf", "a.npy", "--mesh", "box(dim: 2, cells: 3, to: [2, 2])"], "are elsewhere"),
        (["other.wf", "a.npy", "--degree", "2"], "another scheme"),
        (["still.wf", "a.npy", "--degree", "1"], "no `time`"),
        (["heat.wf", "text.npy", "--degree", "2"], "text.npy"),
        (["heat.wf", "none.npy", "--degree", "2"], "none.npy"),
    ] {
        let [file, from, option, degree] = arguments;
        let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
        command.args([
            "run",
            file,
            "--restart",
            from,
            option,
            degree,
            "--interpret",
            "--no-output",
        ]);
        let output = command.current_dir(folder.path()).output().expect("wf should start");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{arguments:?}: {said}");
        assert!(said.contains("help: ") || words.ends_with(".npy"), "{arguments:?}: {said}");
    }
}

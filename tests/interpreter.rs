//! Without `rustc`, `wf` reports that and continues with the interpreter: slower, with correct results.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const FILE: &str = "
form reaction {
    field u: vector;
    aux kappa: scalar on cells;
    param f = 1;
    f0[u] = u / sqrt(1 + dot(u, u)) - [f, x[0]];
    f1[u] = kappa * (1 + dot(u, u)) * grad(u) + sym(grad(u));
}
problem tri solves reaction {
    mesh = box(dim: 2, cells: 3, cell: tri);
    degree = 3;
    aux kappa = 1 + x[0];
    dirichlet u = [0, 0.1 * x[1]] on \"x0\", \"y1\";
    dirichlet u[1] = 0 on \"x1\";
    exact u = [x[0], x[1]];
}
problem quad solves reaction {
    mesh = box(dim: 2, cells: 4, deform: 0.1);
    degree = 3;
    aux kappa = 1 + x[1];
    dirichlet u = [0, 0];
    exact u = [x[0], x[1]];
}
";

fn wf(arguments: &[&str], file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.arg(arguments[0]).arg(file).args(&arguments[1..]).arg("--json");
    command
}

/// Returns the same command without an available compiler.
fn without_rustc(arguments: &[&str], file: &Path) -> Output {
    let mut command = wf(arguments, file);
    command.env_remove("WF_RUSTC").env_remove("RUSTC").env_remove("WF_LOG").env("PATH", "");
    command.output().expect("wf should start")
}

fn values(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// Asserts equality up to rounding; the interpreter has another order of operations.
fn assert_near(a: &Value, b: &Value, key: &str) {
    let number = |value: &Value| value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"));
    let (a, b) = (number(a), number(b));
    assert!((a - b).abs() <= 1e-9 * a.abs().max(b.abs()), "{key}: {a} and {b}");
}

fn file(folder: &tempfile::TempDir) -> std::path::PathBuf {
    let file = folder.path().join("reaction.wf");
    std::fs::write(&file, FILE).expect("the form should be written");
    file
}

#[test]
fn without_a_compiler_problems_are_solved_as_with_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = file(&folder);
    let run = ["run", "--compile", "--no-output"];
    let compiled = values(&wf(&run, &file).output().expect("wf should start"));
    let output = without_rustc(&run, &file);
    let interpreted = values(&output);
    assert_eq!((compiled.len(), interpreted.len()), (2, 2));
    for (compiled, interpreted) in compiled.iter().zip(&interpreted) {
        assert_eq!(compiled["kernels"], "compiled");
        assert_eq!(interpreted["kernels"], "interpreted");
        assert_eq!(compiled["iterations"], interpreted["iterations"]);
        for key in ["error_l2", "error_h1"] {
            assert_near(compiled, interpreted, key);
        }
    }
    let notice = String::from_utf8_lossy(&output.stderr);
    assert_eq!(notice.lines().count(), 1, "one line, however many problems: {notice}");
    for words in ["interpreted", "no `rustc`", "install Rust", "WF_RUSTC"] {
        assert!(notice.contains(words), "{words}: {notice}");
    }
}

#[test]
fn the_interpreter_can_be_asked_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = file(&folder);
    let probe = [
        "probe",
        "--at",
        "u=[x[0], x[1]^2]",
        "--direction",
        "u=[1, x[0]]",
        "--test",
        "u=[x[1], x[0] * x[1]]",
    ];
    let compiled = &values(&wf(&probe, &file).output().expect("wf should start"))[0];
    let output = wf(&probe, &file).arg("--interpret").output().expect("wf should start");
    let interpreted = &values(&output)[0];
    assert_eq!(interpreted["kernels"], "interpreted");
    assert!(output.stderr.is_empty(), "nothing needs to be said about what was asked for");
    for key in ["residual", "jacobian"] {
        assert_near(compiled, interpreted, key);
    }
}

/// The choice follows from the size of the problem, and is the same in each run.
#[test]
fn small_problems_are_interpreted_without_being_asked() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("cells.wf");
    let text = "form f { field u: scalar; f0[u] = -1; f1[u] = grad(u); }
         problem p solves f { mesh = box(dim: 2, cells: 8); dirichlet u = 0; }";
    std::fs::write(&file, text).expect("the form should be written");
    let kernels = |arguments: &[&str]| {
        let run = [&["run", "--no-output"], arguments].concat();
        let output = wf(&run, &file).output().expect("wf should start");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        values(&output)[0]["kernels"].as_str().map(str::to_owned)
    };
    let small = kernels(&[]);
    assert_eq!(small.as_deref(), Some("interpreted"));
    assert_eq!(kernels(&["--compile"]).as_deref(), Some("compiled"));
    assert_eq!(kernels(&["--mesh", "box(dim: 2, cells: 320)"]).as_deref(), Some("compiled"));
    // Nobody misses the compiler.
    let output = without_rustc(&["run", "--no-output"], &file);
    assert!(output.status.success() && output.stderr.is_empty());
}

/// The notes of a solution contain it, too, not only a log.
#[test]
fn a_run_through_time_notes_that_its_kernels_are_interpreted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("time.wf");
    let text = "form f { field u: scalar; f0[u] = dt(u) + u; }
         problem p solves f { mesh = box(dim: 2, cells: 1); time = bdf(to: 1, step: 0.5); }";
    std::fs::write(&file, text).expect("the form should be written");
    let notes =
        values(&without_rustc(&["run", "--compile", "--no-output"], &file))[0]["notes"].to_string();
    assert!(notes.contains("interpreted") && notes.contains("no `rustc`"), "{notes}");
}

//! Levels of multigrid: those that a dry run predicts are those that the solve makes, at all degrees.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

/// A square with two coarser meshes.
const PROBLEM: &str = "form poisson { field u: scalar; f0[u] = -1; f1[u] = grad(u); }
problem p solves poisson { mesh = box(dim: 2, cells: 16); degree = 1; dirichlet u = 0 on all; solver = cg(preconditioner: multigrid); }
";

/// Asserts that predicted levels are made for these degrees; `run` returns the object that `wf run` prints for some arguments
/// in a folder with the problem.
pub(crate) fn assert_predicted(
    degrees: impl IntoIterator<Item = usize>,
    run: impl Fn(&Path, &[&str]) -> Value,
) {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("levels.wf"), PROBLEM).expect("a file");
    for degree in degrees {
        let degree = degree.to_string();
        let of = |last: &str| run(folder.path(), &["levels.wf", "--degree", &degree, last]);
        let unknowns = |levels: &Value| -> Vec<u64> {
            let levels = levels.as_array().expect("levels").iter();
            levels.map(|level| level["unknowns"].as_u64().expect("a number")).collect()
        };
        let (predicted, made) = (of("--dry-run"), of("--no-output"));
        let solver = predicted["plan"]["solver"].as_str().expect("a word");
        assert!(made["solver"].as_str().is_some_and(|made| made.starts_with(solver)), "{made}");
        let (predicted, made) = (&predicted["plan"]["levels"], &made["multigrid"]["levels"]);
        assert_eq!(unknowns(predicted), unknowns(made), "degree {degree}");
    }
}

#[test]
fn a_dry_run_predicts_the_levels_of_the_solve() {
    assert_predicted(1..=8, |folder, arguments| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_wf"))
            .arg("run")
            .args(arguments)
            .args(["--interpret", "--json"])
            .current_dir(folder)
            .output()
            .expect("wf should start");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&text).expect("JSON")
    });
}

//! Expressions without a value in the cells of one process: all processes receive its error, and continue if a single
//! process would. Other errors of one process end all.

use std::path::Path;

use serde_json::Value;

use super::{AGAIN, alike, is_there, run, same, start, told, with, with_problems};

const POLES: &str = include_str!("poles.wf");

/// Returns the verification of each problem.
fn verified(processes: usize, folder: &Path) -> Vec<Value> {
    let small = ["verify", "poles.wf", "--degree", "1..2", "--levels", "2", "--dofs", "100"];
    let rest = ["--no-kernels", "--interpret", "--json"];
    let output = start(processes, folder, &[&small[..], &rest].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}{said}");
    assert!(!said.contains("this was process"), "{said}");
    text.lines().map(|line| told(serde_json::from_str(line).expect("an object"))).collect()
}

#[test]
fn several_processes_verify_on_behind_an_error_of_one() {
    if !is_there() {
        return;
    }
    let folder = with("poles.wf", POLES);
    let alone = verified(1, folder.path());
    let names: Vec<Option<&str>> = alone.iter().map(|found| found["problem"].as_str()).collect();
    assert_eq!(names, ["near", "far", "edge", "source", "later"].map(Some));
    let known = "the error against the known solution of `u` is inf";
    let (held, data) =
        ("the condition on `u` has no finite value", "`aux a` is inf at (0.125, 0.875");
    for (found, messages) in alone.iter().zip([
        [known, "`aux source_u` is NaN at (0.125, 0.125"],
        [known, "`aux source_u` is NaN at (0.875, 0.875"],
        [held, held],
        [data, data],
    ]) {
        for (at, message) in messages.iter().enumerate() {
            let error = found["degrees"][at]["error"].as_str().unwrap_or_default();
            assert!(error.contains(message), "{error}, not {message}");
        }
    }
    assert_eq!(alone[4]["holds"], true, "{}", alone[4]);
    let found = verified(3, folder.path());
    assert_eq!(found.len(), alone.len());
    for (found, known) in found.iter().zip(&alone) {
        assert!(alike(found, known, 1e-9, 1e-5), "three processes found {found}, one {known}");
    }
}

/// A step that meets a pole in one process is halved in all.
#[test]
fn steps_that_one_process_cannot_take_are_halved() {
    if !is_there() {
        return;
    }
    let folder = with("poles.wf", POLES);
    let later = ["poles.wf", "--problem", "later", "--no-output"];
    let [alone, found] = [1, 2].map(|processes| run(processes, folder.path(), &later));
    same(2, &found, &alone);
    assert_eq!(found[0]["notes"], alone[0]["notes"]);
    let note = "1 halved because they could not be solved";
    assert!(found[0]["notes"].to_string().contains(note), "{}", found[0]);
}

/// The process with the error reports its source, and none waits for the others.
#[test]
fn data_without_a_value_at_one_process_is_said_once_with_its_place() {
    if !is_there() {
        return;
    }
    let folder = with_problems();
    let run = ["run", "problems.wf", "--problem", "periodic", "--no-output", "--interpret"];
    for (pole, note) in [("(x[0] + x[1] + x[2])", false), ("(3 - x[0] - x[1] - x[2])", true)] {
        let aux = format!("a=1/{pole}");
        let output = start(2, folder.path(), &[&run[..], &["--aux", &aux]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.matches("`aux a` is inf").count(), 1, "{said}");
        assert!(said.contains("choose a value that is finite on all of the mesh"), "{said}");
        assert_eq!(said.contains("this was process 1 of 2"), note, "{said}");
        assert_eq!(output.status.code(), Some(1), "{said}");
    }
}

/// A file that the second process lacks, while the first solves: it reports that only one process has the error, and
/// ends all.
#[test]
fn what_one_process_fails_at_by_itself_ends_all() {
    if !is_there() {
        return;
    }
    let folder = with_problems();
    run(1, folder.path(), &["problems.wf", "--problem", "levels", "-o", "levels.vtu"]);
    let other = folder.path().join("other");
    std::fs::create_dir(&other).expect("a folder");
    for place in [folder.path(), &other] {
        std::fs::write(place.join("again.wf"), AGAIN).expect("a file");
    }
    let own = ["run", "again.wf", "--no-output", "--interpret", "--threads", "1"];
    let other = other.to_str().expect("a name");
    let second = [":", "-n", "1", "--wdir", other, env!("CARGO_BIN_EXE_wf")];
    let output = start(1, folder.path(), &[&own[..], &second, &own].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("this was process 1 of 2").count(), 1, "{said}");
    assert!(said.contains("levels.vtu") && said.contains("the path starts from"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
}

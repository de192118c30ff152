//! `wf bench` on several processes: counts agree with those of a single process, and one report is printed.

use std::path::Path;

use serde_json::Value;

use super::{is_there, start};

/// Returns the rows of a suite.
fn rows(processes: usize, folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let all = [&["bench"], arguments, &["--threads", "1", "--json"]].concat();
    let output = start(processes, folder, &all);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// Asserts that a row has these keys, each with a positive number.
#[track_caller]
fn has_numbers(row: &Value, keys: &[&str]) {
    for key in keys {
        assert!(row[key].as_f64().is_some_and(|number| number > 0.0), "{key}: {row}");
    }
}

#[test]
fn products_of_several_processes_are_measured_together() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let drawing = folder.path().join("bp.svg");
    let small = ["--problem", "BP3", "--problem", "stokes", "--degree", "2", "--dofs", "2e3"];
    let alone = rows(1, folder.path(), &small);
    let drawn = [&small[..], &["--plot", "bp.svg"]].concat();
    let found = rows(3, folder.path(), &drawn);
    assert_eq!((alone.len(), found.len()), (2, 2), "{found:?}");
    for (found, known) in found.iter().zip(&alone) {
        assert_eq!((&found["processes"], &known["processes"]), (&3.into(), &1.into()));
        for key in ["suite", "problem", "degree", "quadrature", "components", "dofs", "cells"] {
            assert_eq!(found[key], known[key], "{key}: {found}");
        }
        has_numbers(found, &["dofs_per_second", "predicted_dofs_per_second", "floor_fraction"]);
        has_numbers(found, &["csr_dofs_per_second"]);
        // Counts of all cells; each owner reads and writes shared DoFs.
        let of = |row: &Value, key: &str| row[key].as_f64().expect("a number");
        let [own, one] = [found, known].map(|row| of(row, "bytes_per_dof"));
        assert!(own > 0.8 * one && own < 2.5 * one, "{own} bytes, not {one}");
    }
    assert!(std::fs::read_to_string(drawing).expect("a picture").contains("polynomial degree"));
}

#[test]
fn processes_are_measured_beside_the_first_of_them() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let small = ["--suite", "scaling", "--degree", "2", "--dofs", "2e3"];
    // As threads of one program.
    let threads = rows(1, folder.path(), &[&small[..], &["--processes", "2"]].concat());
    let drawn = [&small[..], &["--plot", "scaling.svg"]].concat();
    let found = rows(2, folder.path(), &drawn);
    assert_eq!((threads.len(), found.len()), (4, 4), "{found:?}");
    let counts: Vec<(&str, u64)> = found
        .iter()
        .map(|row| (row["problem"].as_str().unwrap_or(""), row["processes"].as_u64().unwrap_or(0)))
        .collect();
    assert_eq!(counts, [("weak", 1), ("weak", 2), ("strong", 1), ("strong", 2)]);
    for (found, known) in found.iter().zip(&threads) {
        for key in ["problem", "degree", "processes", "dofs", "iterations", "solve_iterations"] {
            assert_eq!(found[key], known[key], "{key}: {found}");
        }
        assert_eq!(found["bytes_sent"], known["bytes_sent"], "{found}");
        has_numbers(found, &["dofs", "iterations", "solve_iterations"]);
        has_numbers(found, &["product_seconds", "iteration_seconds", "solve_seconds"]);
        has_numbers(found, &["product_efficiency", "iteration_efficiency", "solve_efficiency"]);
    }
    // The common results of the strong series agree with those of one process.
    for key in ["dofs", "iterations", "solve_iterations"] {
        assert_eq!(found[2][key], found[3][key], "{key}: {found:?}");
    }
    let unknowns = |row: usize| found[row]["dofs"].as_u64().expect("a count");
    assert!(unknowns(1) > unknowns(0) && unknowns(1) < 2 * unknowns(0), "{found:?}");
    assert!(found[1]["bytes_sent"].as_f64() > Some(0.0), "{}", found[1]);
    let drawing = std::fs::read_to_string(folder.path().join("scaling.svg")).expect("a picture");
    assert!(drawing.contains("processes, strong scaling"));
}

#[test]
fn what_several_processes_do_not_measure_is_refused() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, message) in [
        (
            &["bench", "--suite", "kronbichler"][..],
            "only one process measures the suite `kronbichler`, and there are 2\n\
             help: ask for --suite bp or --suite scaling, or start one process",
        ),
        (
            &["bench", "--suite", "scaling", "--processes", "2"],
            "only one process tries several numbers of them, and there are 2",
        ),
    ] {
        let output = start(2, folder.path(), arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.matches(message).count(), 1, "{said}");
        assert_eq!(output.status.code(), Some(2), "{said}");
    }
}

//! `wf assemble` on several processes: the first writes the system that a single process writes.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{BETWEEN, alike, is_there, start, with};
use crate::assemble::{PROBLEMS, reals};

/// Three cells for four processes, so that one is empty.
const FEW: &str = "
form coupled { field u: vector; f0[u] = [0.5 * u[1] - 1, 2]; f1[u] = grad(u); }
problem few solves coupled { mesh = box(dim: 2, cells: [3, 1]); degree = 2; dirichlet u = [x[1], 0] on \"x0\"; }
";

/// The output for a problem.
struct Written {
    said: Value,
    /// The first two lines of the matrix, without the number of its entries.
    head: (String, String),
    entries: BTreeMap<(usize, usize), f64>,
    rhs: Vec<f64>,
    solution: Vec<f64>,
    coordinates: Vec<f64>,
    constrained: Vec<u8>,
}

fn written(processes: usize, folder: &Path, problem: &str) -> Written {
    let into = format!("{problem}-{processes}");
    let arguments = ["assemble", "problems.wf", "--problem", problem, "-o", &into];
    let rest = ["--interpret", "--threads", "1", "--json"];
    let output = start(processes, folder, &[&arguments[..], &rest].concat());
    let (text, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{problem}: {text}{error}");
    // Once, and nothing else.
    let said: Value = serde_json::from_str(&text).expect("one object");
    assert_eq!(said["processes"], processes, "{said}");
    let file = |name: &str| folder.join(&into).join(name);
    let matrix = std::fs::read_to_string(file("matrix.mtx")).expect("a matrix");
    let mut lines = matrix.lines();
    let mut head = || lines.next().expect("a line").to_owned();
    let (kind, size) = (head(), head());
    let (size, count) = size.rsplit_once(' ').expect("three numbers");
    let entry = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [i, j] = [words[0], words[1]].map(|word| word.parse::<usize>().expect("a number"));
        ((i, j), words[2].parse::<f64>().expect("a number"))
    };
    let entries: BTreeMap<(usize, usize), f64> = lines.map(entry).collect();
    assert_eq!(count, entries.len().to_string(), "{problem}: an entry stands there twice");
    Written {
        said,
        head: (kind, size.to_owned()),
        entries,
        rhs: reals(&file("rhs.npy")),
        solution: reals(&file("solution.npy")),
        coordinates: reals(&file("coordinates.npy")),
        constrained: std::fs::read(file("constrained.npy")).expect("a file"),
    }
}

/// Asserts that numbers agree, relative to the largest.
#[track_caller]
fn close<'a>(
    what: &str,
    found: impl Iterator<Item = &'a f64>,
    known: impl Iterator<Item = &'a f64> + Clone,
    tolerance: f64,
) {
    let largest = known.clone().fold(0.0, |most: f64, x| most.max(x.abs()));
    let worst = found.zip(known).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
    assert!(worst <= tolerance * largest, "{what}: {worst:e} of {largest:e}");
}

/// Asserts that systems agree: values that depend on the solution up to solver errors; for nonlinear forms these are
/// all values.
#[track_caller]
fn same(processes: usize, folder: &Path, problem: &str, known: &Written) {
    let found = written(processes, folder, problem);
    let what = |of: &str| format!("{problem}: {of} of {processes} processes");
    for key in ["unknowns", "symmetric", "constrained", "fields", "files", "form"] {
        assert!(alike(&found.said[key], &known.said[key], 0.0, 0.0), "{}", what(key));
    }
    assert_eq!(found.head, known.head, "{problem}");
    assert_eq!(found.constrained, known.constrained, "{}", what("conditions"));
    close(&what("places"), found.coordinates.iter(), known.coordinates.iter(), 1e-14);
    const SOLVED: f64 = 1e-7;
    close(&what("solution"), found.solution.iter(), known.solution.iter(), SOLVED);
    let [of_matrix, of_rhs] = if problem == "bent" { [SOLVED; 2] } else { [1e-12, 1e-10] };
    // At the same positions: entries whose terms cancel may be in only one of them, and are then negligible.
    let places = || found.entries.keys().chain(known.entries.keys());
    let numbers = |of: &Written| -> Vec<f64> {
        places().map(|place| of.entries.get(place).copied().unwrap_or(0.0)).collect()
    };
    let [own, all] = [numbers(&found), numbers(known)];
    close(&what("matrix"), own.iter(), all.iter(), of_matrix);
    // b is independent of u for a linear form, but it is the difference of J u and R(u), which have rounding errors.
    close(&what("right-hand side"), found.rhs.iter(), known.rhs.iter(), of_rhs);
}

#[test]
fn several_processes_write_the_system_of_one() {
    if !is_there() {
        return;
    }
    let folder = with("problems.wf", &format!("{PROBLEMS}{FEW}"));
    for (problem, processes) in [
        ("triangles", 3),
        ("hanging", 3),
        ("carried", 2),
        ("bent", 2),
        ("slipping", 3),
        ("periodic", 2),
        ("channel", 3),
        ("few", 4),
    ] {
        same(processes, folder.path(), problem, &written(1, folder.path(), problem));
    }
}

#[test]
fn several_processes_write_the_terms_between_cells() {
    if !is_there() {
        return;
    }
    let folder = with("problems.wf", BETWEEN);
    for (problem, processes) in [("simplices", 2), ("supported", 3)] {
        same(processes, folder.path(), problem, &written(1, folder.path(), problem));
    }
}

#[test]
fn a_folder_that_the_first_process_cannot_make_ends_all() {
    if !is_there() {
        return;
    }
    let folder = with("problems.wf", PROBLEMS);
    let arguments = ["assemble", "problems.wf", "--problem", "carried", "-o", "problems.wf/inside"];
    let output = start(2, folder.path(), &arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("cannot make the folder problems.wf/inside").count(), 1, "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
}

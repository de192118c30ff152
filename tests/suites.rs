//! The suites of `wf bench` on small problems: their rows, messages, pictures, comparisons, and the results kept on a
//! failure.

use super::cli::{json, wf};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Returns the cache of all suites, so that the machine is measured once, and common kernels are compiled once.
pub(crate) fn cache() -> &'static Path {
    static CACHE: OnceLock<PathBuf> = OnceLock::new();
    CACHE.get_or_init(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("suites"))
}

/// The pressure has one degree less than the velocity, at least 1.
#[test]
fn stokes_is_measured_from_degree_2_on() {
    let stokes = ["bench", "--problem", "stokes", "--dofs", "1e3", "--threads", "1"];
    let bench = |rest: &[&str]| wf(&[&stokes[..], rest].concat(), cache());
    let output = bench(&["--degree", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the degrees of `stokes` begin at 2"), "{said}");
    let output = bench(&["--degree", "1..2"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("stokes          1  left out: its degrees begin at 2"), "{said}");
    let output = bench(&["--degree", "1..2", "--json"]);
    let row = json(&output);
    assert_eq!((&row["problem"], &row["degree"]), (&"stokes".into(), &2.into()), "{row}");
    assert_eq!((&row["components"], &row["dofs"]), (&4.into(), &1093.into()), "{row}");
    for rate in ["dofs_per_second", "bytes_per_dof", "flops_per_dof", "csr_dofs_per_second"] {
        assert!(row[rate].as_f64().is_some_and(|rate| rate > 0.0), "{row}");
    }
}

#[test]
fn throughput_is_drawn_over_degree_and_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bp1.svg");
    let drawing = file.to_str().expect("UTF-8");
    let arguments = ["bench", "--problem", "BP1", "--degree", "1..2", "--dofs", "1e3..3e3"];
    let rest = ["--threads", "1", "--json", "--plot", drawing];
    let output = wf(&[&arguments[..], &rest].concat(), cache());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let rows = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(rows.lines().count(), 4, "{rows}");
    let drawing = std::fs::read_to_string(&file).expect("a picture");
    for text in ["polynomial degree", "unknowns", "MDoF/s", "assembled matrix", "BP1, p = 2"] {
        assert!(drawing.contains(text), "{text}");
    }
    let arguments = ["bench", "--problem", "BP1", "--degree", "1", "--dofs", "1e3", "--plot"];
    let output = wf(&[&arguments[..], &["/no/such/folder/a.svg"]].concat(), folder.path());
    assert_eq!(output.status.code(), Some(1));
    // Before any measurement.
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write /no/such/folder/a.svg"));
    assert!(output.stdout.is_empty());
}

/// Returns the output of a suite on tiny balls.
fn on_balls(suite: &str, more: &[&str]) -> String {
    let arguments = ["bench", "--suite", suite, "--degree", "1", "--dofs", "2e3", "--threads", "1"];
    let output = wf(&[&arguments[..], more].concat(), cache());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns its rows.
fn rows_on_balls(suite: &str, more: &[&str]) -> Vec<Value> {
    let said = on_balls(suite, &[&["--json"], more].concat());
    said.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect()
}

/// The suite of Ljungkvist's balls, shared by all tests.
struct Balls {
    rows: Vec<Value>,
    /// Rows without a matrix.
    without: Vec<Value>,
    /// Its output without JSON.
    said: String,
    drawing: String,
}

fn balls() -> &'static Balls {
    static BALLS: OnceLock<Balls> = OnceLock::new();
    BALLS.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let rows = |more: &[&str]| rows_on_balls("ljungkvist", more);
        let file = folder.path().join("balls.svg");
        let with = rows(&["--plot", file.to_str().expect("UTF-8")]);
        let drawing = std::fs::read_to_string(&file).expect("a picture");
        let said = on_balls("ljungkvist", &[]);
        Balls { rows: with, without: rows(&["--no-csr"]), said, drawing }
    })
}

/// Asserts that a row has these keys, each with a positive number.
fn has_numbers(row: &Value, keys: &[&str]) {
    for key in keys {
        assert!(row[key].as_f64().is_some_and(|number| number > 0.0), "{key}: {row}");
    }
}

#[test]
fn adaptive_balls_are_measured_beside_uniform_ones() {
    let Balls { rows, said, drawing, .. } = balls();
    let of = |dim: u64, mesh: &str| {
        let own = rows.iter().filter(|row| row["dim"] == dim && row["mesh"] == mesh);
        own.max_by_key(|row| row["level"].as_u64()).expect("a row")
    };
    for (dim, cells, dofs) in [(2, 1280, 1313), (3, 448, 517)] {
        let (uniform, adaptive) = (of(dim, "uniform"), of(dim, "adaptive"));
        assert_eq!((&uniform["cells"], &uniform["dofs"]), (&cells.into(), &dofs.into()));
        assert_eq!(uniform["dofs_with_hanging"], uniform["dofs"], "{uniform}");
        assert_eq!(uniform["constrained_cells"], 0, "{uniform}");
        assert!(adaptive["dofs_with_hanging"].as_u64() > adaptive["dofs"].as_u64(), "{adaptive}");
        has_numbers(uniform, &["seconds", "dofs_per_second", "cells_per_batch"]);
        // Times too short to be measured may be 0, and their ratio null.
        for key in ["free_cells", "free_cell_seconds", "hanging_cell_seconds"] {
            assert!(adaptive[key].as_f64().is_some_and(|number| number >= 0.0), "{adaptive}");
        }
        assert!(adaptive.get("cost_ratio").is_some(), "{adaptive}");
        has_numbers(adaptive, &["constrained_cells", "hanging_fraction"]);
        has_numbers(adaptive, &["dofs_with_hanging_per_second", "hanging_cells_per_batch"]);
    }
    for text in ["Table 1", "20971520    20975617", "Table 2b", "Figure 5", "overhead", "ratio"] {
        assert!(said.contains(text), "{text}: {said}");
    }
    for text in ["unknowns in 2D", "unknowns in 3D", "polynomial degree", "adaptive", "p = 1"] {
        assert!(drawing.contains(text), "{text}");
    }
}

/// The matrix has rows of free DoFs only, without hanging nodes; `--no-csr` omits it.
#[test]
fn balls_have_a_sparse_matrix_beside_them() {
    let Balls { rows, without, said, .. } = balls();
    assert!(rows.iter().any(|row| row["mesh"] == "adaptive"), "{rows:?}");
    for row in rows {
        has_numbers(row, &["csr_seconds", "csr_bytes_per_dof", "csr_assembly_seconds", "speedup"]);
        has_numbers(row, &["csr_dofs_with_hanging_per_second", "bytes_per_dof"]);
        let number = |key: &str| row[key].as_f64().expect("a number");
        let (dofs, entries) = (number("dofs"), number("csr_entries"));
        let bytes = (number("csr_bytes_per_dof") * dofs).round();
        assert_eq!(bytes, 12.0 * entries + 4.0 * (dofs + 1.0), "{row}");
        assert!(entries > dofs && row["paper_speedup"].is_null(), "{row}");
    }
    assert!(said.contains("B matrix") && said.contains("cuSPARSE"), "{said}");
    assert!(!without.is_empty());
    for row in without {
        assert!(row["csr_seconds"].is_null() && row["speedup"].is_null(), "{row}");
        assert_eq!(row["csr_refused"], "left out", "{row}");
    }
}

/// Linear and nonlinear, in two and three dimensions.
#[test]
fn derivatives_are_measured_with_and_without_a_matrix() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cache, file) = (cache(), folder.path().join("k.svg"));
    let arguments = ["bench", "--suite", "kronbichler", "--dofs", "200", "--degree", "2"];
    let names = ["minimal-surface-2d", "elasticity-3d"];
    let rest = ["--threads", "1", "--problem", names[0], "--problem", names[1]];
    let bench = |more: &[&str]| {
        let output = wf(&[&arguments[..], &rest, more].concat(), cache);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let rows = bench(&["--json", "--plot", file.to_str().expect("UTF-8")]);
    let rows: Vec<Value> =
        rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    assert_eq!(rows.iter().map(|row| &row["problem"]).collect::<Vec<_>>(), names);
    // Lines of 15 and of 5 nodes of degree 2, which are coupled to (p + 1) (p − 1) = 3 nodes inside of a cell, 2 p + 1
    // = 5 between cells and p + 1 = 3 at the ends.
    let line = |cells: u64| 3 * cells + 5 * (cells - 1) + 2 * 3;
    for (row, dofs, entries) in [
        (&rows[0], 15 * 15, line(7) * line(7)),
        (&rows[1], 3 * 5 * 5 * 5, 9 * line(2) * line(2) * line(2)),
    ] {
        assert_eq!((&row["suite"], &row["dofs"]), (&"kronbichler".into(), &dofs.into()), "{row}");
        assert_eq!(row["csr_entries"].as_f64(), Some(entries as f64), "{row}");
        has_numbers(row, &["dofs_per_second", "flops_per_second", "bytes_per_dof", "speedup"]);
        has_numbers(row, &["linearise_seconds", "csr_assembly_seconds", "csr_bytes_per_dof"]);
        has_numbers(row, &["csr_dofs_per_second", "csr_flops_per_second", "csr_set_up_seconds"]);
        // Sums of as many terms as a row has entries, in another order.
        let bound = 1e3 * f64::EPSILON;
        assert!(row["difference"].as_f64().is_some_and(|difference| difference < bound), "{row}");
    }
    assert_eq!((&rows[0]["nonlinear"], &rows[1]["nonlinear"]), (&true.into(), &false.into()));
    let drawing = std::fs::read_to_string(&file).expect("a picture");
    for text in ["MDoF/s", "B/DoF", "assembled matrix", names[0]] {
        assert!(drawing.contains(text), "{text}");
    }
    let said = bench(&["--no-csr"]);
    assert!(said.contains("left out") && said.contains("new state"), "{said}");
    let wrong = wf(&["bench", "--suite", "kronbichler", "--problem", "BP1"], cache);
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("no problem `BP1`") && said.contains("laplacian-2d"), "{said}");
}

/// Terms of cells and of facets between them, with all components counted.
#[test]
fn discontinuous_operators_are_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cache, file) = (cache(), folder.path().join("dg.svg"));
    let names = ["sipg", "advection-affine", "euler"];
    let mut arguments = vec!["bench", "--suite", "dg", "--dofs", "200", "--degree", "1"];
    arguments.extend(["--threads", "1"]);
    arguments.extend(names.iter().flat_map(|name| ["--problem", name]));
    let bench = |more: &[&str]| {
        let output = wf(&[&arguments[..], more].concat(), cache);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let rows = bench(&["--json", "--plot", file.to_str().expect("UTF-8")]);
    let rows: Vec<Value> =
        rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    assert_eq!(rows.iter().map(|row| &row["problem"]).collect::<Vec<_>>(), names);
    for (row, cells, components, applies, affine) in [
        (&rows[0], 27, 1, "action", false),
        (&rows[1], 27, 1, "action", true),
        (&rows[2], 8, 5, "residual", false),
    ] {
        assert_eq!((&row["suite"], &row["applies"]), (&"dg".into(), &applies.into()), "{row}");
        assert_eq!(
            (&row["cells"], &row["dofs"]),
            (&cells.into(), &(8 * cells * components).into())
        );
        assert_eq!((&row["affine"], &row["backend"]), (&affine.into(), &"cpu".into()), "{row}");
        has_numbers(row, &["seconds", "dofs_per_second", "bytes_per_dof"]);
    }
    let drawing = std::fs::read_to_string(&file).expect("a picture");
    for text in ["MDoF/s", "B/DoF", names[0]] {
        assert!(drawing.contains(text), "{text}");
    }
    let said = bench(&[]);
    assert!(said.contains("facets between them") && said.contains("residual"), "{said}");
    let wrong = wf(&["bench", "--suite", "dg", "--problem", "BP1"], cache);
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("no problem `BP1`") && said.contains("euler-affine"), "{said}");
}

/// Products in both spaces, and solves by CG.
#[test]
fn operators_of_vector_valued_fields_are_measured() {
    let cache = cache();
    let arguments = ["bench", "--suite", "maxwell", "--dofs", "600", "--degree", "2"];
    let bench = |more: &[&str]| {
        let output = wf(&[&arguments[..], &["--threads", "1"], more].concat(), cache);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let rows = bench(&["--json"]);
    let rows: Vec<Value> =
        rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    // Three cells along an edge, with n = 6 intervals: 3 n (n + 1)² edges and 3 n² (n + 1) faces.
    for (row, name, dofs) in [(&rows[0], "curl", 882), (&rows[1], "div", 756)] {
        assert_eq!((&row["suite"], &row["problem"]), (&"maxwell".into(), &name.into()), "{row}");
        assert_eq!((&row["cells"], &row["dofs"]), (&27.into(), &dofs.into()), "{row}");
        has_numbers(row, &["seconds", "dofs_per_second", "flops_per_dof", "iterations"]);
        has_numbers(row, &["bytes_per_dof", "solve_seconds", "solved_per_second"]);
    }
    let said = bench(&["--problem", "div", "--no-solve"]);
    assert!(said.contains("div ") && said.contains("no solution"), "{said}");
    let wrong = wf(&["bench", "--suite", "maxwell", "--problem", "BP1"], cache);
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("no problem `BP1`") && said.contains("curl, div"), "{said}");
}

#[test]
fn a_run_is_compared_with_an_earlier_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cache, file) = (cache(), folder.path().join("old.json"));
    let old = file.to_str().expect("UTF-8");
    let arguments = ["bench", "--problem", "BP1", "--dofs", "1e3", "--threads", "1", "--no-csr"];
    let bench = |more: &[&str]| wf(&[&arguments[..], more].concat(), cache);
    let before = bench(&["--degree", "1..2", "--json"]);
    std::fs::write(&file, &before.stdout).expect("written");
    let after = bench(&["--degree", "2..3", "--json", "--compare", old]);
    let of = |output: &Output| -> Vec<Value> {
        let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
        text.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect()
    };
    let (before, after) = (of(&before), of(&after));
    let rate = |row: &Value| row["dofs_per_second"].as_f64().expect("a rate");
    let ratio = after[0]["ratio_to_old"].as_f64().expect("a ratio");
    // Numbers read back differ in the last bit.
    assert_eq!(format!("{:.9}", ratio * rate(&before[1]) / rate(&after[0])), "1.000000000");
    assert!(after[1]["ratio_to_old"].is_null(), "{after:?}");
    let said = String::from_utf8(bench(&["--degree", "2..3", "--compare", old]).stdout);
    let said = said.expect("UTF-8");
    for text in ["geometric mean", "of 1 rows", "no partner", "1 new rows, 1 old ones"] {
        assert!(said.contains(text), "{text}: {said}");
    }
    let rows = std::fs::read_to_string(&file).expect("written");
    for (text, wanted) in [
        (format!("{rows}{{\n"), "old.json:3: no JSON"),
        (rows.replace("\"bp\"", "\"afem\""), "old.json:1: a row of the suite `afem`, not of `bp`"),
        (format!("\n[1]\n{rows}"), "old.json:2: no row"),
        ("{\"error\":\"too slow\"}\n".to_owned(), "old.json has no rows"),
    ] {
        std::fs::write(&file, text).expect("written");
        let output = bench(&["--compare", old]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(wanted) && said.contains("help: --compare takes"), "{said}");
        assert!(output.stdout.is_empty());
    }
    let said = bench(&["--compare", "/no/such/old.json"]);
    assert!(String::from_utf8_lossy(&said.stderr).contains("cannot read /no/such/old.json"));
}

#[test]
fn ways_of_scattering_are_measured_with_their_parts() {
    let rows = rows_on_balls("scatter", &[]);
    let said = on_balls("scatter", &[]);
    assert_eq!(rows.len(), 4, "{rows:?}");
    for row in &rows {
        assert_eq!((&row["suite"], &row["scatter"]), (&"scatter".into(), &"chunks".into()));
        assert!(row["refused"].is_null(), "{row}");
        has_numbers(row, &["dofs_with_hanging_per_second", "parts", "smallest_part_cells"]);
        assert!(row["largest_part_cells"].as_u64() >= row["smallest_part_cells"].as_u64());
    }
    assert!(said.contains("adaptive") && said.contains("chunks"), "{said}");
}

#[test]
fn low_order_operators_are_measured_in_each_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cache, file) = (cache(), folder.path().join("low.svg"));
    let suite = ["bench", "--suite", "settgast", "--dofs", "1e3", "--threads", "1"];
    let of = |more: &[&str]| wf(&[&suite[..], more].concat(), cache);
    let said = |more: &[&str]| {
        let output = of(&[&["--problem", "BP5"], more].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let rows = said(&["--json", "--plot", file.to_str().expect("UTF-8")]);
    let rows: Vec<Value> =
        rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    let kind = |kind: &str| rows.iter().filter(|row| row["row"] == kind).collect::<Vec<_>>();
    // Three tables of two problems, two of them with and without caching; four passes of two problems.
    let model = kind("model");
    assert_eq!(model.len(), 18);
    assert_eq!(model[0]["bytes"], 348.0 * 1_030_301.0);
    let operators = kind("operator");
    let ways: Vec<&str> = operators.iter().filter_map(|row| row["way"].as_str()).collect();
    assert_eq!(ways, ["corners", "vertices", "stored", "coefficients", "assembled"]);
    for row in &operators {
        assert_eq!((&row["cells"], &row["dofs"]), (&729.into(), &1000.into()), "{row}");
        has_numbers(row, &["seconds", "dofs_per_second", "bytes_per_cell", "flops_per_cell"]);
        has_numbers(row, &["copy_fraction", "flop_fraction", "over_assembled", "operator_share"]);
        has_numbers(row, &["cg_iterations", "cg_fused_seconds", "cg_fused_dofs_per_second"]);
        assert!(row["difference"].as_f64().is_some_and(|number| number < 1e-13), "{row}");
        let all = row["cg_separate_seconds"].is_number() && row["cg_table_4_seconds"].is_number();
        assert_eq!(all, row["way"] == "corners", "{row}");
    }
    let passes = kind("pass");
    assert_eq!(passes.len(), 6);
    passes.iter().for_each(|row| has_numbers(row, &["bytes", "seconds", "copy_fraction"]));
    let said = said(&["--no-csr"]);
    for text in [
        "Table 4",
        "Figures 3 and 8",
        "Figures 1, 4 and 5",
        "Figure 6",
        "Figure 7",
        "paper's claims",
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
    let drawing = std::fs::read_to_string(&file).expect("a picture");
    for text in
        ["unknowns of BP5", "an iteration", "by their passes", "operations a byte", "the roof"]
    {
        assert!(drawing.contains(text), "{text}");
    }
    let output = of(&["--problem", "BP1"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("there are BP5, BP6, elasticity"), "{errors}");
}

/// A suite may take minutes: a row is on standard output during the measurement of the next one.
#[test]
fn rows_are_shown_as_they_are_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.args([
        "bench",
        "--problem",
        "BP1",
        "--degree",
        "1..6",
        "--dofs",
        "1e3",
        "--threads",
        "1",
    ]);
    command.args(["--no-csr", "--quiet"]).env("WF_CACHE_DIR", folder.path().join("cache"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("wf");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let first = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("BP1 ")));
    let ended = child.try_wait().expect("a child");
    assert!(first.is_some() && ended.is_none(), "{first:?} after {ended:?}");
    let rest = lines.filter(|line| line.as_ref().is_ok_and(|line| line.starts_with("BP1 ")));
    assert_eq!(rest.count(), 5, "each row once");
    assert!(child.wait().expect("an end").success());
}

#[test]
fn what_was_measured_before_a_failure_is_kept() {
    let arguments = ["bench", "--problem", "BP5", "--degree", "1..2", "--dofs", "1e3"];
    let rest = ["--threads", "1", "--geometry", "corners", "--json"];
    let output = wf(&[&arguments[..], &rest].concat(), cache());
    assert_eq!(output.status.code(), Some(1));
    let rows = String::from_utf8(output.stdout).expect("UTF-8");
    let rows: Vec<Value> = rows.lines().filter_map(|row| serde_json::from_str(row).ok()).collect();
    let [row, failure] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&row["problem"], &row["degree"]), (&"BP5".into(), &1.into()));
    let said = failure["error"].as_str().expect("a message");
    assert!(said.contains("corners are gathered by the nodes of a field of degree 1"), "{said}");
}

#[test]
fn solves_by_levels_are_measured_beside_the_diagonal() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cache, file) = (cache(), folder.path().join("levels.svg"));
    let suite = ["bench", "--suite", "multigrid", "--problem", "square", "--degree", "2..2"];
    let more = ["--dofs", "1e3", "--json", "--plot", file.to_str().expect("UTF-8")];
    let output = wf(&[&suite[..], &more].concat(), cache);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let row: Value = serde_json::from_str(text.trim()).expect("one row");
    assert_eq!((&row["suite"], &row["problem"]), (&"multigrid".into(), &"square".into()));
    has_numbers(&row, &["iterations", "applications", "seconds", "dofs_per_second"]);
    has_numbers(&row, &["jacobi_iterations", "jacobi_seconds", "set_up_seconds"]);
    let levels = row["levels"].as_array().expect("levels");
    assert!(levels.len() > 1 && levels[0] == row["dofs"], "{row}");
    let [few, many] = ["iterations", "jacobi_iterations"].map(|key| row[key].as_u64().unwrap_or(0));
    assert!(3 * few <= many, "{row}");
    assert!(file.is_file());
    let wrong = wf(&["bench", "--suite", "multigrid", "--problem", "BP1"], cache);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(!wrong.status.success() && said.contains("square, cube, deformed"), "{said}");
}

#[test]
fn several_processes_are_measured_beside_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cache, file) = (cache(), folder.path().join("scaling.svg"));
    let suite = ["bench", "--suite", "scaling", "--degree", "1..1", "--dofs", "100"];
    let more = ["--processes", "2", "--threads", "1", "--json", "--plot"];
    let output = wf(&[&suite[..], &more, &[file.to_str().expect("UTF-8")]].concat(), cache);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let rows: Vec<Value> = text.lines().filter_map(|row| serde_json::from_str(row).ok()).collect();
    let kinds: Vec<_> = rows.iter().map(|row| (&row["problem"], &row["processes"])).collect();
    let [weak, strong]: [Value; 2] = ["weak".into(), "strong".into()];
    let [one, two]: [Value; 2] = [1.into(), 2.into()];
    assert_eq!(kinds, [(&weak, &one), (&weak, &two), (&strong, &one), (&strong, &two)]);
    for row in &rows {
        assert_eq!(row["suite"], "scaling");
        has_numbers(row, &["dofs", "product_seconds", "alone_seconds", "iterations"]);
        has_numbers(row, &["iteration_seconds", "solve_seconds", "solve_efficiency"]);
        let several = row["processes"] != 1;
        assert_eq!(row["bytes_sent"].as_f64() > Some(0.0), several, "{row}");
        assert_eq!(row["hidden"].is_number(), several, "{row}");
    }
    assert!(rows[1]["dofs"].as_u64() > rows[0]["dofs"].as_u64());
    assert_eq!(rows[3]["dofs"], rows[0]["dofs"]);
    assert!(file.is_file());
}

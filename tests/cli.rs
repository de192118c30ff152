//! `wf` as its users meet it: exit codes, and JSON that is alone on standard output.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

fn wf(arguments: &[&str], cache: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.args(arguments).env("WF_CACHE_DIR", cache).env_remove("WF_DUMP_DIR");
    command.output().expect("wf should start")
}

/// The one JSON object that standard output holds.
fn json(output: &Output) -> Value {
    let text = std::str::from_utf8(&output.stdout).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn exit_codes_tell_bad_input_from_bad_usage() {
    let cache = tempfile::tempdir().expect("a folder");
    for (arguments, code) in [
        (vec!["--help"], 0),
        (vec!["--version"], 0),
        (vec!["explain"], 0),
        (vec!["explain", "E9999"], 1),
        (vec![], 2),
        (vec!["explian"], 2),
        (vec!["explain", "--no-such-flag"], 2),
    ] {
        let output = wf(&arguments, cache.path());
        assert_eq!(output.status.code(), Some(code), "wf {arguments:?}");
        assert_eq!(output.stdout.is_empty(), code != 0, "wf {arguments:?}");
        assert_eq!(output.stderr.is_empty(), code == 0, "wf {arguments:?}");
    }
}

#[test]
fn with_json_standard_output_holds_json_alone() {
    let cache = tempfile::tempdir().expect("a folder");
    assert!(json(&wf(&["explain", "--json"], cache.path()))["codes"].is_array());
    for wrong in [["explain", "E9999", "--json"], ["--json", "explain", "--no-such-flag"]] {
        let error = json(&wf(&wrong, cache.path()));
        assert!(error["error"].as_str().is_some_and(|error| !error.is_empty()), "{error}");
    }
}

#[test]
fn every_code_has_a_page_that_explain_prints() {
    let cache = tempfile::tempdir().expect("a folder");
    let all = json(&wf(&["explain", "--json"], cache.path()));
    let codes = all["codes"].as_array().expect("codes");
    assert_eq!(codes.len(), fem_dsl::codes::Code::ALL.len());
    assert!(codes.iter().all(|code| code["title"].as_str().is_some_and(|title| !title.is_empty())));
    let page = json(&wf(&["explain", "e0203", "--json"], cache.path()));
    assert_eq!(page["code"], "E0203");
    assert_eq!(page["page"], fem_dsl::codes::Code::WrongShape.page());
}

#[test]
fn the_language_is_explained_whole_and_by_section() {
    let cache = tempfile::tempdir().expect("a folder");
    let explain = |topic: &str| wf(&["explain", topic, "--json"], cache.path());
    let whole = json(&explain("language"));
    assert_eq!(whole["page"], weakform::language::PAGE);
    let topics = json(&wf(&["explain", "--json"], cache.path()))["topics"].clone();
    let topics = topics.as_array().expect("topics");
    assert_eq!(topics.len(), 1 + weakform::language::sections().count());
    for topic in topics {
        let page = json(&explain(topic.as_str().expect("a name")));
        assert_eq!(&page["topic"], topic);
    }
    for (wanted, topic) in [
        ("solver", "solvers"),
        ("mesh", "meshes"),
        ("Known names", "known"),
        ("REPORTS", "reports"),
    ] {
        let page = json(&explain(wanted));
        assert_eq!(page["topic"], topic);
        assert!(page["page"].as_str().is_some_and(|page| page.starts_with("## ")), "{page}");
    }
    for (wrong, near) in [("solvres", "`solvers`"), ("langauge", "`language`"), ("E020", "`E0201`")]
    {
        let error = json(&explain(wrong))["error"].to_string();
        assert!(error.contains("did you mean") && error.contains(near), "{error}");
    }
    let list = wf(&["explain"], cache.path());
    assert!(String::from_utf8_lossy(&list.stdout).contains("Spaces and data"));
}

#[test]
fn the_doctor_finds_what_the_tests_themselves_need() {
    let cache = tempfile::tempdir().expect("a folder");
    let report = json(&wf(&["doctor", "--json"], cache.path()));
    for part in ["processor", "rustc", "kernels", "cache"] {
        assert_eq!(report[part]["state"], "ok", "{report}");
    }
    assert!(report["processor"]["lanes_f64"].as_u64().is_some_and(|lanes| lanes >= 1));
    for part in ["cuda_driver", "nvrtc", "opencl"] {
        let there = report[part]["state"] == "ok";
        assert!(there || report[part]["help"].is_string(), "{report}");
    }
}

#[test]
fn the_doctor_says_what_is_missing_and_how_to_get_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.args(["doctor", "--json"]).env("WF_RUSTC", "/nowhere/rustc");
    let output = command.env("WF_CACHE_DIR", file.join("cache")).output().expect("wf should start");
    assert_eq!(output.status.code(), Some(0));
    let report = json(&output);
    assert_eq!(report["rustc"]["state"], "missing");
    assert_eq!(report["cache"]["state"], "broken");
    for part in ["rustc", "cache"] {
        assert!(report[part]["help"].as_str().is_some_and(|help| help.contains("WF_")), "{report}");
    }
}

#[test]
fn a_backend_that_this_build_lacks_says_how_to_get_it() {
    let cache = tempfile::tempdir().expect("a folder");
    let run = ["run", "examples/nonlinear.wf", "--no-output", "--json"];
    for (backend, built) in [("cuda", cfg!(feature = "cuda")), ("opencl", cfg!(feature = "opencl"))]
    {
        if built {
            continue;
        }
        let output = wf(&[&run[..], &["--backend", backend]].concat(), cache.path());
        let error = json(&output)["error"].to_string();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(&format!("build with `--features {backend}`")), "{error}");
    }
    let error =
        json(&wf(&[&run[..], &["--device", "x"]].concat(), cache.path()))["error"].to_string();
    assert!(error.contains("--backend cuda"), "{error}");
    for command in [&run[..], &["bench", "--json"]] {
        let output = wf(&[command, &["--scatter", "owner"]].concat(), cache.path());
        let error = json(&output)["error"].to_string();
        assert!(error.contains("--scatter is for devices"), "{error}");
    }
    let output = wf(&[&run[..], &["--scatter", "twice"]].concat(), cache.path());
    assert_eq!(output.status.code(), Some(2));
    let error = json(&output).to_string();
    assert!(error.contains("atomic, coloured, owner or block"), "{error}");
}

/// The pressure is of one degree less than the velocity, and begins at 1.
#[test]
fn stokes_is_measured_from_degree_2_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let stokes = ["bench", "--problem", "stokes", "--dofs", "1e3", "--threads", "1"];
    let bench = |rest: &[&str]| wf(&[&stokes[..], rest].concat(), &folder.path().join("cache"));
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
    let output = wf(&[&arguments[..], &rest].concat(), &folder.path().join("cache"));
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
    // Before anything is measured.
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write /no/such/folder/a.svg"));
    assert!(output.stdout.is_empty());
}

/// What a suite on tiny balls says.
fn on_balls(suite: &str, folder: &Path, more: &[&str]) -> String {
    let arguments = ["bench", "--suite", suite, "--degree", "1", "--dofs", "2e3", "--threads", "1"];
    let output = wf(&[&arguments[..], more].concat(), &folder.join("cache"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Its rows.
fn rows_on_balls(suite: &str, folder: &Path, more: &[&str]) -> Vec<Value> {
    let said = on_balls(suite, folder, &[&["--json"], more].concat());
    said.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect()
}

/// The suite of Ljungkvist's balls, once for all tests.
struct Balls {
    rows: Vec<Value>,
    /// Those without a matrix.
    without: Vec<Value>,
    /// What it says when it does not speak JSON.
    said: String,
    drawing: String,
}

fn balls() -> &'static Balls {
    static BALLS: OnceLock<Balls> = OnceLock::new();
    BALLS.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let rows = |more: &[&str]| rows_on_balls("ljungkvist", folder.path(), more);
        let file = folder.path().join("balls.svg");
        let with = rows(&["--plot", file.to_str().expect("UTF-8")]);
        let drawing = std::fs::read_to_string(&file).expect("a picture");
        let said = on_balls("ljungkvist", folder.path(), &[]);
        Balls { rows: with, without: rows(&["--no-csr"]), said, drawing }
    })
}

/// Whether a row has these keys, each with a number above zero.
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
        // What is too short to be measured may be 0, and its ratio none.
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

/// The matrix has rows of free unknowns, so that it does not know what hangs; `--no-csr` leaves it out.
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
    let (cache, file) = (folder.path().join("cache"), folder.path().join("k.svg"));
    let arguments = ["bench", "--suite", "kronbichler", "--dofs", "200", "--degree", "2"];
    let names = ["minimal-surface-2d", "elasticity-3d"];
    let rest = ["--threads", "1", "--problem", names[0], "--problem", names[1]];
    let bench = |more: &[&str]| {
        let output = wf(&[&arguments[..], &rest, more].concat(), &cache);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let rows = bench(&["--json", "--plot", file.to_str().expect("UTF-8")]);
    let rows: Vec<Value> =
        rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
    assert_eq!(rows.iter().map(|row| &row["problem"]).collect::<Vec<_>>(), names);
    // Lines of 15 and of 5 nodes of degree 2, which see (p + 1) (p − 1) = 3 nodes inside of a cell, 2 p + 1 = 5 between cells
    // and p + 1 = 3 at the ends.
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
    let wrong = wf(&["bench", "--suite", "kronbichler", "--problem", "BP1"], &cache);
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("no problem `BP1`") && said.contains("laplacian-2d"), "{said}");
}

#[test]
fn a_run_is_compared_with_an_earlier_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cache, file) = (folder.path().join("cache"), folder.path().join("old.json"));
    let old = file.to_str().expect("UTF-8");
    let arguments = ["bench", "--problem", "BP1", "--dofs", "1e3", "--threads", "1", "--no-csr"];
    let bench = |more: &[&str]| wf(&[&arguments[..], more].concat(), &cache);
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
    // Numbers that are read are not those that were written, to the last bit.
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
    let folder = tempfile::tempdir().expect("a folder");
    let rows = rows_on_balls("scatter", folder.path(), &[]);
    let said = on_balls("scatter", folder.path(), &[]);
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
    let (cache, file) = (folder.path().join("cache"), folder.path().join("low.svg"));
    let suite = ["bench", "--suite", "settgast", "--dofs", "1e3", "--threads", "1"];
    let of = |more: &[&str]| wf(&[&suite[..], more].concat(), &cache);
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

/// A suite may take minutes: a row is on standard output while the next one is measured.
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
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["bench", "--problem", "BP5", "--degree", "1..2", "--dofs", "1e3"];
    let rest = ["--threads", "1", "--geometry", "corners", "--json"];
    let output = wf(&[&arguments[..], &rest].concat(), &folder.path().join("cache"));
    assert_eq!(output.status.code(), Some(1));
    let rows = String::from_utf8(output.stdout).expect("UTF-8");
    let rows: Vec<Value> = rows.lines().filter_map(|row| serde_json::from_str(row).ok()).collect();
    let [row, failure] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&row["problem"], &row["degree"]), (&"BP5".into(), &1.into()));
    let said = failure["error"].as_str().expect("a message");
    assert!(said.contains("corners are gathered by the nodes of a field of degree 1"), "{said}");
}

const UNUSED: &str = "form a { field u: scalar; param c = 2; f0[u] = u - 1; f1[u] = grad(u); }\n\
                      problem q solves a { mesh = box(dim: 2, cells: 1); dirichlet u = 0; }\n";

/// Warnings are no errors, unless that is asked for, and can be told from them.
#[test]
fn warnings_are_shown_and_denied_where_that_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.wf");
    std::fs::write(&path, UNUSED).expect("written");
    let file = path.to_str().expect("UTF-8");
    let run = ["run", file, "--interpret", "--no-output"];
    let emit = ["emit", file, "--cell", "quad"];
    for arguments in [&["check", file][..], &run, &emit] {
        let output = wf(arguments, folder.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !output.stdout.is_empty(), "{arguments:?}: {said}");
        assert_eq!(
            said.matches("warning[W0201]: the parameter `c` is never used").count(),
            1,
            "{said}"
        );
    }
    let checked = json(&wf(&["check", file, "--json"], folder.path()));
    let [warning] = checked["warnings"].as_array().expect("warnings").as_slice() else {
        panic!("{checked}")
    };
    assert_eq!((&warning["code"], &warning["severity"]), (&"W0201".into(), &"warning".into()));
    let denied = wf(&["check", file, "--deny", "warnings"], folder.path());
    assert_eq!(denied.status.code(), Some(1));
    let said = String::from_utf8_lossy(&denied.stderr);
    assert!(said.contains("error[W0201]: the parameter `c` is never used"), "{said}");
    let denied = json(&wf(&["check", file, "--deny", "warnings", "--json"], folder.path()));
    assert_eq!(denied["diagnostics"][0]["severity"], "error", "{denied}");
    let unknown = wf(&["check", file, "--deny", "errors"], folder.path());
    assert_eq!(unknown.status.code(), Some(2));
}

/// A beam under its end's load, solved with the interpreter.
fn beam(folder: &Path, solver: &str) -> std::path::PathBuf {
    let path = folder.join("beam.wf");
    let text = format!(
        "form elasticity {{
            field u: vector;
            let eps = sym(grad(u));
            f1[u] = 577 * tr(eps) * I + 769 * eps;
            on boundary \"x1\" {{ f0[u] = [0, 1]; }}
        }}
        problem beam solves elasticity {{
            mesh = box(dim: 2, cells: [20, 2], to: [10, 1]);
            degree = 2;
            dirichlet u = [0, 0] on \"x0\";
            {solver}
        }}"
    );
    std::fs::write(&path, text).expect("a file");
    path
}

#[test]
fn a_solve_that_stops_short_writes_what_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = beam(folder.path(), "solver = cg(max_iterations: 3);");
    let (file, output) = (file.display().to_string(), folder.path().join("end.vtu"));
    let output = output.display().to_string();
    let stopped = wf(&["run", &file, "--interpret", "--output", &output], folder.path());
    assert_eq!(stopped.status.code(), Some(1));
    let said = String::from_utf8_lossy(&stopped.stderr);
    assert!(
        said.contains("did not converge in 3") && said.contains("end.unconverged.vtu"),
        "{said}"
    );
    assert!(folder.path().join("end.unconverged.vtu").exists());
    assert!(!folder.path().join("end.vtu").exists());
    let silent = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.args(["run", &file, "--interpret", "--no-output"]).current_dir(silent.path());
    let stopped = command.output().expect("wf should start");
    assert_eq!(stopped.status.code(), Some(1));
    assert!(!String::from_utf8_lossy(&stopped.stderr).contains("unconverged"));
    assert_eq!(std::fs::read_dir(silent.path()).expect("a folder").count(), 0);
}

#[test]
fn notes_say_that_rounding_was_met_and_by_whom() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |solver: &str| {
        let file = beam(folder.path(), solver).display().to_string();
        let output = wf(&["run", &file, "--interpret", "--no-output", "--json"], folder.path());
        assert!(output.status.success(), "{solver}: {output:?}");
        json(&output)
    };
    let plain = run("");
    assert_eq!(plain["solver"], "direct", "small problems are solved by factors");
    for solver in ["cg", "minres", "direct", "newton"] {
        let solved = run(&format!("solver = {solver}(rtol: 0, atol: 0);"));
        assert_eq!(solved["solver"], solver);
        let notes = solved["notes"].to_string();
        assert!(notes.contains("rounding: it leaves a residual of"), "{solver}: {notes}");
    }
    let newton = run("solver = newton();");
    assert!(newton["iterations"].as_u64().is_some_and(|steps| steps <= 2), "{newton}");
}

/// Three solves, each from the one before, a row each in the table, and a file for each line.
#[test]
fn a_parameter_takes_several_values_one_after_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.wf");
    let text = "form a { field u: scalar; param load = 1; f0[u] = u^3 - load; f1[u] = grad(u); }
        problem p solves a {
            mesh = box(dim: 2, cells: 4);
            dirichlet u = 0;
            initial u = 1e-3 * x[0];
            report top = maximum(u);
            report pull = integral(grad(u));
            report cut = line(u, from: [0, 0.5], to: [1, 0.5], points: 3);
        }";
    std::fs::write(&file, text).expect("a file");
    let (file, table) = (file.to_str().expect("UTF-8"), folder.path().join("t.csv"));
    let output = folder.path().join("u.vtu");
    let arguments = |load: &'static str| {
        let (table, output) = (table.to_str().expect("UTF-8"), output.to_str().expect("UTF-8"));
        let all = [
            "run",
            file,
            "--interpret",
            "--json",
            "--param",
            load,
            "--report",
            table,
            "--output",
            output,
        ];
        all.map(str::to_owned).to_vec()
    };
    let run = |load: &'static str| {
        let arguments = arguments(load);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        wf(&arguments, folder.path())
    };
    let found = run("load=1..9:3");
    let text = String::from_utf8(found.stdout).expect("UTF-8");
    let values: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(values.len(), 3, "{text}");
    let top = |value: &Value| value["reports"]["top"].as_f64().expect("a number");
    assert!(top(&values[0]) < top(&values[1]) && top(&values[1]) < top(&values[2]));
    assert_eq!(values[1]["sweep"]["load"], "5.0");
    assert_eq!(values[2]["reports"]["cut"].as_array().map(Vec::len), Some(3));
    assert_eq!(values[0]["fields"]["u"]["maximum"], values[0]["reports"]["top"]);
    let rows = std::fs::read_to_string(&table).expect("a table");
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!((rows[0], rows.len()), ("load,top,pull[0],pull[1]", 4));
    let second: Vec<&str> = rows[2].split(',').collect();
    assert_eq!(second[1].parse::<f64>().ok(), Some(top(&values[1])), "{rows:?}");
    for name in ["u-1.vtu", "u-3.vtu", "u-1-cut.csv", "u-3-cut.csv"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
    let wrong = run("load=1..9");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        json(&wrong)["error"].as_str().is_some_and(|error| error.contains("FIRST..LAST:COUNT"))
    );
}

/// One disc from four programs' formats, its boundary under the name that each has for it; and what the run wrote is a
/// mesh again.
#[test]
fn problems_are_solved_on_meshes_of_all_formats() {
    let folder = tempfile::tempdir().expect("a folder");
    let meshes = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime/tests/meshes");
    let (file, output) = (folder.path().join("a.wf"), folder.path().join("u.vtu"));
    let (file, output) = (file.to_str().expect("UTF-8"), output.to_str().expect("UTF-8"));
    let mut energies = Vec::new();
    for (mesh, tag) in [
        ("disc_quad8.msh", "rim"),
        ("disc_quad8_zlib_big.vtu", "9"),
        ("disc_quad8_binary.vtk", "9"),
        ("disc_quad8.inp", "rim"),
    ] {
        let text = format!(
            "form p {{ field u: scalar; f0[u] = -1; f1[u] = grad(u); }}\n\
             problem q solves p {{ mesh = {:?}; degree = 2; dirichlet u = 0 on \"{tag}\"; \
             exact u = (1 - x[0]^2 - x[1]^2) / 4; }}\n",
            meshes.join(mesh)
        );
        std::fs::write(file, text).expect("written");
        let run = ["run", file, "--interpret", "--json", "--output", output];
        let solved = json(&wf(&run, folder.path()));
        assert!(solved["error_l2"].as_f64().is_some_and(|error| error < 1e-3), "{mesh}: {solved}");
        energies.push(solved["energy"].as_f64().expect("a number"));
    }
    assert!(energies.iter().all(|e| (e - energies[0]).abs() < 1e-9), "{energies:?}");
    let run = ["run", file, "--interpret", "--json", "--no-output", "--mesh", output];
    let refused = json(&wf(&run, folder.path()));
    // The mesh is read; only the names of its boundary are not in it.
    assert!(refused["error"].to_string().contains("no boundary"), "{refused}");
}

#[test]
fn solves_by_levels_are_measured_beside_the_diagonal() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cache, file) = (folder.path().join("cache"), folder.path().join("levels.svg"));
    let suite = ["bench", "--suite", "multigrid", "--problem", "square", "--degree", "2..2"];
    let more = ["--dofs", "1e3", "--json", "--plot", file.to_str().expect("UTF-8")];
    let output = wf(&[&suite[..], &more].concat(), &cache);
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
    let wrong = wf(&["bench", "--suite", "multigrid", "--problem", "BP1"], &cache);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(!wrong.status.success() && said.contains("square, cube, deformed"), "{said}");
}

//! `wf plan`, `wf tune` and `wf doctor --calibrate`: candidates, their times, and their stored results.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Runs `wf` with its own kernel cache, and without OpenCL, whose devices take long to measure.
fn wf(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("wf should run")
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env("WF_CACHE_DIR", folder.join("kernels")).env("OCL_ICD_VENDORS", folder);
    command
}

fn json(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    parsed(wf(folder, &[arguments, &["--json"]].concat()), arguments)
}

fn parsed(output: Output, arguments: &[&str]) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn candidates_are_those_of_the_machine() {
    let folder = TempDir::new().expect("a folder");
    for (backend, least, strategies) in [("cpu", 2, 1), ("cuda", 6, 3), ("opencl", 6, 3)] {
        let arguments = ["plan", "examples/poisson.wf", "--degree", "3", "--backend", backend];
        let plans = json(folder.path(), &arguments);
        let [plan] = &plans[..] else { panic!("{plans:?}") };
        let candidates = plan["candidates"].as_array().expect("candidates");
        assert!(candidates.len() >= least, "{backend}: {}", candidates.len());
        let mut names: Vec<&str> =
            candidates.iter().filter_map(|one| one["strategy"].as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert!(names.len() >= strategies, "{backend}: {names:?}");
        let chosen = plan["chosen"].as_u64().expect("an index") as usize;
        for (index, one) in candidates.iter().enumerate() {
            assert_eq!(one["chosen"], index == chosen);
            let counts = &one["counts"];
            let parts =
                ["vectors", "geometry", "data", "indices"].map(|part| format!("bytes_of_{part}"));
            let bytes: f64 = parts.iter().map(|part| number(counts, part)).sum();
            let bytes = bytes + number(counts, "bytes_stored");
            assert!((bytes - number(one, "bytes")).abs() < 1e-9 * bytes);
            assert!(number(one, "flops") > 0.0);
            assert!(number(one, "floor_seconds") <= number(one, "seconds"));
            let limiters = ["bandwidth", "arithmetic", "shared memory", "additions", "registers"];
            assert!(limiters.iter().any(|limiter| one["limiter"] == *limiter), "{one}");
        }
        let seconds: Vec<f64> = candidates.iter().map(|one| number(one, "seconds")).collect();
        assert!(seconds.is_sorted(), "{seconds:?}");
        for change in plan["changes"].as_array().expect("changes") {
            assert!(number(change, "bandwidth_times") != 1.0);
            assert!((change["candidate"].as_u64().expect("an index") as usize) < candidates.len());
        }
    }
}

#[test]
fn a_machine_is_measured_once_and_its_kernels_are_drawn() {
    let folder = TempDir::new().expect("a folder");
    let mesh = ["--mesh", "box(dim: 3, cells: 3, deform: 0.1)"];
    let plan = [&["plan", "examples/poisson.wf"][..], &mesh].concat();
    assert_eq!(json(folder.path(), &plan)[0]["machine"]["calibrated"], false);
    let measured = json(folder.path(), &["doctor", "--calibrate"]);
    for machine in &measured {
        for rate in ["copy_bytes", "read_bytes", "flops", "divisions", "additions"] {
            assert!(number(machine, &format!("{rate}_per_second")) > 0.0, "{machine}");
        }
    }
    let picture = folder.path().join("roofs.svg");
    let path = picture.display().to_string();
    let drawn = [&plan[..], &["--measure", "--roofline", &path]].concat();
    let plans = json(folder.path(), &drawn);
    assert_eq!(plans[0]["machine"]["calibrated"], true);
    let candidates = plans[0]["candidates"].as_array().expect("candidates");
    assert!(candidates.len() >= 2);
    for one in candidates {
        assert!(number(one, "measured_seconds") > 0.0, "{one}");
    }
    let svg = std::fs::read_to_string(&picture).expect("a picture");
    for words in ["roof", "taken", "flops a byte", "GFLOP/s"] {
        assert!(svg.contains(words), "{words}");
    }
    let output = wf(folder.path(), &plan);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for words in ["predicted", "* is taken", "limiter", "read"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn what_is_faster_is_remembered_until_it_is_forgotten() {
    let folder = TempDir::new().expect("a folder");
    let tune = ["tune", "examples/poisson.wf", "--mesh", "box(dim: 3, cells: 3, deform: 0.1)"];
    let runs = json(folder.path(), &[&tune[..], &["--seconds", "5"]].concat());
    let all = runs[0]["runs"].as_array().expect("runs");
    assert!(all.len() >= 2, "{all:?}");
    assert_eq!(all.iter().filter(|run| run["taken"] == true).count(), 1);
    let gain = number(&runs[0], "gain");
    assert_eq!(runs[0]["remembered"] == true, all[0]["taken"] == false);
    assert!(gain >= 1.0);
    let forgotten = json(folder.path(), &[&tune[..], &["--forget"]].concat());
    assert_eq!(forgotten[0]["forgotten"], true);
}

#[test]
fn what_cannot_be_planned_is_said() {
    let folder = TempDir::new().expect("a folder");
    for (arguments, words) in [
        (&["plan", "examples/poisson.wf", "--roofline", "roof.pdf"][..], "roof.png"),
        (&["tune", "examples/poisson.wf", "--interpret"], "--interpret"),
        (&["plan", "examples/poisson.wf", "--problem", "nobody"], "nobody"),
        (&["plan", "examples/poisson.wf", "--backend", "opencl", "--measure"], "opencl"),
    ] {
        let output = wf(folder.path(), arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
        // A build without OpenCL reports that; one with it requires a device.
        assert!(text.to_lowercase().contains(words), "{arguments:?}: {text}");
    }
}

/// Counts do not depend on the CPU; efficiencies depend on the rate of cells, and are tested for every instruction set.
#[test]
fn processes_are_counted_on_paper() {
    let folder = TempDir::new().expect("a folder");
    for isa in ["", "avx2", "portable"] {
        count_processes(folder.path(), isa);
    }
    let few = wf(folder.path(), &["plan", "examples/poisson.wf", "--processes", "4000"]);
    let error = String::from_utf8_lossy(&few.stderr).into_owned();
    assert!(!few.status.success() && error.contains("only 3584 cells"), "{error}");
    let text = wf(folder.path(), &["plan", "examples/poisson.wf", "--processes", "8"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("on paper") && text.contains("efficiency"), "{text}");
}

fn count_processes(folder: &Path, isa: &str) {
    let of = |more: &[&str]| {
        let plan = ["plan", "examples/poisson.wf", "--threads", "1", "--processes", "1,8,64"];
        let arguments = [&plan[..], more, &["--json"]].concat();
        let output = command(folder, &arguments).env("WF_ISA", isa).output();
        parsed(output.expect("wf should run"), &arguments).remove(0)["processes"].take()
    };
    let counted = of(&[]);
    let rows = counted["rows"].as_array().expect("rows");
    let most = |row: &Value, name: &str| number(&row["most"], name);
    let efficiency = |row: &Value| number(row, "efficiency");
    assert_eq!(rows.len(), 3);
    assert_eq!((most(&rows[0], "cells"), most(&rows[0], "neighbours")), (3584.0, 0.0));
    assert!((efficiency(&rows[0]) - 1.0).abs() < 1e-12, "{}", rows[0]);
    // Equal subdomains of a ball, each with some neighbours; shared DoFs increase their sum.
    assert_eq!((most(&rows[1], "cells"), most(&rows[2], "cells")), (448.0, 56.0));
    assert!(8.0 * most(&rows[1], "unknowns") > number(&counted, "counted_unknowns"));
    assert!(rows.is_sorted_by(|a, b| most(a, "neighbours") < most(b, "neighbours")));
    // Copies to and from messages are never overlapped.
    assert!(rows.is_sorted_by(|a, b| efficiency(a) > efficiency(b)), "{counted}");
    // Messages that take longer than all cells of a process are not fully overlapped; with more DoFs they are, on a
    // slow network they are not.
    let late = of(&["--latency", "1e-2"]);
    let large = of(&["--unknowns", "1e9"]);
    let slow = of(&["--unknowns", "1e9", "--bandwidth", "1e4"]);
    let last = |counted: &Value| efficiency(&counted["rows"][2]);
    assert!(last(&late) < 0.5, "{late}");
    assert!(last(&large) > 0.95, "{large}");
    assert!(last(&slow) < 0.5 * last(&large), "{slow}");
    assert!(
        number(&large["rows"][2], "cycle_seconds") > number(&large["rows"][2], "product_seconds")
    );
}

/// The table is of cells; kernels of facets are counted below it.
#[test]
fn facets_are_counted_beside_cells() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/interior_penalty.wf");
    let file = file.to_str().expect("UTF-8");
    let output = wf(folder.path(), &["plan", file, "--problem", "layers"]);
    let said = String::from_utf8_lossy(&output.stdout);
    let wanted = "112 facets between cells and 16 of the boundary have kernels of their own";
    assert!(output.status.success() && said.contains(wanted), "{said}");
    let measured = json(folder.path(), &["plan", file, "--problem", "layers", "--measure"]);
    assert_eq!(measured[0]["facets"], serde_json::json!({"between": 112, "boundary": 16}));
    let seconds = measured[0]["candidates"][0]["measured_seconds"].as_f64();
    assert!(seconds.is_some_and(|seconds| seconds > 0.0), "{measured:?}");
}

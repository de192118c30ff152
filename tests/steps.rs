//! Steps of a run from the user's perspective: files in series, rows, and adaptive steps in the language.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// A membrane under a load, without a solution for a negative load.
const MEMBRANE: &str = "form a {
        field u: scalar;
        param load = 1;
        f0[u] = u^3 - sqrt(load);
        f1[u] = grad(u);
    }
    problem p solves a {
        mesh = box(dim: 2, cells: 4);
        dirichlet u = 0;
        exact u = x[0];
        report top = maximum(u);
        report cut = line(u, from: [0, 0.5], to: [1, 0.5], points: 3);
    }";

fn command(folder: &Path, arguments: &[&str]) -> Command {
    std::fs::write(folder.join("a.wf"), MEMBRANE).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.args(["run", "a.wf", "--interpret"]).args(arguments);
    command.current_dir(folder).env("WF_CACHE_DIR", folder.join("cache"));
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("wf should start")
}

fn values(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// Returns the times and files of a collection, all of which exist and are complete.
fn series(folder: &Path, name: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(folder.join(name)).expect("a collection");
    assert!(text.contains("<VTKFile type=\"Collection\""), "{text}");
    assert!(text.ends_with("  </Collection>\n</VTKFile>\n"), "{text}");
    let of = |line: &str, name: &str| {
        let value =
            line.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        value.unwrap_or_else(|| panic!("no {name}: {line}")).to_owned()
    };
    let sets = text.lines().filter(|line| line.contains("<DataSet "));
    let found: Vec<_> = sets.map(|set| (of(set, "timestep"), of(set, "file"))).collect();
    for (_, file) in &found {
        let bytes = std::fs::read(folder.join(file)).expect("a file of the series");
        assert!(bytes.ends_with(b"</VTKFile>\n"), "{file} is not whole");
    }
    found
}

fn numbered(name: &str, count: usize) -> Vec<(String, String)> {
    (0..count).map(|step| (step.to_string(), format!("{name}-{step}.vtu"))).collect()
}

/// Files, pictures, rows and the list of steps of a mesh that follows its solution.
#[test]
fn each_time_has_its_own_mesh() {
    let made = tempfile::tempdir().expect("a folder");
    let folder = made.path();
    std::fs::write(
        folder.join("b.wf"),
        "form a { field u: scalar; f0[u] = dt(u) + 2 * u * grad(u)[0]; f1[u] = 0.05 * grad(u); }
         problem p solves a { mesh = box(dim: 2, cells: 2); degree = 1; dirichlet u on \"x0\", \"x1\";
             exact u = 1 / (1 + exp((x[0] - t) / 0.05)); time = bdf(from: 0.2, to: 0.4, step: 0.02, every: 0.1);
             adapt(every: 2, levels: 3); report mass = integral(u); }",
    )
    .expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_wf"))
        .args(["run", "b.wf", "--interpret", "--json", "--report", "t.csv", "-o", "u-{step}.vtu"])
        .args(["--picture", "u-{step}.png", "--animate", "all.png", "--picture-size", "240x200"])
        .current_dir(folder)
        .output()
        .expect("wf should start");
    assert!(output.status.success(), "{output:?}");
    let value = &values(&output)[0];
    let steps = value["steps"].as_array().expect("a list");
    let cells: Vec<u64> = steps.iter().map(|step| step["cells"].as_u64().expect("one")).collect();
    assert!(cells.len() == 3 && cells[0] != cells[2] && cells[0] > 4, "{cells:?}");
    let files = series(folder, "u.pvd");
    for ((_, file), cells) in files.iter().zip(&cells) {
        let text = String::from_utf8_lossy(&std::fs::read(folder.join(file)).expect("a file"))
            .into_owned();
        assert!(
            text.contains(&format!("NumberOfCells=\"{cells}\"")),
            "{file} has not {cells} cells"
        );
    }
    assert!(folder.join("u-2.png").is_file() && folder.join("all.png").is_file());
    let table = std::fs::read_to_string(folder.join("t.csv")).expect("a table");
    assert!(table.starts_with("t,error_l2,error_h1,cells,dofs,mass\n"), "{table}");
    let last = table.lines().last().expect("a row");
    assert_eq!(last.split(',').nth(3), Some(&*cells[2].to_string()), "{table}");
    let notes = value["notes"].to_string();
    assert!(notes.contains("`adapt` changed the mesh"), "{notes}");
}

#[test]
fn values_of_a_parameter_are_a_series_that_opens_as_one() {
    let made = tempfile::tempdir().expect("a folder");
    let folder = made.path();
    let sweep = ["--param", "load=1,4,9", "--json", "--report", "t.csv"];
    let found = run(folder, &[&sweep[..], &["-o", "u-{step}.vtu"]].concat());
    assert!(found.status.success(), "{found:?}");
    assert_eq!(series(folder, "u.pvd"), numbered("u", 3));
    let values = values(&found);
    for (number, value) in values.iter().enumerate() {
        assert_eq!(value["output"], "u.pvd");
        let [step] = &value["steps"].as_array().expect("a list")[..] else { panic!("{value}") };
        assert_eq!(step["kind"], "sweep");
        for of in ["cells", "dofs", "error_l2", "error_h1"] {
            assert!(step[of].is_number() && step[of] == value[of], "{of}: {value}");
        }
        assert!(step["estimate"].is_null() && step["seconds"].is_number(), "{value}");
        assert!(folder.join(format!("u-{number}-cut.csv")).exists());
    }
    let rows = std::fs::read_to_string(folder.join("t.csv")).expect("a table");
    assert_eq!(rows.lines().next(), Some("load,top"));
    assert_eq!(rows.lines().count(), 4);
    // The same bytes as in files numbered from 1.
    let plain = run(folder, &[&sweep[..], &["-o", "v.vtu"]].concat());
    assert!(plain.status.success(), "{plain:?}");
    let bytes = |name: String| std::fs::read(folder.join(name)).expect("a file");
    for number in 0..3 {
        assert!(bytes(format!("u-{number}.vtu")) == bytes(format!("v-{}.vtu", number + 1)));
    }
    assert!(!folder.join("v.pvd").exists());
}

/// Two parameters with several values: all combinations, the last one first, with a picture and a frame of each.
#[test]
fn several_parameters_are_solved_for_all_combinations_and_drawn() {
    let made = tempfile::tempdir().expect("a folder");
    let folder = made.path();
    let text = "form a { field u: scalar; param a = 1; param b = 1; f0[u] = -b; f1[u] = a * grad(u); }
        problem p solves a { mesh = interval(cells: 2); degree = 2; dirichlet u = 0; report top = u([0.5]); }";
    let mut command = command(folder, &["--param", "a=1,2", "--param", "b=8,16,24", "--json"]);
    std::fs::write(folder.join("a.wf"), text).expect("a file");
    let pictures =
        ["--picture", "u-{step}.png", "--animate", "all.png", "--picture-size", "240x200"];
    let others = ["--no-output", "--report", "t.csv", "--plot", "t.svg", "--range", "0..3"];
    let found = command.args(pictures).args(others).output().expect("wf");
    assert!(found.status.success(), "{found:?}");
    let rows = std::fs::read_to_string(folder.join("t.csv")).expect("a table");
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split(',').collect()).collect();
    assert_eq!(rows[0], ["a", "b", "top"]);
    assert_eq!(rows.len(), 7);
    for (row, (a, b)) in rows[1..].iter().zip([(1, 8), (1, 16), (1, 24), (2, 8), (2, 16), (2, 24)])
    {
        assert_eq!(row[..2], [a.to_string(), b.to_string()]);
        // b x (1 − x) / (2 a) in the middle.
        let top: f64 = row[2].parse().expect("a number");
        assert!((top - f64::from(b) / (8.0 * f64::from(a))).abs() < 1e-12, "{row:?}");
    }
    assert_eq!(values(&found)[5]["sweep"]["b"], "24");
    let read = |name: &str| {
        let bytes = std::fs::read(folder.join(name)).expect("a picture");
        let decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        let mut reader = decoder.read_info().expect("PNG");
        let frames = reader.info().animation_control().map(|control| control.num_frames);
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        reader.next_frame(&mut pixels).expect("pixels");
        (frames, (reader.info().width, reader.info().height), pixels)
    };
    let single: Vec<_> = (0..6).map(|step| read(&format!("u-{step}.png"))).collect();
    assert!(single.iter().all(|(frames, size, _)| frames.is_none() && *size == (240, 200)));
    // b / a is 8 twice: step 0 and 4.
    assert!(single[0].2 == single[4].2 && single[0].2 != single[1].2);
    let (frames, _, first) = read("all.png");
    assert!(frames == Some(6) && first == single[0].2, "{frames:?}");
    let charts = std::fs::read_to_string(folder.join("t.svg")).expect("a chart");
    assert!(charts.contains(">top<") || charts.contains("top"), "{charts}");
}

#[test]
fn one_solve_is_step_0() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = run(folder.path(), &["--json", "-o", "u{step}.vtu"]);
    let value = &values(&found)[0];
    assert_eq!(value["steps"][0]["kind"], "solve", "{value}");
    assert_eq!(value["steps"].as_array().map(Vec::len), Some(1));
    let all = [("0".to_owned(), "u0.vtu".to_owned())];
    assert_eq!(series(folder.path(), "u.pvd"), all);
}

#[test]
fn what_is_solved_before_a_failure_is_a_series_and_a_table() {
    let made = tempfile::tempdir().expect("a folder");
    let folder = made.path();
    let sweep = ["--param", "load=1,4,-1,9", "--report", "t.csv", "-o", "u-{step}.vtu"];
    let found = run(folder, &sweep);
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    // A failed step has no number.
    assert_eq!(series(folder, "u.pvd"), numbered("u", 3));
    let rows = std::fs::read_to_string(folder.join("t.csv")).expect("a table");
    let loads: Vec<&str> = rows.lines().filter_map(|row| row.split(',').next()).collect();
    assert_eq!(loads, ["load", "1", "4", "9"]);
    // Each row is printed immediately, and again with the result.
    for text in [&found.stdout, &found.stderr] {
        let text = String::from_utf8_lossy(text);
        let head = text.lines().position(|line| line.trim_start().starts_with("load  "));
        let head = head.unwrap_or_else(|| panic!("no table: {text}"));
        let width = text.lines().nth(head).map_or(0, |line| line.chars().count());
        assert!(width > 20 && text.contains("  4.000000e0  "), "{text}");
    }
}

/// An interrupted run leaves readable files.
#[test]
fn a_run_that_is_ended_leaves_a_series_and_a_table() {
    let made = tempfile::tempdir().expect("a folder");
    let folder = made.path();
    let arguments =
        ["--param", "load=1..9:10000", "--report", "t.csv", "--quiet", "-o", "u-{step}.vtu"];
    let mut child = command(folder, &arguments);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("wf");
    while !folder.join("u-3.vtu").exists() {
        assert!(child.try_wait().expect("its state").is_none(), "it has ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("it can be ended");
    child.wait().expect("its end");
    let found = series(folder, "u.pvd");
    assert!(found.len() >= 3 && found == numbered("u", found.len()), "{found:?}");
    let rows = std::fs::read_to_string(folder.join("t.csv")).expect("a table");
    assert!(rows.lines().count() > 3 && rows.ends_with('\n'), "{rows}");
}

#[test]
fn names_that_can_be_no_series_are_refused_before_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, words) in [
        (&["-o", "u-{step}/v.vtu"][..], "stands in a folder's name"),
        (&["-o", "u-{step}.png"], "a solution is not written as `.png`"),
        (&["-o", "missing/u-{step}.vtu"], "make its folder"),
        (&["--report", "t-{step}.csv"], "holds a row for each step"),
        (&["--animate", "u-{step}.png"], "shows all steps"),
        (&["--animate", "u.gif"], "an animation is"),
        (&["--plot", "t-{step}.svg"], "shows all steps"),
    ] {
        let found = run(folder.path(), arguments);
        let said = String::from_utf8_lossy(&found.stderr);
        assert!(found.status.code() == Some(1) && said.contains(words), "{arguments:?}: {said}");
        assert!(said.contains("\nhelp: "), "{arguments:?}: {said}");
    }
    let left = std::fs::read_dir(folder.path()).expect("the folder");
    let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| name == "a.wf" || name == "cache"), "{left:?}");
}

/// The language has them; the steps themselves are rejected, and a single solve is never reported as all.
#[test]
fn adaptive_steps_have_files_rows_and_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("b.wf");
    let text =
        MEMBRANE.replace("dirichlet u = 0;", "dirichlet u = 0; adapt(steps: 2, fraction: 0.4);");
    std::fs::write(&path, text).expect("a file");
    let wf = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
        command.args(arguments).arg(&path).current_dir(folder.path());
        command.env("WF_CACHE_DIR", folder.path().join("cache")).output().expect("wf")
    };
    assert!(wf(&["check", "--deny", "warnings"]).status.success());
    let dry = wf(&["run", "--dry-run", "--json"]);
    assert_eq!(values(&dry)[0]["steps_at_most"], 3, "{dry:?}");
    let options = ["--output", "u-{step}.vtu", "--report", "steps.csv"];
    let done = wf(&[&["run", "--interpret", "--json"], &options[..]].concat());
    assert!(done.status.success(), "{done:?}");
    let value = &values(&done)[0];
    let steps = value["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 3);
    let cells = |step: &Value| step["cells"].as_u64().expect("cells");
    for (step, next) in steps.iter().zip(&steps[1..]) {
        assert!(step["kind"] == "adapt" && step["estimate"].as_f64().is_some(), "{step}");
        assert!(cells(next) > cells(step), "{step} and {next}");
    }
    assert_eq!(value["cells"], steps[2]["cells"]);
    for step in 0..3 {
        assert!(folder.path().join(format!("u-{step}.vtu")).exists());
    }
    let series = std::fs::read_to_string(folder.path().join("u.pvd")).expect("a series");
    assert_eq!(series.matches("<DataSet").count(), 3);
    let table = std::fs::read_to_string(folder.path().join("steps.csv")).expect("a table");
    assert_eq!(table.lines().count(), 4, "{table}");
}

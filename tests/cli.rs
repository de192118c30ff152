//! `wf` from the user's perspective: exit codes, and JSON as the only contents of standard output.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

pub(crate) fn wf(arguments: &[&str], cache: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.args(arguments).env("WF_CACHE_DIR", cache).env_remove("WF_DUMP_DIR");
    command.output().expect("wf should start")
}

/// Returns the one JSON object on standard output.
pub(crate) fn json(output: &Output) -> Value {
    let text = std::str::from_utf8(&output.stdout).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The information in the text output of a solve and of a picture is also in the JSON.
#[test]
fn json_has_what_the_text_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| json(&wf(&[arguments, &["--json"]].concat(), folder.path()));
    let mesh = ["examples/poisson.wf", "--mesh", "box(dim: 2, cells: 2)"];
    let solved = run(&[&["run"], &mesh[..], &["--interpret", "--no-output"]].concat());
    let field = &solved["fields"]["u"];
    assert_eq!((&field["shape"], &field["degree"]), (&"scalar".into(), &solved["degree"]));
    assert_eq!(field["continuous"], true, "{solved}");
    assert!(solved["plan"]["lanes"].is_u64() && solved["plan"]["geometry"].is_string(), "{solved}");
    assert!(solved["warnings"].is_array() && solved["notes"].is_array(), "{solved}");
    let picture = folder.path().join("roofs.svg").display().to_string();
    let planned = run(&[&["plan"], &mesh[..], &["--roofline", &picture]].concat());
    assert_eq!(planned["picture"], picture.as_str(), "{planned}");
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
fn conserved_components_of_forms_between_cells_are_named() {
    let cache = tempfile::tempdir().expect("a folder");
    let file = cache.path().join("a.wf");
    let text =
        "form a { field w: vector in L2(0); f0[w] = w; on interior { f0[jump(w)] = jump(w); } }
        problem p solves a { mesh = box(dim: 2, cells: 2); }";
    std::fs::write(&file, text).expect("a file");
    let file = file.to_str().expect("a path in UTF-8");
    let checked = json(&wf(&["check", file, "--json"], cache.path()));
    let conserved = &checked["forms"][0]["conserved"];
    assert_eq!(conserved.as_array().map(Vec::len), Some(3), "{checked}");
    assert_eq!(conserved[1], "w[1]");
    assert!(wf(&["emit", file, "--stage", "point"], cache.path()).status.success());
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
    for (word, section) in [
        ("numbers", "unknown"),
        ("periodic", "problems"),
        ("arc_length", "solvers"),
        ("adapt", "adaptive"),
        ("interval", "meshes"),
        ("table", "expressions"),
    ] {
        assert_eq!(json(&explain(word))["topic"], section, "{word}");
    }
    assert_eq!(explain("qwertz").status.code(), Some(1));
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
fn options_of_devices_say_what_they_need() {
    let cache = tempfile::tempdir().expect("a folder");
    let run = ["run", "examples/nonlinear.wf", "--no-output", "--json"];
    let error =
        json(&wf(&[&run[..], &["--device", "x"]].concat(), cache.path()))["error"].to_string();
    assert!(error.contains("--backend cuda"), "{error}");
    for command in [&run[..], &["bench", "--json"]] {
        let output = wf(&[command, &["--scatter", "owner"]].concat(), cache.path());
        let error = json(&output)["error"].to_string();
        assert!(error.contains("--scatter is for devices"), "{error}");
    }
    for backend in ["cpu", "opencl"] {
        let several = ["--devices", "0,1", "--backend", backend];
        let output = wf(&[&run[..], &several].concat(), cache.path());
        // Exactly one of the processes reports it.
        let error = json(&output)["error"].to_string();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("--devices is for CUDA"), "{error}");
    }
    let output = wf(&[&run[..], &["--scatter", "twice"]].concat(), cache.path());
    assert_eq!(output.status.code(), Some(2));
    let error = json(&output).to_string();
    assert!(error.contains("atomic, coloured, owner or block"), "{error}");
}

const UNUSED: &str = "form a { field u: scalar; param c = 2; f0[u] = u - 1; f1[u] = grad(u); }\n\
                      problem q solves a { mesh = box(dim: 2, cells: 1); dirichlet u = 0; }\n";

/// Warnings are no errors, unless requested, and are distinguishable from errors.
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

#[test]
fn spaces_that_are_not_stable_are_explained_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stokes.wf");
    let text = "form stokes {
            field u: vector; field p: scalar;
            f1[u] = grad(u) - p * I; f0[p] = div(u);
        }
        problem cavity solves stokes {
            mesh = box(dim: 2, cells: 4); degree = 2;
            dirichlet u = [1, 0] on \"y1\"; dirichlet u = [0, 0]; mean p = 0;
        }";
    std::fs::write(&path, text).expect("written");
    let file = path.to_str().expect("UTF-8");
    let output = wf(&["run", file, "--interpret", "--no-output"], folder.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("Ladyzhenskaya").count(), 1, "{said}");
    assert!(said.contains("error[E0417]: the matrix is singular"), "{said}");
}

/// Returns a beam under its end's load, solved with the interpreter.
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

/// Each value of a parameter begins at the initial state: u = exp(−a π² t) sin(πx) at t = 1/10.
#[test]
fn each_value_of_a_parameter_runs_through_time_from_the_initial_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "form heat {
            field u: scalar; param a = 1;
            f0[u] = dt(u); f1[u] = a * grad(u);
        }
        problem p solves heat {
            mesh = interval(cells: 8); degree = 3;
            dirichlet u = 0; initial u = sin(pi * x[0]);
            time = bdf(order: 2, to: 0.1, step: 0.005);
            report middle = u([0.5]);
        }";
    let path = folder.path().join("a.wf");
    std::fs::write(&path, text).expect("written");
    let file = path.to_str().expect("UTF-8");
    let arguments = ["run", file, "--interpret", "--no-output", "--json", "--param", "a=1,2"];
    let output = wf(&arguments, folder.path());
    let said = String::from_utf8_lossy(&output.stdout);
    let all = serde_json::Deserializer::from_str(&said).into_iter::<Value>();
    let all: Vec<_> = all.map(|value| value.expect("JSON")).collect();
    assert_eq!(all.len(), 2, "{said}");
    for (value, a) in all.iter().zip([1.0, 2.0]) {
        let known = f64::exp(-a * std::f64::consts::PI.powi(2) / 10.0);
        let middle = value["reports"]["middle"].as_f64().expect("a number");
        assert!((middle - known).abs() < 1e-2 * known, "{a}: {middle} instead of {known}");
    }
}

/// Three solves, each starting from the one before, one row each in the table, and a file for each line plot.
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

/// One disc in the formats of four programs, its boundary under each format's name; the output of the run is itself a
/// mesh.
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
    // The mesh is read; only the names of its boundary are missing.
    assert!(refused["error"].to_string().contains("no boundary"), "{refused}");
}

/// A problem whose solution is 0 at the boundary, and a wrong one.
const LINES: &str = "form poisson { field u: scalar; f0[u] = -1; f1[u] = grad(u); }
    problem good solves poisson {
        mesh = box(dim: 2, cells: 2);
        dirichlet u = 0;
        report cut = line(u, from: [0.5, 0.5], to: [1.5, 0.5], points: 3);
        report far = u([3, 3]);
        report one = 1 / integral(0 * u);
    }
    problem bad solves poisson { mesh = box(dim: 2, cells: 2); dirichlet v = 0; }";

#[test]
fn a_line_has_a_file_that_the_report_names_and_gaps_and_infinities_are_warned_of() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (file, table, output) = (path("a.wf"), path("t.csv"), path("u.vtu"));
    std::fs::write(&file, LINES).expect("a file");
    let one = ["run", &file, "--problem", "good", "--interpret"];
    let only = [&one[..], &["--json", "--no-output", "--report", &table]].concat();
    let found = json(&wf(&only, folder.path()));
    assert_eq!(found["lines"]["cut"], path("t-cut.csv"), "{found}");
    let text = std::fs::read_to_string(path("t-cut.csv")).expect("a line");
    let rows: Vec<&str> = text.lines().collect();
    assert!(
        rows.len() == 4 && rows[1].starts_with("0.5,0.5,0.0,0.") && rows[3] == "1.5,0.5,0.0,",
        "{text}"
    );
    let rows = std::fs::read_to_string(&table).expect("a table");
    assert_eq!(rows, "far,one\n,inf\n");
    assert!(found["reports"]["far"].is_null() && found["reports"]["cut"][2]["value"].is_null());
    let warnings = found["warnings"].to_string();
    for part in ["`far` has a gap", "`cut` has a gap: 1 of 3 points", "`one` is inf"] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
    let written = [&one[..], &["--output", &output]].concat();
    let found = wf(&written, folder.path());
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(
        text.contains(&format!("cut = 3 points, 1 without a value, in {}", path("u-cut.csv"))),
        "{text}"
    );
    assert!(folder.path().join("u-cut.csv").exists());
}

#[test]
fn a_faulty_problem_of_the_file_is_no_failure_of_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.wf").to_string_lossy().into_owned();
    std::fs::write(&file, LINES).expect("a file");
    for (command, more) in [
        ("run", &["--interpret", "--no-output"][..]),
        ("check", &[]),
        ("assemble", &["--interpret", "-o", &format!("{file}-matrix")]),
        ("probe", &["--at", "u=x[0]", "--interpret"]),
    ] {
        let one = [&[command, &file, "--problem", "good"], more].concat();
        let found = wf(&one, folder.path());
        let error = String::from_utf8_lossy(&found.stderr).into_owned();
        assert_eq!(found.status.code(), Some(0), "{command}: {error}");
        let bad = [&[command, &file, "--problem", "bad"], more].concat();
        assert_eq!(wf(&bad, folder.path()).status.code(), Some(1), "{command}");
    }
    assert_eq!(wf(&["check", &file], folder.path()).status.code(), Some(1));
}

//! First steps: the files of `wf new`, each of which is solved, and the manual.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn wf(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.args(arguments).current_dir(folder).env("WF_CACHE_DIR", folder.join("cache"));
    command.output().expect("wf should start")
}

/// Returns the standard output of a successful command.
fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = wf(folder, &[arguments, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "wf {arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).expect("one object")
}

fn templates(folder: &Path) -> Vec<String> {
    let list = json(folder, &["new", "--list"]);
    let list = list["templates"].as_array().expect("templates").iter();
    list.map(|one| {
        assert!(one["about"].as_str().is_some_and(|about| about.len() > 20), "{one}");
        one["template"].as_str().expect("a name").to_owned()
    })
    .collect()
}

#[test]
fn every_template_is_in_style_and_is_solved_without_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = templates(folder.path());
    assert!(names.len() > 5 && names.contains(&"navier-stokes".to_owned()), "{names:?}");
    for name in &names {
        assert_eq!(json(folder.path(), &["new", name, "--from", name])["template"], name.as_str());
        let file = format!("{name}.wf");
        json(folder.path(), &["fmt", "--check", &file]);
        json(folder.path(), &["check", &file, "--deny", "warnings"]);
        let solved = json(folder.path(), &["run", &file, "--interpret", "--no-output", "--quiet"]);
        assert!(solved["residual"].as_f64().is_some_and(|left| left < 1e-8), "{solved}");
        assert_eq!(solved["warnings"].as_array().map(Vec::len), Some(0), "{solved}");
        assert!(solved["reports"].as_object().is_some_and(|all| !all.is_empty()), "{solved}");
    }
}

/// Standard output contains only JSON; rows of steps are progress, which `--quiet` omits.
#[test]
fn rows_of_steps_go_to_standard_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, is_timed) in [("diffusion", true), ("poisson", false)] {
        json(folder.path(), &["new", name, "--from", name]);
        let run = ["run", &format!("{name}.wf"), "--interpret", "--no-output", "--json"];
        let output = wf(folder.path(), &run);
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        let solved: Value = serde_json::from_slice(&output.stdout).expect("one object");
        let steps = solved["steps"].as_array().map_or(0, Vec::len);
        let rows = said.lines().filter(|line| line.starts_with("  ")).count();
        assert_eq!(rows, if is_timed { 1 + steps } else { 0 }, "{said}");
        // Lines about long operations end with the elapsed time.
        let others = said.lines().filter(|line| !line.starts_with("  "));
        assert!(others.into_iter().all(|line| line.ends_with(" s]")), "{said}");
        json(folder.path(), &[&run[..4], &["--quiet"]].concat());
    }
}

#[test]
fn what_is_there_is_left_alone_and_what_is_not_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("beam.wf"), "mine").expect("written");
    for name in ["beam", "beam.wf"] {
        let output = wf(folder.path(), &["new", name, "--from", "elasticity"]);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("beam.wf is there already, and is left alone"), "{said}");
    }
    let kept = std::fs::read_to_string(folder.path().join("beam.wf")).expect("the file");
    assert_eq!(kept, "mine");
    let output = wf(folder.path(), &["new", "a", "--from", "elastisity"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("did you mean `elasticity`?") && said.contains("stokes"), "{said}");
    assert_eq!(wf(folder.path(), &["new"]).status.code(), Some(2));
    let printed = wf(folder.path(), &["new", "-"]);
    assert!(String::from_utf8_lossy(&printed.stdout).contains("form poisson {"));
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let help = wf(folder.path(), &["--help"]).stdout;
    let help = String::from_utf8(help).expect("UTF-8");
    let commands = help.split("Commands:").nth(1).and_then(|rest| rest.split("Options:").next());
    let names: Vec<&str> = commands
        .expect("commands")
        .lines()
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 10 && names.contains(&"man"), "{names:?}");
    let manual = String::from_utf8(wf(folder.path(), &["man"]).stdout).expect("UTF-8");
    let written = json(folder.path(), &["man", "--output", "man1"]);
    assert_eq!(written["files"].as_array().map(Vec::len), Some(names.len() + 1));
    for name in names {
        assert!(manual.contains(&format!(".TH wf-{name} 1")), "no page of {name}");
        let page = std::fs::read_to_string(folder.path().join(format!("man1/wf-{name}.1")));
        assert!(page.expect("a page").contains(&format!("wf {name}")), "{name}");
    }
}

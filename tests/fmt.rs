//! `wf fmt` and `wf completions` from the user's perspective.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn wf(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    command.args(arguments).current_dir(folder);
    command
}

fn run(arguments: &[&str], folder: &Path) -> (Option<i32>, String, String) {
    outcome(&wf(arguments, folder).output().expect("wf should start"))
}

fn outcome(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn with_input(arguments: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
    let mut command = wf(arguments, Path::new("."));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("wf should start");
    child.stdin.take().expect("a pipe").write_all(input).expect("wf should read");
    outcome(&child.wait_with_output().expect("wf should end"))
}

const BAD: &str = "// A mass matrix.\nform a{field u:scalar;f0[u]=u;} // end\n";
const GOOD: &str = "// A mass matrix.\nform a {\n    field u: scalar;\n    f0[u] = u;\n} // end\n";

/// Returns a folder with `bad.wf`, `good.wf` and `wrong.wf`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("bad.wf", BAD), ("good.wf", GOOD), ("wrong.wf", "form a { let b = ; }")] {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).expect("readable")
}

#[test]
fn files_are_formatted_in_place() {
    let folder = folder();
    let path = folder.path();
    let (code, out, errors) = run(&["fmt", "bad.wf", "good.wf"], path);
    assert_eq!((code, out.as_str(), errors.as_str()), (Some(0), "formatted bad.wf\n", ""));
    assert_eq!((text(path, "bad.wf"), text(path, "good.wf")), (GOOD.into(), GOOD.into()));
    assert_eq!(run(&["fmt", "bad.wf"], path), (Some(0), String::new(), String::new()));
    assert_eq!(std::fs::read_dir(path).expect("a folder").count(), 3);
}

#[test]
fn check_shows_what_would_change_and_changes_nothing() {
    let folder = folder();
    let path = folder.path();
    let (code, out, errors) = run(&["fmt", "--check", "good.wf", "bad.wf"], path);
    assert_eq!(code, Some(1));
    let expected = "--- bad.wf\n+++ bad.wf, formatted\n@@ -1,2 +1,5 @@\n // A mass matrix.\n\
                    -form a{field u:scalar;f0[u]=u;} // end\n+form a {\n+    field u: scalar;\n\
                    +    f0[u] = u;\n+} // end\n";
    assert_eq!(out, expected);
    assert_eq!(errors, "error: not formatted: bad.wf\nhelp: `wf fmt` formats files\n");
    assert_eq!(text(path, "bad.wf"), BAD);
    assert_eq!(run(&["fmt", "--check", "good.wf"], path), (Some(0), String::new(), String::new()));
}

/// Indentation makes a text longer, and a file is limited to a mebibyte.
#[test]
fn a_file_that_would_become_too_long_is_left_alone() {
    let folder = folder();
    let path = folder.path();
    let forms =
        (0..16_000).map(|i| format!("form a{i}{{field u:scalar;f0[u]=u;f1[u]=grad(u);}}\n"));
    let long: String = forms.collect();
    assert!(long.len() < 1 << 20);
    std::fs::write(path.join("long.wf"), &long).expect("written");
    for options in [&["fmt", "long.wf"][..], &["fmt", "--check", "long.wf"]] {
        let (code, out, errors) = run(options, path);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{errors}");
        assert!(errors.starts_with("error: long.wf is left alone: formatted it has 1"), "{errors}");
        assert!(errors.contains("a file may have 1048576\nhelp: "), "{errors}");
    }
    assert_eq!(text(path, "long.wf"), long);
    let (code, out, _) = with_input(&["fmt", "-"], long.as_bytes());
    assert_eq!((code, out.as_str()), (Some(1), ""));
}

#[test]
fn files_with_errors_are_left_alone_and_the_others_are_not() {
    let folder = folder();
    let path = folder.path();
    let (code, out, errors) = run(&["fmt", "none.wf", "wrong.wf", "bad.wf"], path);
    assert_eq!((code, out.as_str()), (Some(1), "formatted bad.wf\n"));
    assert!(errors.starts_with("error: cannot read none.wf"), "{errors}");
    assert!(errors.contains("\nerror[E0101]: expected an expression, found `;`"), "{errors}");
    assert_eq!(text(path, "wrong.wf"), "form a { let b = ; }");
}

#[test]
fn json_says_what_has_changed() {
    let folder = folder();
    let (code, out, errors) =
        run(&["fmt", "--json", "good.wf", "wrong.wf", "bad.wf"], folder.path());
    assert_eq!((code, errors.as_str()), (Some(1), ""));
    let lines: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&lines[0]["file"], &lines[0]["changed"]), (&"good.wf".into(), &false.into()));
    assert_eq!((&lines[2]["file"], &lines[2]["changed"]), (&"bad.wf".into(), &true.into()));
    assert_eq!(lines[1]["diagnostics"][0]["code"], "E0101");
    assert_eq!(lines[1]["file"], "wrong.wf");
    let (code, out, _) = with_input(&["fmt", "--json", "--check", "-"], BAD.as_bytes());
    assert_eq!(code, Some(1));
    let value: Value = serde_json::from_str(out.lines().next().expect("a line")).expect("JSON");
    assert!(value["diff"].as_str().is_some_and(|diff| diff.contains("+form a {")), "{value}");
}

#[test]
fn standard_input_goes_to_standard_output() {
    assert_eq!(with_input(&["fmt", "-"], BAD.as_bytes()), (Some(0), GOOD.into(), String::new()));
    assert_eq!(with_input(&["fmt", "-"], b"").0, Some(0));
    let (code, out, errors) = with_input(&["fmt", "-"], b"form \xFF");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(errors.contains("E0111") && errors.contains("<stdin>:1:6"), "{errors}");
    let long = vec![b' '; (1 << 20) + 1];
    assert!(with_input(&["fmt", "-"], &long).2.contains("E0110"));
}

#[cfg(unix)]
#[test]
fn what_may_only_be_read_is_left_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    let path = folder.path().join("bad.wf");
    let read_only = std::fs::Permissions::from_mode(0o444);
    std::fs::set_permissions(&path, read_only).expect("set");
    let (code, _, errors) = run(&["fmt", "bad.wf"], folder.path());
    assert_eq!(code, Some(1));
    assert!(errors.contains("cannot write bad.wf") && errors.contains("help: "), "{errors}");
    assert_eq!(text(folder.path(), "bad.wf"), BAD);
}

#[test]
fn the_examples_are_formatted() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let entries = std::fs::read_dir(examples).expect("a folder").flatten();
    let wf_file = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "wf");
    let files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(wf_file).collect();
    assert!(files.len() >= 4, "{files:?}");
    let mut command = wf(&["fmt", "--check"], Path::new("."));
    let (code, out, errors) = outcome(&command.args(files).output().expect("wf should start"));
    assert_eq!(code, Some(0), "{out}{errors}");
}

#[test]
fn every_shell_has_its_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, out, errors) = run(&["completions", shell], Path::new("."));
        assert_eq!((code, errors.as_str()), (Some(0), ""), "{shell}");
        for word in ["explain", "completions", "scatter", "fmt"] {
            assert!(out.contains(word), "{shell} does not complete {word}");
        }
    }
    assert_eq!(run(&["completions", "tcsh"], Path::new(".")).0, Some(2));
    let (_, out, _) = run(&["completions", "fish", "--json"], Path::new("."));
    let value: Value = serde_json::from_str(&out).expect("JSON");
    assert!(value["script"].as_str().is_some_and(|script| script.contains("wf")), "{value}");
}

/// The completions of bash itself.
#[cfg(target_os = "linux")]
#[test]
fn bash_completes_commands_and_values() {
    let (_, script, _) = run(&["completions", "bash"], Path::new("."));
    for (words, expected) in [("wf fm", "fmt"), ("wf run --backend cu", "cuda")] {
        let words: Vec<&str> = words.split(' ').collect();
        let last = words.len() - 1;
        let asked = format!(
            "{script}\nCOMP_WORDS=({}); COMP_CWORD={last}\n_wf wf {} {}\necho \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words[last],
            words[last - 1]
        );
        let output = Command::new("bash").args(["-c", &asked]).output().expect("bash should start");
        assert_eq!(outcome(&output).1.trim(), expected, "{}", outcome(&output).2);
    }
}

/// The formatter ends lines where the parser does, and normalises line ends.
#[test]
fn a_carriage_return_alone_is_a_line_end_for_the_printer() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.wf"), GOOD.replace('\n', "\r")).expect("written");
    assert_eq!(run(&["fmt", "--check", "a.wf"], folder.path()).0, Some(1));
    assert_eq!(run(&["fmt", "a.wf"], folder.path()).0, Some(0));
    assert_eq!(text(folder.path(), "a.wf"), GOOD);
}

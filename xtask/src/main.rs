//! `cargo xtask`: commands of contributors and CI. `ci` is exactly the run of CI. `validate` compiles the generated
//! sources of the snapshots with their real compilers, `conformance` compares kernels with the reference, and `gallery`
//! draws the examples.

mod ci;
mod dist;
mod gallery;
mod miri;
mod validate;

use std::path::Path;
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo xtask ci                 the steps of CI; `--install SCRIPT` installs the requirements of other features;
                                      `--all` also runs the scripts of .ci whose subjects did not change
       cargo xtask dist [TARGET]      the archive of a released `wf` with its checksum, in target/dist
       cargo xtask validate rust      every generated Rust source of tests/snapshots, compiled
       cargo xtask gallery            docs/gallery.md and its pictures, written anew
       cargo xtask miri               the processor's device, but for foreign code, interpreted by Miri
       cargo xtask conformance        kernels against the reference: a part of all combinations, as CI does
       cargo xtask conformance --full all of them, which takes hours; `--part 2/5`: the second fifth of what is compiled";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["ci"] => ci::run(None, false),
        ["ci", "--all"] => ci::run(None, true),
        ["ci", "--install", script] => ci::run(Some(script), false),
        ["ci", "--install", script, "--all"] => ci::run(Some(script), true),
        ["dist"] => dist::run(None),
        ["dist", target] => dist::run(Some(target)),
        ["validate", "rust"] => validate::rust(),
        ["gallery"] => gallery::run(),
        ["miri"] => miri::run(),
        ["conformance"] => execute(&mut conformance()),
        ["conformance", "--full"] => execute(conformance().env("WF_FULL", "1")),
        ["conformance", "--full", "--part", part] => {
            execute(compiled().env("WF_FULL", "1").env("WF_PART", part))
        }
        ["--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the tests that compare interpreted and compiled kernels with the reference.
fn conformance() -> Command {
    runtime_tests(&["conformance::", "compiled::", "threads::", "multigrid::iterations"])
}

/// Returns the tests of compiled kernels only, which take most of the time.
fn compiled() -> Command {
    runtime_tests(&["compiled::"])
}

fn runtime_tests(names: &[&str]) -> Command {
    cargo(
        &[&["test", "-p", "weakform-runtime", "--test", "all", "--", "--nocapture"][..], names]
            .concat(),
    )
}

/// Returns the root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Returns the cargo that runs this program, started in the root.
fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command with its output shown; fails as it does.
fn execute(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed: {status}")) }
}

/// Runs a command and returns its output.
fn capture(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed: {}\n{log}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{command:?} printed no UTF-8"))
}

//! `cargo xtask ci`: the steps of CI. Every step runs, and all failures are listed at the end.

use std::process::Command;
use std::time::Instant;

use crate::{capture, cargo, execute, root, validate};

/// The backends that must be there when CI tests; a test that needs one of these fails without it.
const REQUIRED: &str = "rust nvrtc opencl";

type Step = (&'static str, fn() -> Result<(), String>);

/// In the order of what they cost.
const STEPS: [Step; 8] = [
    ("format", || execute(&mut cargo(&["fmt", "--all", "--check"]))),
    ("test", test),
    ("clippy", clippy),
    ("default features", || execute(&mut cargo(&["check", "--workspace"]))),
    ("the library alone", library),
    ("documentation", documentation),
    ("validate rust", validate::rust),
    ("command line", command_line),
];

/// Runs all steps.
pub(crate) fn run() -> Result<(), String> {
    let before = changed_files()?;
    let mut failures = Vec::new();
    for (name, step) in STEPS {
        println!("\n=== {name}");
        let started = Instant::now();
        let result = step();
        let seconds = started.elapsed().as_secs();
        match result {
            Ok(()) => println!("=== {name}: passed in {seconds} s"),
            Err(error) => {
                println!("=== {name}: FAILED in {seconds} s: {error}");
                failures.push(name);
            }
        }
    }
    if changed_files()? != before {
        println!("=== the steps above changed tracked files:\n{}", changed_files()?);
        failures.push("a clean tree");
    }
    if failures.is_empty() { Ok(()) } else { Err(format!("failed: {}", failures.join(", "))) }
}

/// README's test command with every feature on, where nothing may be left out for want of a backend.
fn test() -> Result<(), String> {
    let mut test = cargo(&["test", "--workspace", "--all-features"]);
    execute(test.env("WF_REQUIRE", REQUIRED))
}

fn clippy() -> Result<(), String> {
    let flags = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-Dwarnings"];
    execute(&mut cargo(&flags))
}

/// Without what the program needs beside it.
fn library() -> Result<(), String> {
    execute(&mut cargo(&["check", "--package", "weakform", "--lib", "--no-default-features"]))
}

fn documentation() -> Result<(), String> {
    let flags = ["doc", "--workspace", "--no-deps", "--all-features", "--document-private-items"];
    let mut doc = cargo(&flags);
    execute(doc.env("RUSTDOCFLAGS", "-Dwarnings -Arustdoc::private_intra_doc_links"))
}

/// What a newcomer does first, with the program that the tests have built: built alone it would have other features of
/// what others wrote, and take a minute more.
fn command_line() -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut wf = Command::new(own.with_file_name("wf"));
    execute(wf.args(["run", "examples/poisson.wf", "--no-output"]).current_dir(root()))
}

/// The files that differ from the last commit, with their states.
fn changed_files() -> Result<String, String> {
    capture(Command::new("git").args(["status", "--porcelain"]).current_dir(root()))
}

//! `cargo xtask ci`: the steps of CI. Every step runs, and all failures are listed at the end.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{capture, cargo, execute, root, validate};

/// The backends that must be there when CI tests; a test that needs one of these fails without it.
const REQUIRED: &str = "rust nvrtc opencl";

/// How long what tests need may take to be installed.
const LONGEST: Duration = Duration::from_secs(600);

type Step = (&'static str, fn(Beside) -> Result<(), String>);

/// In the order of what they cost.
const STEPS: [Step; 2] = [("test", test), ("command line", command_line)];

/// What only looks at the sources, which it does while the tests run: those leave a part of the processor alone, and
/// compiling takes all of it only before them.
const LOOKS: [Step; 6] = [
    ("format", |beside| beside.execute(cargo(&["fmt", "--all", "--check"]))),
    ("clippy", clippy),
    ("documentation", documentation),
    ("default features", default_features),
    ("the library alone", library),
    ("validate rust", |_| validate::rust()),
];

/// Whether a step runs beside others: then it gives way to them, and what it prints comes when it has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Tests,
    Nothing,
}

impl Beside {
    /// Runs a command; fails as it does.
    fn execute(self, mut command: Command) -> Result<(), String> {
        if self == Self::Nothing {
            return execute(&mut command);
        }
        let mut nice = Command::new("nice");
        nice.args(["-n", "19"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                nice.env(name, value);
            }
        }
        let output = nice.current_dir(root()).output();
        let output = output.map_err(|error| format!("cannot start {command:?}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let [out, log] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        Err(format!("{command:?} failed: {}\n{out}{log}", output.status))
    }
}

/// Runs all steps; those that run something once `file`, which says that what they need is installed, is there.
pub(crate) fn run(file: Option<&Path>) -> Result<(), String> {
    let before = changed_files()?;
    let mut failures = std::thread::scope(|scope| {
        let looks = scope.spawn(|| failures(&LOOKS, Beside::Tests));
        let mut failed = match file.map_or(Ok(()), wait) {
            Ok(()) => failures(&STEPS, Beside::Nothing),
            Err(error) => {
                println!("=== {error}");
                vec!["what tests need"]
            }
        };
        failed.extend(looks.join().unwrap_or_else(|_| vec!["looks that panicked"]));
        failed
    });
    if changed_files()? != before {
        println!("=== the steps above changed tracked files:\n{}", changed_files()?);
        failures.push("a clean tree");
    }
    if failures.is_empty() { Ok(()) } else { Err(format!("failed: {}", failures.join(", "))) }
}

/// Waits for a file, which must say `yes`.
fn wait(file: &Path) -> Result<(), String> {
    let started = Instant::now();
    while !file.exists() {
        if started.elapsed() > LONGEST {
            return Err(format!("what tests need is not installed after {LONGEST:?}"));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let said = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    println!("=== what tests need: installed after {} s", started.elapsed().as_secs());
    if said.trim() == "yes" { Ok(()) } else { Err("what tests need was not installed".to_owned()) }
}

/// Runs steps one after another, and gives the names of those that failed.
fn failures(steps: &[Step], beside: Beside) -> Vec<&'static str> {
    let mut failures = Vec::new();
    for &(name, step) in steps {
        println!("\n=== {name}");
        let started = Instant::now();
        let result = step(beside);
        let seconds = started.elapsed().as_secs();
        match result {
            Ok(()) => println!("=== {name}: passed in {seconds} s"),
            Err(error) => {
                println!("=== {name}: FAILED in {seconds} s: {error}");
                failures.push(name);
            }
        }
    }
    failures
}

/// README's test command with every feature on, where nothing may be left out for want of a backend.
fn test(beside: Beside) -> Result<(), String> {
    let mut test = cargo(&["test", "--workspace", "--all-features"]);
    test.env("WF_REQUIRE", REQUIRED);
    beside.execute(test)
}

/// What macros need is compiled for clippy alone, and runs for some seconds: to optimise it takes longer.
fn clippy(beside: Beside) -> Result<(), String> {
    let plain = "profile.dev.package.kernels-gen.opt-level=0";
    let flags = ["clippy", "--config", plain, "--workspace", "--all-targets", "--all-features"];
    beside.execute(cargo(&[&flags[..], &["--", "-Dwarnings"]].concat()))
}

// What others wrote is checked once for these two, for clippy and for documents: examples are among them for the features of what
// tests need, and all packages for those of what the others need.

/// As README's first command compiles.
fn default_features(beside: Beside) -> Result<(), String> {
    beside.execute(cargo(&["check", "--workspace", "--lib", "--bins", "--examples"]))
}

/// Without what the program needs beside it.
fn library(beside: Beside) -> Result<(), String> {
    let packages = ["check", "--workspace", "--exclude", "xtask", "--no-default-features"];
    beside.execute(cargo(&[&packages[..], &["--lib", "--examples"]].concat()))
}

fn documentation(beside: Beside) -> Result<(), String> {
    let flags = ["doc", "--workspace", "--no-deps", "--all-features", "--document-private-items"];
    let mut doc = cargo(&[&flags[..], &["--lib", "--bins", "--examples"]].concat());
    doc.env("RUSTDOCFLAGS", "-Dwarnings -Arustdoc::private_intra_doc_links");
    beside.execute(doc)
}

/// What a newcomer does first, with the program that the tests have built: built alone it would have other features of
/// what others wrote, and take a minute more.
fn command_line(beside: Beside) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut wf = Command::new(own.with_file_name("wf"));
    wf.args(["run", "examples/poisson.wf", "--no-output"]).current_dir(root());
    beside.execute(wf)
}

/// The files that differ from the last commit, with their states.
fn changed_files() -> Result<String, String> {
    capture(Command::new("git").args(["status", "--porcelain"]).current_dir(root()))
}

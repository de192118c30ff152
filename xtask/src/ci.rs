//! `cargo xtask ci`: the steps of CI. Every step runs, and all failures are listed at the end.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use crate::{capture, cargo, execute, root, validate};

/// The backends that must be there when CI tests; a test that needs one of these fails without it.
const REQUIRED: &str = "rust nvrtc opencl mpi";

/// How long what tests need may take to be installed.
const LONGEST: Duration = Duration::from_secs(600);

type Step = (&'static str, fn() -> Result<(), String>);

/// What only looks at the sources, which it does while the tests run: those leave a part of the processor alone, and
/// compiling them before takes all of it.
const LOOKS: [Step; 6] = [
    ("format", || give_way(cargo(&["fmt", "--all", "--check"]))),
    ("clippy", clippy),
    ("documentation", documentation),
    ("default features", default_features),
    ("the library alone", library),
    ("validate rust", validate::rust),
];

/// What is held while tests are built; never sent.
enum Built {}

/// Runs a command that gives way to the tests beside it, and whose output comes when it has ended; fails as it does.
fn give_way(command: Command) -> Result<(), String> {
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

/// Runs all steps; those that run something once `file`, which says that what they need is installed, is there.
pub(crate) fn run(file: Option<&Path>) -> Result<(), String> {
    let before = changed_files()?;
    let mut failures = std::thread::scope(|scope| {
        let (built, when_built) = channel::<Built>();
        let looks = scope.spawn(move || {
            // Nothing is ever sent: the other end goes when tests are built, or cannot be.
            let _ = when_built.recv();
            LOOKS.iter().filter_map(|&(name, look)| failed(name, look)).collect()
        });
        let mut failed: Vec<_> = match file.map_or(Ok(()), wait) {
            Ok(()) => {
                let tested = failed("test", || test(built));
                tested.into_iter().chain(failed("command line", command_line)).collect()
            }
            Err(error) => {
                println!("=== {error}");
                drop(built);
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

/// Runs a step, and gives its name if it fails.
fn failed(name: &'static str, step: impl FnOnce() -> Result<(), String>) -> Option<&'static str> {
    println!("\n=== {name}");
    let started = Instant::now();
    let result = step();
    let seconds = started.elapsed().as_secs();
    match result {
        Ok(()) => {
            println!("=== {name}: passed in {seconds} s");
            None
        }
        Err(error) => {
            println!("=== {name}: FAILED in {seconds} s: {error}");
            Some(name)
        }
    }
}

/// README's test command with every feature on, where nothing may be left out for want of a backend. Lets go of `built`
/// when the first test program runs: until then nothing else can be compiled.
fn test(built: Sender<Built>) -> Result<(), String> {
    let mut test = cargo(&["test", "--workspace", "--all-features"]);
    test.env("WF_REQUIRE", REQUIRED).stderr(Stdio::piped());
    let mut child = test.spawn().map_err(|error| format!("cannot start {test:?}: {error}"))?;
    let mut built = Some(built);
    for line in child.stderr.take().into_iter().flat_map(|log| BufReader::new(log).split(b'\n')) {
        let line = line.map_err(|error| error.to_string())?;
        let line = String::from_utf8_lossy(&line);
        eprintln!("{line}");
        if line.trim_start().starts_with("Running ") {
            drop(built.take());
        }
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{test:?} failed: {status}")) }
}

/// What macros need is compiled for clippy alone, and runs for some seconds: to optimise it takes longer.
fn clippy() -> Result<(), String> {
    let plain = "profile.dev.package.kernels-gen.opt-level=0";
    let flags = ["clippy", "--config", plain, "--workspace", "--all-targets", "--all-features"];
    give_way(cargo(&[&flags[..], &["--", "-Dwarnings"]].concat()))
}

// What others wrote is checked once for these two, for clippy and for documents: examples are among them for the features of what
// tests need, and all packages for those of what the others need.

/// As README's first command compiles.
fn default_features() -> Result<(), String> {
    give_way(cargo(&["check", "--workspace", "--lib", "--bins", "--examples"]))
}

/// Without what the program needs beside it; `xtask`, which has nothing to check here, brings the features of what derives that the other
/// steps have.
fn library() -> Result<(), String> {
    let packages = ["check", "--workspace", "--no-default-features"];
    give_way(cargo(&[&packages[..], &["--lib", "--examples"]].concat()))
}

fn documentation() -> Result<(), String> {
    let flags = ["doc", "--workspace", "--no-deps", "--all-features", "--document-private-items"];
    let mut doc = cargo(&[&flags[..], &["--lib", "--bins", "--examples"]].concat());
    doc.env("RUSTDOCFLAGS", "-Dwarnings -Arustdoc::private_intra_doc_links");
    give_way(doc)
}

/// What a newcomer does first, with the program that the tests have built: built alone it would have other features of
/// what others wrote, and take a minute more.
fn command_line() -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut wf = Command::new(own.with_file_name("wf"));
    wf.args(["run", "examples/poisson.wf", "--no-output"]).current_dir(root());
    execute(&mut wf)
}

/// The files that differ from the last commit, with their states.
fn changed_files() -> Result<String, String> {
    capture(Command::new("git").args(["status", "--porcelain"]).current_dir(root()))
}

//! `cargo xtask ci`: the steps of CI. Every step runs, and all failures are listed at the end.
//!
//! README's two commands run first, literally, with default features and before anything else is installed. Then follow
//! the tests added by the other features, together with formatting, clippy and the documentation.

mod scripts;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use crate::{capture, cargo, execute, root, validate};

/// The backends that CI requires; a test that needs a missing one fails.
const REQUIRED: &str = "rust nvrtc opencl mpi";

type Step = (&'static str, fn() -> Result<(), String>);

/// Steps that only examine the sources, concurrently with the tests: these leave some cores idle, whereas the preceding
/// compilation uses all of them.
const LOOKS: [Step; 5] = [
    ("format", || give_way(cargo(&["fmt", "--all", "--check"]))),
    ("clippy", clippy),
    ("documentation", documentation),
    ("the library alone", library),
    ("validate rust", validate::rust),
];

/// Device tests that are separate programs or crates; a filter would apply to all programs of a command.
const DEVICE_TESTS: [Step; 2] = [
    ("tests of devices", || {
        execute(&mut feature_tests(
            &["--test", "device_operators", "--test", "opencl_kernels"],
            &[],
        ))
    }),
    ("unit tests of devices", || {
        execute(&mut feature_tests(&["--test", "runtime"], &["device::".to_owned()]))
    }),
];

/// Text in a test file that indicates a test of a device, of a compiler for devices, or of MPI.
const MARKS: [&str; 5] = ["devices()", "opencl()", "WF_REQUIRE", "nvrtc", "mpirun"];

/// Files of tests that depend on none of these, whatever they name. `rust_examples` builds examples with its own features,
/// which waits for other commands of cargo; `compiled` requires `rustc`.
const UNMARKED: [&str; 4] = ["all", "compiled", "rust_examples", "tidy"];

/// Held while tests are built; never sent.
enum Built {}

/// Runs a command with low priority, and prints its output when it has ended; fails if it fails.
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

/// Runs all steps: README's commands, then `install`, a script that installs the requirements of the other features,
/// then the rest, then the scripts whose subjects changed, or with `all` every script.
pub(crate) fn run(install: Option<&str>, all: bool) -> Result<(), String> {
    let before = changed_files()?;
    let mut failures: Vec<_> = failed("README's commands", readme).into_iter().collect();
    failures.extend(failed("other machines", other_machines));
    let script = || install.map_or(Ok(()), |script| execute(&mut Command::new(script)));
    match failed("install", script) {
        Some(name) => failures.push(name),
        None => failures.extend(std::thread::scope(|scope| {
            let (built, when_built) = channel::<Built>();
            let looks = scope.spawn(move || {
                // Nothing is ever sent: the sender is dropped when the build of the tests ends.
                let _ = when_built.recv();
                failures_of(&LOOKS)
            });
            let mut failed: Vec<_> =
                failed("tests of features", || tests_of_features(built)).into_iter().collect();
            failed.extend(failures_of(&DEVICE_TESTS));
            failed.extend(looks.join().unwrap_or_else(|_| vec!["looks that panicked"]));
            failed
        })),
    }
    for (name, script) in scripts::chosen(all)? {
        failures.extend(failed(name, script));
    }
    if changed_files()? != before {
        println!("=== the steps above changed tracked files:\n{}", changed_files()?);
        failures.push("a clean tree");
    }
    if failures.is_empty() { Ok(()) } else { Err(format!("failed: {}", failures.join(", "))) }
}

/// Runs steps, and returns the names of failed ones.
fn failures_of(steps: &[Step]) -> Vec<&'static str> {
    steps.iter().filter_map(|&(name, step)| failed(name, step)).collect()
}

/// Runs a step, and returns its name if it fails.
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

/// Runs the commands of README's first `sh` block literally.
fn readme() -> Result<(), String> {
    let text = std::fs::read_to_string(root().join("README.md"));
    let text = text.map_err(|error| format!("README.md: {error}"))?;
    let block = text.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    let lines = block.ok_or("README.md has no block of commands")?.lines();
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        let started = Instant::now();
        println!("$ {line}");
        execute(Command::new("sh").args(["-c", line]).current_dir(root()))?;
        println!("=== `{line}`: {} s", started.elapsed().as_secs());
    }
    Ok(())
}

/// Runs the tests of planning and solving for machines without this one's instruction sets, and with one thread. Plans
/// depend on the instruction set; solves on the smallest one, and on the number of threads.
fn other_machines() -> Result<(), String> {
    let machines: [(&str, &str, &[&str]); 3] = [
        ("WF_ISA", "avx2", &["plan::"]),
        ("WF_ISA", "portable", &["plan::", "solvers::"]),
        ("RAYON_NUM_THREADS", "1", &["solvers::"]),
    ];
    for (name, value, tests) in machines {
        println!("{name}={value}");
        let mut test = cargo(&["test", "--workspace", "--test", "all", "--"]);
        execute(test.args(tests).env(name, value))?;
    }
    Ok(())
}

/// Returns the command that tests with every feature enabled and every backend required.
fn feature_tests(programs: &[&str], filters: &[String]) -> Command {
    let mut test = cargo(&["test", "--workspace", "--all-features"]);
    test.args(programs).arg("--").args(filters).env("WF_REQUIRE", REQUIRED);
    test
}

/// Runs the tests of `tests` and `runtime/tests` that depend on a feature; README's second command has run the others.
/// Drops `built` when the first test program runs: until then cargo blocks other compilations.
fn tests_of_features(built: Sender<Built>) -> Result<(), String> {
    let mut tests = Vec::new();
    for folder in ["tests", "runtime/tests"] {
        tests.extend(marked(&root().join(folder), "").map_err(|error| error.to_string())?);
    }
    if tests.is_empty() {
        return Err("no test names a feature".to_owned());
    }
    let mut test = feature_tests(&["--test", "all"], &tests);
    let mut child = test.stderr(Stdio::piped()).spawn();
    let child = child.as_mut().map_err(|error| format!("cannot start {test:?}: {error}"))?;
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

/// Returns the tests of a folder that need a device, a compiler for devices, or MPI, as filters: those of files that
/// devices have to themselves; tests with one of `MARKS`, and tests that name another item of their file with one; all
/// tests of a file whose marked item may be used in files below.
fn marked(folder: &Path, module: &str) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        let inside = format!("{module}{name}::");
        if path.is_dir() && folder.join(format!("{name}.rs")).exists() {
            found.extend(marked(&path, &inside)?);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !UNMARKED.contains(&name)
        {
            if name.starts_with("device_") {
                found.push(inside);
                continue;
            }
            found.extend(marked_items(&std::fs::read_to_string(path)?, &inside));
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the same for a file, whose items begin at the start of a line; `use` and `mod` alone do not count.
fn marked_items(text: &str, module: &str) -> Vec<String> {
    let items = items(text);
    let has_files_below = text.lines().any(|line| line.starts_with("mod "));
    let mut marks: Vec<String> = MARKS.map(str::to_owned).into();
    loop {
        let is_marked = |item: &&Item<'_>| {
            marks.iter().any(|mark| item.lines.iter().any(|line| line.contains(mark)))
        };
        let marked: Vec<&Item<'_>> = items.iter().filter(is_marked).collect();
        let helpers = || marked.iter().filter(|item| !item.is_test);
        if helpers().any(|item| item.name.is_none() || has_files_below) {
            return vec![module.to_owned()];
        }
        let names: Vec<String> =
            helpers().filter_map(|item| item.name.map(str::to_owned)).collect();
        let new: Vec<String> = names.into_iter().filter(|name| !marks.contains(name)).collect();
        if new.is_empty() {
            let tests = marked.iter().filter(|item| item.is_test).filter_map(|item| item.name);
            return tests.map(|name| format!("{module}{name}")).collect();
        }
        marks.extend(new);
    }
}

/// An item of a file.
struct Item<'a> {
    lines: Vec<&'a str>,
    /// The name of a function or a constant.
    name: Option<&'a str>,
    is_test: bool,
}

/// Returns the items of a file without `use` and `mod`.
fn items<'a>(text: &'a str) -> Vec<Item<'a>> {
    let (mut items, mut lines) = (Vec::new(), Vec::new());
    for line in text.lines() {
        lines.push(line);
        let ends = line.starts_with('}')
            || line.ends_with(';') && line.starts_with(|c: char| c.is_alphabetic());
        if !ends {
            continue;
        }
        let lines = std::mem::take(&mut lines);
        if line.starts_with("use ") || line.starts_with("mod ") {
            continue;
        }
        let named = |line: &&'a str| {
            let rest = line.strip_prefix("fn ").or_else(|| line.strip_prefix("const "))?;
            rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
        };
        let name = lines.iter().find_map(named);
        items.push(Item { name, is_test: lines.contains(&"#[test]"), lines });
    }
    items
}

fn clippy() -> Result<(), String> {
    // What macros need is compiled for clippy alone, and runs for some seconds: to optimise it takes longer.
    let [codegen, dsl] =
        ["codegen", "dsl"].map(|name| format!("profile.dev.package.weakform-{name}.opt-level=0"));
    let flags = ["clippy", "--config", &codegen, "--config", &dsl, "--workspace", "--all-features"];
    // `--all-targets` would check libraries a second time as benchmarks. The program as a library has the program's sources.
    let targets = ["--lib", "--bins", "--tests", "--examples", "--exclude", "weakform-program"];
    give_way(cargo(&[&flags[..], &targets, &["--", "-Dwarnings"]].concat()))
}

// Checks dependencies once for clippy, documentation and this step. Examples are included for the features of test
// dependencies, and all packages for those of other dependencies.

/// Checks the library without the dependencies of the program, and so without packages that enable its features. `xtask`, which needs no check here, enables the features
/// of derive macros that the other steps have.
fn library() -> Result<(), String> {
    let packages = ["check", "--workspace", "--no-default-features"];
    let enabling = ["kernel-snapshot", "weakform-python", "weakform-program"];
    let excluded: Vec<&str> = enabling.iter().flat_map(|&name| ["--exclude", name]).collect();
    give_way(cargo(&[&packages[..], &excluded, &["--lib", "--examples"]].concat()))
}

fn documentation() -> Result<(), String> {
    let flags = ["doc", "--workspace", "--no-deps", "--all-features", "--document-private-items"];
    let targets = ["--exclude", "weakform-program", "--lib", "--bins", "--examples"];
    let mut doc = cargo(&[&flags[..], &targets].concat());
    doc.env("RUSTDOCFLAGS", "-Dwarnings -Arustdoc::private_intra_doc_links");
    give_way(doc)
}

/// Returns the files that differ from the last commit, with their states.
fn changed_files() -> Result<String, String> {
    capture(Command::new("git").args(["status", "--porcelain"]).current_dir(root()))
}

#[cfg(test)]
mod tests {
    use super::marked_items;

    #[test]
    fn tests_are_chosen_by_what_they_name() {
        let own = "use a::b;\n\n#[test]\nfn plain() {\n    one();\n}\n\n#[test]\nfn on_each() {\n    devices();\n}\n";
        assert_eq!(marked_items(own, "a::"), ["a::on_each"]);
        let shared = format!(
            "fn all() {{\n    devices();\n}}\n\n#[test]\nfn on_all() {{\n    all();\n}}\n\n{own}"
        );
        assert_eq!(marked_items(&shared, "a::"), ["a::on_all", "a::on_each"]);
        let below = format!("mod b;\n\n{shared}");
        assert_eq!(marked_items(&below, "a::"), ["a::"]);
        let unnamed =
            format!("impl A {{\n    fn all() {{\n        devices();\n    }}\n}}\n\n{own}");
        assert_eq!(marked_items(&unnamed, "a::"), ["a::"]);
    }
}

//! The programs under `examples/` run, and solve the stated problems.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Returns whether an example is newer than all builds of the library: `cargo test` of the package has built it.
fn is_current(program: &Path, folder: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let files = std::fs::read_dir(folder.join("deps")).into_iter().flatten().flatten();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libweakform-") && name.ends_with(".rlib")
    };
    let libraries = files.map(|file| file.path()).filter(is_library);
    let newest = libraries.filter_map(|path| changed(&path)).max();
    newest.zip(changed(program)).is_some_and(|(library, program)| program > library)
}

/// Returns the path of an example, which is built from the same libraries as this test.
fn built(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_wf")).parent().expect("a folder");
    let program =
        folder.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    if is_current(&program, folder) {
        return program;
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--workspace", "--example", name]);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    if cfg!(feature = "mpi") {
        cargo.args(["--features", "mpi"]);
    }
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    let output = cargo.output().expect("cargo should start");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(program.is_file(), "{} is missing", program.display());
    program
}

/// Runs a command without any compiler, and with an empty cache.
fn without_compiler(command: &mut Command, cache: &Path) -> Output {
    command.env("PATH", "").env("WF_RUSTC", "/nowhere/rustc").env("WF_CACHE_DIR", cache);
    command.env_remove("RUSTC").output().expect("the example should start")
}

/// Returns the errors at the ends of the lines, and the lines.
fn errors(output: &Output) -> (Vec<f64>, String) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{log}");
    let last = |line: &str| line.rsplit(' ').next().and_then(|word| word.parse().ok());
    (text.lines().map(|line| last(line).expect("a line should end with the error")).collect(), text)
}

/// Asserts order 3 for degree 2 on meshes of 4, 8 and 16 cells per side.
fn assert_converges(errors: &[f64]) {
    assert_eq!(errors.len(), 3);
    let orders: Vec<f64> = errors.windows(2).map(|pair| (pair[0] / pair[1]).log2()).collect();
    assert!(orders.iter().all(|order| (2.85..3.2).contains(order)), "{errors:?}: {orders:?}");
}

#[test]
fn poisson_compiled_while_running_converges() {
    let output = Command::new(built("poisson_jit")).output().expect("the example should start");
    assert_converges(&errors(&output).0);
}

#[test]
fn poisson_compiled_ahead_of_time_needs_no_compiler() {
    let program = built("poisson_ahead_of_time");
    let cache = tempfile::tempdir().expect("a folder");
    let output = without_compiler(&mut Command::new(&program), cache.path());
    let (ahead, text) = errors(&output);
    assert_converges(&ahead);
    assert_eq!(text.matches("AheadOfTime").count(), 3, "{text}");
    // The other example solves the same problem.
    let other = Command::new(built("poisson_jit")).output().expect("the example should start");
    let (other, text) = errors(&other);
    assert!(!text.contains("AheadOfTime"), "{text}");
    assert_eq!(ahead, other);
}

#[test]
fn a_degree_that_was_not_compiled_ahead_of_time_says_how_to_do_that() {
    let program = built("poisson_ahead_of_time");
    let cache = tempfile::tempdir().expect("a folder");
    let output = without_compiler(Command::new(&program).arg("3"), cache.path());
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && log.contains("add `hex(3)` to the macro's"), "{log}");
    // It also runs with a compiler.
    let output = Command::new(&program).arg("3").output().expect("the example should start");
    let (errors, text) = errors(&output);
    assert!(errors[2] < 1e-5 && !text.contains("AheadOfTime"), "{text}");
}

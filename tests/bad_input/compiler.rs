//! Compilers that hang or produce output that cannot be loaded, and programs terminated during compilation. The problem
//! is reported, kernels are interpreted, and no processes or files are left.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::gallery::Stand;

const BOX: &str = "mesh = box(dim: 2, cells: 2); dirichlet u = 0;";
/// The version output of a usable compiler.
const VERSION: &str = "echo 'rustc 1.999.0'; echo 'release: 1.999.0'";
/// Longer than any test.
const HANG: &str = "sleep 600";
/// Time limit on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `wf run` with a compiler that may take half a second.
fn run(stand: &Stand, compiler: &Path) -> Output {
    let mut command = stand.command(&["run", "a.wf", "--compile", "--no-output", "--json"]);
    command.env("WF_RUSTC", compiler).env("WF_COMPILE_SECONDS", "0.5");
    command.output().expect("wf should start")
}

/// Asserts that the problem was solved by interpreted kernels, and that each of the texts was printed once.
fn interpreted(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["kernels"], "interpreted", "{said}");
    for words in words {
        assert_eq!(said.matches(words).count(), 1, "{words}: {said}");
    }
}

/// Returns the number of files in a folder of the cache.
fn count(stand: &Stand, part: &str) -> usize {
    fs::read_dir(stand.cache().join(part)).map_or(0, Iterator::count)
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_there() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether a process is running, that is not a zombie.
fn is_alive(process: &str) -> bool {
    let status = fs::read_to_string(Path::new("/proc").join(process).join("status"));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

#[test]
fn a_compiler_that_never_compiles_is_ended_and_kernels_are_interpreted() {
    let stand = Stand::problem(BOX);
    let compiler = stand.compiler("rustc", VERSION, HANG);
    let output = run(&stand, &compiler);
    let words = ["waiting for the compiler", "of `p`; it is ended", "was ended", "are interpreted"];
    interpreted(&output, &words);
    assert!(String::from_utf8_lossy(&output.stderr).contains("0.5 s (WF_COMPILE_SECONDS)"));
    assert_eq!(count(&stand, "building"), 0);
}

#[test]
fn a_compiler_that_never_says_its_version_is_ended_and_kernels_are_interpreted() {
    let stand = Stand::problem(BOX);
    let output = run(&stand, &stand.compiler("rustc", HANG, HANG));
    interpreted(&output, &["waiting for the compiler", "`-vV` took more", "are interpreted"]);
}

#[test]
fn a_compiler_that_makes_no_library_is_said_in_the_loaders_words() {
    let stand = Stand::problem(BOX);
    let garbage = "while [ \"$1\" != -o ]; do shift; done; seq 100000 > \"$2\"";
    let output = run(&stand, &stand.compiler("garbage", VERSION, garbage));
    interpreted(&output, &["cannot be loaded: ", "invalid ELF header", "are interpreted"]);
    assert_eq!(count(&stand, "modules"), 0, "what cannot be loaded is kept");
    let output = run(&stand, &stand.compiler("nothing", VERSION, "exit 0"));
    interpreted(&output, &["has written nothing", "are interpreted"]);
    assert_eq!(count(&stand, "building"), 0);
}

/// A compiler failure for other reasons than its source does not stop a solve.
#[test]
fn a_compiler_without_its_linker_is_done_without() {
    let stand = Stand::problem(BOX);
    let linker = "echo 'error: linker `cc` not found' >&2; exit 1";
    let output = run(&stand, &stand.compiler("unlinked", VERSION, linker));
    interpreted(&output, &["linker `cc` not found", "install a linker", "are interpreted"]);
    let output = run(&stand, &stand.compiler("killed", VERSION, "kill -SEGV $$"));
    interpreted(&output, &["SIGSEGV", "WF_RUSTC", "are interpreted"]);
    let output = run(&stand, &stand.compiler("three", VERSION, "exit 3"));
    interpreted(&output, &["exit status: 3", "WF_RUSTC", "are interpreted"]);
    // An error about the source is a defect of the source, and not hidden.
    let fault = "printf 'error[E0425]: no such name\n --> kernels.rs:1:1\n' >&2; exit 1";
    let output = run(&stand, &stand.compiler("refusing", VERSION, fault));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && said.contains("could not compile"), "{said}");
}

/// Only on systems that allow mounting.
#[test]
fn a_cache_where_nothing_may_be_run_is_done_without() {
    let stand = Stand::problem(BOX);
    let mount = "mount -t tmpfs -o noexec,mode=0700 none \"$WF_CACHE_DIR\" && exec \"$@\"";
    let apart = |program: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", mount, "sh"]).args(program);
        command.current_dir(stand.path("")).env("WF_CACHE_DIR", stand.cache());
        command.output()
    };
    if !apart(&["true"]).is_ok_and(|output| output.status.success()) {
        return;
    }
    let wf = env!("CARGO_BIN_EXE_wf");
    let output =
        apart(&[wf, "run", "a.wf", "--compile", "--no-output", "--json"]).expect("wf should start");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["kernels"], "compiled", "{said}");
    for words in ["failed to map segment", "`noexec`", "WF_CACHE_DIR"] {
        assert_eq!(said.matches(words).count(), 1, "{words}: {said}");
    }
}

/// Starts `wf` with a waiting compiler, and returns the ids of the compiler's process and of its child.
fn waiting(stand: &Stand) -> (Child, [String; 2]) {
    let numbers = stand.path("numbers");
    let hang =
        format!("sleep 600 & echo $$ $! > {0}.part; mv {0}.part {0}; wait", numbers.display());
    let mut command = stand.command(&["run", "a.wf", "--compile", "--no-output"]);
    command.env("WF_RUSTC", stand.compiler("rustc", VERSION, &hang));
    command.env("TMPDIR", stand.path("")).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("wf should start");
    wait_for("the compiler starts", || numbers.is_file());
    let text = fs::read_to_string(numbers).expect("numbers");
    let (compiler, linker) = text.trim().split_once(' ').expect("two numbers");
    (child, [compiler.to_owned(), linker.to_owned()])
}

#[test]
fn a_signal_ends_the_compiler_and_leaves_nothing() {
    let stand = Stand::problem(BOX);
    let (mut wf, processes) = waiting(&stand);
    assert!(count(&stand, "building") > 0);
    let kill = Command::new("kill").args(["-TERM", &wf.id().to_string()]).status();
    assert!(kill.expect("kill should start").success());
    let status = wf.wait().expect("wf ends");
    assert_eq!(status.signal(), Some(15), "{status}");
    assert_eq!(count(&stand, "building"), 0);
    for process in &processes {
        wait_for("the compiler ends", || !is_alive(process));
    }
}

#[test]
fn what_a_killed_program_left_is_gone_after_the_next_start() {
    let stand = Stand::problem(BOX);
    let (mut wf, processes) = waiting(&stand);
    wf.kill().expect("killed");
    wf.wait().expect("wf ends");
    for process in &processes {
        wait_for("the compiler ends", || !is_alive(process));
    }
    assert!(count(&stand, "building") > 0, "nobody was there to remove it");
    let output = run(&stand, &PathBuf::from("/nowhere/rustc"));
    interpreted(&output, &["are interpreted"]);
    assert_eq!(count(&stand, "building"), 0);
}

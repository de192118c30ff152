//! Destinations that accept no files: full, read-only, or blocked. No partial file is left, the message names the
//! destination and the remedy, and an alternative destination is used if possible.

use std::fs;
use std::process::{Command, Output};

use super::gallery::{Stand, plain_failure, said};

const BOX: &str = "mesh = box(dim: 2, cells: 2); dirichlet u = 0;";

/// Returns `wf` with a file-size limit of zero: writes fail as on a full disk.
fn without_room(stand: &Stand, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    // The signal would end the program before it sees the error; if ignored, it becomes an error.
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]);
    let wf = stand.command(arguments);
    command.arg(wf.get_program()).args(wf.get_args());
    command.current_dir(stand.path("")).env("WF_CACHE_DIR", stand.cache());
    command.env_remove("WF_DUMP_DIR").env_remove("WF_LOG");
    command
}

fn utf8(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn output(command: &mut Command) -> Output {
    command.output().expect("sh should start")
}

#[test]
fn a_full_disk_leaves_no_partial_output() {
    let stand = Stand::problem(BOX);
    stand.write("u.vtu", "what was there");
    stand.write("k.rs", "what was there");
    let before = stand.files();
    let run = ["run", "a.wf", "--interpret", "--degree", "8", "--output"];
    for arguments in [&[&run[..], &["u.vtu"]].concat()[..], &[&run[..], &["new.vtu"]].concat()] {
        let mut output = output(&mut without_room(&stand, arguments));
        // Results are not lost with the file.
        let found = utf8(&std::mem::take(&mut output.stdout));
        assert!(found.contains("residual") && !found.contains(".vtu"), "{found}");
        let text = plain_failure(&output, arguments);
        assert!(text.contains("cannot write") && text.contains("help: "), "{text}");
        assert!(text.contains("nothing was left behind") && !text.contains(".part"), "{text}");
    }
    let emit = ["emit", "a.wf", "-o", "k.rs"];
    let text = plain_failure(&output(&mut without_room(&stand, &emit)), &emit);
    assert!(text.contains("cannot write k.rs"), "{text}");
    assert_eq!(stand.files(), before);
    for name in ["u.vtu", "k.rs"] {
        assert_eq!(fs::read(stand.path(name)).expect("still there"), b"what was there");
    }
}

/// Neither the cache nor the temporary folder accepts the source of the kernels.
#[test]
fn a_full_disk_under_the_compiler_is_said() {
    let stand = Stand::problem(BOX);
    let temporary = tempfile::tempdir().expect("a folder");
    let arguments = ["run", "a.wf", "--compile", "--no-output"];
    let mut command = without_room(&stand, &arguments);
    let text = plain_failure(&output(command.env("TMPDIR", temporary.path())), &arguments);
    assert!(text.contains("WF_CACHE_DIR or TMPDIR"), "{text}");
    assert_eq!(fs::read_dir(temporary.path()).expect("a folder").count(), 0, "left in TMPDIR");
    for part in ["building", "modules"] {
        let left = fs::read_dir(stand.cache().join(part)).map_or(0, Iterator::count);
        assert_eq!(left, 0, "left in {part}");
    }
    // With free space, the same cache works again.
    let again = stand.output(&arguments);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert!(fs::read_dir(stand.cache().join("modules")).expect("a cache").count() > 0);
}

#[test]
fn a_cache_that_cannot_be_is_said_and_done_without() {
    let stand = Stand::problem(BOX);
    let arguments = ["run", "a.wf", "--compile", "--no-output", "--json"];
    let mut command = stand.command(&arguments);
    let output = output(command.env("WF_CACHE_DIR", stand.path("a.wf")));
    let notice = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{notice}");
    for words in ["not kept", "a.wf", "WF_CACHE_DIR"] {
        assert!(notice.contains(words), "{words}: {notice}");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.lines().count(), 1);
    // Warnings of the libraries are part of the result.
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let warnings = value["warnings"].as_array().expect("warnings");
    let kept = |warning: &serde_json::Value| warning["message"].to_string().contains("not kept");
    assert!(warnings.iter().any(kept), "{value}");
}

#[test]
fn outputs_without_a_place() {
    let stand = Stand::problem(BOX);
    let cases: [(&str, &[&str]); 5] = [
        ("no-such/", &["cannot write no-such/", "it names a folder", "name another file"]),
        ("no/such/folder/u.vtu", &["cannot write no/such/folder/u.vtu", "make its folder"]),
        ("a.wf/u.vtu", &["cannot write a.wf/u.vtu", "help: "]),
        (".", &["it is a folder", "name another file"]),
        ("a.wf", &["would replace the file that it is made of"]),
    ];
    for (path, words) in cases {
        stand.refuses_run(&["--output", path], said(words));
        stand.refuses(&["emit", "a.wf", "--output", path], said(words));
    }
}

/// Only if folder permissions apply to us, which is not the case for root.
#[test]
fn outputs_in_folders_of_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let stand = Stand::problem(BOX);
    let folder = stand.path("closed");
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).expect("closed");
    if fs::write(folder.join("probe"), "").is_ok() {
        fs::remove_file(folder.join("probe")).expect("removed");
        return;
    }
    let words = &["cannot write closed/u.vtu", "Permission denied", "that you may write to"];
    stand.refuses_run(&["--output", "closed/u.vtu"], said(words));
}

/// The folder of the output existed at the check, but not at the end of the solve.
#[test]
fn a_folder_that_vanishes_during_the_solve_loses_no_result() {
    let stand = Stand::problem(BOX);
    fs::create_dir(stand.path("results")).expect("a folder");
    // Kernels are compiled after the check; the version of the compiler is asked for before it.
    let compile = format!("rm -rf {}; exec rustc \"$@\"", stand.path("results").display());
    let vanish = stand.compiler("vanish", "exec rustc -vV", &compile);
    let arguments = ["run", "a.wf", "--compile", "--output", "results/u.vtu"];
    let mut command = stand.command(&arguments);
    let output = output(command.env("WF_RUSTC", vanish));
    let (found, failure) = (utf8(&output.stdout), utf8(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{failure}");
    assert!(found.contains("residual") && !found.contains("u.vtu"), "{found}");
    assert!(failure.contains("cannot write results/u.vtu"), "{failure}");
    assert!(!failure.contains("panicked"), "{failure}");
}

/// `wf … | head -0`: a closed pipe does not delay the run, and the file is written.
#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let stand = Stand::problem(BOX);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = stand.command(&["run", "a.wf", "--interpret"]);
    let output = output(command.stdout(writer));
    assert!(output.status.success(), "{}", utf8(&output.stderr));
    assert!(stand.path("q.vtu").is_file());
}

/// A device is written to; it is not replaced by a file.
#[cfg(target_os = "linux")]
#[test]
fn a_full_device_stays_a_device() {
    let stand = Stand::problem(BOX);
    std::os::unix::fs::symlink("/dev/full", stand.path("full")).expect("a link");
    for json in [&[][..], &["--json"]] {
        let run = [&["run", "a.wf", "--interpret", "--output", "full"], json].concat();
        let output = stand.output(&run);
        let (found, failure) = (utf8(&output.stdout), utf8(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{failure}");
        // Results are not lost with the file.
        let (result, failure) = if json.is_empty() {
            (found, failure)
        } else {
            let (result, failure) = found.split_once('\n').expect("two lines");
            (result.to_owned(), failure.to_owned())
        };
        assert!(result.contains("residual") && !result.contains("output"), "{result}");
        for words in ["cannot write full", "No space left", "make room"] {
            assert!(failure.contains(words), "{words}: {failure}");
        }
    }
    stand.refuses(&["emit", "a.wf", "-o", "full"], said(&["cannot write full", "No space left"]));
    assert!(fs::symlink_metadata(stand.path("full")).expect("there").is_symlink());

    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    for arguments in [&["check", "a.wf"][..], &["explain", "--json"]] {
        let mut command = stand.command(arguments);
        let output = command.stdout(full()).output().expect("wf should start");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("standard output") && text.contains("help: "), "{text}");
    }
    // With a closed standard error there is still no panic.
    let mut command = stand.command(&["run", "a.wf", "--no-output"]);
    let status = command.env("WF_CACHE_DIR", stand.path("a.wf")).stdout(full()).stderr(full());
    assert_eq!(status.status().expect("wf should start").code(), Some(1));
}

/// Problems that do not fit are rejected in advance, with the required and the available memory.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_there_is_not() {
    let stand = Stand::problem(BOX);
    let limited = |arguments: &[&str]| {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 1000000; exec \"$@\"", "sh"]);
        let wf = stand.command(arguments);
        command.arg(wf.get_program()).args(wf.get_args()).current_dir(stand.path(""));
        output(&mut command)
    };
    let run = ["run", "a.wf", "--interpret", "--no-output", "--threads", "1", "--mesh"];
    let cube = [&run[..], &["box(dim: 3, cells: 250)"]].concat();
    let text = plain_failure(&limited(&cube), &cube);
    for words in [
        "error[E0413]",
        "a mesh of 15625000 cells (hex) takes",
        "GiB",
        "`ulimit -v`",
        "fewer cells",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The mesh fits, but the problem on it does not.
    let degree = [&run[..], &["box(dim: 2, cells: 400)", "--degree", "12"]].concat();
    let text = plain_failure(&limited(&degree), &degree);
    for words in ["a problem of 23049601 unknowns on 160000 cells", "vectors", "`ulimit -v`"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // Beyond all machines there is an immediate message, too.
    let dry = stand.output(&["run", "a.wf", "--dry-run", "--mesh", "box(dim: 3, cells: 1000000)"]);
    let text = String::from_utf8_lossy(&dry.stdout).into_owned();
    assert!(
        text.contains("1000000000000000000 cells (hex)") && text.contains("too little"),
        "{text}"
    );
    // More memory would not help either.
    let text = utf8(&dry.stderr);
    assert_eq!(dry.status.code(), Some(1), "{text}");
    assert!(text.contains("error[E0413]") && text.contains("32-bit indices"), "{text}");
}

/// Slightly insufficient memory is reported like far too little: memory in large allocations counts.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_there_nearly_is() {
    let stand = Stand::problem("mesh = box(dim: 3, cells: 60); dirichlet u = 0;");
    let run = ["run", "a.wf", "--interpret", "--no-output", "--threads", "1"];
    let mut all = String::new();
    for limit in (160_000..=320_000).step_by(10_000) {
        let wf = stand.command(&run);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {limit}; exec \"$@\""), "sh"]);
        command.arg(wf.get_program()).args(wf.get_args()).current_dir(stand.path(""));
        all += &plain_failure(&output(&mut command), &run);
    }
    // Either the mesh or the problem on it does not fit.
    assert!(all.contains("a mesh of 216000 cells"), "{all}");
}

#[test]
fn dry_runs_say_what_a_problem_takes() {
    let stand = Stand::problem(BOX);
    let before = stand.files();
    let arguments = ["run", "a.wf", "--dry-run", "--json", "--degree", "2", "--mesh"];
    let run = stand.output(&[&arguments[..], &["box(dim: 3, cells: 800)"]].concat());
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let value: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
    assert_eq!(
        (value["cells"].as_u64(), value["dofs"].as_u64()),
        (Some(512_000_000), Some(4_103_684_801))
    );
    let bytes = value["bytes"].as_f64().expect("a number");
    let parts = value["bytes_by_part"].as_object().expect("parts");
    for part in ["mesh", "spaces", "tables", "vectors"] {
        assert!(parts[part].as_f64().is_some_and(|part| part > 1e10 && part < bytes), "{value}");
    }
    assert_eq!(stand.files(), before);
    let text = stand.output(&["run", "a.wf", "--dry-run"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for words in ["q (p)", "4 cells (quad)", "unknowns    9", "at least: mesh", "vectors"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

/// A resource limit of the process causes a write error rather than the end of the program.
#[test]
fn a_file_that_may_not_grow_leaves_no_partial_output() {
    let stand = Stand::problem(BOX);
    let before = stand.files();
    let wf = stand.command(&["run", "a.wf", "--interpret", "--degree", "8", "--output", "u.vtu"]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -f 1; exec \"$@\"", "sh"])
        .arg(wf.get_program())
        .args(wf.get_args());
    let output = output(command.current_dir(stand.path("")));
    let said = utf8(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot write u.vtu") && said.contains("`ulimit -f`"), "{said}");
    assert_eq!(stand.files(), before);
}

/// A named pipe has one reader, who receives everything.
#[test]
fn a_pipe_with_a_name_is_written_once() {
    let stand = Stand::problem(BOX);
    let made = Command::new("mkfifo").arg(stand.path("pipe")).status();
    assert!(made.is_ok_and(|made| made.success()), "no pipe");
    let reader = std::thread::spawn({
        let pipe = stand.path("pipe");
        move || fs::read(pipe).expect("read")
    });
    let output = stand.output(&["run", "a.wf", "--interpret", "--output", "pipe"]);
    assert!(output.status.success(), "{}", utf8(&output.stderr));
    stand.output(&["run", "a.wf", "--interpret", "--output", "u.vtu"]);
    assert_eq!(reader.join().expect("read"), fs::read(stand.path("u.vtu")).expect("written"));
}

/// A closed standard output accepts no solution; an output file contains nothing else.
#[cfg(target_os = "linux")]
#[test]
fn standard_output_takes_the_solution_alone_or_not_at_all() {
    let stand = Stand::problem(BOX);
    let run = |output_to: &str, redirected: &str| {
        let wf = stand.command(&["run", "a.wf", "--interpret", "--output", output_to]);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("\"$@\" {redirected}"), "sh"]);
        output(command.arg(wf.get_program()).args(wf.get_args()).current_dir(stand.path("")))
    };
    let closed = run("-", ">&-");
    assert_eq!(closed.status.code(), Some(1));
    assert!(utf8(&closed.stderr).contains("which is closed\nhelp: "), "{}", utf8(&closed.stderr));
    assert!(run("u.vtu", "").status.success());
    let whole = fs::read(stand.path("u.vtu")).expect("written");
    for (path, redirected) in [("/dev/stdout", "> v.vtu"), ("v.vtu", "> v.vtu")] {
        let output = run(path, redirected);
        assert!(output.status.success(), "{}", utf8(&output.stderr));
        assert!(utf8(&output.stderr).contains("residual"), "{}", utf8(&output.stderr));
        assert_eq!(fs::read(stand.path("v.vtu")).expect("written"), whole);
    }
    assert!(run("-", "> /dev/null").status.success());
}

/// Sizes in files are compared with the available memory before allocation, and endless files are not read to the end.
#[cfg(target_os = "linux")]
#[test]
fn inputs_are_bounded_before_they_are_read() {
    let stand = Stand::new();
    let head = "%%MatrixMarket matrix coordinate real general\n1000000000 1000000000 1\n1 1 1\n";
    stand.write("matrix.mtx", head);
    stand.write("one.txt", "1\n");
    let residual = ["residual", ".", "--rhs", "one.txt", "--solution", "one.txt"];
    // Gigabytes of zeros would be read on a machine with sufficient memory.
    let limited = |arguments: &[&str], kilobytes: usize| {
        let (mut command, wf) = (Command::new("sh"), stand.command(arguments));
        command.args(["-c", &format!("ulimit -v {kilobytes}; exec \"$@\""), "sh"]);
        command.arg(wf.get_program()).args(wf.get_args()).current_dir(stand.path(""));
        output(&mut command)
    };
    let text = plain_failure(&limited(&residual, 8_000_000), &residual);
    for words in ["matrix.mtx:2", "a matrix of 1000000000 rows takes", "of memory"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    for file in ["--matrix", "--rhs", "--solution"] {
        let text = limited(&[&residual[..2], &[file, "/dev/zero"]].concat(), 1_000_000);
        assert_eq!(text.status.code(), Some(1), "{file}: {}", utf8(&text.stderr));
    }
    let compare = ["bench", "--compare", "/dev/zero"];
    let text = plain_failure(&limited(&compare, 1_000_000), &compare);
    assert!(text.contains("/dev/zero:1: no JSON"), "{text}");
}

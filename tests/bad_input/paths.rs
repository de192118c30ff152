//! Paths that are not Unicode, and files that must not be replaced.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::gallery::{FORM, Stand, said};

const BOX: &str = "mesh = box(dim: 2, cells: 2); dirichlet u = 0;";

/// Returns a name that is not Unicode.
fn odd(extension: &str) -> OsString {
    let mut name = OsStr::from_bytes(b"\xff\xfe").to_owned();
    name.push(extension);
    name
}

#[test]
fn paths_that_are_no_unicode_are_taken_and_shown_as_far_as_they_can_be() {
    let stand = Stand::new();
    let folder = stand.path("").join(odd(""));
    fs::create_dir(&folder).expect("a folder");
    let text = format!("{FORM}problem q solves p {{ {BOX} }}\n");
    fs::write(folder.join(odd(".wf")), text).expect("written");
    // Arguments of `wf`, and its output file.
    let verify = ["verify", "--interpret", "--no-kernels", "--degree", "1", "--dofs", "200"];
    let cases: [(&[&str], &str); 8] = [
        (&["check"], ""),
        (&["fmt", "--check"], ""),
        (&["run", "--interpret", "--no-output"], ""),
        (&["run", "--interpret", "--output"], "u.vtu"),
        (&["emit", "--output"], "k.rs"),
        (&["probe", "--interpret", "--at", "u=x[0]"], ""),
        (&verify, ""),
        (&["doctor"], ""),
    ];
    for (arguments, file) in cases {
        for json in [&[][..], &["--json"]] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
            command.args(arguments).current_dir(&folder);
            if !file.is_empty() {
                command.arg(odd(file));
            }
            if arguments != ["doctor"] {
                command.arg(odd(".wf"));
            }
            command.args(json).env("WF_CACHE_DIR", odd("cache")).env("WF_DUMP_DIR", odd("dump"));
            command.env("WF_RUSTC", folder.join(odd("rustc"))).env_remove("WF_LOG");
            let output = command.output().expect("wf should start");
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(!told.contains("panicked"), "{arguments:?}: {told}");
            let refused = arguments == ["fmt", "--check"];
            assert_eq!(output.status.code(), Some(i32::from(refused)), "{arguments:?}: {told}");
            let found = std::str::from_utf8(&output.stdout).expect("UTF-8");
            if !file.is_empty() {
                assert!(found.contains(&format!("\u{fffd}\u{fffd}{file}")), "{found}");
                assert!(folder.join(odd(file)).is_file(), "{arguments:?}");
            }
            for line in found.lines().filter(|_| !json.is_empty()) {
                serde_json::from_str::<serde_json::Value>(line).expect("JSON");
            }
        }
    }
    // In the language, the text is Unicode: bad usage, and no panic.
    let mut command = stand.command(&["run", "a.wf", "--mesh"]);
    let output = command.arg(odd(".msh")).output().expect("wf should start");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("UTF-8"));
}

#[test]
fn what_may_only_be_read_is_refused_before_the_work() {
    let stand = Stand::problem(&format!("{BOX} exact u = x[0];"));
    // Output files are checked first in a long run: nothing is compiled if they cannot be written.
    for name in ["u.vtu", "k.rs", "a.svg"] {
        stand.write(name, "what was there");
        let read_only = fs::Permissions::from_mode(0o444);
        fs::set_permissions(stand.path(name), read_only).expect("rights");
    }
    let words = &["cannot write", "it may only be read", "help: name a file that you may write"];
    stand.refuses_run(&["--output", "u.vtu"], said(words));
    stand.refuses(&["emit", "a.wf", "--output", "k.rs"], said(words));
    stand.refuses(&["verify", "a.wf", "--interpret", "--plot", "a.svg"], said(words));
    stand.refuses(&["bench", "--plot", "a.svg"], said(words));
    for name in ["u.vtu", "k.rs", "a.svg"] {
        assert_eq!(fs::read(stand.path(name)).expect("still there"), b"what was there");
    }
    let before = fs::read(stand.path("a.wf")).expect("a text");
    let read_only = fs::Permissions::from_mode(0o444);
    fs::set_permissions(stand.path("a.wf"), read_only).expect("rights");
    stand.refuses(&["fmt", "a.wf"], said(words));
    assert_eq!(fs::read(stand.path("a.wf")).expect("still there"), before);
}

/// Only if `wf` can run as another user: from the root account.
#[test]
fn what_belongs_to_others_is_refused_before_the_work() {
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65534;
    let stand = Stand::problem(BOX);
    stand.write("u.vtu", "what was there");
    let all = fs::Permissions::from_mode(0o777);
    fs::set_permissions(stand.path(""), all).expect("rights");
    let mut command = stand.command(&["run", "a.wf", "--interpret", "--output", "u.vtu"]);
    let Ok(output) = command.uid(NOBODY).gid(NOBODY).output() else { return };
    let told = String::from_utf8_lossy(&output.stderr);
    for words in ["cannot write u.vtu", "Permission denied", "that you may write"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(fs::read(stand.path("u.vtu")).expect("still there"), b"what was there");
}

/// Returns a problem with a mesh in VTK's format, as `wf run` writes it.
fn with_mesh(name: &str, items: &str) -> Stand {
    let stand = Stand::problem(BOX);
    let made = stand.output(&["run", "a.wf", "--interpret", "--output", name]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    stand.write("a.wf", format!("{FORM}problem part solves p {{ {items} }}\n"));
    stand
}

/// The mesh of a problem has the name of its solution, through any path.
#[test]
fn an_output_replaces_no_file_that_the_run_reads() {
    let stand = with_mesh("part.vtu", "mesh = \"part.vtu\"; dirichlet u = 0;");
    std::os::unix::fs::symlink("part.vtu", stand.path("link.vtu")).expect("linked");
    fs::create_dir(stand.path("part")).expect("a folder");
    std::os::unix::fs::symlink("../part.vtu", stand.path("part/rhs.npy")).expect("linked");
    std::os::unix::fs::symlink("part.vtu", stand.path("link.csv")).expect("linked");
    std::os::unix::fs::symlink("part.vtu", stand.path("link.svg")).expect("linked");
    let before = fs::read(stand.path("part.vtu")).expect("a mesh");
    let words = &["part.vtu", "would replace the mesh of the problem `part`", "name another file"];
    let link = &["would replace the mesh of the problem `part`", "name another file"];
    stand.refuses_run(&[], said(words));
    stand.refuses_run(&["--output", "./part/../part.vtu"], said(words));
    stand.refuses_run(&["--output", "link.vtu"], said(link));
    stand.refuses_run(&["--no-output", "--report", "link.csv"], said(link));
    stand.refuses_run(&["--no-output", "--picture", "link.svg"], said(link));
    stand.refuses(&["assemble", "a.wf", "--interpret", "-o", "part"], said(link));
    stand.refuses(&["plan", "a.wf", "--roofline", "link.svg"], said(link));
    stand.refuses(&["verify", "a.wf", "--interpret", "--plot", "link.svg"], said(link));
    assert_eq!(fs::read(stand.path("part.vtu")).expect("still there"), before);
    for free in [&["--no-output"][..], &["--output", "u.vtu"], &["--dry-run"]] {
        let output = stand.output(&[&["run", "a.wf", "--interpret"], free].concat());
        assert!(output.status.success(), "{free:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(fs::read(stand.path("part.vtu")).expect("still there"), before);
}

/// A problem with `eigen` has other output files than a linear system, and replaces none of those.
#[test]
fn matrices_of_an_eigenvalue_problem_replace_no_input() {
    let stand = with_mesh("part.vtu", "mesh = \"part.vtu\"; dirichlet u = 0; eigen = smallest(1);");
    fs::create_dir(stand.path("part")).expect("a folder");
    let arguments = ["assemble", "a.wf", "--interpret", "-o", "part"];
    let link = |file| stand.path("part").join(file);
    std::os::unix::fs::symlink("../part.vtu", link("modes.npy")).expect("linked");
    stand.refuses(&arguments, said(&["would replace the mesh of the problem"]));
    fs::remove_file(link("modes.npy")).expect("removed");
    std::os::unix::fs::symlink("../part.vtu", link("rhs.npy")).expect("linked");
    assert!(stand.output(&arguments).status.success());
}

/// Files of a series and of the values of a parameter, states, and accompanying files count, too.
#[test]
fn no_output_of_a_run_replaces_another() {
    let items = "mesh = box(dim: 2, cells: 2); dirichlet u = 0; initial u = file(\"u-1.vtu\"); \
                 report cut = line(u, from: [0, 0.5], to: [1, 0.5], points: 3);";
    let stand = with_mesh("u-1.vtu", items);
    let state = &["u-1.vtu", "would replace data of the problem `part`"];
    stand.refuses_run(&["--output", "u-{step}.vtu"], said(state));
    stand.refuses_run(&["--param", "f=1,2", "--output", "u.vtu"], said(state));
    let both = &["would both be written to", "name another file for one of them"];
    stand.refuses_run(&["--output", "w.vtu", "--report", "w-cut.csv"], said(both));
    stand.refuses_run(&["--output", "w", "--report", "./w"], said(both));
    stand.refuses_run(&["--param", "f=1,2", "-o", "w.vtu", "--report", "w-2-cut.csv"], said(both));
    stand.refuses_run(&["-o", "w-{step}.vtu", "--report", "w-0-cut.csv"], said(both));
    let free = ["--output", "/dev/null", "--report", "/dev/null"];
    let output = stand.output(&[&["run", "a.wf", "--interpret"], &free[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

//! Paths that are no Unicode, and files that are not ours to replace.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::gallery::{FORM, Stand, said};

const BOX: &str = "mesh = box(dim: 2, cells: 2); dirichlet u = 0;";

/// A name that is no Unicode.
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
    // What `wf` is given, and a file that it writes.
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
    // Of a mesh in the language, the text is Unicode: bad usage, and no panic.
    let mut command = stand.command(&["run", "a.wf", "--mesh"]);
    let output = command.arg(odd(".msh")).output().expect("wf should start");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("UTF-8"));
}

#[test]
fn what_may_only_be_read_is_refused_before_the_work() {
    let stand = Stand::problem(&format!("{BOX} exact u = x[0];"));
    // What comes first in a long run: nothing is compiled for what cannot be written.
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

/// Only where `wf` can be run as somebody else: by the system's own user.
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

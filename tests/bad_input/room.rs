//! Places that take no files: full, unwritable, or something else in the way. Nothing partial is left, the message
//! names the place and the remedy, and where one place will do as well as another it is taken.

use std::fs;
use std::process::{Command, Output};

use crate::gallery::{Stand, plain_failure, said};

const BOX: &str = "mesh = box(dim: 2, cells: 2); dirichlet u = 0;";

/// `wf` where no file can grow: writes fail as they do on a full disk.
fn without_room(stand: &Stand, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    // A signal would end the program before it sees the error; ignored, it becomes one.
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]);
    let wf = stand.command(arguments);
    command.arg(wf.get_program()).args(wf.get_args());
    command.current_dir(stand.path("")).env("WF_CACHE_DIR", stand.cache());
    command.env_remove("WF_DUMP_DIR").env_remove("WF_LOG");
    command
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
        let text = plain_failure(&output(&mut without_room(&stand, arguments)), arguments);
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

/// Neither the cache nor the temporary folder takes the source of the kernels.
#[test]
fn a_full_disk_under_the_compiler_is_said() {
    let stand = Stand::problem(BOX);
    let temporary = tempfile::tempdir().expect("a folder");
    let arguments = ["run", "a.wf", "--no-output"];
    let mut command = without_room(&stand, &arguments);
    let text = plain_failure(&output(command.env("TMPDIR", temporary.path())), &arguments);
    assert!(text.contains("WF_CACHE_DIR or TMPDIR"), "{text}");
    assert_eq!(fs::read_dir(temporary.path()).expect("a folder").count(), 0, "left in TMPDIR");
    for part in ["building", "modules"] {
        let left = fs::read_dir(stand.cache().join(part)).map_or(0, Iterator::count);
        assert_eq!(left, 0, "left in {part}");
    }
    // With room again, the same cache serves.
    let again = stand.output(&arguments);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(fs::read_dir(stand.cache().join("modules")).expect("a cache").count(), 1);
}

#[test]
fn a_cache_that_cannot_be_is_said_and_done_without() {
    let stand = Stand::problem(BOX);
    let mut command = stand.command(&["run", "a.wf", "--no-output", "--json"]);
    let output = output(command.env("WF_CACHE_DIR", stand.path("a.wf")));
    let notice = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{notice}");
    for words in ["not kept", "a.wf", "WF_CACHE_DIR"] {
        assert!(notice.contains(words), "{words}: {notice}");
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
}

#[test]
fn outputs_without_a_place() {
    let stand = Stand::problem(BOX);
    let cases: [(&str, &[&str]); 4] = [
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

/// Only where the rights of folders bind us: they do not bind the system's own user.
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

/// A device is written to; it is not replaced by a file.
#[cfg(target_os = "linux")]
#[test]
fn a_full_device_stays_a_device() {
    let stand = Stand::problem(BOX);
    std::os::unix::fs::symlink("/dev/full", stand.path("full")).expect("a link");
    stand.refuses_run(
        &["--output", "full"],
        said(&["cannot write full", "No space left", "make room"]),
    );
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
    // Where nobody listens, there is still no panic.
    let mut command = stand.command(&["run", "a.wf", "--no-output"]);
    let status = command.env("WF_CACHE_DIR", stand.path("a.wf")).stdout(full()).stderr(full());
    assert_eq!(status.status().expect("wf should start").code(), Some(1));
}

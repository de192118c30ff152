//! Compiler output for mistakes inside the macro, and in `warned.rs` for valid but probably unintended text. Each file
//! of `tests/ui` is compiled by `rustc` with the macro that this test was built with. The output is compared with the
//! `.stderr` file. `WF_UPDATE=1` updates these files.

use std::env::{current_exe, var, var_os};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The prefix of file names.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Lines that only summarise those above.
const COUNTS: [&str; 4] = [
    "error: aborting due to",
    "For more information about",
    "Some errors have detailed",
    "warning: 4 warnings emitted",
];

/// Returns the library of the macro in the folder of this program: the newest, because it was built before this program
/// started.
fn library() -> PathBuf {
    let program = current_exe().expect("this program");
    let folder = program.parent().expect("a folder");
    let is_macro = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let name = stem.strip_prefix(std::env::consts::DLL_PREFIX).unwrap_or(stem);
        let is_library = path.extension().is_some_and(|e| e == std::env::consts::DLL_EXTENSION);
        is_library && name.starts_with("fem_macros-")
    };
    let files = fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    let libraries = files.map(|file| file.path()).filter(is_macro);
    let built = |path: &PathBuf| path.metadata().and_then(|file| file.modified()).ok();
    libraries.max_by_key(built).expect("the macro's library")
}

/// Returns the compiler's output for a file.
fn output(file: &Path, library: &Path) -> String {
    let output = Command::new(var_os("RUSTC").unwrap_or("rustc".into()))
        .args(["--edition=2024", "--crate-type=bin", "--emit=metadata", "--color=never"])
        .args(["-Adead_code", "--out-dir", env!("CARGO_TARGET_TMPDIR"), "--extern"])
        .arg(format!("fem_macros={}", library.display()))
        .arg(file)
        .current_dir(ROOT)
        .output()
        .expect("rustc should start");
    let warned = file.file_stem().is_some_and(|stem| stem == "warned");
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.success(), warned, "{}:\n{text}", file.display());
    let lines = text.lines().filter(|line| !COUNTS.iter().any(|count| line.starts_with(count)));
    let lines: Vec<&str> = lines.map(str::trim_end).collect();
    format!("{}\n", lines.join("\n").trim_end())
}

#[test]
fn mistakes_are_underlined_at_their_tokens() {
    let library = library();
    let files = fs::read_dir(Path::new(ROOT).join("tests/ui")).expect("a folder");
    let names = files.map(|file| file.expect("a file").file_name());
    let cases: Vec<PathBuf> = names.map(|name| Path::new("tests/ui").join(name)).collect();
    let cases: Vec<&PathBuf> =
        cases.iter().filter(|path| path.extension().is_some_and(|e| e == "rs")).collect();
    assert!(cases.len() >= 4, "{cases:?}");
    let mut wrong = String::new();
    for case in cases {
        let (found, kept) =
            (output(case, &library), Path::new(ROOT).join(case.with_extension("stderr")));
        if var("WF_UPDATE").is_ok_and(|value| value == "1") {
            fs::write(&kept, &found).expect("the file should be written");
        }
        let wanted = fs::read_to_string(&kept).unwrap_or_default();
        if wanted != found {
            wrong += &format!("{}: wanted\n{wanted}\nfound\n{found}\n", case.display());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

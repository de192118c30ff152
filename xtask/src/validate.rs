//! `cargo xtask validate`: the sources in the snapshots of `tests/snapshots`, compiled by their real compilers.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::root;

/// Compiles each Rust source separately, like a user's copy.
pub(crate) fn rust() -> Result<(), String> {
    let snapshots = snapshots("rust")?;
    if snapshots.is_empty() {
        return Err("tests/snapshots/rust holds no snapshots".to_owned());
    }
    let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let mut failures = Vec::new();
    for path in &snapshots {
        let text =
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let source = folder.path().join("kernels.rs");
        fs::write(&source, body(&text))
            .map_err(|error| format!("{}: {error}", source.display()))?;
        let output = Command::new(&rustc)
            .args(["--crate-type=lib", "--crate-name=kernels", "-Dwarnings", "--out-dir"])
            .arg(folder.path())
            .arg(&source)
            .output()
            .map_err(|error| format!("cannot start rustc: {error}"))?;
        if !output.status.success() {
            let log = String::from_utf8_lossy(&output.stderr);
            println!("{} does not compile:\n{log}", path.display());
            failures.push(path.display().to_string());
        }
    }
    println!("{} of {} Rust sources compile", snapshots.len() - failures.len(), snapshots.len());
    if failures.is_empty() { Ok(()) } else { Err(failures.join(", ")) }
}

/// Returns the snapshots of one language, in order.
fn snapshots(language: &str) -> Result<Vec<PathBuf>, String> {
    let folder = root().join("tests/snapshots").join(language);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> =
        paths.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "snap"));
    paths.sort();
    Ok(paths)
}

/// Returns a snapshot's text without insta's header.
fn body(text: &str) -> &str {
    let header = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    header.map_or(text, |(_, body)| body)
}

#[cfg(test)]
mod tests {
    use super::body;

    #[test]
    fn the_header_of_a_snapshot_is_dropped() {
        assert_eq!(body("---\nsource: a.rs\nexpression: b\n---\nfn c() {}\n"), "fn c() {}\n");
        assert_eq!(body("fn c() {}\n"), "fn c() {}\n");
    }
}

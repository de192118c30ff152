//! Checks against other programs: scripts of `.ci` that install these programs, and run only where their subject changed.

use std::process::Command;

use crate::{capture, execute, root};

/// A script, and the paths (as patterns of git) that it checks.
struct Script {
    name: &'static str,
    path: &'static str,
    subjects: &'static [&'static str],
}

const SCRIPTS: [Script; 5] = [
    Script { name: "Python", path: ".ci/python", subjects: &["python", "src", ".ci/python"] },
    Script {
        name: "exports to PETSc and libCEED",
        path: ".ci/exports",
        subjects: &["kernels-gen/src/export", "fem-dsl/src/point", ".ci/exports*"],
    },
    Script {
        name: "editors",
        path: ".ci/editors",
        subjects: &["editors", "fem-dsl/lsp", ".ci/editors*"],
    },
    Script { name: "the book", path: ".ci/book", subjects: &["docs", "README.md", ".ci/book*"] },
    Script {
        name: "packages",
        path: ".ci/publish",
        subjects: &[":(glob)**/Cargo.toml", "Cargo.lock", "CITATION.cff", ".ci/publish"],
    },
];

/// Seconds before the last commit within which a change counts: a day.
const RECENT: u64 = 24 * 60 * 60;

/// Returns the scripts to run: all of them, or those whose subjects recent commits changed.
pub(super) fn chosen(
    all: bool,
) -> Result<Vec<(&'static str, impl FnOnce() -> Result<(), String>)>, String> {
    let mut chosen = Vec::new();
    for script in &SCRIPTS {
        if all || changed(script.subjects)? {
            chosen.push((script.name, || execute(&mut Command::new(root().join(script.path)))));
        } else {
            println!("=== {}: nothing changed, see `cargo xtask ci --all`", script.name);
        }
    }
    Ok(chosen)
}

/// Returns whether a commit of the last day, counted back from the last commit, changed one of these paths.
fn changed(paths: &[&str]) -> Result<bool, String> {
    let git = |arguments: &[&str]| capture(Command::new("git").args(arguments).current_dir(root()));
    let last = git(&["log", "-1", "--format=%ct"])?;
    let last: u64 = last.trim().parse().map_err(|_| format!("git: no date in `{last}`"))?;
    let since = format!("--since=@{}", last.saturating_sub(RECENT));
    let found = git(&[&["log", &since, "--format=%h", "-1", "--"], paths].concat())?;
    Ok(!found.trim().is_empty())
}

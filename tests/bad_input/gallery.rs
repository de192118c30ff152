//! Fixture for bad input: a folder with the files of a case, and runs of `wf` in it as text and as JSON. The checks for
//! any error are: exit code 1, one message with its code, location and remedy, no panic, and no file left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// The form of most cases, on one line, so that problems begin on line 2.
pub(crate) const FORM: &str =
    "form p { field u: scalar; param f = 1; param g = 1 / f; f0[u] = -f * g; f1[u] = grad(u); }\n";

/// The expected message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said<'a> {
    /// The code of the first diagnostic; `None` if the message has no diagnostics.
    pub(crate) code: Option<&'a str>,
    /// File, line and column of its location.
    pub(crate) place: Option<(&'a str, u64, u64)>,
    /// Parts of the message, its notes and its help.
    pub(crate) words: &'a [&'a str],
}

/// Returns the expected diagnostic with a location.
pub(crate) fn at<'a>(code: &'a str, place: (&'a str, u64, u64), words: &'a [&'a str]) -> Said<'a> {
    Said { code: Some(code), place: Some(place), words }
}

/// Returns the location of the first `token` in a text, `a.wf`.
pub(crate) fn place(text: &str, token: &str) -> (&'static str, u64, u64) {
    let at = text.find(token).unwrap_or_else(|| panic!("no {token:?} in {text}"));
    let line = text[..at].matches('\n').count() + 1;
    let column = text[..at].chars().rev().take_while(|c| *c != '\n').count() + 1;
    ("a.wf", line as u64, column as u64)
}

/// Returns the expected message without a location.
pub(crate) fn said<'a>(words: &'a [&'a str]) -> Said<'a> {
    Said { words, ..Said::default() }
}

/// A folder in which `wf` is run.
pub(crate) struct Stand {
    folder: TempDir,
    cache: TempDir,
}

impl Stand {
    pub(crate) fn new() -> Self {
        let folder = || tempfile::tempdir().expect("a temporary folder");
        Self { folder: folder(), cache: folder() }
    }

    /// Creates a folder with the file `a.wf`.
    pub(crate) fn with(text: impl AsRef<[u8]>) -> Self {
        let stand = Self::new();
        stand.write("a.wf", text);
        stand
    }

    /// Creates a folder with the file `a.wf`: [`FORM`], and a problem `q` on line 2 with these items.
    pub(crate) fn problem(items: &str) -> Self {
        Self::with(format!("{FORM}problem q solves p {{ {items} }}\n"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).expect("the file should be written");
    }

    /// Creates a substitute for `rustc`: a shell script with its reactions to a version query and to a compilation.
    #[cfg(unix)]
    pub(crate) fn compiler(&self, name: &str, version: &str, compile: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.path(name);
        let script =
            format!("#!/bin/sh\nif [ \"$1\" = -vV ]; then\n{version}\nelse\n{compile}\nfi\n");
        self.write(name, script);
        let runnable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, runnable).expect("a program");
        path
    }

    /// Returns the cache of compiled kernels.
    pub(crate) fn cache(&self) -> &Path {
        self.cache.path()
    }

    /// Returns the location of the first `token` in the problem of `a.wf`.
    pub(crate) fn place(&self, token: &str) -> (&'static str, u64, u64) {
        let text = std::fs::read_to_string(self.path("a.wf")).expect("a text");
        let start = text.find("problem").expect("a problem");
        let spaced: String =
            text[..start].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
        place(&(spaced + &text[start..]), token)
    }

    /// Returns `wf` in the folder, with its own cache.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
        command.args(arguments).current_dir(self.folder.path());
        command.env("WF_CACHE_DIR", self.cache()).env_remove("WF_DUMP_DIR").env_remove("WF_LOG");
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("wf should start")
    }

    /// Returns the names of all files in the folder and below.
    pub(crate) fn files(&self) -> BTreeSet<PathBuf> {
        let mut open = vec![self.folder.path().to_owned()];
        let mut found = BTreeSet::new();
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() && !path.is_symlink() {
                    open.push(path.clone());
                }
                found.insert(path);
            }
        }
        found
    }

    /// Checks that `wf run a.wf` with more arguments fails; kernels are interpreted for speed.
    pub(crate) fn refuses_run(&self, more: &[&str], said: Said<'_>) {
        self.refuses(&[&["run", "a.wf", "--interpret"], more].concat(), said);
    }

    /// Checks that `wf probe a.wf` with more arguments fails.
    pub(crate) fn refuses_probe(&self, more: &[&str], said: Said<'_>) {
        self.refuses(&[&["probe", "a.wf", "--interpret"], more].concat(), said);
    }

    /// Checks that `wf` with these arguments fails, as text and as JSON.
    pub(crate) fn refuses(&self, arguments: &[&str], said: Said<'_>) {
        let before = self.files();
        let output = self.output(arguments);
        let text = plain_failure(&output, arguments);
        let json = [arguments, &["--json"]].concat();
        let arguments = shown(arguments);
        if let Some(code) = said.code {
            assert!(text.starts_with(&format!("error[{code}]: ")), "{arguments}\n{text}");
        } else {
            assert!(text.starts_with("error: "), "{arguments}\n{text}");
        }
        if let Some((file, line, column)) = said.place {
            let place = format!("--> {file}:{line}:{column}\n");
            assert!(text.contains(&place), "{arguments}: {place}\n{text}");
        }
        for words in said.words {
            assert!(text.contains(words), "{arguments}: {words:?}\n{text}");
        }
        check_json(&failure_json(&self.output(&json), &json), said);
        assert_eq!(self.files(), before, "{arguments} left something behind");
    }
}

/// Returns the beginning of a command line, for messages.
fn shown(arguments: &[&str]) -> String {
    arguments.join(" ").chars().take(200).collect()
}

/// Returns the text on standard error of a failure with empty standard output.
pub(crate) fn plain_failure(output: &Output, arguments: &[&str]) -> String {
    let arguments = shown(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{arguments}\n{text}");
    assert!(output.stdout.is_empty(), "{arguments} printed a result");
    assert!(!text.contains("panicked"), "{arguments}\n{text}");
    assert!(text.lines().count() <= 40, "{arguments} is long-winded:\n{text}");
    text
}

/// Returns the JSON object of a failure, the only contents of standard output.
fn failure_json(output: &Output, arguments: &[&str]) -> Value {
    let arguments = shown(arguments);
    let text = std::str::from_utf8(&output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{arguments}\n{text}");
    assert!(output.stderr.is_empty(), "{arguments}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.lines().count(), 1, "{arguments}\n{text}");
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{arguments}: {error}\n{text}"))
}

fn check_json(value: &Value, said: Said<'_>) {
    let message = value["error"].as_str().expect("a message");
    let diagnostics = value["diagnostics"].as_array().expect("diagnostics");
    assert_eq!(diagnostics.is_empty(), said.code.is_none(), "{value}");
    for words in said.words {
        assert!(message.contains(words), "{words:?} in {value}");
    }
    let Some(first) = diagnostics.first() else { return };
    assert_eq!(first["code"].as_str(), said.code, "{value}");
    assert_eq!(first["severity"], "error", "{value}");
    assert!(first["message"].as_str().is_some_and(|message| !message.is_empty()), "{value}");
    if let Some((file, line, column)) = said.place {
        assert_eq!(first["file"], file, "{value}");
        assert_eq!((first["line"].as_u64(), first["column"].as_u64()), (Some(line), Some(column)));
        let primary = first["labels"].as_array().and_then(|labels| {
            labels.iter().find(|label| label["primary"] == true && label["line"] == line)
        });
        assert!(primary.is_some(), "{value}");
    }
}

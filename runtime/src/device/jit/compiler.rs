//! Identification of compilers: a file → [`Compiler`]; `jit/search` selects one.
//!
//! To avoid starting a compiler in each run, the cache stores its answer about its version by path, size and time of the
//! file. The `rustc` of rustup is a proxy that selects a toolchain. It is asked once for the toolchain's compiler, which
//! is then called directly; the stored answer is valid only if both files are unchanged.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use kernels_gen::dialect::Language;

use super::notice::waiting;
use super::{Cache, compiler_process};

/// The oldest release that supports generated sources: this package's `rust-version`.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// Error of the search for a compiler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompilerError {
    /// No compiler on the search path.
    #[error(
        "there is no `rustc` and no C compiler on the search path\n\
         help: install Rust (https://rustup.rs), gcc, clang or the Python package `ziglang`, or name a compiler with \
         WF_RUSTC or WF_CC"
    )]
    None,
    /// A compiler named by a variable that does not exist.
    #[error(
        "{variable} names the compiler {}, which is not there\n\
         help: correct {variable} or unset it",
        path.display()
    )]
    Missing {
        /// `WF_RUSTC`, `RUSTC` or `WF_CC`.
        variable: &'static str,
        /// Its value.
        path: PathBuf,
    },
    /// A C compiler without the vector types of GCC and Clang.
    #[error(
        "the compiler {} has no vector types of GCC and Clang\n\
         help: install clang (https://llvm.org) or gcc, and name it with WF_CC",
        path.display()
    )]
    WithoutVectors {
        /// The compiler.
        path: PathBuf,
    },
    /// A compiler that does not run or does not respond like its kind.
    #[error("the compiler {} does not work: {reason}", path.display())]
    Broken {
        /// The compiler.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// An outdated compiler.
    #[error(
        "the compiler {} is release {release}, but generated kernels need {OLDEST}\n\
         help: update Rust (`rustup update`), or name another compiler with WF_RUSTC or WF_CC",
        path.display()
    )]
    Old {
        /// The compiler.
        path: PathBuf,
        /// Its release.
        release: String,
    },
    /// A compiler that exceeded the time limit.
    #[error(
        "the compiler {} was ended: {task} took more than {} s\n\
         help: allow more with WF_COMPILE_SECONDS, or name another compiler with WF_RUSTC or WF_CC",
        path.display(),
        bound.as_secs_f64()
    )]
    Late {
        /// The compiler.
        path: PathBuf,
        /// The task.
        task: String,
        /// The time limit.
        bound: Duration,
    },
    /// A compiler whose output is not loadable, or is in a folder without execution rights.
    #[error(
        "what the compiler {} made cannot be loaded: {reason}\n\
         help: name a folder that is not mounted `noexec` with TMPDIR, or another compiler with WF_RUSTC or WF_CC",
        path.display()
    )]
    Unloadable {
        /// The compiler.
        path: PathBuf,
        /// The message of the system's loader.
        reason: String,
    },
}

/// The kind of a compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompilerKind {
    /// `rustc`.
    Rustc,
    /// GCC or Clang, by any name.
    C,
}

impl CompilerKind {
    /// Returns the language of the sources that it compiles.
    pub fn language(self) -> Language {
        match self {
            Self::Rustc => Language::Rust,
            Self::C => Language::C,
        }
    }

    /// Returns the extension of files in its language.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Rustc => "rs",
            Self::C => "c",
        }
    }

    /// Returns the arguments with which it prints its version.
    fn version_argument(self) -> &'static str {
        match self {
            Self::Rustc => "-vV",
            Self::C => "--version",
        }
    }
}

/// Words in the version of a compiler with GNU vector types.
const GNU: [&str; 5] = ["Free Software Foundation", "clang", "GCC", "gcc", "oneAPI"];

/// A working compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    kind: CompilerKind,
    path: PathBuf,
    /// Arguments before all others: `cc` of `zig cc`.
    leading: Vec<String>,
    stamp: String,
    version: String,
}

impl Compiler {
    /// Returns the compiler of a file, using the information in the cache.
    pub(super) fn known(
        kind: CompilerKind,
        found: &Path,
        leading: &[String],
        bound: Duration,
        cache: Option<&Cache>,
    ) -> Result<Self, CompilerError> {
        let memory = memory_key(kind, found, leading);
        if let Some(cache) = cache
            && let Some(text) = cache.recall(&memory)
            && let Some(compiler) = Self::from_memory(kind, leading, &text)
        {
            return Ok(compiler);
        }
        let compiler = match kind {
            CompilerKind::Rustc => Self::ask_rustc(found, bound)?,
            CompilerKind::C => Self::ask_cc(found, leading, bound)?,
        };
        if let Some(cache) = cache {
            cache.remember(&memory, &compiler.to_memory());
        }
        Ok(compiler)
    }

    /// Returns its kind.
    pub fn kind(&self) -> CompilerKind {
        self.kind
    }

    /// Returns the language of the sources that it compiles.
    pub fn language(&self) -> Language {
        self.kind.language()
    }

    /// Returns the path of the compiler itself, never of rustup's proxy.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the arguments before all others.
    pub fn leading(&self) -> &[String] {
        &self.leading
    }

    /// Returns the first line of its answer about its version.
    pub fn version(&self) -> &str {
        self.version.lines().next().unwrap_or_default()
    }

    /// Returns its name and release in few words, for reports: `rustc 1.95.0`.
    pub fn title(&self) -> String {
        let words: Vec<&str> = self.version().split_whitespace().collect();
        let number = |word: &&&str| word.starts_with(|c: char| c.is_ascii_digit());
        match self.kind {
            CompilerKind::Rustc => words[..words.len().min(2)].join(" "),
            CompilerKind::C => {
                let name = if self.version.contains("clang") { "clang" } else { "gcc" };
                let numbers: Vec<&&str> = words.iter().filter(number).collect();
                // GCC's release is the last word; a distribution may put its own before it.
                let release = if name == "gcc" { numbers.last() } else { numbers.first() };
                release.map_or_else(|| name.to_owned(), |release| format!("{name} {release}"))
            }
        }
    }

    /// Returns a text that identifies the compiler.
    pub(super) fn identity(&self) -> String {
        let path = self.path.display().to_string();
        let command: Vec<&str> =
            [path.as_str()].into_iter().chain(self.leading.iter().map(String::as_str)).collect();
        format!("{}\n{}\n{}", command.join(" "), self.stamp, self.version)
    }

    /// Runs `rustc` to query its version, through the proxy if it is one.
    fn ask_rustc(found: &Path, bound: Duration) -> Result<Self, CompilerError> {
        let kind = CompilerKind::Rustc;
        let path = if is_proxy(found) {
            let sysroot = answer(found, &["--print", "sysroot"], bound)?;
            Path::new(sysroot.trim()).join("bin").join(program("rustc"))
        } else {
            found.to_owned()
        };
        let version = answer(&path, &[kind.version_argument()], bound)?;
        let broken =
            |reason: &str| CompilerError::Broken { path: path.clone(), reason: reason.into() };
        let release = version.lines().find_map(|line| line.strip_prefix("release: "));
        let release = release.ok_or_else(|| broken("it does not answer to `-vV` as rustc does"))?;
        if numbers(release) < numbers(OLDEST) {
            return Err(CompilerError::Old { path, release: release.into() });
        }
        let stamp = stamp(&path).ok_or_else(|| broken("its file cannot be looked at"))?;
        Ok(Self { kind, path, leading: Vec::new(), stamp, version })
    }

    /// Runs a C compiler to query its version.
    fn ask_cc(found: &Path, leading: &[String], bound: Duration) -> Result<Self, CompilerError> {
        let (kind, path) = (CompilerKind::C, found.to_owned());
        let is_microsoft = |name: &str| ["cl", "clang-cl"].contains(&name);
        if path.file_stem().and_then(OsStr::to_str).is_some_and(is_microsoft) {
            return Err(CompilerError::WithoutVectors { path });
        }
        let arguments = leading.iter().map(String::as_str).chain([kind.version_argument()]);
        let arguments: Vec<&str> = arguments.collect();
        let version = answer(&path, &arguments, bound)?;
        if !GNU.iter().any(|word| version.contains(word)) {
            return Err(CompilerError::WithoutVectors { path });
        }
        let unseen = "its file cannot be looked at".to_owned();
        let stamp = stamp(&path)
            .ok_or_else(|| CompilerError::Broken { path: path.clone(), reason: unseen })?;
        Ok(Self { kind, path, leading: leading.to_vec(), stamp, version })
    }

    /// Returns the text for [`Self::from_memory`]: path and stamp on one line each, then the version.
    fn to_memory(&self) -> String {
        // Paths with line breaks or invalid Unicode are not stored.
        let path = self.path.to_str().filter(|path| !path.contains('\n')).unwrap_or_default();
        format!("{path}\n{}\n{}", self.stamp, self.version)
    }

    /// Returns the stored compiler, if its file is unchanged.
    fn from_memory(kind: CompilerKind, leading: &[String], text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '\n');
        let (path, remembered, version) = (parts.next()?, parts.next()?, parts.next()?);
        let stamp = stamp(Path::new(path))?;
        let (leading, version) = (leading.to_vec(), version.into());
        let compiler = Self { kind, path: path.into(), leading, stamp, version };
        (compiler.stamp == remembered).then_some(compiler)
    }
}

/// Returns the first program of a name on a search path.
pub(super) fn search(path: &OsStr, name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let name = program(name);
    // Empty or relative entries would depend on the current folder.
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(&name)).find(|path| is_program(path))
}

fn program(name: impl AsRef<OsStr>) -> OsString {
    let mut name = name.as_ref().to_owned();
    let suffix = std::env::consts::EXE_SUFFIX;
    if !suffix.is_empty() && Path::new(&name).extension().is_none() {
        name.push(suffix);
    }
    name
}

pub(super) fn is_program(path: &Path) -> bool {
    let Ok(file) = fs::metadata(path) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.is_file() && file.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    file.is_file()
}

/// Returns whether this is rustup under the name `rustc`: a link to it, or a copy next to it.
fn is_proxy(path: &Path) -> bool {
    let is_rustup = |path: &Path| path.file_stem().is_some_and(|stem| stem == "rustup");
    if fs::canonicalize(path).is_ok_and(|path| is_rustup(&path)) {
        return true;
    }
    let length = |path: &Path| fs::metadata(path).ok().map(|file| file.len());
    let beside = length(&path.with_file_name(program("rustup")));
    beside.is_some() && beside == length(path)
}

/// Returns the size and modification time, which identify a version of the file.
fn stamp(path: &Path) -> Option<String> {
    let file = fs::metadata(path).ok()?;
    let changed = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{} bytes, changed {}", file.len(), changed.as_nanos()))
}

/// Returns the key of the stored compiler. rustup selects a toolchain by variable or by its settings.
fn memory_key(kind: CompilerKind, found: &Path, leading: &[String]) -> String {
    let mut key = format!("{}\n{}", found.display(), stamp(found).unwrap_or_default());
    if kind == CompilerKind::C {
        let _ = write!(key, "\nC\n{}", leading.join(" "));
    } else if is_proxy(found) {
        let home = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(std::env::home_dir()?.join(".rustup"))).unwrap_or_default();
        let settings = stamp(&home.join("settings.toml")).unwrap_or_default();
        let toolchain = std::env::var_os("RUSTUP_TOOLCHAIN").unwrap_or_default();
        let _ = write!(key, "\n{}\n{settings}\n{}", home.display(), toolchain.display());
    }
    key
}

/// Returns the output of a program for `arguments`. It runs in the root folder, without toolchain files of projects.
pub(super) fn answer(
    path: &Path,
    arguments: &[&str],
    bound: Duration,
) -> Result<String, CompilerError> {
    let broken = |reason: String| CompilerError::Broken { path: path.into(), reason };
    let mut command = Command::new(path);
    command.args(arguments);
    if cfg!(unix) {
        command.current_dir("/");
    }
    let task = format!("the answer to `{}`", arguments.join(" "));
    let slow = || waiting(path, &task, bound);
    let output = compiler_process::run(&mut command, bound, slow)
        .map_err(|error| broken(error.to_string()))?;
    let Some(output) = output else {
        return Err(CompilerError::Late { path: path.into(), task, bound });
    };
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr);
        return Err(broken(format!("{}\n{}", output.status, log.trim())));
    }
    String::from_utf8(output.stdout).map_err(|_| broken("its answer is not UTF-8".into()))
}

/// Returns the version numbers of a release, `1.89.0-nightly` → `[1, 89, 0]`.
fn numbers(release: &str) -> Vec<u32> {
    let numeric = release.split('-').next().unwrap_or_default();
    let mut numbers: Vec<u32> = numeric.split('.').map_while(|part| part.parse().ok()).collect();
    numbers.resize(3, 0);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_compare_by_number() {
        assert!(numbers("1.100.0") > numbers("1.89"));
        assert_eq!(numbers("1.89"), numbers("1.89.0-nightly"));
    }

    #[test]
    fn the_search_skips_folders_that_are_not_absolute() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(search(OsStr::new(":.:relative"), "rustc"), None);
        assert_eq!(search(folder.path().as_os_str(), "rustc"), None);
    }
}

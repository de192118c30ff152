//! Which `rustc` compiles, and what it calls itself: [`Environment`] → [`Compiler`].
//!
//! A warm start must not pay for starting `rustc`, so its answer to `-vV` is remembered in the cache, under the path,
//! size and time of the file. rustup's `rustc` is a proxy that picks a toolchain; the toolchain's own compiler is
//! asked for once and then called directly, and both files must be unchanged for the memory to hold.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use super::notice::waiting;
use super::{Cache, Environment, child};

/// The oldest release that knows all that printed sources use; that of our own `rust-version`.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// Why there is no usable compiler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompilerError {
    /// None on the search path.
    #[error(
        "there is no `rustc` on the search path\n\
         help: install Rust (https://rustup.rs), or name a compiler with WF_RUSTC"
    )]
    None,
    /// The one that a variable names is not there.
    #[error(
        "{variable} names the compiler {}, which is not there\n\
         help: correct {variable} or unset it",
        path.display()
    )]
    Missing {
        /// `WF_RUSTC` or `RUSTC`.
        variable: &'static str,
        /// Its value.
        path: PathBuf,
    },
    /// It does not run or does not answer like `rustc`.
    #[error("the compiler {} does not work: {reason}", path.display())]
    Broken {
        /// The compiler.
        path: PathBuf,
        /// What happened.
        reason: String,
    },
    /// It is too old.
    #[error(
        "the compiler {} is release {release}, but generated kernels need {OLDEST}\n\
         help: update Rust (`rustup update`), or name another compiler with WF_RUSTC",
        path.display()
    )]
    Old {
        /// The compiler.
        path: PathBuf,
        /// Its release.
        release: String,
    },
    /// It did not end in time.
    #[error(
        "the compiler {} was ended: {task} took more than {} s\n\
         help: allow more with WF_COMPILE_SECONDS, or name another compiler with WF_RUSTC",
        path.display(),
        bound.as_secs_f64()
    )]
    Late {
        /// The compiler.
        path: PathBuf,
        /// What it was to do.
        task: String,
        /// How long it was waited for.
        bound: Duration,
    },
    /// What it made is no library, or lies where nothing may be run.
    #[error(
        "what the compiler {} made cannot be loaded: {reason}\n\
         help: name a folder that is not mounted `noexec` with TMPDIR, or another compiler with WF_RUSTC",
        path.display()
    )]
    Unloadable {
        /// The compiler.
        path: PathBuf,
        /// What the system's loader said.
        reason: String,
    },
}

/// A `rustc` that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    path: PathBuf,
    stamp: String,
    version: String,
}

impl Compiler {
    /// Finds the compiler of an environment, with the help of what the cache remembers of it.
    pub(super) fn find(
        environment: &Environment,
        cache: Option<&Cache>,
    ) -> Result<Self, CompilerError> {
        let found = locate(environment)?;
        let memory = memory_key(&found);
        if let Some(cache) = cache
            && let Some(text) = cache.recall(&memory)
            && let Some(compiler) = Self::from_memory(&text)
        {
            return Ok(compiler);
        }
        let compiler = Self::ask(&found, environment.bound())?;
        if let Some(cache) = cache {
            cache.remember(&memory, &compiler.to_memory());
        }
        Ok(compiler)
    }

    /// The compiler itself, never rustup's proxy.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first line of its answer to `-vV`.
    pub fn version(&self) -> &str {
        self.version.lines().next().unwrap_or_default()
    }

    /// All that tells it from other compilers.
    pub(super) fn identity(&self) -> String {
        format!("{}\n{}\n{}", self.path.display(), self.stamp, self.version)
    }

    /// Runs the compiler to learn its version, through the proxy if it is one.
    fn ask(found: &Path, bound: Duration) -> Result<Self, CompilerError> {
        let path = if is_proxy(found) {
            let sysroot = answer(found, &["--print", "sysroot"], bound)?;
            Path::new(sysroot.trim()).join("bin").join(program("rustc"))
        } else {
            found.to_owned()
        };
        let version = answer(&path, &["-vV"], bound)?;
        let broken =
            |reason: &str| CompilerError::Broken { path: path.clone(), reason: reason.into() };
        let release = version.lines().find_map(|line| line.strip_prefix("release: "));
        let release = release.ok_or_else(|| broken("it does not answer to `-vV` as rustc does"))?;
        if numbers(release) < numbers(OLDEST) {
            return Err(CompilerError::Old { path, release: release.into() });
        }
        let stamp = stamp(&path).ok_or_else(|| broken("its file cannot be looked at"))?;
        Ok(Self { path, stamp, version })
    }

    /// What [`Self::from_memory`] reads: path and stamp on a line each, then the version.
    fn to_memory(&self) -> String {
        // A path that is not Unicode, or that holds a line break, is asked each time instead.
        let path = self.path.to_str().filter(|path| !path.contains('\n')).unwrap_or_default();
        format!("{path}\n{}\n{}", self.stamp, self.version)
    }

    /// The compiler that was remembered, if its file is still the same.
    fn from_memory(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '\n');
        let (path, remembered, version) = (parts.next()?, parts.next()?, parts.next()?);
        let current = stamp(Path::new(path))?;
        let compiler = Self { path: path.into(), stamp: current, version: version.into() };
        (compiler.stamp == remembered).then_some(compiler)
    }
}

/// The file to call: what a variable names, else the first `rustc` on the search path.
fn locate(environment: &Environment) -> Result<PathBuf, CompilerError> {
    let Some((variable, named)) = &environment.rustc else {
        let path = environment.path.as_deref();
        return path.and_then(|path| search(path, "rustc")).ok_or(CompilerError::None);
    };
    let path = Path::new(named);
    // As a shell does: a bare name is looked for on the search path, anything with a separator is a file.
    let found = if path.components().count() > 1 {
        std::path::absolute(path).ok().filter(|path| is_program(path))
    } else {
        let folders = environment.path.as_deref();
        folders.and_then(|folders| search(folders, named))
    };
    found.ok_or_else(|| CompilerError::Missing { variable, path: path.into() })
}

fn search(path: &OsStr, name: impl AsRef<OsStr>) -> Option<PathBuf> {
    let name = program(name);
    // An empty or relative entry would make the answer depend on the current folder.
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

fn is_program(path: &Path) -> bool {
    let Ok(file) = fs::metadata(path) else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.is_file() && file.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    file.is_file()
}

/// Whether this is rustup under the name of `rustc`: a link to it, or a copy beside it.
fn is_proxy(path: &Path) -> bool {
    let is_rustup = |path: &Path| path.file_stem().is_some_and(|stem| stem == "rustup");
    if fs::canonicalize(path).is_ok_and(|path| is_rustup(&path)) {
        return true;
    }
    let length = |path: &Path| fs::metadata(path).ok().map(|file| file.len());
    let beside = length(&path.with_file_name(program("rustup")));
    beside.is_some() && beside == length(path)
}

/// Size and time of the last change; another compiler in the same place has another stamp.
fn stamp(path: &Path) -> Option<String> {
    let file = fs::metadata(path).ok()?;
    let changed = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{} bytes, changed {}", file.len(), changed.as_nanos()))
}

/// What decides which compiler a file stands for. rustup picks a toolchain by variable, or by its settings.
fn memory_key(found: &Path) -> String {
    let mut key = format!("{}\n{}", found.display(), stamp(found).unwrap_or_default());
    if is_proxy(found) {
        let home = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(std::env::home_dir()?.join(".rustup"))).unwrap_or_default();
        let settings = stamp(&home.join("settings.toml")).unwrap_or_default();
        let toolchain = std::env::var_os("RUSTUP_TOOLCHAIN").unwrap_or_default();
        let _ = write!(key, "\n{}\n{settings}\n{}", home.display(), toolchain.display());
    }
    key
}

/// What the compiler prints for `arguments`. It runs in the root folder, where no project's file picks a toolchain.
fn answer(path: &Path, arguments: &[&str], bound: Duration) -> Result<String, CompilerError> {
    let broken = |reason: String| CompilerError::Broken { path: path.into(), reason };
    let mut command = Command::new(path);
    command.args(arguments);
    if cfg!(unix) {
        command.current_dir("/");
    }
    let task = format!("the answer to `{}`", arguments.join(" "));
    let slow = || waiting(path, &task, bound);
    let output =
        child::run(&mut command, bound, slow).map_err(|error| broken(error.to_string()))?;
    let Some(output) = output else {
        return Err(CompilerError::Late { path: path.into(), task, bound });
    };
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr);
        return Err(broken(format!("{}\n{}", output.status, log.trim())));
    }
    String::from_utf8(output.stdout).map_err(|_| broken("its answer is not UTF-8".into()))
}

/// The numbers of a release, `1.89.0-nightly` → `[1, 89, 0]`.
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

//! JIT settings from environment variables.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use super::compiler_process::BOUND;
use super::notice::warn_once;

/// Paths of the compiler, the cache and the dumps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The C compiler named by `$WF_CC`, with the variable's name; it comes before any `rustc`.
    pub cc: Option<(&'static str, OsString)>,
    /// The compiler named by `$WF_RUSTC` or `$RUSTC`, with the variable's name; else `path` is searched.
    pub rustc: Option<(&'static str, OsString)>,
    /// The search path for programs.
    pub path: Option<OsString>,
    /// The folder for compiled kernels; `None` without a home folder.
    pub cache_dir: Option<PathBuf>,
    /// The folder for copies of sources, if any.
    pub dump_dir: Option<PathBuf>,
    /// The time limit of a compiler; default: ten minutes.
    pub bound: Option<Duration>,
}

impl Environment {
    /// Reads the environment of this process. Empty variables count as unset.
    pub fn from_process() -> Self {
        let named = |name| Some((name, variable(name)?));
        let cc = named("WF_CC");
        Self {
            // `RUSTC` is for all programs: a variable of our own comes first.
            rustc: named("WF_RUSTC").or_else(|| named("RUSTC").filter(|_| cc.is_none())),
            cc,
            path: variable("PATH"),
            cache_dir: cache_dir(),
            dump_dir: variable("WF_DUMP_DIR").map(PathBuf::from),
            bound: variable("WF_COMPILE_SECONDS").and_then(|text| seconds(&text)),
        }
    }

    /// Returns the time limit of a compiler.
    pub fn bound(&self) -> Duration {
        self.bound.unwrap_or(BOUND)
    }
}

/// Returns the value of `WF_COMPILE_SECONDS`; `None`, with a warning, if it is invalid.
fn seconds(text: &OsStr) -> Option<Duration> {
    let number = text.to_str().and_then(|text| text.trim().parse::<f64>().ok());
    let bound = number.and_then(|number| Duration::try_from_secs_f64(number).ok());
    let bound = bound.filter(|bound| !bound.is_zero());
    if bound.is_none() {
        warn_once(&format!(
            "WF_COMPILE_SECONDS is `{}`, no number of seconds above 0; {} are taken",
            text.display(),
            BOUND.as_secs()
        ));
    }
    bound
}

fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns `$WF_CACHE_DIR`, else `weakform` in the user's cache folder. Relative paths start at the current folder.
fn cache_dir() -> Option<PathBuf> {
    if let Some(folder) = variable("WF_CACHE_DIR") {
        return std::path::absolute(folder).ok();
    }
    // The specification requires to ignore a relative XDG_CACHE_HOME.
    let xdg = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = xdg.or_else(|| Some(env::home_dir()?.join(".cache")));
    caches.filter(|path| path.is_absolute()).map(|path| path.join("weakform"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_time_is_not_taken() {
        assert_eq!(seconds(OsStr::new("2.5")), Some(Duration::from_millis(2500)));
        for wrong in ["", "0", "-1", "ten", "NaN", "inf", "1e40"] {
            assert_eq!(seconds(OsStr::new(wrong)), None, "{wrong}");
        }
        assert_eq!(Environment::default().bound(), BOUND);
    }
}

//! Events of `tracing`: one-time warnings, and progress messages of compilations.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Emits a warning once per program.
pub(crate) fn warn_once(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let is_new = SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned());
    if is_new {
        tracing::warn!("{text}");
    }
}

/// Reports a running compilation, its task and its time limit.
pub(super) fn waiting(compiler: &Path, task: &str, bound: Duration) {
    let (compiler, seconds) = (compiler.display(), bound.as_secs_f64());
    tracing::warn!(
        target: crate::PROGRESS,
        "waiting for the compiler {compiler}: {task}; it is ended after {seconds} s (WF_COMPILE_SECONDS)"
    );
}

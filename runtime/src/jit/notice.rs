//! What is said by `tracing`: warnings that are given once in a program, however often there is reason to, and what is
//! waited for.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Warns, unless the same was said before.
pub(crate) fn warn_once(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let is_new = SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned());
    if is_new {
        tracing::warn!("{text}");
    }
}

/// Kernels that are being compiled, by whatever compiler.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Says that kernels are compiled until this goes: with the last of them a word without any, behind which what was said before holds
/// again.
pub(crate) struct Compiling(());

/// Says so from now on.
pub(crate) fn compiling() -> Compiling {
    OPEN.fetch_add(1, Ordering::Relaxed);
    tracing::info!(target: crate::PROGRESS, "compiling kernels");
    Compiling(())
}

impl Drop for Compiling {
    fn drop(&mut self) {
        if OPEN.fetch_sub(1, Ordering::Relaxed) == 1 {
            tracing::info!(target: crate::PROGRESS, "");
        }
    }
}

/// Says that a compiler is waited for, for what, and how long.
pub(super) fn waiting(compiler: &Path, task: &str, bound: Duration) {
    let (compiler, seconds) = (compiler.display(), bound.as_secs_f64());
    tracing::warn!(
        target: crate::PROGRESS,
        "waiting for the compiler {compiler}: {task}; it is ended after {seconds} s (WF_COMPILE_SECONDS)"
    );
}

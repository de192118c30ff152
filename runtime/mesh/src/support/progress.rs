//! Progress messages: names of running tasks as events of the target [`PROGRESS`], the innermost last.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The running tasks, innermost last, each with a unique number.
static OPEN: Mutex<(usize, Vec<(usize, String)>)> = Mutex::new((0, Vec::new()));

fn open() -> MutexGuard<'static, (usize, Vec<(usize, String)>)> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A task that runs until this value is dropped.
pub struct RunningTask(usize);

/// The target of progress events: level `info` when a task begins or ends, level `warn` when one takes longer than it
/// should. Programs may show them.
pub const PROGRESS: &str = "weakform::progress";

/// Starts a named task.
pub fn doing(what: impl Into<String>) -> RunningTask {
    let what = what.into();
    tracing::info!(target: PROGRESS, "{what}");
    let mut open = open();
    open.0 += 1;
    let number = open.0;
    open.1.push((number, what));
    RunningTask(number)
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        let around = {
            let mut open = open();
            open.1.retain(|(number, _)| *number != self.0);
            open.1.last().map(|(_, what)| what.clone()).unwrap_or_default()
        };
        tracing::info!(target: PROGRESS, "{around}");
    }
}

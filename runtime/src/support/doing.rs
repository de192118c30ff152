//! Names the work that is under way, as events of the target [`PROGRESS`](crate::PROGRESS): the innermost that has not ended.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Work under way, the innermost last, with a number of its own.
static OPEN: Mutex<(usize, Vec<(usize, String)>)> = Mutex::new((0, Vec::new()));

fn open() -> MutexGuard<'static, (usize, Vec<(usize, String)>)> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Work under way until it is dropped.
pub(crate) struct Doing(usize);

/// Names work that begins now.
pub(crate) fn doing(what: impl Into<String>) -> Doing {
    let what = what.into();
    tracing::info!(target: crate::PROGRESS, "{what}");
    let mut open = open();
    open.0 += 1;
    let number = open.0;
    open.1.push((number, what));
    Doing(number)
}

impl Drop for Doing {
    fn drop(&mut self) {
        let around = {
            let mut open = open();
            open.1.retain(|(number, _)| *number != self.0);
            open.1.last().map(|(_, what)| what.clone()).unwrap_or_default()
        };
        tracing::info!(target: crate::PROGRESS, "{around}");
    }
}

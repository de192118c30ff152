//! Threads with large stacks: private arrays of high degrees exceed the usual stack size.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex, PoisonError};

/// Stack size of each thread; only touched pages take memory.
pub(crate) const STACK: usize = 64 << 20;

/// The threads of this process, once there are any.
static POOL: Mutex<Option<Arc<ThreadPool>>> = Mutex::new(None);

/// Runs `work` on threads with large stacks, unless the caller runs in a rayon pool of its own.
pub(crate) fn roomy<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if rayon::current_thread_index().is_some() {
        return work();
    }
    let pool = {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.is_none() {
            *pool = started(std::thread::available_parallelism().map_or(1, usize::from));
        }
        pool.clone()
    };
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// The largest number of threads of [`set_threads`].
pub const MOST_THREADS: usize = 1024;

/// Sets the number of threads of later solves that do not run in a rayon pool of the caller; by default there is one
/// per core, and there are at most [`MOST_THREADS`]. Returns the number that could be started.
///
/// ```
/// assert_eq!(weakform::set_threads(1), 1);
/// ```
pub fn set_threads(count: usize) -> usize {
    let new = started(count.clamp(1, MOST_THREADS));
    let running = new.as_ref().map_or(1, |pool| pool.current_num_threads());
    *POOL.lock().unwrap_or_else(PoisonError::into_inner) = new;
    running
}

/// Starts this number of threads, or as many as the system allows.
fn started(mut count: usize) -> Option<Arc<ThreadPool>> {
    while count > 0 {
        match ThreadPoolBuilder::new().num_threads(count).stack_size(STACK).build() {
            Ok(pool) => return Some(Arc::new(pool)),
            Err(error) => tracing::warn!("cannot start {count} threads: {error}"),
        }
        count /= 2;
    }
    None
}

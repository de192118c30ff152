//! Threads with large stacks: private arrays of high degrees exceed the usual stack size.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::LazyLock;

/// Stack size of each thread; only touched pages take memory.
pub(crate) const STACK: usize = 64 << 20;

/// Runs `work` on threads with large stacks, unless the caller runs in a rayon pool of its own.
pub(crate) fn roomy<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static POOL: LazyLock<Option<ThreadPool>> = LazyLock::new(pool);
    match POOL.as_ref().filter(|_| rayon::current_thread_index().is_none()) {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Creates a pool with one thread per core, or as many as can be started.
fn pool() -> Option<ThreadPool> {
    let mut count = std::thread::available_parallelism().map_or(1, usize::from);
    while count > 0 {
        match ThreadPoolBuilder::new().num_threads(count).stack_size(STACK).build() {
            Ok(pool) => return Some(pool),
            Err(error) => tracing::warn!("cannot start {count} threads: {error}"),
        }
        count /= 2;
    }
    None
}

//! Threads with room for kernels: private arrays of high degrees take more stack than threads usually have.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::LazyLock;

/// Stack of each thread. Only what is used takes memory.
pub(crate) const STACK: usize = 64 << 20;

/// Runs `work` on threads with room, unless the caller has chosen threads: those of a pool of rayon's.
pub(crate) fn roomy<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static POOL: LazyLock<Option<ThreadPool>> = LazyLock::new(pool);
    match POOL.as_ref().filter(|_| rayon::current_thread_index().is_none()) {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// One thread a core, or as many as can be started.
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

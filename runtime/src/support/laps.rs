//! What takes how long, for those who listen: [`Laps`].

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Time since something began, told at each end of a part of it.
pub(crate) struct Laps {
    of: &'static str,
    start: Instant,
}

impl Laps {
    /// Of something that begins now.
    pub(crate) fn new(of: &'static str) -> Self {
        Self { of, start: Instant::now() }
    }

    /// Tells what has just ended, and how long it took.
    pub(crate) fn tell(&mut self, what: &str) {
        let seconds = self.start.elapsed().as_secs_f64();
        tracing::debug!(seconds, "{}: {what}", self.of);
        self.start = Instant::now();
    }
}

/// Threads that make kernels, when the first of them began, and the seconds before that.
static KERNELS: Mutex<(usize, Option<Instant>, f64)> = Mutex::new((0, None, 0.0));

/// Kernels that are being made until this is dropped.
pub(crate) struct MakingKernels(());

impl MakingKernels {
    /// From now on.
    pub(crate) fn begin() -> Self {
        let mut open = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
        open.0 += 1;
        open.1.get_or_insert_with(Instant::now);
        Self(())
    }
}

impl Drop for MakingKernels {
    fn drop(&mut self) {
        let mut open = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
        open.0 -= 1;
        if open.0 == 0 {
            open.2 += open.1.take().map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        }
    }
}

/// Wall-clock seconds in which some thread of the program has made kernels.
pub(crate) fn seconds_of_kernels() -> f64 {
    let open = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
    open.2 + open.1.map_or(0.0, |begun| begun.elapsed().as_secs_f64())
}

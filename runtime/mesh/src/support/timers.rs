//! Timers of consecutive steps, reported as events: [`Timers`].

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Stopwatch that reports the time of each step.
pub struct Timers {
    of: &'static str,
    start: Instant,
}

impl Timers {
    /// Starts the stopwatch.
    pub fn new(of: &'static str) -> Self {
        Self { of, start: Instant::now() }
    }

    /// Reports the step that has just ended.
    pub fn tell(&mut self, what: &str) {
        let seconds = self.start.elapsed().as_secs_f64();
        tracing::debug!(seconds, "{}: {what}", self.of);
        self.start = Instant::now();
    }
}

/// The number of threads that build kernels, the start of the current phase, and the seconds of earlier phases.
static KERNELS: Mutex<(usize, Option<Instant>, f64)> = Mutex::new((0, None, 0.0));

/// Marks a thread as building kernels until dropped.
pub struct KernelBuildGuard(());

impl KernelBuildGuard {
    /// Starts the mark.
    pub fn begin() -> Self {
        let mut open = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
        open.0 += 1;
        open.1.get_or_insert_with(Instant::now);
        Self(())
    }
}

impl Drop for KernelBuildGuard {
    fn drop(&mut self) {
        let mut open = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
        open.0 -= 1;
        if open.0 == 0 {
            open.2 += open.1.take().map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        }
    }
}

/// Returns the wall-clock seconds during which at least one thread built kernels.
pub fn seconds_of_kernels() -> f64 {
    let open = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
    open.2 + open.1.map_or(0.0, |begun| begun.elapsed().as_secs_f64())
}

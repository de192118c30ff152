//! What takes how long, for those who listen: [`Laps`].

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

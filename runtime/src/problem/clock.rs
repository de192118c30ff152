//! Wall clock of a run, split into phases.

use crate::support::timers::seconds_of_kernels;
use std::time::Instant;

/// Wall-clock seconds of each phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seconds {
    /// Reading or generating the mesh, if the caller has measured it.
    pub mesh: f64,
    /// Planning, printing, compiling and loading kernels: of the form, levels, transfers and reports.
    pub compile: f64,
    /// Spaces, conditions, tables.
    pub set_up: f64,
    /// The solve with its preconditioner set-up: all time steps; with adaptive meshes, the error estimates as well.
    pub solve: f64,
    /// Errors, energy, reports and throughput.
    pub measure: f64,
    /// Files and other work of the run's observer.
    pub write: f64,
}

impl Seconds {
    /// Returns the sum of all phases.
    pub fn sum(&self) -> f64 {
        self.mesh + self.compile + self.set_up + self.solve + self.measure + self.write
    }
}

/// A phase timed by [`Clock`]; kernel compilation inside it is counted separately.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    SetUp,
    Solve,
    Measure,
    Write,
}

/// A clock that starts on construction.
pub(super) struct Clock {
    since: Instant,
    /// Kernel compilation seconds of the whole program at `since`.
    compiled: f64,
    seconds: Seconds,
}

impl Clock {
    /// Starts a clock.
    pub(super) fn start() -> Self {
        let (since, compiled) = (Instant::now(), seconds_of_kernels());
        Self { since, compiled, seconds: Seconds::default() }
    }

    /// Adds the time since the last call to a phase.
    pub(super) fn end(&mut self, phase: Phase) {
        let (now, compiled) = (Instant::now(), seconds_of_kernels());
        let all = now.duration_since(self.since).as_secs_f64();
        // Other threads of the program may compile at the same time.
        let kernels = (compiled - self.compiled).clamp(0.0, all);
        let of = match phase {
            Phase::SetUp => &mut self.seconds.set_up,
            Phase::Solve => &mut self.seconds.solve,
            Phase::Measure => &mut self.seconds.measure,
            Phase::Write => &mut self.seconds.write,
        };
        *of += all - kernels;
        self.seconds.compile += kernels;
        (self.since, self.compiled) = (now, compiled);
    }

    /// Returns the seconds of all completed phases.
    pub(super) fn seconds(&self) -> Seconds {
        self.seconds
    }

    /// Adds the phases of an earlier part of the run.
    pub(super) fn after(&mut self, before: Seconds) {
        let Seconds { mesh, compile, set_up, solve, measure, write } = before;
        self.seconds.mesh += mesh;
        self.seconds.compile += compile;
        self.seconds.set_up += set_up;
        self.seconds.solve += solve;
        self.seconds.measure += measure;
        self.seconds.write += write;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::timers::KernelBuildGuard;
    use std::time::Duration;

    #[test]
    fn seconds_of_all_phases_add_up_to_the_wall_clock() {
        let wait = || std::thread::sleep(Duration::from_millis(2));
        let mut clock = Clock::start();
        let begun = clock.since;
        wait();
        clock.end(Phase::SetUp);
        {
            let _making = KernelBuildGuard::begin();
            wait();
        }
        clock.end(Phase::Solve);
        wait();
        clock.end(Phase::Measure);
        clock.end(Phase::Write);
        let (seconds, whole) = (clock.seconds(), clock.since.duration_since(begun).as_secs_f64());
        assert!((seconds.sum() - whole).abs() < 1e-9, "{seconds:?} of {whole}");
        // Kernel compilation inside a solve does not count as solve time. Other tests may compile all the time.
        assert!(seconds.compile >= 2e-3 && seconds.solve <= whole - 2e-3, "{seconds:?}");
        let mut longer = Clock::start();
        longer.after(seconds);
        assert!(longer.seconds() == seconds);
    }
}

//! Steps of a run: a sequence of solutions with their figures; the last one is returned.
//!
//! A run without `adapt` and `time` has one step. A [`Monitor`] sees each step before the next begins, so that its
//! output survives a later failure.

use super::Solution;
use super::checkpoint::Checkpoint;
use crate::solve::{Continue, Progress};

/// Kind of a sequence of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// The only solve of a run.
    Solve,
    /// Adaptive mesh refinement.
    Adapt,
    /// A parameter sweep.
    Sweep,
    /// Time integration.
    Time,
}

impl StepKind {
    /// Returns its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Solve => "solve",
            Self::Adapt => "adapt",
            Self::Sweep => "sweep",
            Self::Time => "time",
        }
    }
}

/// Figures of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Kind of sequence.
    pub kind: StepKind,
    /// Number of cells.
    pub cells: usize,
    /// Number of degrees of freedom.
    pub dofs: usize,
    /// Relative error estimate η/‖u‖ in the energy norm, if there is one.
    pub estimate: Option<f64>,
    /// L2 and H1 error of each field with a known solution: (field, L2, H1).
    pub errors: Vec<(usize, f64, f64)>,
    /// Time, in time integration.
    pub time: Option<f64>,
    /// Wall-clock seconds.
    pub seconds: f64,
}

impl Step {
    /// Returns the figures of a solution without an error estimate.
    pub fn of(kind: StepKind, solution: &Solution) -> Self {
        Self {
            kind,
            cells: solution.size[0],
            dofs: solution.size[1],
            estimate: None,
            errors: solution.errors.clone(),
            time: None,
            seconds: solution.seconds.sum(),
        }
    }

    /// Returns the error measure: the H1 error of the first field with a known solution, or else the estimate.
    pub fn measure(&self) -> Option<f64> {
        self.errors.first().map(|&(_, _, h1)| h1).or(self.estimate)
    }

    /// Returns the convergence rate r in e ∝ N^(−r) from an earlier step to this one.
    pub fn rate(&self, before: &Self) -> Option<f64> {
        let (now, then) = (self.measure()?, before.measure()?);
        let rate = (then / now).ln() / (self.dofs as f64 / before.dofs as f64).ln();
        rate.is_finite().then_some(rate)
    }
}

/// Observer of a run.
pub trait Monitor {
    /// Observes each iteration of each solve, and may stop it.
    fn iteration(&mut self, now: Progress) -> Continue;

    /// Returns the checkpoint from which time integration resumes; `None` to start at the beginning. Called before the
    /// first step.
    fn restart(&mut self) -> Option<Checkpoint> {
        None
    }

    /// Returns whether time integration writes [checkpoints](Self::checkpoint); factors and levels are then rebuilt
    /// after each.
    fn wants_checkpoints(&self) -> bool {
        false
    }

    /// Receives a checkpoint after each output solution except the initial one; a restart from it is bitwise
    /// reproducible.
    fn checkpoint(&mut self, _left: &Checkpoint) -> Continue {
        Continue::Yes
    }

    /// Observes the current time and the end time.
    fn time(&mut self, _now: f64, _end: f64) {}

    /// Observes each solved step before the next begins. It may end the run, which then returns this solution.
    fn step(&mut self, step: &Step, solution: &Solution) -> Continue;
}

/// An observer that does nothing.
pub struct NullMonitor;

impl Monitor for NullMonitor {
    fn iteration(&mut self, _: Progress) -> Continue {
        Continue::Yes
    }

    fn step(&mut self, _: &Step, _: &Solution) -> Continue {
        Continue::Yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;
    use crate::reference::BoundedValue;

    fn step(dofs: usize, estimate: Option<f64>, h1: Option<f64>) -> Step {
        let errors = h1.map(|h1| (0, 0.0, h1)).into_iter().collect();
        Step { kind: StepKind::Adapt, cells: 1, dofs, estimate, errors, time: None, seconds: 0.0 }
    }

    #[test]
    fn rates_are_those_of_the_error_or_else_of_the_estimate() {
        let check = |found: Option<f64>, known: f64| {
            let found = found.expect("a rate");
            assert_close!(found, BoundedValue::with_scale(known, known.abs()), f64::EPSILON);
        };
        let coarse = step(100, Some(0.5), Some(1.0));
        check(step(400, Some(0.5), Some(0.25)).rate(&coarse), 1.0);
        let coarse = step(100, Some(0.5), None);
        check(step(400, Some(0.25), None).rate(&coarse), 0.5);
        check(step(400, Some(1.0), None).rate(&coarse), -0.5);
        // Without growth or known errors there is no rate.
        assert_eq!(step(100, Some(0.25), None).rate(&coarse), None);
        assert_eq!(step(400, None, None).rate(&coarse), None);
        assert_eq!(step(400, Some(0.0), None).rate(&coarse), None);
    }
}

//! The steps of a run: a problem on its mesh → solutions one after another, each with its figures; the last one stays.
//!
//! A run without `adapt` has one step. A [`Monitor`] sees each before the next begins, so that what it writes of them is
//! there whatever becomes of the run.

use super::adaptive::solve_adaptively;
use super::time::{Checkpoint, march};
use super::{RunError, Solution, run_from};
use crate::device::Device;
use crate::kernels::compile::Target;
use crate::mesh::Mesh;
use crate::solve::{Continue, Progress};
use fem_dsl::problem::Problem;
use std::sync::Arc;

/// What steps are taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// The one solve of a run that has no more.
    Solve,
    /// A mesh that follows the solution.
    Adapt,
    /// A parameter that takes several values.
    Sweep,
    /// Time.
    Time,
}

impl StepKind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Solve => "solve",
            Self::Adapt => "adapt",
            Self::Sweep => "sweep",
            Self::Time => "time",
        }
    }
}

/// The figures of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What it is one of.
    pub kind: StepKind,
    /// Cells of its mesh.
    pub cells: usize,
    /// Unknowns.
    pub dofs: usize,
    /// η over ‖u‖ in the energy norm, where it was estimated.
    pub estimate: Option<f64>,
    /// L2 and H1 error of each field with a known solution: (field, L2, H1).
    pub errors: Vec<(usize, f64, f64)>,
    /// The time that has been reached, where it is one of several times.
    pub time: Option<f64>,
    /// How long it took.
    pub seconds: f64,
}

impl Step {
    /// The figures of a solution, of which nothing was estimated.
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

    /// What shows how good it is: the H1 error of the first field whose solution is known, else the estimate.
    pub fn measure(&self) -> Option<f64> {
        self.errors.first().map(|&(_, _, h1)| h1).or(self.estimate)
    }

    /// How it got better against unknowns, r in e ∝ N^(−r) from an earlier step to this one.
    pub fn rate(&self, before: &Self) -> Option<f64> {
        let (now, then) = (self.measure()?, before.measure()?);
        let rate = (then / now).ln() / (self.dofs as f64 / before.dofs as f64).ln();
        rate.is_finite().then_some(rate)
    }
}

/// Sees what happens in a run.
pub trait Monitor {
    /// Each iteration of each solve, which it may stop.
    fn iteration(&mut self, now: Progress) -> Continue;

    /// Where a run through time goes on from, asked before its first step; at its beginning without it.
    fn restart(&mut self) -> Option<Checkpoint> {
        None
    }

    /// Whether a run through time leaves [checkpoints](Self::checkpoint); what was made for its Jacobian is then made again behind
    /// each.
    fn wants_checkpoints(&self) -> bool {
        false
    }

    /// A point from which the run could go on to the same bits: behind each solution that is shown, but for that where time begins.
    fn checkpoint(&mut self, _left: &Checkpoint) -> Continue {
        Continue::Yes
    }

    /// The time that has been reached of where it ends.
    fn time(&mut self, _now: f64, _end: f64) {}

    /// Each step that is solved, before the next begins. It may end the run there: this is its solution then.
    fn step(&mut self, step: &Step, solution: &Solution) -> Continue;
}

/// A run that nobody watches.
pub struct Unwatched;

impl Monitor for Unwatched {
    fn iteration(&mut self, _: Progress) -> Continue {
        Continue::Yes
    }

    fn step(&mut self, _: &Step, _: &Solution) -> Continue {
        Continue::Yes
    }
}

/// Solves a problem in as many steps as it asks for, from a start like that of [`run_from`], and gives the last solution.
pub fn run_steps(
    problem: &Problem,
    mesh: impl Into<Arc<Mesh>>,
    start_at: Option<&[f64]>,
    target: &Target,
    device: Option<Arc<dyn Device>>,
    monitor: &mut dyn Monitor,
) -> Result<Solution, RunError> {
    let mesh = mesh.into();
    if let Some(adapt) = &problem.adapt {
        return solve_adaptively(problem, adapt, mesh, target, device.as_ref(), monitor);
    }
    if let Some(stepping) = &problem.stepping {
        return march(problem, stepping, mesh, start_at, target, device, monitor);
    }
    let observe = &mut |now| monitor.iteration(now);
    let solution = run_from(problem, mesh, start_at, target, device, observe)?;
    // Nothing comes behind it that could be left out.
    monitor.step(&Step::of(StepKind::Solve, &solution), &solution);
    Ok(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_close;
    use crate::reference::Bounded;

    fn step(dofs: usize, estimate: Option<f64>, h1: Option<f64>) -> Step {
        let errors = h1.map(|h1| (0, 0.0, h1)).into_iter().collect();
        Step { kind: StepKind::Adapt, cells: 1, dofs, estimate, errors, time: None, seconds: 0.0 }
    }

    #[test]
    fn rates_are_those_of_the_error_or_else_of_the_estimate() {
        let check = |found: Option<f64>, known: f64| {
            let found = found.expect("a rate");
            assert_close!(found, Bounded::with_scale(known, known.abs()), f64::EPSILON);
        };
        let coarse = step(100, Some(0.5), Some(1.0));
        check(step(400, Some(0.5), Some(0.25)).rate(&coarse), 1.0);
        let coarse = step(100, Some(0.5), None);
        check(step(400, Some(0.25), None).rate(&coarse), 0.5);
        check(step(400, Some(1.0), None).rate(&coarse), -0.5);
        // Where nothing grows, or nothing is known, there is none.
        assert_eq!(step(100, Some(0.25), None).rate(&coarse), None);
        assert_eq!(step(400, None, None).rate(&coarse), None);
        assert_eq!(step(400, Some(0.0), None).rate(&coarse), None);
    }
}

//! Batches of conjugate gradient iterations: a device runs several iterations without host synchronisation; the host
//! reads their results afterwards.
//!
//! ```text
//! (x, r, p, r·z, target ‖r‖) → for each of several iterations (p·Ap, r·r, r·z), and x, r, p after the last
//! ```
//!
//! Once an iteration ends the solve, later ones leave x and r unchanged. The batch size therefore affects the cost
//! only, never the result.
//!
//! Small problems are bound by the kernel launch latency. If the device supports it, a few iterations are therefore
//! recorded and launched together.

use super::{PreconditionedSystem, WorkVectors};
use crate::algebra::vector::{CgStep, DeviceIterations, Vector};
use crate::device::Recording;
use crate::solve::OperatorError;
use std::collections::VecDeque;
use std::time::Instant;

/// Maximum seconds of a batch, which bound the superfluous work at the end of a solve.
const SECONDS: f64 = 1e-3;
/// Batch size that always pays off if time allows.
const FEW: usize = 4;
/// Number of iterations in a recording.
const RECORDED: usize = 8;
/// Batch size from which recording pays off.
const WORTH_RECORDING: usize = 16;

/// Input of the batch size.
#[derive(Clone, Copy)]
struct BatchSizing {
    /// Size of the last batch; 0 for the first.
    last: usize,
    /// Seconds per iteration of the last batch.
    seconds: f64,
    /// Predicted number of remaining iterations.
    expected: usize,
    /// Maximum number of iterations.
    room: usize,
    /// True if iterations are recorded.
    recorded: bool,
}

impl BatchSizing {
    /// Returns the batch size: twice the last one, at most the predicted number, within [`SECONDS`]; rounded up to
    /// whole recordings, if there are any.
    fn count(self) -> usize {
        if self.last == 0 {
            return 1;
        }
        let in_time = (SECONDS / self.seconds) as usize;
        let count =
            (2 * self.last).min(in_time).min(self.expected.max(FEW)).min(DeviceIterations::MOST);
        let whole = count.next_multiple_of(RECORDED);
        let count = if self.recorded && count > FEW { whole } else { count };
        count.min(self.room).max(1)
    }
}

/// Predicts the number of remaining iterations from the convergence rate so far.
fn expected(history: &[f64], target: f64) -> usize {
    let (Some(&first), Some(&last)) = (history.first(), history.last()) else { return usize::MAX };
    let rate = (first / last).ln() / (history.len() - 1) as f64;
    let expected = ((last / target).ln() / rate).ceil();
    if rate > 0.0 && expected.is_finite() { expected as usize } else { usize::MAX }
}

/// Iterations run ahead by a device.
pub(super) struct IterationBatches {
    chain: DeviceIterations,
    target: f64,
    /// Results not yet consumed.
    found: VecDeque<CgStep>,
    /// Size of the last batch, and seconds per iteration.
    last: (usize, f64),
    recording: Option<Recording>,
    /// True after the first attempt to record.
    tried: bool,
}

impl IterationBatches {
    /// Creates batches if vectors live on a device and operators run without host synchronisation.
    pub(super) fn new(
        system: PreconditionedSystem<'_>,
        b: &Vector,
        target: f64,
    ) -> Result<Option<Self>, OperatorError> {
        if !system.a.replayable() || !system.preconditioner.replayable() {
            return Ok(None);
        }
        let (found, last, recording, tried) = (VecDeque::new(), (0, 0.0), None, false);
        let chain = DeviceIterations::new(b)?;
        Ok(chain.map(|chain| Self { chain, target, found, last, recording, tried }))
    }

    /// Restarts from another r and p.
    pub(super) fn start(&mut self, rz: f64) -> Result<(), OperatorError> {
        self.found.clear();
        Ok(self.chain.start(rz, self.target)?)
    }

    /// Returns the result of the next iteration, NaN if there is none. Runs at most `room` iterations.
    pub(super) fn next(
        &mut self,
        system: PreconditionedSystem<'_>,
        work: &mut WorkVectors,
        x: &mut Vector,
        history: &[f64],
        room: usize,
    ) -> Result<CgStep, OperatorError> {
        if self.found.is_empty() {
            let (last, seconds) = self.last;
            let (expected, recorded) = (expected(history, self.target), self.recording.is_some());
            let count = BatchSizing { last, seconds, expected, room, recorded }.count();
            let start = Instant::now();
            self.run(count, system, work, x)?;
            self.found.extend(self.chain.read()?);
            // All processes use the time of the slowest.
            let seconds = work.r.largest(start.elapsed().as_secs_f64());
            self.last = (count, seconds / count as f64);
        }
        let none = CgStep { curvature: f64::NAN, square: f64::NAN, weighted: f64::NAN };
        Ok(self.found.pop_front().unwrap_or(none))
    }

    /// Runs a number of iterations.
    fn run(
        &mut self,
        count: usize,
        system: PreconditionedSystem<'_>,
        work: &mut WorkVectors,
        x: &mut Vector,
    ) -> Result<(), OperatorError> {
        let chain = &self.chain;
        if count >= WORTH_RECORDING && !self.tried {
            self.tried = true;
            self.recording = chain.record(&mut || {
                (0..RECORDED).try_for_each(|_| Ok(iteration(chain, system, work, x)?))
            })?;
        }
        let mut left = count;
        if let Some(recording) = &self.recording {
            while left >= RECORDED {
                chain.replay(recording)?;
                left -= RECORDED;
            }
        }
        (0..left).try_for_each(|_| iteration(chain, system, work, x))
    }
}

/// Runs one iteration, from the operator to the next direction.
fn iteration(
    chain: &DeviceIterations,
    system: PreconditionedSystem<'_>,
    work: &mut WorkVectors,
    x: &mut Vector,
) -> Result<(), OperatorError> {
    let PreconditionedSystem { a, preconditioner } = system;
    let WorkVectors { r, p, q, z } = work;
    let inverse = preconditioner.inverse_diagonal();
    a.apply(p, q)?;
    chain.product(p, q)?;
    chain.step(x, p, r, q, inverse)?;
    if let Some(z) = z {
        preconditioner.apply(r, z)?;
    }
    Ok(chain.advance(p, r, z.as_ref(), inverse)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLENTY: BatchSizing =
        BatchSizing { last: 0, seconds: 1e-6, expected: 1000, room: 1000, recorded: false };

    #[test]
    fn batches_grow_as_long_as_they_are_short() {
        let mut facts = PLENTY;
        let mut counts = Vec::new();
        for _ in 0..9 {
            facts.last = facts.count();
            counts.push(facts.last);
        }
        assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        let slow = |seconds| BatchSizing { last: 64, seconds, ..PLENTY }.count();
        assert_eq!([1e-5, 2e-4, 0.9e-3, 0.1].map(slow), [64, 5, 1, 1]);
    }

    #[test]
    fn batches_are_no_longer_than_what_is_left() {
        let count = |expected, room, recorded| {
            BatchSizing { last: 32, expected, room, recorded, ..PLENTY }.count()
        };
        assert_eq!(count(1000, 1000, false), 64);
        assert_eq!(count(19, 1000, false), 19);
        assert_eq!(count(0, 1000, false), FEW);
        assert_eq!(count(1000, 3, false), 3);
        // Whole recordings, if allowed.
        assert_eq!(count(19, 1000, true), 24);
        assert_eq!(count(19, 20, true), 20);
        assert_eq!(count(1, 1000, true), FEW);
    }

    #[test]
    fn what_is_left_follows_from_how_the_residual_falls() {
        assert_eq!(expected(&[1.0, 0.1, 0.01], 1e-5), 3);
        assert_eq!(expected(&[1.0], 1e-5), usize::MAX);
        assert_eq!(expected(&[1.0, 2.0], 1e-5), usize::MAX);
        assert_eq!(expected(&[1.0, 0.5], 0.0), usize::MAX);
        assert_eq!(expected(&[1.0, f64::NAN], 0.5), usize::MAX);
    }
}

//! Iterations of the conjugate gradient method in batches: a device does each without the host, which then reads what
//! they have found.
//!
//! ```text
//! (x, r, p, r·z, ‖r‖ to reach) → up to so many times (p·Ap, r·r, r·z), and x, r, p after the last
//! ```
//!
//! An iteration that ends the solve, well or badly, is the last that changes x and r. So how many are asked for changes
//! what they cost, never what they find.
//!
//! Small problems are bound by what it costs to start a kernel. Where a device can, a few iterations are therefore
//! recorded and started together.

use super::{System, Work};
use crate::algebra::vector::{Chain, Step, Vector};
use crate::device::Recording;
use crate::solve::OperatorError;
use std::collections::VecDeque;
use std::time::Instant;

/// Seconds that a batch may take: what may be done in vain at the end of a solve.
const SECONDS: f64 = 1e-3;
/// Iterations that are always worth a batch, where time allows.
const FEW: usize = 4;
/// Iterations of a recording.
const RECORDED: usize = 8;
/// Iterations of a batch from which on they are recorded: fewer do not repay it.
const WORTH_RECORDING: usize = 16;

/// What decides on the number of iterations of a batch.
#[derive(Clone, Copy)]
struct Facts {
    /// Iterations of the batch before; 0 for the first.
    last: usize,
    /// Seconds of one of them.
    seconds: f64,
    /// Iterations that are expected to be needed.
    expected: usize,
    /// Iterations that may be done.
    room: usize,
    /// Whether iterations are recorded.
    recorded: bool,
}

impl Facts {
    /// The number of iterations of a batch: twice as many as before, as long as they are needed and take no longer than
    /// [`SECONDS`]; whole recordings, where there is one.
    fn count(self) -> usize {
        if self.last == 0 {
            return 1;
        }
        let in_time = (SECONDS / self.seconds) as usize;
        let count = (2 * self.last).min(in_time).min(self.expected.max(FEW)).min(Chain::MOST);
        let whole = count.next_multiple_of(RECORDED);
        let count = if self.recorded && count > FEW { whole } else { count };
        count.min(self.room).max(1)
    }
}

/// Iterations that are expected to be needed yet, if the residual's norm goes on to fall as it did.
fn expected(history: &[f64], target: f64) -> usize {
    let (Some(&first), Some(&last)) = (history.first(), history.last()) else { return usize::MAX };
    let rate = (first / last).ln() / (history.len() - 1) as f64;
    let expected = ((last / target).ln() / rate).ceil();
    if rate > 0.0 && expected.is_finite() { expected as usize } else { usize::MAX }
}

/// Iterations that a device does in advance.
pub(super) struct Batches {
    chain: Chain,
    target: f64,
    /// What is read and not yet asked for.
    found: VecDeque<Step>,
    /// Iterations of the last batch, and seconds of each.
    last: (usize, f64),
    recording: Option<Recording>,
    /// Whether a recording has been tried.
    tried: bool,
}

impl Batches {
    /// Batches, where vectors live on a device and operators leave everything to it.
    pub(super) fn new(
        system: System<'_>,
        b: &Vector,
        target: f64,
    ) -> Result<Option<Self>, OperatorError> {
        if !system.a.replayable() || !system.preconditioner.replayable() {
            return Ok(None);
        }
        let (found, last, recording, tried) = (VecDeque::new(), (0, 0.0), None, false);
        let chain = Chain::new(b)?;
        Ok(chain.map(|chain| Self { chain, target, found, last, recording, tried }))
    }

    /// Goes on from another r and p.
    pub(super) fn start(&mut self, rz: f64) -> Result<(), OperatorError> {
        self.found.clear();
        Ok(self.chain.start(rz, self.target)?)
    }

    /// What the next iteration has found; no numbers where there is none. At most `room` are done now.
    pub(super) fn next(
        &mut self,
        system: System<'_>,
        work: &mut Work,
        x: &mut Vector,
        history: &[f64],
        room: usize,
    ) -> Result<Step, OperatorError> {
        if self.found.is_empty() {
            let (last, seconds) = self.last;
            let (expected, recorded) = (expected(history, self.target), self.recording.is_some());
            let count = Facts { last, seconds, expected, room, recorded }.count();
            let start = Instant::now();
            self.run(count, system, work, x)?;
            self.found.extend(self.chain.read()?);
            // Several processes do as many at once as the slowest would.
            let seconds = work.r.largest(start.elapsed().as_secs_f64());
            self.last = (count, seconds / count as f64);
        }
        let none = Step { curvature: f64::NAN, square: f64::NAN, weighted: f64::NAN };
        Ok(self.found.pop_front().unwrap_or(none))
    }

    /// Asks for so many iterations.
    fn run(
        &mut self,
        count: usize,
        system: System<'_>,
        work: &mut Work,
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

/// One iteration, from the operator to the next direction.
fn iteration(
    chain: &Chain,
    system: System<'_>,
    work: &mut Work,
    x: &mut Vector,
) -> Result<(), OperatorError> {
    let System { a, preconditioner } = system;
    let Work { r, p, q, z } = work;
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

    const PLENTY: Facts =
        Facts { last: 0, seconds: 1e-6, expected: 1000, room: 1000, recorded: false };

    #[test]
    fn batches_grow_as_long_as_they_are_short() {
        let mut facts = PLENTY;
        let mut counts = Vec::new();
        for _ in 0..9 {
            facts.last = facts.count();
            counts.push(facts.last);
        }
        assert_eq!(counts, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        let slow = |seconds| Facts { last: 64, seconds, ..PLENTY }.count();
        assert_eq!([1e-5, 2e-4, 0.9e-3, 0.1].map(slow), [64, 5, 1, 1]);
    }

    #[test]
    fn batches_are_no_longer_than_what_is_left() {
        let count = |expected, room, recorded| {
            Facts { last: 32, expected, room, recorded, ..PLENTY }.count()
        };
        assert_eq!(count(1000, 1000, false), 64);
        assert_eq!(count(19, 1000, false), 19);
        assert_eq!(count(0, 1000, false), FEW);
        assert_eq!(count(1000, 3, false), 3);
        // Whole recordings, where they may be done.
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

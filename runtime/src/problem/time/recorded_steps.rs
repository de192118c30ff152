//! Identical time steps, recorded and replayed by a device.

use std::sync::Arc;

use super::super::RunError;
use crate::device::{Arithmetic, RepeatedWork};

/// Number of steps from either vector after which recording pays off.
const WORTH_RECORDING: usize = 4;

/// Steps with identical work on two alternating vectors.
pub(super) struct RecordedSteps {
    /// Step length of the recording.
    length: f64,
    /// Index of the vector that holds the state.
    turn: usize,
    /// Recordings that start from each vector.
    from: [RepeatedWork; 2],
}

impl Default for RecordedSteps {
    fn default() -> Self {
        let from = [WORTH_RECORDING; 2].map(RepeatedWork::worth);
        Self { length: 0.0, turn: 0, from }
    }
}

impl RecordedSteps {
    /// Records that state and next state were swapped.
    pub(super) fn swapped(&mut self) {
        self.turn ^= 1;
    }

    /// Runs a step of a length on a device, recorded if possible: [`RepeatedWork::run`].
    pub(super) fn step(
        &mut self,
        length: f64,
        on: &Arc<Arithmetic>,
        work: impl FnMut() -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        if length != self.length {
            self.length = length;
            self.from.iter_mut().for_each(RepeatedWork::forget);
        }
        self.from[self.turn].run(&**on.device(), work)
    }
}

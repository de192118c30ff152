//! Steps that do the same as those before: a device records one and then does each by a single call.

use std::sync::Arc;

use super::super::RunError;
use crate::device::{Arithmetic, Recording};

/// Steps of one length behind which more of them are expected.
const WORTH_RECORDING: usize = 8;

/// What is known of steps that may be repeated.
#[derive(Default)]
pub(super) struct Repeated {
    /// The length of the last ones, and how many there were.
    length: f64,
    alike: usize,
    /// Which of two vectors is the state: they change places with each step.
    turn: usize,
    /// One step from each of the two.
    recordings: [Option<Recording>; 2],
    /// A device that does not record.
    never: bool,
}

impl Repeated {
    /// Takes note that state and next state have changed places.
    pub(super) fn swapped(&mut self) {
        self.turn ^= 1;
    }

    /// Does a step of a length on a device, one call if it was recorded: `work` asks for all that it is, and for nothing that differs
    /// from step to step but what lies in the device's memory.
    pub(super) fn step(
        &mut self,
        length: f64,
        on: &Arc<Arithmetic>,
        mut work: impl FnMut() -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        if length != self.length {
            (self.length, self.alike, self.recordings) = (length, 0, [None, None]);
        }
        self.alike += 1;
        let device = on.device();
        let recording = &mut self.recordings[self.turn];
        if recording.is_none() && !self.never && self.alike > WORTH_RECORDING {
            *recording = device.record(&mut || Ok(work()?))?;
            self.never = recording.is_none();
        }
        match recording {
            Some(recording) => Ok(device.replay(recording)?),
            None => work(),
        }
    }
}

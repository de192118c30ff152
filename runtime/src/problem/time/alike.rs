//! Steps of one length, which a device may repeat as it has recorded them.

use std::sync::Arc;

use super::super::RunError;
use crate::device::{Arithmetic, Repeated};

/// Steps from either of two vectors behind which more of them are expected.
const WORTH_RECORDING: usize = 4;

/// Steps that do the same, from one vector to another: these change places with each.
pub(super) struct Alike {
    /// The length of the last ones.
    length: f64,
    /// Which of the two is the state.
    turn: usize,
    /// Steps from each.
    from: [Repeated; 2],
}

impl Default for Alike {
    fn default() -> Self {
        let from = [WORTH_RECORDING; 2].map(Repeated::worth);
        Self { length: 0.0, turn: 0, from }
    }
}

impl Alike {
    /// Takes note that state and next state have changed places.
    pub(super) fn swapped(&mut self) {
        self.turn ^= 1;
    }

    /// Does a step of a length on a device: [`Repeated::run`].
    pub(super) fn step(
        &mut self,
        length: f64,
        on: &Arc<Arithmetic>,
        work: impl FnMut() -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        if length != self.length {
            self.length = length;
            self.from.iter_mut().for_each(Repeated::forget);
        }
        self.from[self.turn].run(&**on.device(), work)
    }
}

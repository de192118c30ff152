//! Repeated work: started kernel by kernel at first, then replayed from a recording of the device.

use super::{Device, DeviceError, Recording};
use std::error::Error;

/// Work that is the same each time, and its execution mode.
pub(crate) struct Repeated {
    /// The number of runs before recording.
    worth: usize,
    way: Way,
}

enum Way {
    /// Kernel by kernel, with the number of runs so far.
    Singly(usize),
    Recorded(Recording),
    /// Recording is impossible.
    Never,
}

impl Repeated {
    /// Creates work that is recorded after `worth` runs.
    pub(crate) fn worth(worth: usize) -> Self {
        Self { worth, way: Way::Singly(0) }
    }

    /// Discards the recording: the work has changed.
    pub(crate) fn forget(&mut self) {
        if !matches!(self.way, Way::Never) {
            self.way = Way::Singly(0);
        }
    }

    /// Runs the work. `work` must enqueue all of it, and runs may differ only in the contents of device memory.
    pub(crate) fn run<E: Error + From<DeviceError> + 'static>(
        &mut self,
        device: &dyn Device,
        mut work: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        if let Way::Singly(runs) = &mut self.way {
            if *runs < self.worth {
                *runs += 1;
                return work();
            }
            let recording = device.record(&mut || Ok(work()?))?;
            self.way = recording.map_or(Way::Never, Way::Recorded);
        }
        match &self.way {
            Way::Recorded(recording) => Ok(device.replay(recording)?),
            _ => work(),
        }
    }
}

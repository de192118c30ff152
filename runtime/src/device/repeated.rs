//! Work that is asked for again and again: kernel by kernel at first, then by a single call, as the device has recorded it.

use super::{Device, DeviceError, Recording};
use std::error::Error;

/// Work that does the same each time, and how it is done.
pub(crate) struct Repeated {
    /// Runs behind which more are expected.
    worth: usize,
    way: Way,
}

enum Way {
    /// Kernel by kernel, so often so far.
    Singly(usize),
    Recorded(Recording),
    /// It cannot be recorded.
    Never,
}

impl Repeated {
    /// Work that is recorded behind so many runs.
    pub(crate) fn worth(worth: usize) -> Self {
        Self { worth, way: Way::Singly(0) }
    }

    /// From now on the work is another one.
    pub(crate) fn forget(&mut self) {
        if !matches!(self.way, Way::Never) {
            self.way = Way::Singly(0);
        }
    }

    /// Does the work: `work` asks the device for all of it, and for nothing that differs from run to run but by what lies in the
    /// device's memory.
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

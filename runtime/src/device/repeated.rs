//! Repeated work: started kernel by kernel at first, then replayed from a recording of the device.

use super::{Device, DeviceError, Recording};
use std::error::Error;

/// Work that is the same each time, and its execution mode.
pub(crate) struct RepeatedWork {
    /// The number of runs before recording.
    worth: usize,
    mode: RepeatMode,
}

enum RepeatMode {
    /// Kernel by kernel, with the number of runs so far.
    KernelByKernel(usize),
    Recorded(Recording),
    /// Recording is impossible.
    Unrecordable,
}

impl RepeatedWork {
    /// Creates work that is recorded after `worth` runs.
    pub(crate) fn worth(worth: usize) -> Self {
        Self { worth, mode: RepeatMode::KernelByKernel(0) }
    }

    /// Discards the recording: the work has changed.
    pub(crate) fn forget(&mut self) {
        if !matches!(self.mode, RepeatMode::Unrecordable) {
            self.mode = RepeatMode::KernelByKernel(0);
        }
    }

    /// Runs the work. `work` must enqueue all of it, and runs may differ only in the contents of device memory.
    pub(crate) fn run<E: Error + From<DeviceError> + 'static>(
        &mut self,
        device: &dyn Device,
        mut work: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        if let RepeatMode::KernelByKernel(runs) = &mut self.mode {
            if *runs < self.worth {
                *runs += 1;
                return work();
            }
            let recording = device.record(&mut || Ok(work()?))?;
            self.mode = recording.map_or(RepeatMode::Unrecordable, RepeatMode::Recorded);
        }
        match &self.mode {
            RepeatMode::Recorded(recording) => Ok(device.replay(recording)?),
            _ => work(),
        }
    }
}

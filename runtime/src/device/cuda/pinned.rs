//! PinnedBuffer host memory: the GPU accesses it directly, whereas other memory is copied by the driver.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::{CudaContext, PinnedHostSlice};

use super::error::driver;
use crate::device::{DeviceError, StagingBuffer};

/// PinnedBuffer host memory.
struct PinnedBuffer {
    memory: PinnedHostSlice<u8>,
    bytes: usize,
}

impl fmt::Debug for PinnedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pinned bytes", self.bytes)
    }
}

impl StagingBuffer for PinnedBuffer {
    fn bytes(&mut self) -> Result<&mut [u8], DeviceError> {
        let all = self.memory.as_mut_slice().map_err(driver("take pinned memory"))?;
        Ok(&mut all[..self.bytes])
    }
}

/// Allocates `bytes` bytes: pinned, or pageable if no more can be pinned.
pub(super) fn staging(context: &Arc<CudaContext>, bytes: usize) -> Box<dyn StagingBuffer> {
    // No write-combined memory: the host reads it very slowly.
    let ordinary = 0;
    // SAFETY: it is filled before it is read.
    let memory = unsafe { context.alloc_pinned_with_flags::<u8>(bytes.max(1), ordinary) };
    let filled = memory.and_then(|mut memory| {
        let (start, all) = (memory.as_mut_ptr()?, memory.len());
        // SAFETY: the memory has this size and is not shared.
        unsafe { start.write_bytes(0, all) };
        Ok(memory)
    });
    match filled {
        Ok(memory) => Box::new(PinnedBuffer { memory, bytes }),
        Err(error) => {
            tracing::debug!("no pinned memory: {error}");
            Box::new(vec![0; bytes])
        }
    }
}

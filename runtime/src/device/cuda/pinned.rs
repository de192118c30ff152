//! Pinned memory of the host: the GPU copies to and from it by itself, where other memory has to pass by the driver's own.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::{CudaContext, PinnedHostSlice};

use super::error::driver;
use crate::device::{DeviceError, Staging};

/// Pinned memory.
struct Pinned {
    memory: PinnedHostSlice<u8>,
    bytes: usize,
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pinned bytes", self.bytes)
    }
}

impl Staging for Pinned {
    fn bytes(&mut self) -> Result<&mut [u8], DeviceError> {
        let all = self.memory.as_mut_slice().map_err(driver("take pinned memory"))?;
        Ok(&mut all[..self.bytes])
    }
}

/// So many bytes: pinned, or any where the system has no more to pin.
pub(super) fn staging(context: &Arc<CudaContext>, bytes: usize) -> Box<dyn Staging> {
    // Memory that is combined on writing, which the driver also has, is read by the processor at a crawl.
    let ordinary = 0;
    // SAFETY: it is filled before it is read.
    let memory = unsafe { context.alloc_pinned_with_flags::<u8>(bytes.max(1), ordinary) };
    let filled = memory.and_then(|mut memory| {
        let (start, all) = (memory.as_mut_ptr()?, memory.len());
        // SAFETY: the memory has so many bytes, and nobody else.
        unsafe { start.write_bytes(0, all) };
        Ok(memory)
    });
    match filled {
        Ok(memory) => Box::new(Pinned { memory, bytes }),
        Err(error) => {
            tracing::debug!("no pinned memory: {error}");
            Box::new(vec![0; bytes])
        }
    }
}

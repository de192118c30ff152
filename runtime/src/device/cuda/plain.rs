//! Memory of a GPU that is in no pool, so that other processes can open it.

use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError, result, sys};

/// Memory that is never given back: others may have it open for as long as they run.
pub(super) struct Plain {
    context: Arc<CudaContext>,
    start: sys::CUdeviceptr,
}

impl Plain {
    /// So many bytes, to be written before they are read.
    pub(super) fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, DriverError> {
        context.bind_to_thread()?;
        // SAFETY: whoever asks for it writes it before it is read.
        let start = unsafe { result::malloc_sync(bytes)? };
        Ok(Self { context: Arc::clone(context), start })
    }

    /// So many bytes of zeros.
    pub(super) fn zeros(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, DriverError> {
        let made = Self::new(context, bytes)?;
        // SAFETY: the memory has so many bytes.
        unsafe { result::memset_d8_sync(made.start, 0, bytes)? };
        // The driver may have started that only.
        context.synchronize()?;
        Ok(made)
    }

    /// Where it is.
    pub(super) fn start(&self) -> sys::CUdeviceptr {
        self.start
    }

    /// Whose it is.
    pub(super) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }
}

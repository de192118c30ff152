//! GPU memory outside of pools, which other processes can open.

use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError, result, sys};

/// GPU memory that is never freed: other processes may keep it open.
pub(super) struct ShareableMemory {
    context: Arc<CudaContext>,
    start: sys::CUdeviceptr,
}

impl ShareableMemory {
    /// Allocates memory; it must be written before it is read.
    pub(super) fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, DriverError> {
        context.bind_to_thread()?;
        // SAFETY: the caller writes the memory before it is read.
        let start = unsafe { result::malloc_sync(bytes)? };
        Ok(Self { context: Arc::clone(context), start })
    }

    /// Allocates memory filled with zeros.
    pub(super) fn zeros(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, DriverError> {
        let made = Self::new(context, bytes)?;
        // SAFETY: the memory has this size.
        unsafe { result::memset_d8_sync(made.start, 0, bytes)? };
        // The driver may only have enqueued the operation.
        context.synchronize()?;
        Ok(made)
    }

    /// Returns the address.
    pub(super) fn start(&self) -> sys::CUdeviceptr {
        self.start
    }

    /// Returns the context.
    pub(super) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }
}

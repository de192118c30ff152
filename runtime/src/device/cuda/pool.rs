//! The pool that a GPU's memory comes from: what is given back stays there for whoever asks next, until the device goes.
//!
//! By itself the driver returns what nobody uses whenever somebody waits for the GPU, and maps it anew for the next array: some
//! milliseconds of a solve of 20 million unknowns.

use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError, result, sys};

/// The pool of a device.
pub(super) struct Pool {
    context: Arc<CudaContext>,
    /// None where the driver has no pools.
    pool: Option<sys::CUmemoryPool>,
}

// SAFETY: the driver's pools may be asked by any thread.
unsafe impl Send for Pool {}
// SAFETY: as above; nothing here is changed.
unsafe impl Sync for Pool {}

impl Pool {
    /// The one of a device, which keeps from now on what is given back.
    pub(super) fn keep(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let context = Arc::clone(context);
        if !context.has_async_alloc() {
            return Ok(Self { context, pool: None });
        }
        context.bind_to_thread()?;
        // SAFETY: the device is open.
        let pool = unsafe { result::device::get_mem_pool(context.cu_device())? };
        let own = Self { context, pool: Some(pool) };
        own.hold(u64::MAX);
        Ok(own)
    }

    /// Keeps so many bytes that nobody uses, if the driver lets it.
    fn hold(&self, mut bytes: u64) {
        let kept = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        if let (Some(pool), Ok(())) = (self.pool, self.context.bind_to_thread()) {
            // SAFETY: the pool is the device's, and the attribute a number of 64 bits.
            let _ = unsafe { result::mem_pool::set_attribute(pool, kept, (&raw mut bytes).cast()) };
        }
    }

    /// Keeps nothing more: others share the GPU.
    pub(super) fn share(&self) {
        self.hold(0);
        self.give_back();
    }

    /// Gives back what nobody uses, once all that was started is done.
    pub(super) fn give_back(&self) {
        if let (Some(pool), Ok(())) = (self.pool, self.context.synchronize()) {
            // SAFETY: the pool is the device's; what is in use stays.
            let _ = unsafe { result::mem_pool::trim_to(pool, 0) };
        }
    }

    /// Bytes that it has and nobody uses.
    pub(super) fn unused(&self) -> u64 {
        let of = |which| {
            let (pool, mut bytes) = (self.pool?, 0u64);
            // SAFETY: the pool is the device's, and the attribute a number of 64 bits.
            let asked =
                unsafe { result::mem_pool::get_attribute(pool, which, (&raw mut bytes).cast()) };
            asked.ok().map(|()| bytes)
        };
        let own = of(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
        let used = of(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
        own.zip(used).map_or(0, |(own, used)| own.saturating_sub(used))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.share();
    }
}

//! Memory pool of a GPU: freed memory is kept for reuse as long as the device.
//!
//! By default the driver releases unused memory at each synchronisation and maps it again for the next array. This
//! takes some milliseconds in a solve with 20 million degrees of freedom.

use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError, result, sys};

/// Memory pool of a device.
pub(super) struct Pool {
    context: Arc<CudaContext>,
    /// `None` if the driver does not support pools.
    pool: Option<sys::CUmemoryPool>,
}

// SAFETY: any thread may query the driver's pools.
unsafe impl Send for Pool {}
// SAFETY: as above; nothing is changed here.
unsafe impl Sync for Pool {}

impl Pool {
    /// Configures the pool of a device to keep freed memory.
    pub(super) fn keep(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let context = Arc::clone(context);
        if !context.has_async_alloc() {
            return Ok(Self { context, pool: None });
        }
        context.bind_to_thread()?;
        // SAFETY: the device is open.
        let pool = unsafe { result::device::get_mem_pool(context.cu_device())? };
        let own = Self { context, pool: Some(pool) };
        own.set_threshold(u64::MAX);
        Ok(own)
    }

    /// Sets the number of unused bytes that the pool keeps, if the driver supports it.
    fn set_threshold(&self, mut bytes: u64) {
        let kept = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        if let (Some(pool), Ok(())) = (self.pool, self.context.bind_to_thread()) {
            // SAFETY: the pool belongs to the device, and the attribute is a 64-bit number.
            let _ = unsafe { result::mem_pool::set_attribute(pool, kept, (&raw mut bytes).cast()) };
        }
    }

    /// Stops keeping unused memory, because others share the GPU.
    pub(super) fn share(&self) {
        self.set_threshold(0);
        self.give_back();
    }

    /// Releases unused memory after all enqueued work.
    pub(super) fn give_back(&self) {
        if let (Some(pool), Ok(())) = (self.pool, self.context.synchronize()) {
            // SAFETY: the pool belongs to the device; memory in use is unaffected.
            let _ = unsafe { result::mem_pool::trim_to(pool, 0) };
        }
    }

    /// Returns the number of unused bytes in the pool.
    pub(super) fn unused(&self) -> u64 {
        let of = |which| {
            let (pool, mut bytes) = (self.pool?, 0u64);
            // SAFETY: the pool belongs to the device, and the attribute is a 64-bit number.
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

//! A device with a memory bound: [`BoundedDevice`].
//!
//! The bound serves devices shared with other programs, and tests of smaller devices. The free memory is the minimum of
//! the rest of the bound and that of the device. Larger arrays are rejected before the device is asked.

use super::{
    Array, Backend, Device, DeviceError, DeviceGroup, ElementKind, Kernel, KernelArgument, Module,
    QueuePosition, RecordedWork, Recording, SelectedTransport, SparseMatrix, StagingBuffer,
    TransportError,
};
use crate::processes::ProcessGroup;
use crate::support::memory::Bytes;
use kernels_gen::dialect::SourceFile;
use kernels_gen::dialect::c::Vocabulary;
use std::any::Any;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A device with a bound on the bytes of its arrays.
#[derive(Debug)]
pub struct BoundedDevice {
    device: Arc<dyn Device>,
    bound: usize,
    /// The live arrays, with their bytes.
    live: Mutex<LiveArrays>,
}

#[derive(Debug, Default)]
struct LiveArrays {
    arrays: Vec<(Weak<dyn Any + Send + Sync>, usize)>,
    most: usize,
}

impl LiveArrays {
    /// Returns the bytes of all live arrays.
    fn bytes(&mut self) -> usize {
        self.arrays.retain(|(array, _)| array.strong_count() > 0);
        self.arrays.iter().map(|(_, bytes)| bytes).sum()
    }
}

impl BoundedDevice {
    /// Limits the arrays created through this value to `bound` bytes.
    pub fn new(device: Arc<dyn Device>, bound: usize) -> Self {
        Self { device, bound, live: Mutex::default() }
    }

    /// Returns the bytes of the live arrays.
    pub fn bytes(&self) -> usize {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).bytes()
    }

    /// Returns the peak number of bytes.
    pub fn most_bytes(&self) -> usize {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).most
    }
}

impl Device for BoundedDevice {
    fn backend(&self) -> Backend {
        self.device.backend()
    }

    fn name(&self) -> String {
        self.device.name()
    }

    fn shared_bytes(&self) -> usize {
        self.device.shared_bytes()
    }

    fn free_bytes(&self) -> Option<f64> {
        let left = self.bound.saturating_sub(self.bytes()) as f64;
        Some(self.device.free_bytes().map_or(left, |free| free.min(left)))
    }

    fn join(&self, group: &Arc<dyn ProcessGroup>) -> Result<SelectedTransport, TransportError> {
        self.device.join(group)
    }

    fn group(&self) -> Option<&dyn DeviceGroup> {
        self.device.group()
    }

    fn words(&self) -> &'static Vocabulary {
        self.device.words()
    }

    unsafe fn load_source(&self, source: &SourceFile) -> Result<Module, DeviceError> {
        // SAFETY: the contract of the caller is that of this call.
        unsafe { self.device.load_source(source) }
    }

    fn parts_to_prepare(&self, source: &SourceFile) -> Vec<SourceFile> {
        self.device.parts_to_prepare(source)
    }

    fn prepare(&self, part: &SourceFile) {
        self.device.prepare(part);
    }

    fn zeros(&self, kind: ElementKind, len: usize) -> Result<Array, DeviceError> {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let (wanted, used) = (kind.width().saturating_mul(len), live.bytes());
        let left = self.bound.saturating_sub(used);
        if wanted > left {
            let (wanted, left) = (Bytes(wanted as f64), Bytes(left as f64));
            return Err(DeviceError::Full { device: self.name(), wanted, left });
        }
        let array = self.device.zeros(kind, len)?;
        live.arrays.push((Arc::downgrade(&array.memory), wanted));
        live.most = live.most.max(used + wanted);
        Ok(array)
    }

    fn clear(&self, array: &mut Array) -> Result<(), DeviceError> {
        self.device.clear(array)
    }

    fn write(&self, array: &mut Array, at: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(array, at, bytes)
    }

    fn read(&self, array: &Array, at: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(array, at, bytes)
    }

    fn staging(&self, bytes: usize) -> Box<dyn StagingBuffer> {
        self.device.staging(bytes)
    }

    fn synchronise(&self) -> Result<(), DeviceError> {
        self.device.synchronise()
    }

    fn mark(&self) -> Result<QueuePosition, DeviceError> {
        self.device.mark()
    }

    fn seconds(&self, from: &QueuePosition, to: &QueuePosition) -> Result<f64, DeviceError> {
        self.device.seconds(from, to)
    }

    fn overlap(
        &self,
        aside: RecordedWork<'_>,
        own: RecordedWork<'_>,
    ) -> Result<(), Box<dyn Error>> {
        self.device.overlap(aside, own)
    }

    fn overlap_urgent(
        &self,
        aside: RecordedWork<'_>,
        own: RecordedWork<'_>,
    ) -> Result<(), Box<dyn Error>> {
        self.device.overlap_urgent(aside, own)
    }

    fn record(&self, work: RecordedWork<'_>) -> Result<Option<Recording>, DeviceError> {
        self.device.record(work)
    }

    fn replay(&self, recording: &Recording) -> Result<(), DeviceError> {
        self.device.replay(recording)
    }

    unsafe fn sparse_matrix(
        &self,
        rows: usize,
        arrays: [&Array; 3],
    ) -> Result<Option<Box<dyn SparseMatrix>>, DeviceError> {
        // SAFETY: the contract of the caller is that of this call.
        unsafe { self.device.sparse_matrix(rows, arrays) }
    }

    unsafe fn start(
        &self,
        kernel: &Kernel,
        groups: usize,
        arguments: &[KernelArgument<'_>],
    ) -> Result<(), DeviceError> {
        // SAFETY: the contract of the caller is that of this call.
        unsafe { self.device.start(kernel, groups, arguments) }
    }
}

//! [`Device`]: the interface of all devices with their own memory.
//!
//! Arrays and kernels are type-erased, so that operators, vectors and solvers use a `dyn Device` and no backend is
//! named outside this folder. A device executes work in order; only [`Device::write`], [`Device::read`] and
//! [`Device::synchronise`] block. The checks before a kernel starts are common to all devices.

mod sparse;

pub use sparse::SparseMatrix;
use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use kernels_gen::abi::{KernelAbi, Precision, Role, SHARED_BYTES};
use kernels_gen::dialect::c::Vocabulary;
use kernels_gen::dialect::{GeneratedSource, SourceFile};

use super::array::{BackendData, IndexBounds, bytes, bytes_mut, numbers_mut};
use super::cpu::{LargestIndex, LaunchError, indices_fit};
use super::{
    Array, Backend, DeviceError, DeviceGroup, Element, ElementKind, RecordedWork,
    SelectedTransport, StagingBuffer, TransportError,
};
use crate::processes::ProcessGroup;
use crate::support::parallel::*;

/// A kernel loaded on a device.
pub struct Kernel {
    abi: KernelAbi,
    handle: BackendData,
    spilt: usize,
    /// The last argument, [`Role::Tables`], if any.
    tables: Option<Array>,
}

impl Kernel {
    /// Wraps a backend handle.
    pub(super) fn new(abi: KernelAbi, handle: BackendData) -> Self {
        Self { abi, handle, spilt: 0, tables: None }
    }

    /// Sets the bytes of register spills per thread.
    pub(super) fn with_spilt(self, spilt: usize) -> Self {
        Self { spilt, ..self }
    }

    /// Returns the bytes of register spills per thread; 0 if the device does not report them.
    pub fn spilt(&self) -> usize {
        self.spilt
    }

    /// Returns the kernel's interface.
    pub fn abi(&self) -> &KernelAbi {
        &self.abi
    }

    /// Returns the backend handle.
    pub(super) fn handle<H: 'static>(&self) -> Result<&H, DeviceError> {
        self.handle.downcast_ref().ok_or(DeviceError::Foreign)
    }

    /// Returns the reference that keeps the kernel loaded.
    pub(super) fn own(&self) -> BackendData {
        Arc::clone(&self.handle)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}", self.abi.name)
    }
}

/// The kernels of one source.
#[derive(Debug)]
pub struct Module {
    /// The kernels in source order.
    pub kernels: Vec<Kernel>,
    /// True if the compiled code was cached.
    pub cached: bool,
}

impl Module {
    /// Uploads the tables of the kernels to their device.
    pub(super) fn new(
        device: &dyn Device,
        mut kernels: Vec<Kernel>,
        cached: bool,
    ) -> Result<Self, DeviceError> {
        for kernel in kernels.iter_mut().filter(|kernel| !kernel.abi.tables.is_empty()) {
            let tables = &kernel.abi.tables;
            kernel.tables = Some(match kernel.abi.precision {
                Precision::F64 => device.upload(tables)?,
                Precision::F32 => {
                    device.upload(&tables.iter().map(|&x| x as f32).collect::<Vec<f32>>())?
                }
            });
        }
        Ok(Self { kernels, cached })
    }

    /// Finds a kernel by name.
    ///
    /// # Errors
    ///
    /// [`LaunchError::UnknownKernel`].
    pub fn kernel(&self, name: &str) -> Result<&Kernel, LaunchError> {
        let found = self.kernels.iter().find(|kernel| kernel.abi.name == name);
        found.ok_or_else(|| LaunchError::UnknownKernel(name.to_owned()))
    }
}

/// Argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum KernelArgument<'a> {
    /// An array, which the kernel may write.
    Array(&'a Array),
    /// A 64-bit count.
    Size(u64),
    /// A double-precision number.
    Real(f64),
}

/// A position in a device's work queue.
pub struct QueuePosition(BackendData);

impl QueuePosition {
    /// Wraps a backend handle.
    pub(super) fn new(handle: BackendData) -> Self {
        Self(handle)
    }

    /// Returns the backend handle.
    pub(super) fn handle<H: 'static>(&self) -> Result<&H, DeviceError> {
        self.0.downcast_ref().ok_or(DeviceError::Foreign)
    }
}

impl fmt::Debug for QueuePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a place in a device's work")
    }
}

/// Recorded work of a device, for repeated replay. It keeps its arrays and kernels alive.
pub struct Recording(BackendData);

impl Recording {
    /// Wraps a backend handle.
    pub(super) fn new(handle: BackendData) -> Self {
        Self(handle)
    }

    /// Returns the backend handle.
    pub(super) fn handle<H: 'static>(&self) -> Result<&H, DeviceError> {
        self.0.downcast_ref().ok_or(DeviceError::Foreign)
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a recording of a device's work")
    }
}

/// The address of an array, for other libraries that use the same device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAddress {
    /// The pointer.
    pub pointer: u64,
    /// The number of the device.
    pub number: usize,
    /// The handle of the stream that orders the work on the array.
    pub stream: u64,
}

/// A device with memory of its own.
pub trait Device: fmt::Debug + Send + Sync {
    /// Returns the backend.
    fn backend(&self) -> Backend;

    /// Returns the device name.
    fn name(&self) -> String;

    /// Bytes of memory that the threads of a group can share.
    fn shared_bytes(&self) -> usize {
        SHARED_BYTES
    }

    /// Returns the free bytes of memory, an upper bound; `None` if the device does not report it.
    fn free_bytes(&self) -> Option<f64> {
        None
    }

    /// Connects the devices of all processes of a group, if possible. Collective; all processes get the same result.
    ///
    /// # Errors
    ///
    /// The reason for the failure.
    fn join(&self, group: &Arc<dyn ProcessGroup>) -> Result<SelectedTransport, TransportError> {
        let _ = group;
        Err(TransportError::Backend)
    }

    /// Returns the connected devices of other processes, if any.
    fn group(&self) -> Option<&dyn DeviceGroup> {
        None
    }

    /// Returns the dialect of its sources.
    fn words(&self) -> &'static Vocabulary;

    /// Compiles a source, or finds it in the cache, and loads its kernels.
    ///
    /// # Errors
    ///
    /// A missing compiler, a compiler error, or a driver error.
    ///
    /// # Safety
    ///
    /// The kernels of the text must do what their interfaces say, and no more. A [`GeneratedSource`] does: for it
    /// there is a safe `load`.
    unsafe fn load_source(&self, source: &SourceFile) -> Result<Module, DeviceError>;

    /// Returns the parts of a source that [`Device::prepare`] compiles; none if the compiler belongs to the driver.
    fn parts_to_prepare(&self, source: &SourceFile) -> Vec<SourceFile> {
        let _ = source;
        Vec::new()
    }

    /// Compiles a part of a source into the cache, where [`Device::load_source`] finds it. Errors occur again there.
    fn prepare(&self, part: &SourceFile) {
        let _ = part;
    }

    /// Creates an array of zeros.
    ///
    /// # Errors
    ///
    /// Insufficient memory, or a driver error.
    fn zeros(&self, kind: ElementKind, len: usize) -> Result<Array, DeviceError>;

    /// Sets every element to zero.
    ///
    /// # Errors
    ///
    /// A driver error, or an array of another device.
    fn clear(&self, array: &mut Array) -> Result<(), DeviceError>;

    /// Copies bytes to an array, at byte offset `at`.
    ///
    /// # Errors
    ///
    /// Those of [`Device::clear`].
    fn write(&self, array: &mut Array, at: usize, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies bytes of an array from byte offset `at`, after all earlier work.
    ///
    /// # Errors
    ///
    /// Those of [`Device::clear`], and of earlier work.
    fn read(&self, array: &Array, at: usize, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Returns the address of an array, after all earlier work; `None` on devices without addresses for others.
    ///
    /// # Errors
    ///
    /// An array of another device, and errors of earlier work.
    fn address(&self, array: &Array) -> Result<Option<DeviceAddress>, DeviceError> {
        let _ = array;
        Ok(None)
    }

    /// Copies bytes of this device's memory at a pointer to the beginning of an array.
    ///
    /// # Errors
    ///
    /// Those of [`Device::clear`]; a device without addresses for others.
    ///
    /// # Safety
    ///
    /// So many bytes can be read there, and no work that writes them is pending.
    unsafe fn write_from(
        &self,
        array: &mut Array,
        pointer: u64,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        let _ = (array, pointer, bytes);
        Err(DeviceError::Foreign)
    }

    /// Allocates host memory for repeated transfers.
    fn staging(&self, bytes: usize) -> Box<dyn StagingBuffer> {
        Box::new(vec![0; bytes])
    }

    /// Waits for all enqueued work.
    ///
    /// # Errors
    ///
    /// The error of that work.
    fn synchronise(&self) -> Result<(), DeviceError>;

    /// Marks the current position in the work queue.
    ///
    /// # Errors
    ///
    /// A driver error.
    fn mark(&self) -> Result<QueuePosition, DeviceError>;

    /// Returns the seconds between two marks; waits for the later one.
    ///
    /// # Errors
    ///
    /// A driver error, or marks of another device.
    fn seconds(&self, from: &QueuePosition, to: &QueuePosition) -> Result<f64, DeviceError>;

    /// Runs two independent pieces of work, concurrently if the device can. They may only start kernels and clear
    /// arrays on this thread. Later work follows both.
    ///
    /// # Errors
    ///
    /// Those of either piece of work, or a driver error.
    fn overlap(
        &self,
        aside: RecordedWork<'_>,
        own: RecordedWork<'_>,
    ) -> Result<(), Box<dyn Error>> {
        aside()?;
        own()
    }

    /// Like [`Device::overlap`], but `aside` has priority, because other processes wait for it.
    ///
    /// # Errors
    ///
    /// Those of [`Device::overlap`].
    fn overlap_urgent(
        &self,
        aside: RecordedWork<'_>,
        own: RecordedWork<'_>,
    ) -> Result<(), Box<dyn Error>> {
        self.overlap(aside, own)
    }

    /// Records `work` instead of running it. It may only start kernels and clear arrays on this thread. Returns `None`,
    /// with nothing done, if the device does not record, if `work` fails or does more, or if another recording is
    /// active. `work` may have been called without effect.
    ///
    /// # Errors
    ///
    /// A driver error.
    fn record(&self, work: RecordedWork<'_>) -> Result<Option<Recording>, DeviceError> {
        let _ = work;
        Ok(None)
    }

    /// Replays recorded work on the recorded arrays with their current contents.
    ///
    /// # Errors
    ///
    /// A driver error, or a recording of another device.
    fn replay(&self, recording: &Recording) -> Result<(), DeviceError> {
        let _ = recording;
        Err(DeviceError::Foreign)
    }

    /// Returns a square CSR matrix for the vendor's sparse library; `None` without such a library.
    ///
    /// # Errors
    ///
    /// Insufficient memory, or a driver error.
    ///
    /// # Safety
    ///
    /// The arrays are row starts, columns and values (double precision). For n rows there are at least n + 1 starts.
    /// They begin with 0, do not descend, and the last is the number of columns and of values. Every column is below n.
    unsafe fn sparse_matrix(
        &self,
        rows: usize,
        arrays: [&Array; 3],
    ) -> Result<Option<Box<dyn SparseMatrix>>, DeviceError> {
        let _ = (rows, arrays);
        Ok(None)
    }

    /// Starts `groups` groups of a kernel's threads.
    ///
    /// # Errors
    ///
    /// A driver error, or a kernel or array of another device.
    ///
    /// # Safety
    ///
    /// The arguments must be those of the kernel, in their number, order and types, and the kernel must stay within the
    /// arrays.
    unsafe fn start(
        &self,
        kernel: &Kernel,
        groups: usize,
        arguments: &[KernelArgument<'_>],
    ) -> Result<(), DeviceError>;
}

/// Bytes that pass through a staging buffer at once, and those that a thread copies.
const STAGED: usize = 1 << 25;
const COPIED: usize = 1 << 20;

/// Converts to double precision.
fn widened<T: Element + Into<f64>>(values: Vec<T>) -> Vec<f64> {
    let mut wide = vec![0.0; values.len()];
    let pairs = wide.par_iter_mut().zip(values).with_min_len(COPIED / size_of::<f64>());
    pairs.each(|(wide, value)| *wide = value.into());
    wide
}

impl dyn Device + '_ {
    /// Creates an array with these elements.
    ///
    /// # Errors
    ///
    /// Insufficient memory, or a driver error.
    pub fn upload<T: Element>(&self, values: &[T]) -> Result<Array, DeviceError> {
        let mut array = self.zeros(T::KIND, values.len())?;
        self.write(&mut array, 0, bytes(values))?;
        array.indices = T::as_indices(values).map(IndexBounds::of);
        Ok(array)
    }

    /// Creates an array of indices in parts of at most `most` elements; `fill` writes the part at a position. Parts pass
    /// through one staging buffer: the host needs no memory for the whole array.
    ///
    /// # Errors
    ///
    /// Insufficient memory, or a driver error.
    pub(crate) fn upload_in_parts(
        &self,
        len: usize,
        most: usize,
        fill: &mut dyn FnMut(usize, &mut [u32]),
    ) -> Result<Array, DeviceError> {
        let most = most.max(1);
        let mut staging = self.staging(most.min(len) * size_of::<u32>());
        let (mut array, mut spare) = (self.zeros(ElementKind::U32, len)?, Vec::new());
        let (mut known, mut last) = (None::<IndexBounds>, None);
        for at in (0..len).step_by(most) {
            let count = most.min(len - at);
            let part = match numbers_mut(staging.bytes()?) {
                Some(part) => &mut part[..count],
                None => {
                    spare.resize(count, 0);
                    &mut spare[..]
                }
            };
            fill(at, part);
            let (own, end) = (IndexBounds::of(part), part.last().copied());
            known = Some(match known {
                None => own,
                Some(before) => before.followed_by(at, own, [last, end]),
            });
            last = end;
            self.write(&mut array, at * size_of::<u32>(), bytes(part))?;
        }
        array.indices = known.or_else(|| Some(IndexBounds::of(&[])));
        Ok(array)
    }

    /// Compiles a generated source, or finds it in the cache, and loads its kernels. Other text is rejected:
    ///
    /// ```compile_fail,E0308
    /// #![forbid(unsafe_code)]
    /// use kernels_gen::dialect::{Language, SourceFile};
    ///
    /// fn load(device: &dyn runtime::device::Device) {
    ///     let _ = device.load(&SourceFile::empty(Language::OpenCl));
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// A missing compiler, a compiler error, or a driver error.
    pub fn load(&self, source: &GeneratedSource) -> Result<Module, DeviceError> {
        // SAFETY: only the generator creates such a source; text and interfaces are printed together.
        unsafe { self.load_source(source) }
    }

    /// Like `load`, for one of this crate's own sources, which must match its interfaces.
    pub(crate) fn load_written(&self, source: &SourceFile) -> Result<Module, DeviceError> {
        // SAFETY: callers are in this crate; each text is written by hand for its interfaces.
        unsafe { self.load_source(source) }
    }

    /// Downloads the elements of an array, as double-precision numbers.
    ///
    /// # Errors
    ///
    /// A driver error, also of earlier work.
    pub fn download(&self, array: &Array) -> Result<Vec<f64>, DeviceError> {
        Ok(match array.kind() {
            ElementKind::F64 => self.elements::<f64>(array, 0..array.len())?,
            ElementKind::F32 => widened(self.elements::<f32>(array, 0..array.len())?),
            ElementKind::U32 => widened(self.elements::<u32>(array, 0..array.len())?),
        })
    }

    /// Downloads a range of elements. Large ranges pass through a staging buffer in parts, from which all threads copy: the
    /// memory of the result is touched by all of them.
    pub(super) fn elements<T: Element>(
        &self,
        array: &Array,
        range: Range<usize>,
    ) -> Result<Vec<T>, DeviceError> {
        let mut values = vec![T::default(); range.len()];
        let (start, into) = (range.start * size_of::<T>(), bytes_mut(&mut values));
        if into.len() <= 2 * STAGED {
            self.read(array, start, into)?;
            return Ok(values);
        }
        let mut staging = self.staging(STAGED);
        for (number, into) in into.chunks_mut(STAGED).enumerate() {
            let part = &mut staging.bytes()?[..into.len()];
            self.read(array, start + number * STAGED, part)?;
            let copies = into.par_chunks_mut(COPIED).zip(part.par_chunks(COPIED));
            copies.each(|(into, part)| into.copy_from_slice(part));
        }
        Ok(values)
    }

    /// Runs a range of batches of a generated kernel. `arguments` follow the order of its interface, without
    /// [`Role::Tables`], which a loaded kernel contains.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] if the arguments do not fit: number, types, lengths, and largest indices, which are known for
    /// arrays that are unchanged since their upload. A driver error.
    pub fn launch(
        &self,
        kernel: &Kernel,
        batches: Range<usize>,
        arguments: &[&Array],
    ) -> Result<(), DeviceError> {
        let abi = kernel.abi();
        let arguments: Vec<&Array> = arguments.iter().copied().chain(&kernel.tables).collect();
        let read = |array: &Array| self.elements::<u32>(array, 0..array.len()).ok();
        fits(abi, batches.end, &arguments, &read)?;
        if batches.is_empty() {
            return Ok(());
        }
        let range = [batches.start, batches.end].map(|batch| KernelArgument::Size(batch as u64));
        let arrays = arguments.iter().map(|array| KernelArgument::Array(array));
        let all: Vec<KernelArgument<'_>> = range.into_iter().chain(arrays).collect();
        // SAFETY: the number, types and lengths of the arguments, and the largest indices, have just been compared with
        // the interface that was printed with the code.
        unsafe { self.start(kernel, batches.len().div_ceil(abi.group), &all) }
    }
}

/// Compares arguments with an interface, up to batch `end`. `read` downloads indices with position-dependent bounds, as
/// in runs.
fn fits(
    abi: &KernelAbi,
    end: usize,
    arguments: &[&Array],
    read: &dyn Fn(&Array) -> Option<Vec<u32>>,
) -> Result<(), LaunchError> {
    let kernel = || abi.name.clone();
    let (expected, found) = (abi.arguments.len(), arguments.len());
    if expected != found {
        return Err(LaunchError::WrongCount { kernel: kernel(), expected, found });
    }
    for (wanted, array) in abi.arguments.iter().zip(arguments) {
        let argument = || wanted.name.clone();
        let expected =
            if wanted.role.is_integer() { ElementKind::U32 } else { abi.precision.into() };
        let found = array.kind().name();
        if array.kind() != expected {
            let (kernel, argument, expected) = (kernel(), argument(), expected.name());
            return Err(LaunchError::WrongType { kernel, argument, expected, found });
        }
        let expected = match wanted.role {
            Role::Params | Role::Tables => wanted.extent,
            // One more after all of them.
            Role::Starts => wanted.extent.saturating_mul(end).saturating_add(1),
            _ => wanted.extent.saturating_mul(end),
        };
        if array.len() < expected {
            let (kernel, argument) = (kernel(), argument());
            return Err(LaunchError::TooShort { kernel, argument, expected, found: array.len() });
        }
        let mut others = abi.arguments.iter().zip(arguments).filter(|(other, _)| !other.written);
        if wanted.written && others.any(|(_, other)| Arc::ptr_eq(&other.memory, &array.memory)) {
            return Err(LaunchError::Aliased { kernel: kernel(), argument: argument() });
        }
    }
    let unknown = |at: usize| {
        let argument = abi.arguments[at].name.clone();
        LaunchError::UnknownIndices { kernel: kernel(), argument }
    };
    let known = |at: usize| arguments[at].indices.ok_or_else(|| unknown(at));
    let largest = |at: usize, part: Option<&Range<usize>>| {
        let all = known(at)?.largest;
        let Some(part) = part else { return Ok(all) };
        let indices = read(arguments[at]).ok_or_else(|| unknown(at))?;
        let rows = indices.chunks_exact(abi.arguments[at].extent.max(1));
        let each = rows.map(|row| row.get(part.clone()).unwrap_or(row));
        Ok(each.fold(LargestIndex::default(), |most, part| most.and(LargestIndex::of(part))))
    };
    indices_fit(abi, largest, |at| arguments[at].len())?;
    // Owners write the entries whose lists are not empty.
    let place = |role: Role| abi.arguments.iter().position(|argument| argument.role == role);
    if let (Some(starts), Some(result)) = (place(Role::Starts), place(Role::Result(0))) {
        let (expected, found) = (known(starts)?.settled, arguments[result].len());
        if found < expected {
            let argument = abi.arguments[result].name.clone();
            return Err(LaunchError::TooShort { kernel: kernel(), argument, expected, found });
        }
    }
    Ok(())
}

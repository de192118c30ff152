//! NVIDIA's GPUs: CUDA source → NVRTC → a module of kernels on one device.
//!
//! The driver and NVRTC are loaded at run time; the error names a missing library. One stream orders all work.
//! Recordings use a second stream (`record`), independent work further ones (`second_stream`). Memory is untyped;
//! [`Array`] stores the type.

mod agreement;
mod compile;
mod connection;
mod error;
mod mpi_group;
mod nccl;
mod peers;
mod pinned;
mod pool;
mod record;
mod second_stream;
mod shareable_memory;
mod sparse;

use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};

use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr,
    DriverError, LaunchConfig, PushKernelArg, result, sys,
};
use cudarc::nvrtc::Ptx;
use kernels_gen::abi::{KernelAbi, SHARED_BYTES};
use kernels_gen::dialect::SourceFile;
use kernels_gen::dialect::c::Vocabulary;
use kernels_gen::dialect::cuda::CUDA;

use super::array::{BackendData, OwnerId};
use super::{
    Array, Backend, Device, DeviceAddress, DeviceError, DeviceGroup, ElementKind, Kernel,
    KernelArgument, Module, QueuePosition, RecordedWork, Recording, SelectedTransport,
    SparseMatrix, StagingBuffer, TransportError,
};
use crate::device::jit::Jit;
use crate::processes::ProcessGroup;
use error::driver;
use record::{RecordedGraph, Recorder};
use second_stream::SecondStream;

pub use compile::{
    ThreadResources, compile, compile_parts, compile_through, find_nvrtc, resources, version,
};
use connection::GpuConnection;
pub use error::CudaError;
pub use nccl::nccl_version;
pub use peers::{have_peer_access, peer_kernels};
use pool::Pool;

/// A GPU with one work stream.
pub struct Cuda {
    owner: OwnerId,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    recorder: Arc<Recorder>,
    /// Streams for independent work: next to the main stream, and next to that of recordings. A stream belongs to a
    /// recording until it ends.
    beside: [SecondStream; 2],
    /// The same with high priority.
    ahead: [SecondStream; 2],
    arch: String,
    name: String,
    /// Bytes of shared memory per thread group.
    shared: usize,
    /// The memory pool.
    pool: Pool,
    /// The connected GPUs of other processes.
    reach: OnceLock<GpuConnection>,
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.arch)
    }
}

/// Returns the number of GPUs.
pub(super) fn count() -> Result<usize, CudaError> {
    // SAFETY: only searches for the library and loads it.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    match CudaContext::device_count() {
        Err(DriverError(sys::cudaError_enum::CUDA_ERROR_NO_DEVICE)) => Ok(0),
        count => Ok(count.map_err(driver("count the GPUs"))? as usize),
    }
}

/// Returns the names of the GPUs, in driver order.
///
/// # Errors
///
/// There is no driver, or it does not respond.
pub fn devices() -> Result<Vec<String>, CudaError> {
    let name = |number| {
        let context = CudaContext::new(number).map_err(driver("open the GPU"))?;
        context.name().map_err(driver("ask the GPU for its name"))
    };
    (0..count()?).map(name).collect()
}

impl Cuda {
    /// Opens the GPU with this number.
    ///
    /// # Errors
    ///
    /// There is no driver, or no such GPU.
    pub fn new(number: usize) -> Result<Self, CudaError> {
        let count = count()?;
        if number >= count {
            return Err(CudaError::NoDevice { wanted: number.to_string(), count });
        }
        let context = CudaContext::new(number).map_err(driver("open the GPU"))?;
        // SAFETY: one stream orders all work; events are not needed for that.
        unsafe { context.disable_event_tracking() };
        let (major, minor) = context.compute_capability().map_err(driver("ask the GPU"))?;
        let name = context.name().map_err(driver("ask the GPU for its name"))?;
        let stream = context.new_stream().map_err(driver("make a stream"))?;
        let recorder = Arc::new(Recorder::new(&context).map_err(driver("make a stream"))?);
        let other = |first| SecondStream::new(&context, first).map_err(driver("make a stream"));
        let (beside, ahead) = ([other(false)?, other(false)?], [other(true)?, other(true)?]);
        let most = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let shared = context.attribute(most).map_err(driver("ask the GPU"))?;
        let (arch, shared) = (format!("sm_{major}{minor}"), shared as usize);
        let pool = Pool::keep(&context).map_err(driver("ask for the GPU's memory"))?;
        let (owner, reach) = (OwnerId::new(), OnceLock::new());
        Ok(Self {
            owner,
            context,
            stream,
            recorder,
            beside,
            ahead,
            arch,
            name,
            shared,
            pool,
            reach,
        })
    }

    /// Opens the GPU with this number, or the first whose name contains the text; the first of all without one.
    ///
    /// # Errors
    ///
    /// Those of [`Cuda::new`].
    pub fn named(wanted: Option<&str>) -> Result<Self, CudaError> {
        let Some(wanted) = wanted else { return Self::new(0) };
        if let Ok(number) = wanted.parse() {
            return Self::new(number);
        }
        let names = devices()?;
        let part = wanted.to_lowercase();
        let found = names.iter().position(|name| name.to_lowercase().contains(&part));
        let none = || CudaError::NoDevice { wanted: wanted.to_owned(), count: names.len() };
        Self::new(found.ok_or_else(none)?)
    }

    /// Returns the target architecture, such as `sm_90`.
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// Returns the stream for work of this thread; a recording keeps the resources it `needs` alive.
    fn stream(&self, needs: impl Iterator<Item = BackendData>) -> &Arc<CudaStream> {
        let recorded = self.recorder.stream(needs);
        let in_recording = usize::from(recorded.is_some());
        let other = self.ahead[in_recording].stream().or(self.beside[in_recording].stream());
        other.or(recorded).unwrap_or(&self.stream)
    }

    /// Starts `aside` on another stream and `own` on this one.
    fn start_beside(
        &self,
        other: &[SecondStream; 2],
        aside: RecordedWork<'_>,
        own: RecordedWork<'_>,
    ) -> Result<(), Box<dyn Error>> {
        let [plain, in_recording] = other;
        match self.recorder.stream(std::iter::empty()) {
            Some(recorded) => in_recording.start(recorded, aside, own),
            None => plain.start(&self.stream, aside, own),
        }
    }

    /// Returns the error of a failed allocation.
    fn short(&self, bytes: usize, what: &str, error: DriverError) -> CudaError {
        if error.0 != sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY {
            return driver(what)(error);
        }
        let (free, memory) = self.context.mem_get_info().unwrap_or_default();
        let free = free + self.pool.unused() as usize;
        CudaError::OutOfMemory { device: self.name.clone(), bytes, free, memory }
    }
}

/// Returns the dynamic shared memory of a launch, in bytes; 0 if it is within the limit of every GPU.
fn asked_for(abi: &KernelAbi) -> u32 {
    if abi.shared_bytes > SHARED_BYTES { abi.shared_bytes as u32 } else { 0 }
}

/// Code of a kernel. The module is unloaded with its last kernel. The driver does not wait for launched work then, so
/// the destructor does.
struct CudaCode {
    function: CudaFunction,
    stream: Arc<CudaStream>,
}

impl Drop for CudaCode {
    fn drop(&mut self) {
        // The first call may report an earlier error instead of waiting.
        if let Err(before) = self.stream.synchronize() {
            let _ = self.stream.synchronize();
            self.stream.context().record_err::<()>(Err(before));
        }
    }
}

/// Loads a kernel of a module for launches on a stream.
fn kernel_of(
    module: &Arc<CudaModule>,
    abi: KernelAbi,
    stream: &Arc<CudaStream>,
) -> Result<Kernel, CudaError> {
    let function = module.load_function(&abi.name).map_err(driver(&abi.name))?;
    if asked_for(&abi) > 0 {
        let most = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let set = function.set_attribute(most, asked_for(&abi) as i32);
        set.map_err(driver("ask for shared memory"))?;
    }
    let spilt = function.local_size_bytes().map_err(driver(&abi.name))?;
    let code = CudaCode { function, stream: Arc::clone(stream) };
    Ok(Kernel::new(abi, Arc::new(code)).with_spilt(spilt as usize))
}

impl Device for Cuda {
    fn backend(&self) -> Backend {
        Backend::Cuda
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn shared_bytes(&self) -> usize {
        self.shared
    }

    fn join(&self, group: &Arc<dyn ProcessGroup>) -> Result<SelectedTransport, TransportError> {
        if let Some(reach) = self.reach.get() {
            return Ok(SelectedTransport { transport: reach.transport(), instead: None });
        }
        let (reach, joined) =
            GpuConnection::connect((&self.stream, &self.arch), &self.pool, group)?;
        self.reach.get_or_init(|| reach);
        Ok(joined)
    }

    fn group(&self) -> Option<&dyn DeviceGroup> {
        self.reach.get().map(|_| self as &dyn DeviceGroup)
    }

    fn free_bytes(&self) -> Option<f64> {
        self.context.bind_to_thread().ok()?;
        result::mem_get_info().ok().map(|(free, _)| free as f64 + self.pool.unused() as f64)
    }

    fn words(&self) -> &'static Vocabulary {
        &CUDA
    }

    unsafe fn load_source(&self, source: &SourceFile) -> Result<Module, DeviceError> {
        let parts = source.parts();
        let (images, cached) = compile_parts(Jit::global(), &parts, &self.arch)?;
        let mut kernels = Vec::with_capacity(source.kernels.len());
        for (part, image) in parts.into_iter().zip(images) {
            let module = self.context.load_module(Ptx::from_binary(image));
            let module = module.map_err(driver("load the kernels"))?;
            for abi in part.kernels {
                kernels.push(kernel_of(&module, abi, &self.stream)?);
            }
        }
        Module::new(self, kernels, cached)
    }

    fn parts_to_prepare(&self, source: &SourceFile) -> Vec<SourceFile> {
        source.parts()
    }

    fn prepare(&self, part: &SourceFile) {
        if let Err(error) = compile_through(Jit::global(), part, &self.arch) {
            tracing::debug!("a kernel is not compiled in advance: {error}");
        }
    }

    fn zeros(&self, kind: ElementKind, len: usize) -> Result<Array, DeviceError> {
        // CUDA has no empty allocations.
        let bytes = len.saturating_mul(kind.width()).max(8);
        self.recorder.refuse("reserve memory")?;
        let memory = self.stream.alloc_zeros::<u8>(bytes).or_else(|_| {
            self.pool.give_back();
            self.stream.alloc_zeros::<u8>(bytes)
        });
        let memory = memory.map_err(|error| self.short(bytes, "reserve memory", error))?;
        Ok(Array::new(self.owner, kind, len, Arc::new(memory)))
    }

    fn clear(&self, array: &mut Array) -> Result<(), DeviceError> {
        array.changes(0, 0)?;
        let memory = array.memory::<CudaSlice<u8>>(self.owner)?;
        let stream = self.stream(std::iter::once(array.own()));
        let fail = driver("clear memory on the GPU");
        self.context.bind_to_thread().map_err(&fail)?;
        let (start, _guard) = memory.device_ptr(stream);
        // SAFETY: the memory has this size and lives until the stream (or recording) is done; the caller has exclusive
        // access.
        let cleared =
            unsafe { result::memset_d8_async(start, 0, memory.len(), stream.cu_stream()) };
        Ok(cleared.map_err(&fail)?)
    }

    fn write(&self, array: &mut Array, at: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        array.changes(at, bytes.len())?;
        let memory = array.memory::<CudaSlice<u8>>(self.owner)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.recorder.refuse("copy to the GPU")?;
        let place = memory.slice(at..at + bytes.len());
        let fail = driver("copy to the GPU");
        self.context.bind_to_thread().map_err(&fail)?;
        let (start, _guard) = place.device_ptr(&self.stream);
        // SAFETY: the range has as many bytes and lives until the stream is done; the caller has exclusive access.
        let copied = unsafe { result::memcpy_htod_async(start, bytes, self.stream.cu_stream()) };
        copied.map_err(&fail)?;
        // The caller may reuse the bytes after the return.
        Ok(self.stream.synchronize().map_err(&fail)?)
    }

    fn read(&self, array: &Array, at: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        array.holds(at, bytes.len())?;
        let memory = array.memory::<CudaSlice<u8>>(self.owner)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.recorder.refuse("copy from the GPU")?;
        let place = memory.slice(at..at + bytes.len());
        let fail = driver("copy from the GPU");
        self.stream.memcpy_dtoh(&place, bytes).map_err(&fail)?;
        Ok(self.stream.synchronize().map_err(&fail)?)
    }

    fn address(&self, array: &Array) -> Result<Option<DeviceAddress>, DeviceError> {
        let memory = array.memory::<CudaSlice<u8>>(self.owner)?;
        self.synchronise()?;
        let (pointer, _guard) = memory.device_ptr(&self.stream);
        let stream = self.stream.cu_stream() as u64;
        Ok(Some(DeviceAddress { pointer, number: self.context.ordinal(), stream }))
    }

    unsafe fn write_from(
        &self,
        array: &mut Array,
        pointer: u64,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        array.changes(0, bytes)?;
        let memory = array.memory::<CudaSlice<u8>>(self.owner)?;
        self.recorder.refuse("copy on the GPU")?;
        let fail = driver("copy on the GPU");
        self.context.bind_to_thread().map_err(&fail)?;
        let (start, _guard) = memory.device_ptr(&self.stream);
        let stream = self.stream.cu_stream();
        // SAFETY: the caller guarantees the source; the array has as many bytes, and the caller has exclusive access.
        unsafe { result::memcpy_dtod_async(start, pointer, bytes, stream) }.map_err(&fail)?;
        // The caller may reuse the source after the return.
        Ok(self.stream.synchronize().map_err(&fail)?)
    }

    fn staging(&self, bytes: usize) -> Box<dyn StagingBuffer> {
        pinned::staging(&self.context, bytes)
    }

    fn synchronise(&self) -> Result<(), DeviceError> {
        self.recorder.refuse("wait for the GPU")?;
        Ok(self.stream.synchronize().map_err(driver("wait for the GPU"))?)
    }

    fn mark(&self) -> Result<QueuePosition, DeviceError> {
        self.recorder.refuse("record an event")?;
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let event = self.stream.record_event(flags).map_err(driver("record an event"))?;
        Ok(QueuePosition::new(Arc::new(event)))
    }

    fn seconds(&self, from: &QueuePosition, to: &QueuePosition) -> Result<f64, DeviceError> {
        let (from, to) = (from.handle::<CudaEvent>()?, to.handle::<CudaEvent>()?);
        let time = from.elapsed_ms(to).map_err(driver("read the clock"))?;
        Ok(f64::from(time) / 1e3)
    }

    fn overlap(
        &self,
        aside: RecordedWork<'_>,
        own: RecordedWork<'_>,
    ) -> Result<(), Box<dyn Error>> {
        self.start_beside(&self.beside, aside, own)
    }

    fn overlap_urgent(
        &self,
        aside: RecordedWork<'_>,
        own: RecordedWork<'_>,
    ) -> Result<(), Box<dyn Error>> {
        self.start_beside(&self.ahead, aside, own)
    }

    fn record(&self, work: RecordedWork<'_>) -> Result<Option<Recording>, DeviceError> {
        match self.recorder.record(work) {
            Ok(graph) => Ok(Some(Recording::new(Arc::new(graph)))),
            Err(why) => {
                tracing::debug!("no CUDA graph: {why}");
                Ok(None)
            }
        }
    }

    fn replay(&self, recording: &Recording) -> Result<(), DeviceError> {
        let graph = recording.handle::<RecordedGraph>()?;
        if !graph.is_of(&self.context) {
            return Err(DeviceError::Foreign);
        }
        self.recorder.refuse("start what is recorded")?;
        Ok(graph.launch(&self.stream).map_err(driver("start what is recorded"))?)
    }

    unsafe fn sparse_matrix(
        &self,
        rows: usize,
        arrays: [&Array; 3],
    ) -> Result<Option<Box<dyn SparseMatrix>>, DeviceError> {
        self.context.bind_to_thread().map_err(driver("use a context"))?;
        let made =
            sparse::CusparseMatrix::new(self.owner, (&self.stream, &self.recorder), rows, arrays)?;
        Ok(made.map(|matrix| Box::new(matrix) as Box<dyn SparseMatrix>))
    }

    unsafe fn start(
        &self,
        kernel: &Kernel,
        groups: usize,
        arguments: &[KernelArgument<'_>],
    ) -> Result<(), DeviceError> {
        let arrays = arguments.iter().filter_map(|argument| match argument {
            KernelArgument::Array(array) => Some(array.own()),
            KernelArgument::Size(_) | KernelArgument::Real(_) => None,
        });
        let needs = arrays.chain(std::iter::once(kernel.own()));
        let stream = self.stream(needs);
        let mut builder = stream.launch_builder(&kernel.handle::<CudaCode>()?.function);
        for argument in arguments {
            match argument {
                KernelArgument::Array(array) => {
                    builder.arg(array.memory::<CudaSlice<u8>>(self.owner)?)
                }
                KernelArgument::Size(number) => builder.arg(number),
                KernelArgument::Real(number) => builder.arg(number),
            };
        }
        let threads = kernel.abi().threads as u32;
        let grid = u32::try_from(groups).map_err(|_| CudaError::Driver {
            what: format!("start `{}`", kernel.abi().name),
            error: format!("{groups} groups are more than a launch can have"),
        })?;
        let shape = LaunchConfig {
            grid_dim: (grid, 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: asked_for(kernel.abi()),
        };
        // SAFETY: the caller guarantees the arguments and the kernel.
        unsafe { builder.launch(shape) }.map_err(driver(&kernel.abi().name))?;
        Ok(())
    }
}

//! OpenCL devices: OpenCL source → the driver's compiler → a module of kernels on one device.
//!
//! The default device is the first with double precision, GPUs before CPUs. `$WF_OPENCL` selects one by a part of its
//! own or its platform's name. One queue orders all work.

mod api;
mod build;
mod choice;
mod error;
mod functions;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kernels_gen::abi::SHARED_BYTES;
use kernels_gen::dialect::SourceFile;
use kernels_gen::dialect::c::Vocabulary;
use kernels_gen::dialect::opencl::OPENCL;

use super::array::OwnerId;
use super::{
    Array, Backend, Device, DeviceError, ElementKind, Kernel, KernelArgument, Module, QueuePosition,
};
use crate::device::jit::Jit;
use api::{Context, Event, Memory, Queue};
use error::driver;

pub use api::Status;
pub use choice::{DeviceProperties, VARIABLE, devices};
pub use error::OpenClError;

/// A device with one command queue.
pub struct OpenCl {
    facts: DeviceProperties,
    owner: OwnerId,
    context: Context,
    queue: Queue,
    /// A custom compilation cache; that of the process without it.
    jit: Option<Jit>,
    optimises: bool,
}

impl fmt::Debug for OpenCl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.facts)
    }
}

impl OpenCl {
    /// Opens the device that the environment names, or the first suitable one.
    ///
    /// # Errors
    ///
    /// [`OpenClError`] if there is no platform, none of that name, or no device with double precision.
    pub fn new() -> Result<Self, OpenClError> {
        Self::named(choice::wanted().as_deref())
    }

    /// Opens the device with this name, or on a platform with this name; any suitable one without a name.
    ///
    /// # Errors
    ///
    /// Those of [`OpenCl::new`].
    pub fn named(name: Option<&str>) -> Result<Self, OpenClError> {
        let facts = choice::choose(devices()?, name)?;
        let context = Context::new(facts.id).map_err(driver("open the device"))?;
        let queue = context.queue(facts.id).map_err(driver("make a queue"))?;
        Ok(Self { facts, owner: OwnerId::new(), context, queue, jit: None, optimises: true })
    }

    /// Sets the compilation cache and the dump folder.
    pub fn with_jit(mut self, jit: Jit) -> Self {
        self.jit = Some(jit);
        self
    }

    /// Compiles without optimisation: fast compilation, slow kernels.
    pub fn unoptimised(mut self) -> Self {
        self.optimises = false;
        self
    }

    /// Properties of the device.
    pub fn facts(&self) -> &DeviceProperties {
        &self.facts
    }

    /// Returns the error of a failed allocation.
    fn short(&self, bytes: usize, what: &str, status: Status) -> OpenClError {
        if !status.is_memory() {
            return driver(what)(status);
        }
        let DeviceProperties { memory, largest, .. } = self.facts;
        let device = self.facts.to_string();
        OpenClError::OutOfMemory { device, bytes, memory, largest, status }
    }
}

impl Drop for OpenCl {
    /// Waits for the queue: a driver that still computes at program exit may crash.
    fn drop(&mut self) {
        let _ = self.queue.finish();
    }
}

impl Device for OpenCl {
    fn backend(&self) -> Backend {
        Backend::OpenCl
    }

    /// Returns the names of the platform and of the device.
    fn name(&self) -> String {
        self.facts.to_string()
    }

    /// Returns the local memory for the arrays of a kernel: OpenCL sources declare it statically.
    fn shared_bytes(&self) -> usize {
        usize::try_from(self.facts.shared).unwrap_or(SHARED_BYTES).min(SHARED_BYTES)
    }

    /// Returns the total memory: OpenCL does not report free memory.
    fn free_bytes(&self) -> Option<f64> {
        Some(self.facts.memory as f64)
    }

    fn words(&self) -> &'static Vocabulary {
        &OPENCL
    }

    unsafe fn load_source(&self, source: &SourceFile) -> Result<Module, DeviceError> {
        let most = self.facts.threads;
        if let Some(abi) = source.kernels.iter().find(|abi| abi.threads > most) {
            let (kernel, threads, device) = (abi.name.clone(), abi.threads, self.name());
            return Err(OpenClError::TooManyThreads { kernel, threads, device, most }.into());
        }
        let jit = self.jit.as_ref().unwrap_or_else(|| Jit::global());
        let (programs, cached) =
            build::build(&self.context, &self.facts, source, self.optimises, jit)?;
        let mut kernels = Vec::with_capacity(source.kernels.len());
        for (program, abis) in programs {
            for abi in abis {
                let kernel = program.kernel(&abi.name);
                let kernel = kernel.map_err(driver(&format!("find `{}`", abi.name)))?;
                // On CPUs this is all private memory of a thread; on GPUs, register spills. It is queried only if
                // another plan could help.
                let bounds = self.facts.bounds_registers;
                let spilt = kernel.private_bytes(self.facts.id).ok().filter(|_| bounds);
                // Arguments are part of the kernel object: they need a lock until the launch.
                let kernel = Kernel::new(abi, Arc::new(Mutex::new(kernel)));
                kernels.push(kernel.with_spilt(spilt.unwrap_or(0) as usize));
            }
        }
        Module::new(self, kernels, cached)
    }

    fn zeros(&self, kind: ElementKind, len: usize) -> Result<Array, DeviceError> {
        // OpenCL has no empty buffers.
        let bytes = len.saturating_mul(kind.width()).max(size_of::<f64>());
        let memory = self.context.memory(bytes);
        let memory = memory.map_err(|status| self.short(bytes, "reserve memory", status))?;
        let mut array = Array::new(self.owner, kind, len, Arc::new(memory));
        self.clear(&mut array)?;
        Ok(array)
    }

    fn clear(&self, array: &mut Array) -> Result<(), DeviceError> {
        let bytes = array.bytes();
        array.changes(0, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let cleared = self.queue.clear(array.memory(self.owner)?, bytes);
        Ok(cleared.map_err(|status| self.short(bytes, "clear an array", status))?)
    }

    fn write(&self, array: &mut Array, at: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        array.changes(at, bytes.len())?;
        let memory: &Memory = array.memory(self.owner)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let written = self.queue.write(memory, at, bytes);
        let what = "copy to the device";
        Ok(written.map_err(|status| self.short(bytes.len(), what, status))?)
    }

    fn read(&self, array: &Array, at: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        array.holds(at, bytes.len())?;
        let memory: &Memory = array.memory(self.owner)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let read = self.queue.read(memory, at, bytes);
        Ok(read.map_err(driver("copy from the device"))?)
    }

    fn synchronise(&self) -> Result<(), DeviceError> {
        Ok(self.queue.finish().map_err(driver("wait for the device"))?)
    }

    fn mark(&self) -> Result<QueuePosition, DeviceError> {
        let event = self.queue.mark().map_err(driver("record an event"))?;
        Ok(QueuePosition::new(Arc::new(event)))
    }

    fn seconds(&self, from: &QueuePosition, to: &QueuePosition) -> Result<f64, DeviceError> {
        let (from, to) = (from.handle::<Event>()?, to.handle::<Event>()?);
        let times = to.wait().and_then(|()| Ok((from.time()?, to.time()?)));
        let (from, to) = times.map_err(driver("read the clock"))?;
        Ok(to.saturating_sub(from) as f64 / 1e9)
    }

    unsafe fn start(
        &self,
        kernel: &Kernel,
        groups: usize,
        arguments: &[KernelArgument<'_>],
    ) -> Result<(), DeviceError> {
        let name = &kernel.abi().name;
        let handle = kernel.handle::<Mutex<api::Kernel>>()?;
        let mut handle = handle.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, argument) in (0..).zip(arguments) {
            let given = match argument {
                KernelArgument::Array(array) => api::ClArgument::Memory(array.memory(self.owner)?),
                KernelArgument::Size(number) => api::ClArgument::Size(*number),
                KernelArgument::Real(number) => api::ClArgument::Real(*number),
            };
            let set = handle.set(at, given);
            set.map_err(driver(&format!("give `{name}` its arguments")))?;
        }
        // SAFETY: the caller guarantees the arguments and the kernel.
        let launched = unsafe { self.queue.launch(&handle, groups, kernel.abi().threads) };
        Ok(launched.map_err(driver(&format!("launch `{name}`")))?)
    }
}

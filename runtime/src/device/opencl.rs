//! OpenCL devices: OpenCL source → the driver's compiler → a module of kernels on one device.
//!
//! The device is the first one with double precision, GPUs before CPUs, or the one that `$WF_OPENCL` names by a part
//! of its platform's or its own name. Memory lives on the device: [`OpenCl::upload`], [`OpenCl::zeros`],
//! [`OpenCl::overwrite`] and [`OpenCl::download`] cross the bus, nothing else does. Work is done in the order in which
//! it is asked for.

mod api;
mod array;
mod build;
mod choice;
mod error;
mod interface;
mod module;

use std::fmt;
use std::ops::Range;
use std::sync::Mutex;

use kernels_gen::abi::{KernelAbi, Precision};
use kernels_gen::dialect::SourceFile;

use super::interface::{bytes, bytes_mut};
use crate::device::cpu::Plain;
use crate::jit::Jit;
use api::{Context, Event, Memory, Program, Queue};
use error::driver;
use module::Loaded;

pub use api::Status;
pub use array::Array;
pub use choice::{Facts, VARIABLE, devices};
pub use error::OpenClError;
pub use module::{Kernel, Module};

/// A device with one queue of work.
pub struct OpenCl {
    facts: Facts,
    context: Context,
    queue: Queue,
}

impl fmt::Debug for OpenCl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.facts)
    }
}

impl OpenCl {
    /// The device that the environment names, or the first that fits.
    ///
    /// # Errors
    ///
    /// [`OpenClError`] if there is no platform, none of that name, or no device with double precision.
    pub fn new() -> Result<Self, OpenClError> {
        Self::named(choice::wanted().as_deref())
    }

    /// The device that has this name, or whose platform has; any that fits without a name.
    ///
    /// # Errors
    ///
    /// As [`OpenCl::new`].
    pub fn named(name: Option<&str>) -> Result<Self, OpenClError> {
        let facts = choice::choose(devices()?, name)?;
        let context = Context::new(facts.id).map_err(driver("open the device"))?;
        let queue = context.queue(facts.id).map_err(driver("make a queue"))?;
        Ok(Self { facts, context, queue })
    }

    /// What is known of the device.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The names of the platform and of the device.
    pub fn name(&self) -> String {
        self.facts.to_string()
    }

    /// Compiles a source and loads its kernels.
    ///
    /// # Errors
    ///
    /// [`OpenClError`] if the compiler refuses it, or a kernel needs more threads than the device has.
    pub fn load(&self, source: &SourceFile) -> Result<Module, OpenClError> {
        self.load_through(Jit::global(), source)
    }

    /// The same with the cache and the folder for dumps of another environment than this process's.
    ///
    /// # Errors
    ///
    /// As [`OpenCl::load`].
    pub fn load_through(&self, jit: &Jit, source: &SourceFile) -> Result<Module, OpenClError> {
        let (program, _) = self.program(jit, source)?;
        let kernels = source
            .kernels
            .iter()
            .map(|abi| Ok(Loaded { abi: abi.clone(), kernel: Mutex::new(found(&program, abi)?) }));
        Ok(Module { kernels: kernels.collect::<Result<_, OpenClError>>()? })
    }

    /// The program of a source, and whether it was in the cache.
    fn program(&self, jit: &Jit, source: &SourceFile) -> Result<(Program, bool), OpenClError> {
        let most = self.facts.threads;
        if let Some(abi) = source.kernels.iter().find(|abi| abi.threads > most) {
            let (kernel, threads, device) = (abi.name.clone(), abi.threads, self.name());
            return Err(OpenClError::TooManyThreads { kernel, threads, device, most });
        }
        build::build(&self.context, &self.facts, source, jit)
    }

    /// An array with these elements.
    ///
    /// # Errors
    ///
    /// [`OpenClError::OutOfMemory`], or a driver that fails.
    pub fn upload<T: Plain>(&self, values: &[T]) -> Result<Array, OpenClError> {
        let array = self.room::<T>(values.len())?;
        self.fill(&array, values)?;
        Ok(array)
    }

    /// Other elements for an array of the same type and length.
    ///
    /// # Errors
    ///
    /// A driver that fails.
    ///
    /// # Panics
    ///
    /// If type or length are others.
    pub fn overwrite<T: Plain>(&self, array: &mut Array, values: &[T]) -> Result<(), OpenClError> {
        assert_eq!((array.kind(), array.len()), (T::NAME, values.len()), "another array");
        self.fill(array, values)
    }

    fn fill<T: Plain>(&self, array: &Array, values: &[T]) -> Result<(), OpenClError> {
        if values.is_empty() {
            return Ok(());
        }
        let written = self.queue.write(&array.memory, 0, bytes(values));
        written.map_err(|status| self.short(size_of_val(values), "copy to the device", status))
    }

    /// Zeros on the device.
    ///
    /// # Errors
    ///
    /// As [`OpenCl::upload`].
    pub fn zeros(&self, len: usize, precision: Precision) -> Result<Array, OpenClError> {
        let mut array = match precision {
            Precision::F64 => self.room::<f64>(len)?,
            Precision::F32 => self.room::<f32>(len)?,
        };
        self.clear(&mut array)?;
        Ok(array)
    }

    /// Sets every element to zero.
    ///
    /// # Errors
    ///
    /// A driver that fails.
    pub fn clear(&self, array: &mut Array) -> Result<(), OpenClError> {
        if array.is_empty() {
            return Ok(());
        }
        let bytes = array.len() * array.width();
        let cleared = self.queue.clear(&array.memory, bytes);
        cleared.map_err(|status| self.short(bytes, "clear an array", status))
    }

    /// The elements of an array, as doubles, when all work before is done.
    ///
    /// # Errors
    ///
    /// A driver that fails, also at work that was asked for before.
    pub fn download(&self, array: &Array) -> Result<Vec<f64>, OpenClError> {
        Ok(match array.kind() {
            f64::NAME => self.elements::<f64>(array)?,
            f32::NAME => self.elements::<f32>(array)?.into_iter().map(f64::from).collect(),
            _ => self.elements::<u32>(array)?.into_iter().map(f64::from).collect(),
        })
    }

    fn elements<T: Plain>(&self, array: &Array) -> Result<Vec<T>, OpenClError> {
        let mut values = vec![T::default(); array.len()];
        if !array.is_empty() {
            let read = self.queue.read(&array.memory, 0, bytes_mut(&mut values));
            read.map_err(driver("copy from the device"))?;
        }
        Ok(values)
    }

    /// Memory for `len` elements.
    fn room<T: Plain>(&self, len: usize) -> Result<Array, OpenClError> {
        // No array is empty for OpenCL.
        Ok(Array::new::<T>(self.memory(len, size_of::<T>())?, len))
    }

    fn memory(&self, len: usize, width: usize) -> Result<Memory, OpenClError> {
        let bytes = len.saturating_mul(width).max(size_of::<f64>());
        let memory = self.context.memory(bytes);
        memory.map_err(|status| self.short(bytes, "reserve memory", status))
    }

    fn short(&self, bytes: usize, what: &str, status: Status) -> OpenClError {
        if !status.is_memory() {
            return driver(what)(status);
        }
        let Facts { memory, largest, .. } = self.facts;
        OpenClError::OutOfMemory { device: self.name(), bytes, memory, largest, status }
    }

    /// Waits for all work.
    ///
    /// # Errors
    ///
    /// What went wrong with it.
    pub fn synchronise(&self) -> Result<(), OpenClError> {
        self.queue.finish().map_err(driver("wait for the device"))
    }

    /// Marks this place in the queue.
    ///
    /// # Errors
    ///
    /// A driver that fails.
    pub fn mark(&self) -> Result<Mark, OpenClError> {
        self.queue.mark().map(Mark).map_err(driver("record an event"))
    }

    /// Runs a range of batches of a kernel; `arguments` are in the order of its interface.
    ///
    /// # Errors
    ///
    /// [`OpenClError::Launch`] if the arguments do not fit; a driver that fails.
    pub fn launch(
        &self,
        kernel: &Kernel<'_>,
        batches: Range<usize>,
        arguments: &[&Array],
    ) -> Result<(), OpenClError> {
        kernel.launch(&self.queue, batches, arguments)
    }
}

/// A kernel of a program.
fn found(program: &Program, abi: &KernelAbi) -> Result<api::Kernel, OpenClError> {
    program.kernel(&abi.name).map_err(driver(&format!("find `{}`", abi.name)))
}

/// A place in the queue of work.
#[derive(Debug)]
pub struct Mark(Event);

impl Mark {
    /// Seconds from this mark to a later one, which is waited for.
    ///
    /// # Errors
    ///
    /// A driver that fails.
    pub fn seconds_to(&self, later: &Self) -> Result<f64, OpenClError> {
        let time = later.0.wait().and_then(|()| Ok((self.0.time()?, later.0.time()?)));
        let (from, to) = time.map_err(driver("read the clock"))?;
        Ok(to.saturating_sub(from) as f64 / 1e9)
    }
}

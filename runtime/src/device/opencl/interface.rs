//! An OpenCL device as a [`Device`].

use std::sync::{Mutex, PoisonError};

use kernels_gen::dialect::SourceFile;
use kernels_gen::dialect::c::Words;
use kernels_gen::dialect::opencl::OPENCL;

use super::error::driver;
use super::{OpenCl, api, found};
use crate::device::{Array, Backend, Device, DeviceError, Given, Kernel, Kind, Mark, Module};
use crate::jit::Jit;

type Own = super::Array;

/// A range of an array's bytes must lie within it.
fn within(array: &Own, at: usize, len: usize) -> Result<(), DeviceError> {
    match at.checked_add(len) {
        Some(end) if end <= array.len() * array.width() => Ok(()),
        _ => Err(DeviceError::Mismatch { operation: "copy" }),
    }
}

impl Device for OpenCl {
    fn backend(&self) -> Backend {
        Backend::OpenCl
    }

    fn name(&self) -> String {
        Self::name(self)
    }

    fn words(&self) -> &'static Words {
        &OPENCL
    }

    fn load(&self, source: &SourceFile) -> Result<Module, DeviceError> {
        let (program, cached) = self.program(Jit::global(), source)?;
        let kernels = source.kernels.iter().map(|abi| {
            // Its arguments are part of a kernel: who sets them must be alone until it is launched.
            let kernel = Mutex::new(found(&program, abi)?);
            Ok(Kernel::new(abi.clone(), Box::new(kernel)))
        });
        Ok(Module { kernels: kernels.collect::<Result<_, DeviceError>>()?, cached })
    }

    fn zeros(&self, kind: Kind, len: usize) -> Result<Array, DeviceError> {
        let mut own = Own::of(kind, self.memory(len, kind.width())?, len);
        Self::clear(self, &mut own)?;
        Ok(Array::new(kind, len, Box::new(own)))
    }

    fn clear(&self, array: &mut Array) -> Result<(), DeviceError> {
        Ok(Self::clear(self, array.memory_mut::<Own>()?)?)
    }

    fn write(&self, array: &mut Array, at: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let own = array.memory::<Own>()?;
        within(own, at, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let written = self.queue.write(&own.memory, at, bytes);
        let what = "copy to the device";
        Ok(written.map_err(|status| self.short(bytes.len(), what, status))?)
    }

    fn read(&self, array: &Array, at: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let own = array.memory::<Own>()?;
        within(own, at, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let read = self.queue.read(&own.memory, at, bytes);
        Ok(read.map_err(driver("copy from the device"))?)
    }

    fn synchronise(&self) -> Result<(), DeviceError> {
        Ok(Self::synchronise(self)?)
    }

    fn mark(&self) -> Result<Mark, DeviceError> {
        Ok(Mark::new(Box::new(Self::mark(self)?)))
    }

    fn seconds(&self, from: &Mark, to: &Mark) -> Result<f64, DeviceError> {
        let (from, to) = (from.handle::<super::Mark>()?, to.handle::<super::Mark>()?);
        Ok(from.seconds_to(to)?)
    }

    unsafe fn start(
        &self,
        kernel: &Kernel,
        groups: usize,
        arguments: &[Given<'_>],
    ) -> Result<(), DeviceError> {
        let name = &kernel.abi().name;
        let handle = kernel.handle::<Mutex<api::Kernel>>()?;
        let mut handle = handle.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, argument) in (0..).zip(arguments) {
            let given = match argument {
                Given::Array(array) => api::Given::Memory(&array.memory::<Own>()?.memory),
                Given::Size(number) => api::Given::Size(*number),
                Given::Real(number) => api::Given::Real(*number),
            };
            let set = handle.set(at, given);
            set.map_err(driver(&format!("give `{name}` its arguments")))?;
        }
        // SAFETY: the caller answers for the arguments and the kernel.
        let launched = unsafe { self.queue.launch(&handle, groups, kernel.abi().threads) };
        Ok(launched.map_err(driver(&format!("launch `{name}`")))?)
    }
}

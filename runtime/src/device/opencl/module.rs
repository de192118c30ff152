//! Kernels with their interfaces, found by name and launched.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use kernels_gen::abi::KernelAbi;

use super::OpenClError;
use super::api::{self, Given, Queue};
use super::array::Array;
use super::error::driver;
use crate::device::interface::fits;

/// Kernels that are loaded on a device.
#[derive(Debug)]
pub struct Module {
    pub(super) kernels: Vec<Loaded>,
}

/// A kernel with its interface.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) abi: KernelAbi,
    // Its arguments are part of a kernel: who sets them must be alone until it is launched.
    pub(super) kernel: Mutex<api::Kernel>,
}

/// A loaded kernel.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'m>(&'m Loaded);

impl Module {
    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<Kernel<'_>> {
        self.kernels.iter().find(|loaded| loaded.abi.name == name).map(Kernel)
    }
}

impl Kernel<'_> {
    /// Its interface.
    pub fn abi(&self) -> &KernelAbi {
        &self.0.abi
    }

    /// Runs a range of batches.
    pub(super) fn launch(
        &self,
        queue: &Queue,
        batches: Range<usize>,
        arguments: &[&Array],
    ) -> Result<(), OpenClError> {
        let abi = &self.0.abi;
        fits(abi, batches.end, arguments.iter().map(|array| (array.kind(), array.len())))?;
        if batches.is_empty() {
            return Ok(());
        }
        let mut kernel = self.0.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let range = [batches.start, batches.end].map(|batch| Given::Size(batch as u64));
        let arrays = arguments.iter().map(|array| Given::Memory(&array.memory));
        for (at, given) in (0..).zip(range.into_iter().chain(arrays)) {
            kernel.set(at, given).map_err(driver(&format!("give `{}` its arguments", abi.name)))?;
        }
        let groups = batches.len().div_ceil(abi.group);
        // SAFETY: number, types and lengths of the arguments have just been compared with the interface that was
        // printed with the code; the maps point into the vectors that go with them, as on the CPU.
        let launched = unsafe { queue.launch(&kernel, groups, abi.threads) };
        launched.map_err(driver(&format!("launch `{}`", abi.name)))
    }
}

//! Kernels with their interfaces, and what is compared before one is launched.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use kernels_gen::abi::{KernelAbi, Role};

use super::OpenClError;
use super::api::{self, Given, Queue};
use super::array::Array;
use super::error::driver;
use crate::device::cpu::{LaunchError, Plain as _};
use kernels_gen::abi::Precision;

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
        fits(abi, batches.end, arguments)?;
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

/// Compares arguments with what the interface says, up to batch `end`.
fn fits(abi: &KernelAbi, end: usize, arguments: &[&Array]) -> Result<(), LaunchError> {
    let kernel = || abi.name.clone();
    let (expected, found) = (abi.arguments.len(), arguments.len());
    if expected != found {
        return Err(LaunchError::WrongCount { kernel: kernel(), expected, found });
    }
    for (wanted, given) in abi.arguments.iter().zip(arguments) {
        let argument = || wanted.name.clone();
        let expected = match (wanted.role, abi.precision) {
            (Role::Map(..) | Role::Active, _) => u32::NAME,
            (_, Precision::F64) => f64::NAME,
            (_, Precision::F32) => f32::NAME,
        };
        if given.kind() != expected {
            let (kernel, argument, found) = (kernel(), argument(), given.kind());
            return Err(LaunchError::WrongType { kernel, argument, expected, found });
        }
        let expected = match wanted.role {
            Role::Params => wanted.extent,
            _ => wanted.extent * end,
        };
        if given.len() < expected {
            let (kernel, argument, found) = (kernel(), argument(), given.len());
            return Err(LaunchError::TooShort { kernel, argument, expected, found });
        }
    }
    Ok(())
}

//! Devices: where compiled kernels live and run.
//!
//! This folder is the only place in weakform that may write `unsafe`; each use states the reason why it is sound.
//! A device takes what `kernels-gen` printed and the JIT compiled, and offers launches that compare arguments and their
//! largest indices with the interface before control passes to generated code.
//!
//! The CPU's kernels work on slices ([`cpu`]). Devices with memory of their own are a [`Device`] each, which [`open`]
//! finds by its [`Backend`]; [`Arithmetic`] is what vectors need of one.

pub(crate) mod acoo;
mod arithmetic;
mod bounded;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod group;
mod interface;
pub mod jit;
mod layout;
#[cfg(feature = "mpi")]
pub mod mpi;
#[cfg(feature = "opencl")]
pub mod opencl;
mod repeated;
mod staging;

pub use acoo::{Tables, linked_rows};
pub use arithmetic::{
    Arithmetic, Combinations, Combined, Joint, Listed, Lists, Moved, NONE, Places, Recurrence,
    Summed, Sums, Toward, WIDTH,
};
pub use bounded::Bounded;
pub use group::{Apart, Common, DeviceGroup, Joined, MESSAGES, Way};
pub use interface::{
    Array, Device, Element, Given, Kernel, Kind, Mark, Module, Record, Recording, SparseMatrix,
};
pub use layout::{Layout, Part, TooManyPlaces, places};
pub(crate) use repeated::Repeated;
pub use staging::Staging;

use crate::support::memory::Bytes;
use std::fmt;
use std::sync::Arc;

/// What computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Rust with SIMD, on this machine's processor.
    #[default]
    Cpu,
    /// CUDA, on an NVIDIA GPU.
    Cuda,
    /// OpenCL.
    OpenCl,
}

impl Backend {
    /// Its word on a command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
            Self::OpenCl => "opencl",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Why a device cannot be used, or cannot do something.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// This program was built without the backend.
    #[error("this build has no {backend} backend\nhelp: build with `--features {backend}`")]
    NotBuilt {
        /// The backend.
        backend: Backend,
    },
    /// The processor is no device of its own.
    #[error("the CPU is not a device with memory of its own")]
    NoDevice,
    /// CUDA.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Cuda(#[from] cuda::CudaError),
    /// OpenCL.
    #[cfg(feature = "opencl")]
    #[error(transparent)]
    OpenCl(#[from] opencl::OpenClError),
    /// Arguments that do not fit a kernel.
    #[error(transparent)]
    Launch(#[from] cpu::LaunchError),
    /// An array, a kernel or a mark of another device.
    #[error("an array, a kernel or a mark belongs to another device")]
    Foreign,
    /// Arrays that do not go together.
    #[error("`{operation}` on arrays of another type or length")]
    Mismatch {
        /// What was to be done with them.
        operation: &'static str,
    },
    /// More memory than may be taken of a device, which nobody has been asked for: see [`Bounded`].
    #[error("{wanted} of memory are wanted, and no more than {left} may be taken of {device}")]
    Full {
        /// Its name.
        device: String,
        /// What is to be made.
        wanted: Bytes,
        /// What is left.
        left: Bytes,
    },
}

/// How many NVIDIA GPUs there are; none where this build or machine does not know of any.
pub fn gpus() -> Option<usize> {
    #[cfg(feature = "cuda")]
    let count = cuda::count().ok();
    #[cfg(not(feature = "cuda"))]
    let count = None;
    count
}

/// The device of a backend that has this name or number; the first that fits without one.
///
/// # Errors
///
/// [`DeviceError`] that says what is missing and how to get it.
pub fn open(backend: Backend, wanted: Option<&str>) -> Result<Arc<dyn Device>, DeviceError> {
    match backend {
        Backend::Cpu => Err(DeviceError::NoDevice),
        #[cfg(feature = "cuda")]
        Backend::Cuda => Ok(Arc::new(cuda::Cuda::named(wanted)?)),
        #[cfg(feature = "opencl")]
        Backend::OpenCl => Ok(Arc::new(match wanted {
            Some(name) => opencl::OpenCl::named(Some(name))?,
            None => opencl::OpenCl::new()?,
        })),
        #[cfg(not(all(feature = "cuda", feature = "opencl")))]
        #[allow(unreachable_patterns, reason = "which patterns are left depends on the features")]
        backend => {
            let _ = wanted;
            Err(DeviceError::NotBuilt { backend })
        }
    }
}

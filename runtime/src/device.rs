//! Devices: memory and execution of compiled kernels.
//!
//! Only this folder of weakform may use `unsafe`; each use states why it is sound. A device takes the code that
//! `kernels-gen` prints and the JIT compiles. Launches compare arguments and their largest indices with the interface
//! before control passes to generated code.
//!
//! CPU kernels work on slices ([`cpu`]). Each backend with its own memory implements [`Device`]; [`open`] finds a
//! device by [`Backend`]. [`Arithmetic`] provides vector operations.

pub(crate) mod acoo;
mod addresses;
mod arithmetic;
mod array;
mod bounded;
pub mod cpu;
pub mod cuda;
mod group;
mod interface;
pub mod jit;
mod layout;
pub mod opencl;
mod repeated;
mod staging;

pub use acoo::{LinkedRows, RowAssignment, linked_rows};
pub use addresses::{AddressChannel, AddressMessages};
pub(crate) use arithmetic::operations::vector_operations;
pub use arithmetic::{
    Arithmetic, CgRecurrence, CombinationTables, DeviceCombinations, DeviceLists, EntryCopies,
    EntryLists, EntrySelection, NONE, PendingSums, SearchDirection, SharedEntries, SumValues,
    WIDTH,
};
pub use array::{Array, Element, ElementKind};
pub use bounded::BoundedDevice;
pub use group::{
    DeviceGroup, MESSAGES, RecordedWork, SelectedTransport, SharedEntryTables, Transport,
    TransportError,
};
pub use interface::{
    Device, DeviceAddress, Kernel, KernelArgument, Module, QueuePosition, Recording, SparseMatrix,
};
pub use layout::{FieldLayout, LayoutOverflow, VectorLayout, places};
pub(crate) use repeated::RepeatedWork;
pub use staging::StagingBuffer;

use crate::support::memory::Bytes;
use std::fmt;
use std::sync::Arc;

/// Compute backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Rust with SIMD on the host processor.
    #[default]
    Cpu,
    /// CUDA, on an NVIDIA GPU.
    Cuda,
    /// OpenCL.
    OpenCl,
}

impl Backend {
    /// Returns the command-line name.
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

/// Error of a device.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The CPU, which is not a separate device.
    #[error("the CPU is not a device with memory of its own")]
    NoDevice,
    /// An error of CUDA.
    #[error(transparent)]
    Cuda(#[from] cuda::CudaError),
    /// An error of OpenCL.
    #[error(transparent)]
    OpenCl(#[from] opencl::OpenClError),
    /// Arguments that do not fit a kernel.
    #[error(transparent)]
    Launch(#[from] cpu::LaunchError),
    /// An array, a kernel or a mark of another device.
    #[error("an array, a kernel or a mark belongs to another device")]
    Foreign,
    /// Arrays of different types or lengths.
    #[error("`{operation}` on arrays of another type or length")]
    Mismatch {
        /// The operation.
        operation: &'static str,
    },
    /// Memory beyond a user-defined bound ([`BoundedDevice`]).
    #[error("{wanted} of memory are wanted, and no more than {left} may be taken of {device}")]
    Full {
        /// The device name.
        device: String,
        /// The requested memory.
        wanted: Bytes,
        /// The remaining memory.
        left: Bytes,
    },
}

/// Returns the number of NVIDIA GPUs; `None` without a driver.
pub fn gpus() -> Option<usize> {
    cuda::count().ok()
}

/// Opens the device of a backend by name or number; without one, the first suitable device.
///
/// # Errors
///
/// A [`DeviceError`] with the missing part and the remedy.
pub fn open(backend: Backend, wanted: Option<&str>) -> Result<Arc<dyn Device>, DeviceError> {
    match backend {
        Backend::Cpu => Err(DeviceError::NoDevice),
        Backend::Cuda => Ok(Arc::new(cuda::Cuda::named(wanted)?)),
        Backend::OpenCl => Ok(Arc::new(match wanted {
            Some(name) => opencl::OpenCl::named(Some(name))?,
            None => opencl::OpenCl::new()?,
        })),
    }
}

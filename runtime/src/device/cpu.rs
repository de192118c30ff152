//! The CPU as a device: compiled kernel modules, page-aligned buffers and machine properties.
//!
//! [`Library`] and [`Module`] load kernels from a shared object, or hold kernels for the interpreter. [`Buffer`] stores
//! the vectors and per-point data of kernels. [`Machine`] describes the available instructions.

mod argument;
mod buffer;
mod indices;
mod interpreted;
mod launch_error;
mod library;
mod linked;
mod machine;
mod module;
mod schedule;
mod shared_slice;

pub use argument::Argument;
pub(super) use argument::indices_fit;
pub use buffer::{Buffer, PADDING, PlainNumber};
pub use indices::IndexArray;
pub(super) use indices::LargestIndex;
pub use launch_error::LaunchError;
pub use library::{KernelEntry, Library, LoadError};
pub use linked::LinkedKernels;
pub use machine::{Machine, Simd, VendorLibrary, limit};
pub use module::{Kernel, Launch, Module};
pub use schedule::UnorderedChunks;
pub(crate) use schedule::{BatchWrites, Schedule};
pub(crate) use shared_slice::SharedSlice;

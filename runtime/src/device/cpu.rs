//! The CPU as a device: compiled kernel modules, page-friendly buffers, and what this machine can do.
//!
//! [`Library`] and [`Module`] turn a shared object on disk into kernels that can be launched, or hold kernels to be
//! interpreted; [`Buffer`] holds the vectors and per-point data that those kernels stream through, and [`Machine`]
//! says which instructions they may use.

mod buffer;
mod interpreted;
mod library;
mod linked;
mod machine;
mod module;
mod shared;

pub use buffer::{Buffer, PADDING, Plain};
pub use library::{Entry, Library, LoadError};
pub use linked::Linked;
#[cfg(unix)]
pub use machine::effective_user;
pub use machine::{Machine, Simd, dynamic_library_loads};
pub use module::{Argument, Kernel, Launch, LaunchError, Module};
pub use shared::Shared;

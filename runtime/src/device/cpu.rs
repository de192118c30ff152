//! The CPU as a device: compiled kernel modules, page-friendly buffers, and what this machine can do.
//!
//! [`Library`] and [`Module`] turn a shared object on disk into kernels that can be launched, or hold kernels to be
//! interpreted; [`Buffer`] holds the vectors and per-point data that those kernels stream through, and [`Machine`]
//! says which instructions they may use.

mod argument;
mod buffer;
mod indices;
mod interpreted;
mod library;
mod linked;
mod machine;
mod module;
mod schedule;
mod shared;

pub use argument::Argument;
pub(super) use argument::indices_fit;
pub use buffer::{Buffer, PADDING, Plain};
pub use indices::IndexArray;
pub(super) use indices::Largest;
pub use library::{Entry, Library, LoadError};
pub use linked::Linked;
pub use machine::{Machine, Simd, Vendor, limit};
pub use module::{Kernel, Launch, LaunchError, Module};
pub use schedule::Unordered;
pub(crate) use schedule::{Schedule, Writes};
pub(crate) use shared::Shared;

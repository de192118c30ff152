//! Errors of kernel launches ([`LaunchError`]).

use kernels_gen::interpreted::Fault;
use std::ops::Range;

/// Error of a kernel launch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A kernel that the module does not contain.
    #[error("the module holds no kernel named `{0}`")]
    UnknownKernel(String),
    /// A deferred kernel that could not be compiled.
    #[error("the kernel `{kernel}` could not be compiled: {reason}")]
    NotCompiled {
        /// The kernel.
        kernel: String,
        /// The reason.
        reason: String,
    },
    /// A wrong number of arguments.
    #[error("the kernel `{kernel}` takes {expected} arguments, not {found}")]
    WrongCount {
        /// The kernel.
        kernel: String,
        /// The number of arguments in its ABI.
        expected: usize,
        /// The number given.
        found: usize,
    },
    /// A wrong element type.
    #[error("the argument `{argument}` of `{kernel}` holds {expected}, not {found}")]
    WrongType {
        /// The kernel.
        kernel: String,
        /// The argument.
        argument: String,
        /// The type in the ABI.
        expected: &'static str,
        /// The type given.
        found: &'static str,
    },
    /// Read-only data for an argument that the kernel writes.
    #[error("the kernel `{kernel}` writes its argument `{argument}`, which was lent for reading")]
    ReadOnly {
        /// The kernel.
        kernel: String,
        /// The argument.
        argument: String,
    },
    /// Indices beyond the indexed array.
    #[error(
        "the indices `{argument}` of `{kernel}` go up to {expected} elements of `{array}`, not {found}"
    )]
    OutOfRange {
        /// The kernel.
        kernel: String,
        /// The index array.
        argument: String,
        /// The indexed array.
        array: String,
        /// The required number of elements.
        expected: usize,
        /// The number of elements.
        found: usize,
    },
    /// Indices that were changed or created on a device.
    #[error("nobody knows how large the indices `{argument}` of `{kernel}` are; upload them again")]
    UnknownIndices {
        /// The kernel.
        kernel: String,
        /// The index array.
        argument: String,
    },
    /// Batches for which an argument has no data.
    #[error("`{kernel}` was asked for batches {wanted:?}; its arguments hold {batches}")]
    NoSuchBatches {
        /// The kernel.
        kernel: String,
        /// The batches.
        wanted: Range<usize>,
        /// The number of batches.
        batches: usize,
    },
    /// Parts of a launch with overlapping results.
    #[error("parts of `{kernel}` cannot run at once: they write to the same places")]
    Overlapping {
        /// The kernel.
        kernel: String,
    },
    /// An array that is written and passed twice.
    #[error("`{kernel}` writes its argument `{argument}`, which it is given twice")]
    Aliased {
        /// The kernel.
        kernel: String,
        /// The argument.
        argument: String,
    },
    /// An interpreted kernel with an invalid operation.
    #[error("the kernel `{kernel}`: {fault}; this is a bug in weakform, please report it")]
    Fault {
        /// The kernel.
        kernel: String,
        /// The operation.
        fault: Fault,
    },
    /// Fewer elements than the kernel reads in any case.
    #[error("the argument `{argument}` of `{kernel}` needs {expected} elements, not {found}")]
    TooShort {
        /// The kernel.
        kernel: String,
        /// The argument.
        argument: String,
        /// The minimal number of elements.
        expected: usize,
        /// The number given.
        found: usize,
    },
}

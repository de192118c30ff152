//! [`DeviceGroup`]: devices of several processes that reach each other's memory, without the host between them.

use super::{Array, DeviceError};
use std::fmt;
use std::ops::Range;

/// Why devices do not reach each other, although each process has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Apart {
    /// Devices of this kind do not.
    #[error("devices of this backend know of no other")]
    Backend,
    /// A process has no library that carries messages.
    #[error(
        "NCCL was not found\nhelp: install it, or `pip install nvidia-nccl-cu12`, and put the folder of libnccl.so.2 on LD_LIBRARY_PATH"
    )]
    NoLibrary,
    /// Processes that have one and the same.
    #[error(
        "processes {first} and {second} share one GPU\nhelp: start as many processes as there are GPUs"
    )]
    Shared {
        /// One of them.
        first: usize,
        /// The other.
        second: usize,
    },
    /// The library does not connect them.
    #[error("NCCL does not connect the GPUs: {error}\nhelp: NCCL_DEBUG=INFO has it say more")]
    Library {
        /// What it says.
        error: String,
    },
}

/// Devices of which each process has one. All ask for the same in one order; it takes its place in the order of a device's work,
/// beside other work where that is asked for.
pub trait DeviceGroup: fmt::Debug + Send + Sync {
    /// Whether all are of one host, between which a message takes some ten microseconds.
    fn is_near(&self) -> bool;

    /// Makes each of the first `n` numbers of an array the sum of those at all devices; the same bits at all.
    ///
    /// # Errors
    ///
    /// For this and all that follows: a library that fails, an array of another device or with too few numbers.
    fn sum(&self, array: &Array, n: usize) -> Result<(), DeviceError>;

    /// Sends each neighbour its part of an array, and receives as many numbers at the same place of another.
    fn exchange(
        &self,
        neighbours: &[(usize, Range<usize>)],
        sent: &Array,
        received: &Array,
    ) -> Result<(), DeviceError>;
}

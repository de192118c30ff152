//! The interpreter: runs a [`Kernel`] on arrays, statement by statement, with all checks.
//!
//! It defines the semantics of the IR and replaces a compiler if there is none. Every access is checked against its
//! array. Reading a private entry that this batch has not written, writing a read-only array, and exclusive writes of
//! two lanes to one element are [`Fault`]s. Results are rounded to the kernel's precision after every operation. For
//! the same order of operations, they equal those of a compiled kernel bit for bit. Exceptions are transcendental
//! functions, reciprocals, and fused operations on machines without them.
//!
//! Lanes with their own integers may diverge at conditions: lanes that do not satisfy one read and write nothing in its
//! body. A private entry that not all lanes have written counts as unwritten.

mod arrays;
mod machine;
mod shared;
#[cfg(test)]
mod tests;
mod threads;

pub use arrays::Array;

use super::Kernel;
use super::verify::{Phase, VerifyError, verify};
use machine::Machine;
use std::ops::Range;

/// An error of an interpreted kernel or of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An access beyond an array.
    #[error("{array}[{index}] is out of bounds: it has {length} elements")]
    OutOfBounds {
        /// The array's name.
        array: String,
        /// The element.
        index: i64,
        /// The array's length.
        length: usize,
    },
    /// A private entry was read before this batch wrote it.
    #[error("the private {array}[{index}] is read before it is written")]
    Unwritten {
        /// The array's name.
        array: String,
        /// The entry.
        index: i64,
    },
    /// A write to a read-only array.
    #[error("{array} was lent for reading and is written")]
    ReadOnly {
        /// The array's name.
        array: String,
    },
    /// Two lanes write the same element in exclusive mode, or two threads access the same shared entry between two
    /// barriers and one of them writes.
    #[error("two lanes or threads touch {array}[{index}] at once, and one of them writes")]
    Race {
        /// The array's name.
        array: String,
        /// The element.
        index: i64,
    },
    /// The wrong number of arguments.
    #[error("the kernel takes {expected} arrays, not {found}")]
    WrongCount {
        /// The expected number.
        expected: usize,
        /// The number found.
        found: usize,
    },
    /// An argument of the wrong type.
    #[error("{array} should hold {expected}, not {found}")]
    WrongElement {
        /// The array's name.
        array: String,
        /// The expected type.
        expected: &'static str,
        /// The type found.
        found: &'static str,
    },
}

/// A kernel that has been verified and can be run.
#[derive(Clone, Debug)]
pub struct Interpreter {
    kernel: Kernel,
}

impl Interpreter {
    /// Verifies a kernel, lowered or legalised.
    pub fn new(kernel: Kernel) -> Result<Self, VerifyError> {
        verify(&kernel, Phase::Lowered)?;
        Ok(Self { kernel })
    }

    /// Returns the kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Runs a range of batches, one after another. `arguments` are in the order of the kernel's.
    pub fn run(&self, batches: Range<usize>, arguments: &[Array<'_>]) -> Result<(), Fault> {
        arrays::check(&self.kernel, arguments)?;
        if self.kernel.threads > 0 {
            return threads::run(&self.kernel, batches, arguments);
        }
        let mut machine = Machine::new(&self.kernel, arguments);
        for batch in batches {
            machine.batch(batch)?;
        }
        Ok(())
    }
}

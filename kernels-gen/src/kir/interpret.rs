//! The interpreter: runs a [`Kernel`] on arrays, statement by statement, and watches it.
//!
//! It says what the IR means, and stands in for a compiler where there is none. Every access is
//! checked against its array; reading a private entry that this batch has not written, writing an
//! array that is only lent, and two lanes writing one element exclusively are [`Fault`]s. Numbers
//! are rounded to the kernel's precision after every operation, so that in the same order of
//! operations results agree with a compiled kernel to the last bit, but for transcendental
//! functions, reciprocals and fused operations on machines without them.
//!
//! Lanes with integers of their own go their own ways through conditions: those where one does not hold read and write
//! nothing there. A private entry that not all lanes have written counts as unwritten.

mod arrays;
mod machine;
#[cfg(test)]
mod tests;
mod threads;

pub use arrays::Array;

use super::Kernel;
use super::verify::{Phase, VerifyError, verify};
use machine::Machine;
use std::ops::Range;

/// What an interpreted kernel did wrong, or what it was given wrongly.
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
    /// A write to an array that was lent for reading.
    #[error("{array} was lent for reading and is written")]
    ReadOnly {
        /// The array's name.
        array: String,
    },
    /// Two lanes write the same element, which was said to be exclusive, or two threads touch the
    /// same shared entry between two barriers, and one of them writes.
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
        /// How many it takes.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// An argument of another type.
    #[error("{array} should hold {expected}, not {found}")]
    WrongElement {
        /// The array's name.
        array: String,
        /// What the kernel takes.
        expected: &'static str,
        /// What was given.
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

    /// The kernel.
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

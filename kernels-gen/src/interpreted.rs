//! [`Interpreted`]: a kernel that runs without a compiler, behind the same [`KernelAbi`] as its text.
//!
//! From a kernel that [`generate`](crate::generate) has lowered to something that can be launched
//! with arrays in the order of its ABI. What the kernel consists of stays inside: its driver sees
//! the ABI and a function on a range of batches, as it does of a compiled kernel.

pub use crate::kir::interpret::{Array, Fault};

use crate::abi::KernelAbi;
use crate::kir::Kernel;
use crate::kir::interpret::Interpreter;
use crate::kir::verify::VerifyError;
use std::ops::Range;

/// Cells a batch with which interpreting is cheapest: each step is looked up once for all of them.
pub const LANES: usize = 16;

/// A kernel to be interpreted.
#[derive(Clone, Debug)]
pub struct Interpreted {
    abi: KernelAbi,
    interpreter: Interpreter,
}

impl Interpreted {
    /// Verifies a kernel.
    pub(crate) fn new(kernel: Kernel, abi: KernelAbi) -> Result<Self, VerifyError> {
        Ok(Self { abi, interpreter: Interpreter::new(kernel)? })
    }

    /// What the kernel takes.
    pub fn abi(&self) -> &KernelAbi {
        &self.abi
    }

    /// Runs a range of batches, one after another. `arguments` are in the order of the ABI.
    ///
    /// Threads can run ranges of one kernel at once where a compiled kernel's could: each lends it
    /// arrays of its own over the same memory.
    pub fn run(&self, batches: Range<usize>, arguments: &[Array<'_>]) -> Result<(), Fault> {
        self.interpreter.run(batches, arguments)
    }
}

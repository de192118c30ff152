//! [`InterpretedKernel`]: a kernel that runs without a compiler, with the same [`KernelAbi`] as its text.
//!
//! It wraps a kernel that [`generate`](crate::generate) has lowered. Callers launch it with arrays in the order of its
//! ABI on a range of batches, like a compiled kernel; the kernel IR is hidden.

pub use crate::kir::interpret::{Array, Fault};

use crate::abi::KernelAbi;
use crate::kir::Kernel;
use crate::kir::interpret::Interpreter;
use crate::kir::verify::VerifyError;
use std::ops::Range;

/// Cells per batch for which interpretation is cheapest: each step is decoded once for all of them.
pub const LANES: usize = 16;

/// A kernel for the interpreter.
#[derive(Clone, Debug)]
pub struct InterpretedKernel {
    abi: KernelAbi,
    interpreter: Interpreter,
}

impl InterpretedKernel {
    /// Verifies a kernel.
    pub(crate) fn new(kernel: Kernel, abi: KernelAbi) -> Result<Self, VerifyError> {
        Ok(Self { abi, interpreter: Interpreter::new(kernel)? })
    }

    /// Returns the kernel's interface.
    pub fn abi(&self) -> &KernelAbi {
        &self.abi
    }

    /// Runs a range of batches sequentially. `arguments` are in the order of the ABI.
    ///
    /// Several threads can run ranges of one kernel concurrently under the same conditions as for a compiled kernel.
    /// Each passes its own array views of the same memory.
    pub fn run(&self, batches: Range<usize>, arguments: &[Array<'_>]) -> Result<(), Fault> {
        self.interpreter.run(batches, arguments)
    }
}

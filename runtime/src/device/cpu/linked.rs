//! Kernels compiled into the program: hash → [`KernelEntry`], without files or a compiler.

use super::KernelEntry;
use kernels_gen::dialect::rust::Isa;

/// Kernels of the program itself, for one instruction set.
#[derive(Clone, Copy, Debug)]
pub struct LinkedKernels {
    isa: Isa,
    kernels: &'static [(u64, KernelEntry)],
}

impl LinkedKernels {
    /// Creates a table of kernels with their hashes.
    ///
    /// # Safety
    ///
    /// Each function is the entry that `kernels-gen` printed for the kernel with that
    /// [`KernelAbi::hash`](kernels_gen::abi::KernelAbi::hash), for this instruction set.
    pub const unsafe fn new(isa: Isa, kernels: &'static [(u64, KernelEntry)]) -> Self {
        Self { isa, kernels }
    }

    /// Returns the instruction set of the kernels.
    pub const fn isa(&self) -> Isa {
        self.isa
    }

    /// Returns the kernel with a hash.
    pub(super) fn entry(&self, hash: u64) -> Option<KernelEntry> {
        self.kernels.iter().find(|(known, _)| *known == hash).map(|(_, entry)| *entry)
    }

    /// Returns the number of kernels.
    pub const fn len(&self) -> usize {
        self.kernels.len()
    }

    /// Returns whether there are no kernels.
    pub const fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }
}

impl PartialEq for LinkedKernels {
    fn eq(&self, other: &Self) -> bool {
        let hashes = |linked: &Self| linked.kernels.iter().map(|(hash, _)| *hash);
        self.isa == other.isa && hashes(self).eq(hashes(other))
    }
}

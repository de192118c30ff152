//! Kernels that were compiled together with the program: hash → [`Entry`], no file and no compiler.

use super::Entry;
use kernels_gen::dialect::rust::Isa;

/// Kernels of the program itself, for one instruction set.
#[derive(Clone, Copy, Debug)]
pub struct Linked {
    isa: Isa,
    kernels: &'static [(u64, Entry)],
}

impl Linked {
    /// Kernels with their hashes.
    ///
    /// # Safety
    ///
    /// Each function is the entry that `kernels-gen` printed for the kernel whose
    /// [`KernelAbi::hash`](kernels_gen::abi::KernelAbi::hash) stands beside it, for this instruction set.
    pub const unsafe fn new(isa: Isa, kernels: &'static [(u64, Entry)]) -> Self {
        Self { isa, kernels }
    }

    /// For which processors they are.
    pub const fn isa(&self) -> Isa {
        self.isa
    }

    /// The kernel of this hash.
    pub(super) fn entry(&self, hash: u64) -> Option<Entry> {
        self.kernels.iter().find(|(known, _)| *known == hash).map(|(_, entry)| *entry)
    }

    /// How many kernels there are.
    pub const fn len(&self) -> usize {
        self.kernels.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.kernels.is_empty()
    }
}

impl PartialEq for Linked {
    fn eq(&self, other: &Self) -> bool {
        let hashes = |linked: &Self| linked.kernels.iter().map(|(hash, _)| *hash);
        self.isa == other.isa && hashes(self).eq(hashes(other))
    }
}

//! `cell_per_lane`: one SIMD lane does one whole cell in private arrays.
//!
//! ```text
//! gather → interpolate to the points → geometry → point function → integrate → scatter
//! ```
//!
//! Tensor cells are sum-factorised (`tensor`), and so are their facets (`facet`); simplices and theirs use dense tables
//! (`simplex`).

mod diagonal;
mod facet;
mod prefetch;
mod simplex;
mod tensor;

use crate::abi::KernelAbi;
use crate::kir::Kernel;
use crate::lower::facts::Facts;
use crate::lower::lowering::Lowering;
use crate::lower::slots;

/// Writes the kernel.
pub(super) fn lower(facts: &Facts<'_>) -> (Kernel, KernelAbi) {
    let mut s = Lowering::new(facts);
    slots::ahead(&mut s);
    slots::fill(&mut s);
    match (facts.elements.cell.is_tensor(), facts.on_facets()) {
        (true, true) => facet::lower(&mut s),
        (true, false) => tensor::lower(&mut s),
        (false, _) => simplex::lower(&mut s),
    }
    slots::empty(&mut s);
    s.finish()
}

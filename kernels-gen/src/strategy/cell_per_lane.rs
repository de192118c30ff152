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

use super::setting::Setting;
use crate::abi::KernelAbi;
use crate::kir::Kernel;
use crate::plan::{Elements, Plan};
use fem_dsl::point::PointForm;

/// Writes the kernel.
pub(super) fn lower(form: &PointForm, elements: &Elements, plan: &Plan) -> (Kernel, KernelAbi) {
    let mut setting = Setting::new(form, elements, plan);
    match (elements.cell.is_tensor(), setting.on_facets()) {
        (true, true) => facet::lower(&mut setting),
        (true, false) => tensor::lower(&mut setting),
        (false, _) => simplex::lower(&mut setting),
    }
    setting.finish()
}

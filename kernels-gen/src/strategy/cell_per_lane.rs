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
use super::slots;
use crate::abi::KernelAbi;
use crate::kir::Kernel;
use crate::plan::{Elements, Linearisation, Plan, Task};
use fem_dsl::point::PointForm;

/// Numbers a point that are stored, or read where they were, from which on points are not written out one by one: a field
/// of nine components that depend on each other has 348, of which a compiler took more than ten minutes.
const MANY: usize = 256;

/// Writes the kernel.
pub(super) fn lower(form: &PointForm, elements: &Elements, plan: &Plan) -> (Kernel, KernelAbi) {
    let setting = Setting::new(form, elements, plan);
    let rolled = Plan { unroll: 0, ..plan.clone() };
    let stored = plan.task == Task::Linearise || plan.linearisation == Linearisation::Stored;
    let many = stored && setting.blocks.numbers > MANY;
    let mut setting = if many { Setting::new(form, elements, &rolled) } else { setting };
    slots::ahead(&mut setting);
    slots::fill(&mut setting);
    match (elements.cell.is_tensor(), setting.on_facets()) {
        (true, true) => facet::lower(&mut setting),
        (true, false) => tensor::lower(&mut setting),
        (false, _) => simplex::lower(&mut setting),
    }
    slots::empty(&mut setting);
    setting.finish()
}

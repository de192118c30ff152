//! `cell_per_lane`: one SIMD lane processes one whole cell in private arrays.
//!
//! ```text
//! gather → interpolate to the points → geometry → point function → integrate → scatter
//! ```
//!
//! Quadrilaterals and hexahedra are sum-factorised (`tensor`), and so are their facets (`facet`); lines, simplices and their facets use dense tables
//! (`simplex`), and so do facets with vector-valued functions. Element matrices are computed column by column (`matrix`), and multiplied with a cell's DoFs
//! (`product`).

mod column;
mod facet;
mod matrix;
mod prefetch;
mod product;
mod simplex;
mod tensor;

use crate::abi::KernelAbi;
use crate::kir::Kernel;
use crate::lower::facts::KernelFacts;
use crate::lower::lowering::Lowering;
use crate::lower::slots;
use crate::plan::Task;

/// Generates the kernel.
pub(super) fn lower(facts: &KernelFacts<'_>) -> (Kernel, KernelAbi) {
    let plans = [facts.plan_of_matrix(), facts.plan_of_columns()];
    let (of_matrix, of_columns);
    let mut s = Lowering::new(facts);
    slots::ahead(&mut s);
    slots::fill(&mut s);
    match facts.plan.task {
        Task::StoredProduct => product::lower(&mut s),
        Task::Matrix | Task::MatrixProduct => {
            of_matrix = KernelFacts::new(facts.form, facts.elements, &plans[0]);
            of_columns = of_matrix.columns(&plans[1]);
            matrix::lower(&mut s, &of_matrix, &of_columns);
        }
        _ => cell(&mut s),
    }
    slots::empty(&mut s);
    s.finish()
}

/// Generates a lane's work from the gather on, or up to the storing of coefficients.
fn cell(s: &mut Lowering<'_>) {
    match (s.facts.elements.cell.is_factorised(), s.facts.on_facets()) {
        (true, true) if !s.facts.elements.are_vector_valued() => facet::lower(s),
        (true, false) => tensor::lower(s),
        _ => simplex::lower(s),
    }
}

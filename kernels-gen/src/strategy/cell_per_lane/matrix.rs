//! Element matrices, column by column.
//!
//! ```text
//! coefficients at all points, kept;   then for each component, and each of its basis functions j:
//!     φ_j at the points → coefficients act on it → tested against all φ_i → column j
//! ```
//!
//! Geometry, data and state are therefore evaluated once per cell. A column is the action of the Jacobian on one basis
//! function: sum-factorised on tensor cells, O(n^{d+1}) for each of the n^d columns. Components that are not coupled
//! have no entries. A column is stored, added to a sparse matrix, or multiplied with the cell's DoF
//! ([`super::product`]).

use super::column::{Column, EntryDestination};
use super::product::Product;
use super::{cell, facet, simplex, tensor};
use crate::lower::facts::KernelFacts;
use crate::lower::lowering::Lowering;
use crate::lower::restrict::{DofSigns, MatrixEntries};
use crate::plan::cell_matrix::CellMatrix;
use crate::plan::{Scatter, Task};

/// Generates the coefficients, with the properties of that task, and then the columns of all components, each with its
/// own.
pub(super) fn lower<'a>(
    s: &mut Lowering<'a>,
    of_matrix: &'a KernelFacts<'a>,
    columns: &'a [KernelFacts<'a>],
) {
    let facts = s.facts;
    s.facts = of_matrix;
    cell(s);
    let matrix = CellMatrix::new(facts.form, facts.elements, facts.plan.integral);
    let stores = facts.plan.task == Task::Matrix && facts.plan.scatter == Scatter::Owner;
    s.facts = facts;
    let to = match facts.plan.task {
        Task::MatrixProduct => EntryDestination::Product(Product::gather(s)),
        _ => EntryDestination::Matrix(MatrixEntries::new(s, matrix.entries, facts.plan.scatter)),
    };
    let of_field = |field: usize| match facts.plan.task {
        Task::Matrix => vec![DofSigns::of(s, field); facts.stored(field)],
        _ => vec![None; facts.stored(field)],
    };
    let signs: Vec<Option<DofSigns>> = (0..facts.form.fields.len()).flat_map(of_field).collect();
    let mark = s.b.mark();
    for facts in columns {
        s.facts = facts;
        let trial = facts.trial.expect("the facts should be those of a column");
        let column = Column { matrix: &matrix, to: &to, stores, trial, signs: &signs };
        s.b.comment("columns");
        match (facts.elements.cell.is_factorised(), facts.on_facets()) {
            (true, true) if !facts.elements.are_vector_valued() => facet::columns(s, &column),
            (true, false) => tensor::columns(s, &column),
            _ => simplex::columns(s, &column),
        }
        s.b.release(mark);
    }
    s.facts = facts;
    if let EntryDestination::Product(product) = &to {
        product.scatter(s);
    }
}

//! Products of element matrices with the DoFs of their cells (element-by-element product).
//!
//! ```text
//! x_c = unknowns of the cell,  y_c = A_c x_c,  y += y_c
//! ```
//!
//! The matrices were stored by another kernel and are read once in order, or they are computed on the fly.

use crate::abi::Role;
use crate::kir::build::Builder;
use crate::kir::{Index, LocalId, ValueId};
use crate::lower::facts::Quantity;
use crate::lower::lowering::{Lowering, repeat};
use crate::lower::restrict::NodalLocation;
use crate::plan::cell_matrix::{CellMatrix, Pair};
use std::ops::Range;

/// The private array of a field, component by component.
struct FieldArray {
    field: usize,
    rows: Range<usize>,
    array: LocalId,
    nodes: usize,
}

/// The DoFs of a cell and their sums.
pub(super) struct Product {
    x: Vec<FieldArray>,
    y: Vec<FieldArray>,
}

/// Returns the position of a component of some fields.
fn of(all: &[FieldArray], row: usize) -> (LocalId, usize) {
    let own = all.iter().find(|own| own.rows.contains(&row));
    let own = own.expect("a component that is coupled should have its numbers");
    (own.array, (row - own.rows.start) * own.nodes)
}

impl Product {
    /// Gathers the DoFs, and clears the sums.
    pub(super) fn gather(s: &mut Lowering<'_>) -> Self {
        let facts = s.facts;
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for field in facts.trial_fields() {
            let own @ Quantity { components, .. } = &facts.multiplied(field);
            let nodes = own.element.count();
            let array = s.b.local(&format!("{}_cell", own.name), components * nodes);
            let nodal = NodalLocation::of(s, own);
            s.b.comment(&format!("gather {}", own.name));
            s.b.repeat("a", nodes, false, |b, a| {
                for c in 0..*components {
                    let node = nodal.node(b, &a);
                    let value = nodal.gather(b, &node, c);
                    b.store(array, a.plus(c * nodes), value);
                }
            });
            x.push(FieldArray { field, rows: facts.stored_rows_of(field), array, nodes });
        }
        for field in facts.results() {
            let nodes = facts.elements.fields[field].count();
            let length = facts.stored(field) * nodes;
            let array = s.b.local(&facts.of_field("sum", field), length);
            s.b.clear(array, 0, length);
            y.push(FieldArray { field, rows: facts.stored_rows_of(field), array, nodes });
        }
        Self { x, y }
    }

    /// Adds entry (i, j) of a block times DoF j to sum i.
    pub(super) fn add(
        &self,
        b: &mut Builder,
        pair: &Pair,
        (i, j): (&Index, &Index),
        entry: ValueId,
    ) {
        let ((x, from), (y, to)) = (of(&self.x, pair.trial), of(&self.y, pair.test));
        let (factor, place) = (b.load(x, j.plus(from)), i.plus(to));
        let sum = b.load(y, place.clone());
        let sum = b.fma(entry, factor, sum);
        b.store(y, place, sum);
    }

    /// Adds the sums to the DoFs of the result.
    pub(super) fn scatter(&self, s: &mut Lowering<'_>) {
        for FieldArray { field, rows, array, nodes } in &self.y {
            let nodal = NodalLocation::result(s, *field);
            s.comment_on("scatter", *field);
            s.b.repeat("a", *nodes, false, |b, a| {
                for c in 0..rows.len() {
                    let value = b.load(*array, a.plus(c * nodes));
                    let node = nodal.node(b, &a);
                    nodal.scatter(b, &node, c, value);
                }
            });
        }
    }
}

/// Generates the product with stored matrices.
pub(super) fn lower(s: &mut Lowering<'_>) {
    let facts = s.facts;
    let product = Product::gather(s);
    let matrix = CellMatrix::new(facts.form, facts.elements, facts.plan.integral);
    let stored = s.arguments[&Role::CellMatrix];
    let first = Index::from(s.b.batch()).times(matrix.entries);
    for pair in &matrix.pairs {
        repeat(s, "j", pair.columns, false, |s, j| {
            let column = &first + &j.times(pair.rows).plus(pair.first);
            repeat(s, "i", pair.rows, pair.rows <= 8, |s, i| {
                let entry = s.b.load_lanes(stored, &column + &i);
                product.add(&mut s.b, pair, (&i, &j), entry);
            });
        });
    }
    product.scatter(s);
}

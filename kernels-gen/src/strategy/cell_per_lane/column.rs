//! A column of an element matrix, and the destination of its entries.

use super::product::Product;
use crate::kir::build::Builder;
use crate::kir::{Index, ValueId};
use crate::lower::restrict::{DofSigns, MatrixEntries};
use crate::plan::cell_matrix::CellMatrix;

/// The destination of an entry.
pub(super) enum EntryDestination {
    Matrix(MatrixEntries),
    Product(Product),
}

/// The columns of one component.
pub(super) struct Column<'m> {
    pub(super) matrix: &'m CellMatrix,
    pub(super) to: &'m EntryDestination,
    /// True if each cell stores its entries, so that all of them are required.
    pub(super) stores: bool,
    pub(super) trial: usize,
    /// The signs of the degrees of freedom of each component, in stored or added matrices.
    pub(super) signs: &'m [Option<DofSigns>],
}

impl Column<'_> {
    /// Processes entry (i, j) of a test component, among the stored ones.
    pub(super) fn put(
        &self,
        b: &mut Builder,
        test: usize,
        (i, j): (&Index, &Index),
        value: ValueId,
    ) {
        let Some(pair) = self.matrix.pair(test, self.trial) else { return };
        match self.to {
            EntryDestination::Matrix(entries) => {
                let mut value = value;
                for (row, node) in [(test, i), (self.trial, j)] {
                    if let Some(signs) = self.signs[row] {
                        value = signs.apply(b, node, value);
                    }
                }
                entries.put(b, &(&j.times(pair.rows) + i).plus(pair.first), value);
            }
            EntryDestination::Product(product) => product.add(b, pair, (i, j), value),
        }
    }
}

//! The action of stored coefficients that are pulled back already: those of vector-valued functions.
//!
//! Rows and columns that agree up to a sign are computed once. Of a curl, the coefficients of ∂_a û_b and ∂_b û_a differ
//! in their sign alone, and so do the rows that test against them:
//!
//! ```text
//! c_i = ∂_a û_b − ∂_b û_a        f_i = Σ_j Ĝ_ij c_j        f_i against ∂_a v̂_b, −f_i against ∂_b v̂_a
//! ```

use super::stored::{Blocks, PartValues, TestFactors};
use crate::kir::ValueId;
use crate::kir::build::Builder;
use fem_dsl::point::Part;
use std::collections::BTreeMap;

/// A component, among those of all fields, and a part of it.
type RowPart = (usize, Part);

/// Coefficients by their slots: the index of each among the values of a point, and whether it is reversed.
type Pattern<K> = Vec<(K, usize, bool)>;

/// Returns the pattern with all signs reversed.
fn reversed<K: Copy>(pattern: &Pattern<K>) -> Pattern<K> {
    pattern.iter().map(|&(key, number, is_reversed)| (key, number, !is_reversed)).collect()
}

/// Adds the action of all blocks that are pulled back already, from their values at a point, by index, and the parts of
/// each component of the direction.
pub(crate) fn act(
    b: &mut Builder,
    (blocks, dim): (&Blocks, usize),
    values: &BTreeMap<usize, ValueId>,
    inputs: &[PartValues<'_>],
    tested: &mut [TestFactors],
) {
    let mut columns: BTreeMap<RowPart, Pattern<RowPart>> = BTreeMap::new();
    for &(test, trial, block) in &blocks.pairs {
        for (parts, index) in blocks.pulled_entries(block) {
            let column = columns.entry((trial, parts.1)).or_default();
            column.push(((test, parts.0), index.number, index.is_reversed));
        }
    }
    // The sums of inputs with equal columns.
    let mut sums: Vec<(Pattern<RowPart>, ValueId)> = Vec::new();
    for ((trial, part), mut column) in columns {
        let Some(value) = inputs[trial].get(part, dim) else { continue };
        column.sort_unstable();
        let opposite = reversed(&column);
        match sums.iter_mut().find(|(known, _)| *known == column || *known == opposite) {
            Some((known, sum)) if *known == column => *sum = b.add(*sum, value),
            Some((_, sum)) => *sum = b.sub(*sum, value),
            None => sums.push((column, value)),
        }
    }
    let mut rows: BTreeMap<RowPart, Pattern<usize>> = BTreeMap::new();
    for (at, (column, _)) in sums.iter().enumerate() {
        for &(test, number, is_reversed) in column {
            rows.entry(test).or_default().push((at, number, is_reversed));
        }
    }
    let mut known: Vec<(Pattern<usize>, ValueId)> = Vec::new();
    for ((test, part), row) in rows {
        let opposite = reversed(&row);
        let found = known.iter().find(|(known, _)| *known == row || *known == opposite);
        let (is_reversed, sum) = match found {
            Some((known, sum)) => (*known != row, *sum),
            None => {
                let zero = b.constant(0.0);
                let sum = row.iter().fold(zero, |sum, &(at, number, is_reversed)| {
                    let (value, input) = (values[&number], sums[at].1);
                    match is_reversed {
                        true => b.fma_neg(value, input, sum),
                        false => b.fma(value, input, sum),
                    }
                });
                known.push((row, sum));
                (false, sum)
            }
        };
        let place = tested[test].place(b, dim, part);
        *place = if is_reversed { b.sub(*place, sum) } else { b.add(*place, sum) };
    }
}

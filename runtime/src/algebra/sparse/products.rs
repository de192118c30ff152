//! Products of sparse matrices by rows (Gustavson 1978).
//!
//! ```text
//! (A B)_i = Σ_j a_ij B_j        each row summed in the order of A's columns, then sorted
//! ```
//!
//! Rows are distributed to threads; no sum depends on their number.

use super::csr::{Csr, RowBuilder};
use super::pattern::NOWHERE;

/// Accumulator of a row.
pub(crate) struct RowAccumulator {
    /// Index in `entries` of each column.
    place: Vec<u32>,
    entries: Vec<(u32, f64)>,
}

impl RowAccumulator {
    fn new(width: usize) -> Self {
        Self { place: vec![NOWHERE; width], entries: Vec::new() }
    }

    /// Adds a multiple of a matrix row.
    pub(crate) fn add(&mut self, a: f64, (columns, values): (&[u32], &[f64])) {
        for (&column, &value) in columns.iter().zip(values) {
            let place = &mut self.place[column as usize];
            if *place == NOWHERE {
                *place = self.entries.len() as u32;
                self.entries.push((column, a * value));
            } else {
                self.entries[*place as usize].1 += a * value;
            }
        }
    }

    /// Sorts the row and appends it to others.
    fn flush(&mut self, rows: &mut RowBuilder) {
        self.entries.sort_unstable_by_key(|entry| entry.0);
        for (column, value) in self.entries.drain(..) {
            self.place[column as usize] = NOWHERE;
            rows.push(column, value);
        }
    }
}

/// Builds a matrix; `fill` accumulates row i.
pub(crate) fn accumulate(
    rows: usize,
    width: usize,
    fill: impl Fn(usize, &mut RowAccumulator) + Sync,
) -> Csr {
    let own = || RowAccumulator::new(width);
    Csr::by_rows((rows, width), own, |i, row, rows| {
        fill(i, row);
        row.flush(rows);
    })
}

/// Computes A B.
pub(crate) fn product(a: &Csr, b: &Csr) -> Csr {
    accumulate(a.size(), b.width, |i, row| {
        a.row(i).for_each(|(j, value)| row.add(value, b.row_slices(j)));
    })
}

//! Rectangular sparse matrices and their products by rows (Gustavson 1978).
//!
//! ```text
//! (A B)_i = Σ_j a_ij B_j        each row summed in the order of A's columns, then sorted
//! ```
//!
//! Rows are distributed to threads; no sum depends on their number.

use super::AggregationError;
use crate::algebra::csr::{Csr, RowBuilder, dot};
use crate::support::parallel::*;

/// Number of rows per task.
const ROWS: usize = 4096;
/// Marks an absent position.
const NONE: u32 = u32::MAX;

/// A matrix in compressed rows with its number of columns; columns ascend within each row.
#[derive(Clone, Debug, PartialEq)]
pub struct RectangularMatrix {
    /// Offset of each row, and the end of the last.
    pub starts: Vec<usize>,
    /// Columns.
    pub columns: Vec<u32>,
    /// Entries.
    pub values: Vec<f64>,
    /// Number of columns.
    pub width: usize,
}

impl RectangularMatrix {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns columns and entries of a row.
    pub fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Computes y = A x.
    pub fn apply(&self, x: &[f64], y: &mut [f64]) {
        self.each(y, |row, y| {
            let (columns, values) = self.row(row);
            *y = dot(columns, values, x);
        });
    }

    /// Computes y += A x.
    pub fn add(&self, x: &[f64], y: &mut [f64]) {
        self.each(y, |row, y| {
            let (columns, values) = self.row(row);
            *y += dot(columns, values, x);
        });
    }

    fn each(&self, y: &mut [f64], f: impl Fn(usize, &mut f64) + Sync) {
        y.par_chunks_mut(ROWS).enumerate().each(|(chunk, y)| {
            y.iter_mut().enumerate().for_each(|(i, y)| f(chunk * ROWS + i, y));
        });
    }

    /// Returns Aᵀ.
    ///
    /// # Errors
    ///
    /// More rows than 32-bit indices can address.
    pub fn transposed(&self) -> Result<Self, AggregationError> {
        narrow(self.rows())?;
        let mut starts = vec![0usize; self.width + 1];
        self.columns.iter().for_each(|&column| starts[column as usize + 1] += 1);
        (0..self.width).for_each(|i| starts[i + 1] += starts[i]);
        let mut next = starts.clone();
        let (mut columns, mut values) =
            (vec![0; starts[self.width]], vec![0.0; starts[self.width]]);
        for row in 0..self.rows() {
            let (of, entries) = self.row(row);
            for (&column, &value) in of.iter().zip(entries) {
                let at = &mut next[column as usize];
                (columns[*at], values[*at]) = (row as u32, value);
                *at += 1;
            }
        }
        Ok(Self { starts, columns, values, width: self.rows() })
    }

    /// Returns the bytes of its arrays.
    pub fn bytes(&self) -> usize {
        bytes(self.starts.len(), self.columns.len())
    }
}

/// Returns the bytes of a matrix with these numbers of offsets and entries.
pub(super) fn bytes(starts: usize, entries: usize) -> usize {
    starts * size_of::<usize>() + entries * (size_of::<u32>() + size_of::<f64>())
}

/// Checks that 32-bit indices can address the degrees of freedom.
pub(super) fn narrow(unknowns: usize) -> Result<u32, AggregationError> {
    // The largest index marks an absent position.
    let there = u32::try_from(unknowns).ok().filter(|&unknowns| unknowns < NONE);
    there.ok_or(AggregationError::Wide { unknowns })
}

/// Accumulator of a row.
pub(super) struct RowAccumulator {
    /// Index in `entries` of each column.
    place: Vec<u32>,
    entries: Vec<(u32, f64)>,
}

impl RowAccumulator {
    fn new(width: usize) -> Self {
        Self { place: vec![NONE; width], entries: Vec::new() }
    }

    /// Adds a multiple of a matrix row.
    pub(super) fn add(&mut self, a: f64, (columns, values): (&[u32], &[f64])) {
        for (&column, &value) in columns.iter().zip(values) {
            let place = &mut self.place[column as usize];
            if *place == NONE {
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
            self.place[column as usize] = NONE;
            rows.push(column, value);
        }
    }
}

/// Builds a matrix; `fill` accumulates row i.
pub(super) fn by_rows(
    rows: usize,
    width: usize,
    fill: impl Fn(usize, &mut RowAccumulator) + Sync,
) -> RectangularMatrix {
    let Csr { starts, columns, values } = Csr::by_rows(
        rows,
        || RowAccumulator::new(width),
        |i, row, rows| {
            fill(i, row);
            row.flush(rows);
        },
    );
    RectangularMatrix { starts, columns, values, width }
}

/// Computes A B.
pub(super) fn product(a: &RectangularMatrix, b: &RectangularMatrix) -> RectangularMatrix {
    by_rows(a.rows(), b.width, |i, row| {
        let (columns, values) = a.row(i);
        for (&j, &value) in columns.iter().zip(values) {
            row.add(value, b.row(j as usize));
        }
    })
}

/// Computes R A P with R = Pᵀ.
pub(super) fn galerkin(r: &RectangularMatrix, a: &Csr, p: &RectangularMatrix) -> Csr {
    let right = by_rows(a.size(), p.width, |i, row| {
        a.row(i).for_each(|(j, value)| row.add(value, p.row(j)));
    });
    let RectangularMatrix { starts, columns, values, .. } = product(r, &right);
    Csr { starts, columns, values }
}

//! Sparse matrices that need not be square, and their products: rows of A and B → those of A B, by Gustavson's method (1978).
//!
//! ```text
//! (A B)_i = Σ_j a_ij B_j        each row summed in the order of A's columns, then sorted
//! ```
//!
//! Rows are spread over the threads; none of their sums depends on how many there are.

use super::AggregationError;
use crate::algebra::csr::{Csr, Rows, dot};
use crate::support::parallel::*;

/// Rows that one thread takes at a time.
const ROWS: usize = 4096;
/// No place.
const NONE: u32 = u32::MAX;

/// A matrix by rows, with its number of columns; columns ascend in each row.
#[derive(Clone, Debug, PartialEq)]
pub struct Rectangular {
    /// Where each row begins, and the end of the last.
    pub starts: Vec<usize>,
    /// Columns.
    pub columns: Vec<u32>,
    /// Entries.
    pub values: Vec<f64>,
    /// The number of columns.
    pub width: usize,
}

impl Rectangular {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Columns and entries of a row.
    pub fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// y = A x.
    pub fn apply(&self, x: &[f64], y: &mut [f64]) {
        self.each(y, |row, y| {
            let (columns, values) = self.row(row);
            *y = dot(columns, values, x);
        });
    }

    /// y += A x.
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

    /// Aᵀ.
    ///
    /// # Errors
    ///
    /// More rows than 32 bits can name.
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

    /// Bytes of its arrays.
    pub fn bytes(&self) -> usize {
        bytes(self.starts.len(), self.columns.len())
    }
}

/// Bytes of a matrix with so many starts and entries.
pub(super) fn bytes(starts: usize, entries: usize) -> usize {
    starts * size_of::<usize>() + entries * (size_of::<u32>() + size_of::<f64>())
}

/// What 32 bits can name.
pub(super) fn narrow(unknowns: usize) -> Result<u32, AggregationError> {
    // The largest number is no place.
    let there = u32::try_from(unknowns).ok().filter(|&unknowns| unknowns < NONE);
    there.ok_or(AggregationError::Wide { unknowns })
}

/// A row that is being summed.
pub(super) struct Row {
    /// Where in `entries` a column is.
    place: Vec<u32>,
    entries: Vec<(u32, f64)>,
}

impl Row {
    fn new(width: usize) -> Self {
        Self { place: vec![NONE; width], entries: Vec::new() }
    }

    /// Adds a · (a row of a matrix).
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

    /// Moves the row, sorted, behind others.
    fn flush(&mut self, rows: &mut Rows) {
        self.entries.sort_unstable_by_key(|entry| entry.0);
        for (column, value) in self.entries.drain(..) {
            self.place[column as usize] = NONE;
            rows.push(column, value);
        }
    }
}

/// A matrix of which `fill` sums row i.
pub(super) fn by_rows(
    rows: usize,
    width: usize,
    fill: impl Fn(usize, &mut Row) + Sync,
) -> Rectangular {
    let Csr { starts, columns, values } = Csr::by_rows(
        rows,
        || Row::new(width),
        |i, row, rows| {
            fill(i, row);
            row.flush(rows);
        },
    );
    Rectangular { starts, columns, values, width }
}

/// A B.
pub(super) fn product(a: &Rectangular, b: &Rectangular) -> Rectangular {
    by_rows(a.rows(), b.width, |i, row| {
        let (columns, values) = a.row(i);
        for (&j, &value) in columns.iter().zip(values) {
            row.add(value, b.row(j as usize));
        }
    })
}

/// R A P with R = Pᵀ.
pub(super) fn galerkin(r: &Rectangular, a: &Csr, p: &Rectangular) -> Csr {
    let right = by_rows(a.size(), p.width, |i, row| {
        a.row(i).for_each(|(j, value)| row.add(value, p.row(j)));
    });
    let Rectangular { starts, columns, values, .. } = product(r, &right);
    Csr { starts, columns, values }
}

//! Sparse matrices in compressed rows ([`Csr`]) or columns ([`Csc`]).

use super::pattern::{SparsityPattern, together, transposed};
use crate::algebra::vector::Real;
use crate::support::parallel::*;
use std::sync::{Mutex, PoisonError};

/// A sparse matrix in compressed columns; rows ascend within each.
#[derive(Clone, Debug, PartialEq)]
pub struct Csc {
    /// Offset of each column, and the end of the last.
    pub starts: Vec<usize>,
    /// Rows.
    pub rows: Vec<u32>,
    /// Entries.
    pub values: Vec<f64>,
}

impl Csc {
    /// Iterates over rows and entries of a column.
    pub fn column(&self, j: usize) -> impl Iterator<Item = (usize, f64)> + Clone {
        let range = self.starts[j]..self.starts[j + 1];
        let rows = self.rows[range.clone()].iter().map(|&row| row as usize);
        rows.zip(self.values[range].iter().copied())
    }
}

/// Number of rows per task.
const ROWS: usize = 4096;

/// Rows under construction.
#[derive(Default)]
pub(crate) struct RowBuilder {
    ends: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl RowBuilder {
    /// Appends an entry to the current row.
    pub(crate) fn push(&mut self, column: u32, value: f64) {
        self.columns.push(column);
        self.values.push(value);
    }
}

/// A sparse matrix in compressed rows; columns ascend within each.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr {
    /// Offset of each row, and the end of the last.
    pub starts: Vec<usize>,
    /// Columns.
    pub columns: Vec<u32>,
    /// Entries.
    pub values: Vec<f64>,
    /// Number of columns.
    pub width: usize,
}

impl Csr {
    /// Creates a square matrix.
    pub fn square(starts: Vec<usize>, columns: Vec<u32>, values: Vec<f64>) -> Self {
        let width = starts.len() - 1;
        Self { starts, columns, values, width }
    }

    /// Returns the number of rows.
    pub fn size(&self) -> usize {
        self.starts.len() - 1
    }

    /// Iterates over columns and entries of a row.
    pub fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.starts[i]..self.starts[i + 1];
        let columns = self.columns[range.clone()].iter().map(|&column| column as usize);
        columns.zip(self.values[range].iter().copied())
    }

    /// Returns the columns and entries of a row as slices.
    pub fn row_slices(&self, i: usize) -> (&[u32], &[f64]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Iterates over rows, columns and entries.
    fn entries(&self) -> impl Iterator<Item = (u32, usize, f64)> + Clone {
        (0..self.size()).flat_map(move |i| {
            let (columns, values) = self.row_slices(i);
            columns.iter().zip(values).map(move |(&j, &value)| (i as u32, j as usize, value))
        })
    }

    /// Returns Aᵀ.
    pub fn transposed(&self) -> Self {
        let (starts, columns, values) = transposed(self.width, self.entries());
        Self { starts, columns, values, width: self.size() }
    }

    /// Converts a square matrix to compressed columns, without zero entries.
    pub fn by_columns(&self) -> Csc {
        let entries = self.entries().filter(|(.., value)| *value != 0.0);
        let (starts, rows, values) = transposed(self.width, entries);
        Csc { starts, rows, values }
    }

    /// Returns the bytes of its arrays.
    pub fn bytes(&self) -> usize {
        let entry = size_of::<u32>() + size_of::<f64>();
        self.starts.len() * size_of::<usize>() + self.columns.len() * entry
    }

    /// Builds a matrix of n rows and `width` columns in parallel; `fill` pushes the entries of a row. `own` creates the workspace of a
    /// thread, on which no row may depend.
    pub(crate) fn by_rows<T: Send>(
        (n, width): (usize, usize),
        own: impl Fn() -> T + Sync,
        fill: impl Fn(usize, &mut T, &mut RowBuilder) + Sync,
    ) -> Self {
        let spare: Mutex<Vec<T>> = Mutex::new(Vec::new());
        let lock = || spare.lock().unwrap_or_else(PoisonError::into_inner);
        let of_chunk = |chunk: usize| {
            let taken = lock().pop();
            let mut own = taken.unwrap_or_else(&own);
            let mut rows = RowBuilder::default();
            for i in chunk * ROWS..n.min((chunk + 1) * ROWS) {
                fill(i, &mut own, &mut rows);
                rows.ends.push(rows.columns.len());
            }
            lock().push(own);
            rows
        };
        let parts: Vec<RowBuilder> = (0..n.div_ceil(ROWS)).into_par_iter().map(of_chunk).listed();
        let mut starts = Vec::with_capacity(n + 1);
        starts.push(0);
        let mut before = 0;
        for part in &parts {
            starts.extend(part.ends.iter().map(|end| before + end));
            before += part.columns.len();
        }
        let (columns, values) = parts.into_iter().map(|part| (part.columns, part.values)).unzip();
        Self { starts, columns: together(before, columns), values: together(before, values), width }
    }

    /// Returns (A + Aᵀ)/2 of a square matrix.
    pub fn symmetric_part(&self) -> Self {
        let turned = self.transposed();
        let mut own = Self::square(vec![0], Vec::new(), Vec::new());
        own.width = self.width;
        for i in 0..self.size() {
            // Merge of two ascending lists.
            let mut rows = turned.row(i).peekable();
            for (j, value) in self.row(i) {
                while let Some((k, other)) = rows.next_if(|(k, _)| *k < j) {
                    own.push(k as u32, 0.5 * other);
                }
                let other = rows.next_if(|(k, _)| *k == j).map_or(0.0, |(_, other)| other);
                own.push(j as u32, 0.5 * (value + other));
            }
            rows.for_each(|(k, other)| own.push(k as u32, 0.5 * other));
            own.starts.push(own.columns.len());
        }
        own
    }

    fn push(&mut self, column: u32, value: f64) {
        self.columns.push(column);
        self.values.push(value);
    }

    /// Creates a zero matrix with the pattern of cells.
    pub(crate) fn pattern(n: usize, cells: &[Vec<u32>]) -> Self {
        let touching = SparsityPattern::inverse(n, cells.iter().map(Vec::as_slice));
        let around = |dof: usize| touching.row(dof);
        const DOFS: usize = 4096;
        let rows: Vec<Vec<Vec<u32>>> = (0..n.div_ceil(DOFS))
            .into_par_iter()
            .map(|block| {
                let mut rows: Vec<Vec<u32>> = Vec::with_capacity(DOFS);
                for dof in block * DOFS..n.min((block + 1) * DOFS) {
                    // Degrees of freedom of one mesh entity are consecutive and have the same row.
                    let same = dof % DOFS > 0 && around(dof) == around(dof - 1);
                    let row = match rows.last() {
                        Some(previous) if same => previous.clone(),
                        _ => {
                            let touched = around(dof).iter();
                            let mut row: Vec<u32> =
                                touched.flat_map(|&cell| &cells[cell as usize]).copied().collect();
                            row.sort_unstable();
                            row.dedup();
                            row
                        }
                    };
                    rows.push(row);
                }
                rows
            })
            .listed();
        let mut starts = Vec::with_capacity(n + 1);
        starts.push(0);
        let mut total = 0;
        for row in rows.iter().flatten() {
            total += row.len();
            starts.push(total);
        }
        let columns: Vec<u32> = rows.into_iter().flatten().flatten().collect();
        let values = vec![0.0; columns.len()];
        Self { starts, columns, values, width: n }
    }

    /// Adds an element matrix, `entries[j · n + i]` at (i, j), except in fixed rows and columns.
    pub(crate) fn add(&mut self, dofs: &[u32], entries: &[f64], fixed: &[bool]) {
        let n = dofs.len();
        let mut ascending: Vec<usize> = (0..n).collect();
        ascending.sort_unstable_by_key(|&j| dofs[j]);
        for (i, &dof) in dofs.iter().enumerate().filter(|(_, dof)| !fixed[**dof as usize]) {
            let mut at = self.starts[dof as usize];
            for &j in &ascending {
                // Terminates: the row has all degrees of freedom of the cell.
                while self.columns[at] < dofs[j] {
                    at += 1;
                }
                if !fixed[dofs[j] as usize] {
                    self.values[at] += entries[j * n + i];
                }
            }
        }
    }

    /// Removes zero entries.
    pub(crate) fn drop_zeros(&mut self) {
        let (mut kept, mut from) = (0, 0);
        for row in 1..self.starts.len() {
            let to = self.starts[row];
            for at in from..to {
                if self.values[at] != 0.0 {
                    self.values[kept] = self.values[at];
                    self.columns[kept] = self.columns[at];
                    kept += 1;
                }
            }
            self.starts[row] = kept;
            from = to;
        }
        self.values.truncate(kept);
        self.columns.truncate(kept);
    }

    /// Computes y = A x in parallel.
    pub fn apply(&self, x: &[f64], y: &mut [f64]) {
        self.each_row(x, y, |product, y| *y = product);
    }

    /// Computes y = y + A x in parallel.
    pub fn add_product(&self, x: &[f64], y: &mut [f64]) {
        self.each_row(x, y, |product, y| *y += product);
    }

    fn each_row(&self, x: &[f64], y: &mut [f64], put: impl Fn(f64, &mut f64) + Sync) {
        y.par_chunks_mut(ROWS).enumerate().each(|(chunk, y)| {
            for (i, y) in y.iter_mut().enumerate() {
                let (columns, values) = self.row_slices(chunk * ROWS + i);
                put(dot(columns, values, x), y);
            }
        });
    }
}

impl From<&Csc> for Csr {
    fn from(matrix: &Csc) -> Self {
        let width = matrix.starts.len() - 1;
        let columns =
            (0..width).flat_map(|j| matrix.column(j).map(move |(i, value)| (j as u32, i, value)));
        let (starts, columns, values) = transposed(width, columns);
        Self { starts, columns, values, width }
    }
}

/// Computes the product of a row and a vector in four partial sums.
pub(crate) fn dot<T: Real>(columns: &[u32], values: &[T], x: &[T]) -> T {
    let zero = T::from_f64(0.0);
    let mut sums = [zero; 4];
    for (columns, values) in columns.chunks_exact(4).zip(values.chunks_exact(4)) {
        for lane in 0..4 {
            sums[lane] = sums[lane] + values[lane] * x[columns[lane] as usize];
        }
    }
    let rest = columns.len() / 4 * 4;
    let mut tail = zero;
    for (&column, &value) in columns[rest..].iter().zip(&values[rest..]) {
        tail = tail + value * x[column as usize];
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + tail
}

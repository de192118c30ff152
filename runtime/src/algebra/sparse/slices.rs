//! Sliced order of the entries of sparse matrices, for devices ([`Slices`]).
//!
//! ```text
//! position of entry k of row i = 32 · (lengths of earlier slices) + 32 · k + i mod 32
//! ```
//!
//! The length of a slice is that of its longest row.

use super::pattern::NOWHERE;
use crate::support::parallel::*;
use kernels_gen::dialect::c::slices::{SLICE, SLICES};
use kernels_gen::dialect::c::sum::UNKNOWNS;

/// Maximum ratio of sliced to unpadded size: all rows of a slice have the length of its longest one.
const PADDING: f64 = 1.5;

/// Minimum number of slices per task.
const GRAIN: usize = 64;

/// Position of rows in slices.
pub(crate) struct Slices {
    /// Offset of each slice, and the end of the last.
    starts: Vec<u32>,
    /// Number of entries in all slices, padded for the last thread group.
    pub(crate) count: usize,
}

impl Slices {
    /// Computes the slices of compressed rows; `None` if padding would exceed the limit.
    pub(crate) fn new(rows: &[usize]) -> Option<Self> {
        let (n, all) = (rows.len() - 1, rows[rows.len() - 1]);
        let longest = |slice: usize| {
            let own = &rows[slice * SLICE..=n.min((slice + 1) * SLICE)];
            own.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0)
        };
        let slices = n.div_ceil(SLICE);
        let lengths: Vec<usize> =
            (0..slices).into_par_iter().with_min_len(GRAIN).map(longest).listed();
        let count: usize = SLICE * lengths.iter().sum::<usize>();
        let padded = count.next_multiple_of(UNKNOWNS);
        if count as f64 > PADDING * all as f64 || padded >= NOWHERE as usize {
            return None;
        }
        let mut starts = Vec::with_capacity(slices.next_multiple_of(SLICES) + 1);
        let mut end = 0;
        starts.push(0);
        starts.extend(lengths.iter().map(|length| {
            end += (SLICE * length) as u32;
            end
        }));
        starts.resize(slices.next_multiple_of(SLICES) + 1, end);
        Some(Self { starts, count: padded })
    }

    /// Returns the offset of each slice.
    pub(crate) fn into_starts(self) -> Vec<u32> {
        self.starts
    }

    /// Returns the bytes of the indices.
    pub(crate) fn index_bytes(&self) -> usize {
        4 * (self.starts.len() + self.count)
    }

    /// Converts the columns of compressed rows to slices.
    pub(crate) fn columns(&self, rows: &[usize], columns: &[u32]) -> Vec<u32> {
        let n = rows.len() - 1;
        let mut own = vec![NOWHERE; self.count];
        let mut parts = Vec::with_capacity(self.starts.len());
        let mut rest = &mut own[..];
        for (slice, ends) in self.starts.windows(2).enumerate() {
            let (part, behind) = rest.split_at_mut((ends[1] - ends[0]) as usize);
            parts.push((slice, part));
            rest = behind;
        }
        parts.into_par_iter().with_min_len(GRAIN).each(|(slice, part)| {
            for row in (slice * SLICE).min(n)..n.min((slice + 1) * SLICE) {
                let own = &columns[rows[row]..rows[row + 1]];
                for (k, &column) in own.iter().enumerate() {
                    part[SLICE * k + row % SLICE] = column;
                }
            }
        });
        own
    }

    /// Returns the position of entry k of a row.
    pub(crate) fn place(&self, row: usize, k: usize) -> u32 {
        self.starts[row / SLICE] + (SLICE * k + row % SLICE) as u32
    }
}

/// Iterates over columns and values of a row in slices.
pub(crate) fn row_in_slices<'a>(
    starts: &'a [u32],
    columns: &'a [u32],
    values: &'a [f64],
    row: usize,
) -> impl Iterator<Item = (u32, f64)> + 'a {
    let ends = [row / SLICE, row / SLICE + 1].map(|slice| starts[slice] as usize);
    let places = (ends[0] + row % SLICE..ends[1]).step_by(SLICE);
    let places = places.take_while(|&place| columns[place] != NOWHERE);
    places.map(|place| (columns[place], values[place]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_from_slices() {
        // 90 rows: three slices, the last one not full; one row is empty.
        let length = |row: usize| if row == 40 { 0 } else { 5 + row % 3 };
        let mut rows = vec![0];
        (0..90).for_each(|row| rows.push(rows[row] + length(row)));
        let columns: Vec<u32> = (0..rows[90]).map(|k| (7 * k % 90) as u32).collect();
        let sliced = Slices::new(&rows).expect("little of it is empty");
        assert_eq!(sliced.count % UNKNOWNS, 0);
        let own = sliced.columns(&rows, &columns);
        let starts = sliced.starts.clone();
        assert_eq!((starts.len() - 1) % SLICES, 0);
        let mut values = vec![f64::NAN; sliced.count];
        for i in 0..90 {
            (0..length(i)).for_each(|k| values[sliced.place(i, k) as usize] = (rows[i] + k) as f64);
        }
        for i in 0..90 {
            let found: Vec<(u32, f64)> = row_in_slices(&starts, &own, &values, i).collect();
            let wanted: Vec<(u32, f64)> =
                (rows[i]..rows[i + 1]).map(|k| (columns[k], k as f64)).collect();
            assert_eq!(found, wanted, "row {i}");
        }
        // One long row among short ones.
        let mut rows = vec![0, 100];
        (1..64).for_each(|row| rows.push(rows[row] + 1));
        assert!(Slices::new(&rows).is_none());
    }
}

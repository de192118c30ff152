//! Rows of a matrix in slices, as devices add up entries and multiply with them: [`Slices`].
//!
//! ```text
//! place of entry k of row i = 32 · (lengths of the slices before) + 32 · k + i mod 32
//! ```
//!
//! A slice is as long as its longest row.

use crate::operator::engine::Array;
use crate::operator::matrix::sparsity::NOWHERE;
use crate::support::parallel::*;
use kernels_gen::dialect::c::slices::{SLICE, SLICES};
use kernels_gen::dialect::c::sum::UNKNOWNS;

/// By how much slices may be larger than rows, since all rows of a slice are as long as its longest.
const PADDING: f64 = 1.5;

/// Slices that are worth a thread.
const GRAIN: usize = 64;

/// A matrix in slices.
pub(in crate::operator) struct Slices {
    /// Where each slice begins, and the end of the last, for all groups of threads that multiply.
    pub(in crate::operator) starts: Array,
    /// The places of columns in vectors; the largest index where there is none.
    pub(in crate::operator) columns: Array,
    pub(in crate::operator) entries: Array,
}

/// Where rows lie in slices.
pub(super) struct Sliced {
    /// Where each slice begins, and the end of the last.
    starts: Vec<u32>,
    /// Numbers of all slices, those of the last group of threads too.
    pub(super) count: usize,
}

impl Sliced {
    /// The slices of compressed rows; nothing where too much of them would be empty.
    pub(super) fn new(rows: &[usize]) -> Option<Self> {
        let (n, all) = (rows.len() - 1, rows[rows.len() - 1]);
        let longest = |slice: usize| {
            let own = &rows[slice * SLICE..=n.min((slice + 1) * SLICE)];
            own.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0)
        };
        let slices = n.div_ceil(SLICE);
        let lengths: Vec<usize> =
            (0..slices).into_par_iter().with_min_len(GRAIN).map(longest).listed();
        let count: usize = SLICE * lengths.iter().sum::<usize>();
        let room = count.next_multiple_of(UNKNOWNS);
        if count as f64 > PADDING * all as f64 || room >= NOWHERE as usize {
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
        Some(Self { starts, count: room })
    }

    /// Where each slice begins.
    pub(super) fn starts(&self) -> Vec<u32> {
        self.starts.clone()
    }

    /// Bytes that indices take.
    pub(super) fn index_bytes(&self) -> usize {
        4 * (self.starts.len() + self.count)
    }

    /// The columns in slices of those in rows.
    pub(super) fn columns(&self, rows: &[usize], columns: &[u32]) -> Vec<u32> {
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

    /// The place of entry k of a row.
    pub(super) fn place(&self, row: usize, k: usize) -> u32 {
        self.starts[row / SLICE] + (SLICE * k + row % SLICE) as u32
    }
}

/// Columns and numbers of a row of what lies in slices, given where these begin.
pub(super) fn row<'a>(
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
        // 90 rows, three slices of which the last is not full; one row is empty.
        let length = |row: usize| if row == 40 { 0 } else { 5 + row % 3 };
        let mut rows = vec![0];
        (0..90).for_each(|row| rows.push(rows[row] + length(row)));
        let columns: Vec<u32> = (0..rows[90]).map(|k| (7 * k % 90) as u32).collect();
        let sliced = Sliced::new(&rows).expect("little of it is empty");
        assert_eq!(sliced.count % UNKNOWNS, 0);
        let (starts, own) = (sliced.starts(), sliced.columns(&rows, &columns));
        assert_eq!((starts.len() - 1) % SLICES, 0);
        let mut values = vec![f64::NAN; sliced.count];
        for i in 0..90 {
            (0..length(i)).for_each(|k| values[sliced.place(i, k) as usize] = (rows[i] + k) as f64);
        }
        for i in 0..90 {
            let found: Vec<(u32, f64)> = row(&starts, &own, &values, i).collect();
            let wanted: Vec<(u32, f64)> =
                (rows[i]..rows[i + 1]).map(|k| (columns[k], k as f64)).collect();
            assert_eq!(found, wanted, "row {i}");
        }
        // One long row among short ones.
        let mut rows = vec![0, 100];
        (1..64).for_each(|row| rows.push(rows[row] + 1));
        assert!(Sliced::new(&rows).is_none());
    }
}

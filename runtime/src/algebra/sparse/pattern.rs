//! Sparsity patterns: lists of indices of different lengths ([`SparsityPattern`]).

use crate::support::parallel::*;

/// Marks an absent position.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The columns of each row of a matrix, or other lists of indices.
#[derive(Clone, Debug, PartialEq)]
pub struct SparsityPattern {
    /// Offset of each row, and the end of the last.
    pub(crate) starts: Vec<usize>,
    /// Columns.
    pub(crate) columns: Vec<u32>,
}

impl SparsityPattern {
    /// Creates a pattern without rows.
    pub(crate) fn new() -> Self {
        Self { starts: vec![0], columns: Vec::new() }
    }

    /// Ends a row with all columns appended since the last one.
    pub(crate) fn end_row(&mut self) {
        self.starts.push(self.columns.len());
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> usize {
        self.columns.len()
    }

    /// Returns the columns of a row.
    pub fn row(&self, i: usize) -> &[u32] {
        &self.columns[self.starts[i]..self.starts[i + 1]]
    }

    /// Returns the ascending rows that contain each of `width` columns.
    pub(crate) fn transposed(&self, width: usize) -> Self {
        Self::inverse(width, (0..self.rows()).map(|i| self.row(i)))
    }

    /// Returns the ascending indices of the lists that contain each of `n` items.
    pub(crate) fn inverse<'a>(n: usize, lists: impl Iterator<Item = &'a [u32]> + Clone) -> Self {
        let entries = lists.enumerate().flat_map(|(list, items)| {
            items.iter().map(move |&item| (list as u32, item as usize, ()))
        });
        let (starts, columns, _) = transposed(n, entries);
        Self { starts, columns }
    }
}

/// Sorts entries (row, column, value), given row by row, by `width` columns: returns starts, rows and values.
pub(super) fn transposed<T: Copy + Default>(
    width: usize,
    entries: impl Iterator<Item = (u32, usize, T)> + Clone,
) -> (Vec<usize>, Vec<u32>, Vec<T>) {
    let mut starts = vec![0usize; width + 1];
    entries.clone().for_each(|(_, column, _)| starts[column + 1] += 1);
    (0..width).for_each(|i| starts[i + 1] += starts[i]);
    let (mut next, count) = (starts.clone(), starts[width]);
    let (mut rows, mut values) = (vec![0; count], vec![T::default(); count]);
    for (row, column, value) in entries {
        let at = &mut next[column];
        (rows[*at], values[*at]) = (row, value);
        *at += 1;
    }
    (starts, rows, values)
}

/// Concatenates lists with `n` elements in total.
pub(crate) fn together<T: Copy + Default + Send>(n: usize, parts: Vec<Vec<T>>) -> Vec<T> {
    let mut all = vec![T::default(); n];
    let mut places = Vec::with_capacity(parts.len());
    let mut rest = &mut all[..];
    for part in parts {
        let (place, behind) = rest.split_at_mut(part.len());
        places.push((part, place));
        rest = behind;
    }
    places.into_par_iter().each(|(part, place)| place.copy_from_slice(&part));
    all
}

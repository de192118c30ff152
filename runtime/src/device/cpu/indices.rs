//! Index arrays of kernels, with what is largest in them: numbers → [`IndexArray`], which nobody changes.
//!
//! Whoever launches a kernel compares the largest index with the array that it goes into. It is found once, when the
//! array is made.

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::parallel::*;

use super::Buffer;

/// Rows that one thread looks through at least.
const ROWS: usize = 1024;

/// What is known of some indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Largest {
    /// What all of them are below but `u32::MAX`, which stands for nothing.
    below: u32,
    /// Whether `u32::MAX` is among them.
    nothing: bool,
}

impl Largest {
    pub(crate) fn of(indices: &[u32]) -> Self {
        // `u32::MAX` becomes 0, every other index the number that it is below.
        let (mut most, mut least) = (0, u32::MAX);
        for &index in indices {
            let below = index.wrapping_add(1);
            most = most.max(below);
            least = least.min(below);
        }
        Self { below: most, nothing: !indices.is_empty() && least == 0 }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self { below: self.below.max(other.below), nothing: self.nothing | other.nothing }
    }

    /// The largest index of a kernel for which `u32::MAX` is nothing (`masked`), or an index as any other; none where
    /// there is nothing to index.
    pub(crate) fn index(self, masked: bool) -> Option<u32> {
        if self.nothing && !masked { Some(u32::MAX) } else { self.below.checked_sub(1) }
    }
}

/// An index array `[batch][entry][lane]`, with the largest index of each entry. Its numbers stay what they are, so that
/// this needs to be found once.
#[derive(Clone, Debug)]
pub struct IndexArray {
    values: Buffer<u32>,
    lanes: usize,
    /// Of each entry.
    largest: Vec<Largest>,
    all: Largest,
    /// No two arrays with other numbers have the same.
    id: u64,
}

impl IndexArray {
    /// Indices of batches with so many numbers for each entry of each lane.
    ///
    /// # Panics
    ///
    /// If that is no whole number of batches.
    pub fn new(values: Buffer<u32>, entries: usize, lanes: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (entries, lanes) = (entries.max(1), lanes.max(1));
        let row = entries * lanes;
        assert_eq!(values.len() % row, 0, "an index array should have whole batches");
        let none = || vec![Largest::default(); entries];
        let of = |rows: &[u32]| {
            let mut largest = none();
            for row in rows.chunks_exact(row) {
                for (largest, lanes) in largest.iter_mut().zip(row.chunks_exact(lanes)) {
                    *largest = largest.and(Largest::of(lanes));
                }
            }
            largest
        };
        let parts = values.par_chunks(row * ROWS.div_ceil(entries)).map(of);
        let both = |a: Vec<Largest>, b: Vec<Largest>| -> Vec<Largest> {
            a.iter().zip(&b).map(|(a, b)| a.and(*b)).collect()
        };
        let largest = parts.merged(both).unwrap_or_else(none);
        let all = largest.iter().fold(Largest::default(), |a, &b| a.and(b));
        Self { values, lanes, largest, all, id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// Indices that are not told apart.
    pub fn plain(values: Buffer<u32>) -> Self {
        Self::new(values, 1, 1)
    }

    /// The largest in a part of all rows, which have `extent` elements; of all elements where rows are not those of this
    /// array.
    pub(super) fn largest(&self, extent: usize, part: Option<&Range<usize>>) -> Largest {
        let part = part.filter(|_| extent == self.largest.len() * self.lanes);
        let some = part.and_then(|part| {
            self.largest.get(part.start / self.lanes..part.end.div_ceil(self.lanes))
        });
        some.map_or(self.all, |some| some.iter().fold(Largest::default(), |a, &b| a.and(b)))
    }

    /// What tells the array's numbers from those of others.
    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

impl Deref for IndexArray {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_index_of_each_entry_is_known() {
        // Two batches of three entries and two lanes.
        let numbers = [1, 2, 30, 4, u32::MAX, 6, 7, 8, 9, 10, u32::MAX, u32::MAX];
        let array = IndexArray::new(Buffer::from_slice(&numbers), 3, 2);
        let index =
            |part: Option<Range<usize>>, masked| array.largest(6, part.as_ref()).index(masked);
        assert_eq!((index(Some(0..2), false), index(Some(2..4), false)), (Some(8), Some(30)));
        assert_eq!((index(Some(4..6), true), index(Some(4..6), false)), (Some(6), Some(u32::MAX)));
        assert_eq!((index(None, true), index(None, false)), (Some(30), Some(u32::MAX)));
        assert_eq!(array.largest(12, Some(&(0..2))).index(true), Some(30), "of other rows");
        assert_eq!(&array[..2], [1, 2]);
    }

    #[test]
    fn nothing_has_no_largest() {
        let none = IndexArray::plain(Buffer::zeroed(0));
        assert_eq!(none.largest(1, None).index(false), None);
        let masked = IndexArray::plain(Buffer::from_slice(&[u32::MAX; 3]));
        assert_eq!(masked.largest(1, None).index(true), None);
        assert_eq!(masked.largest(1, None).index(false), Some(u32::MAX));
    }
}

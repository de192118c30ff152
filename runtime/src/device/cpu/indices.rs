//! Immutable index arrays of kernels with their largest indices: [`IndexArray`].
//!
//! Launches compare the largest index with the length of the indexed array. It is computed once, when the array is
//! created.

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::parallel::*;

use super::Buffer;

/// Minimal number of rows per thread.
const ROWS: usize = 1024;

/// Maximum of some indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LargestIndex {
    /// Largest index plus one, without `u32::MAX`, which means none.
    below: u32,
    /// True if `u32::MAX` occurs.
    nothing: bool,
}

impl LargestIndex {
    pub(crate) fn of(indices: &[u32]) -> Self {
        // `u32::MAX` wraps to 0, every other index to index + 1.
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

    /// Returns the largest index for a kernel that ignores `u32::MAX` (`masked`) or treats it as an index; `None`
    /// without indices.
    pub(crate) fn index(self, masked: bool) -> Option<u32> {
        if self.nothing && !masked { Some(u32::MAX) } else { self.below.checked_sub(1) }
    }
}

/// Index array `[batch][entry][lane]` with the largest index of each entry, computed once because the values never
/// change.
#[derive(Clone, Debug)]
pub struct IndexArray {
    values: Buffer<u32>,
    lanes: usize,
    /// The largest index of each entry.
    largest: Vec<LargestIndex>,
    all: LargestIndex,
    /// Unique identity of the values.
    id: u64,
}

impl IndexArray {
    /// Creates an index array with `entries` entries of `lanes` lanes per batch.
    ///
    /// # Panics
    ///
    /// The length is not a multiple of a batch.
    pub fn new(values: Buffer<u32>, entries: usize, lanes: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (entries, lanes) = (entries.max(1), lanes.max(1));
        let row = entries * lanes;
        assert_eq!(values.len() % row, 0, "an index array should have whole batches");
        let none = || vec![LargestIndex::default(); entries];
        let of = |rows: &[u32]| {
            let mut largest = none();
            for row in rows.chunks_exact(row) {
                for (largest, lanes) in largest.iter_mut().zip(row.chunks_exact(lanes)) {
                    *largest = largest.and(LargestIndex::of(lanes));
                }
            }
            largest
        };
        let parts = values.par_chunks(row * ROWS.div_ceil(entries)).map(of);
        let both = |a: Vec<LargestIndex>, b: Vec<LargestIndex>| -> Vec<LargestIndex> {
            a.iter().zip(&b).map(|(a, b)| a.and(*b)).collect()
        };
        let largest = parts.merged(both).unwrap_or_else(none);
        let all = largest.iter().fold(LargestIndex::default(), |a, &b| a.and(b));
        Self { values, lanes, largest, all, id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// Creates an index array without separate entries.
    pub fn plain(values: Buffer<u32>) -> Self {
        Self::new(values, 1, 1)
    }

    /// Returns the maximum in a part of rows of `extent` elements; over all elements without a part, or if this array
    /// has other rows.
    pub(super) fn largest(&self, extent: usize, part: Option<&Range<usize>>) -> LargestIndex {
        let part = part.filter(|_| extent == self.largest.len() * self.lanes);
        let some = part.and_then(|part| {
            self.largest.get(part.start / self.lanes..part.end.div_ceil(self.lanes))
        });
        some.map_or(self.all, |some| some.iter().fold(LargestIndex::default(), |a, &b| a.and(b)))
    }

    /// Returns the unique identity of the values.
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

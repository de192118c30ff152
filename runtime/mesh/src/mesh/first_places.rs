//! Numbers by first touch, found by all threads.
//!
//! The number of an object is the number of first places before its own:
//!
//! ```text
//! places:          a b a c b d        first places:   a b . c . d        numbers:   a = 0, b = 1, c = 2, d = 3
//! ```

use crate::support::parallel::*;
use std::sync::atomic::Ordering::Relaxed;

/// Bits of a word of marks.
const WORD: usize = u64::BITS as usize;

/// Words of marks that one thread visits.
const WORDS: usize = 256;

/// Smallest number of rows per thread.
const GRAIN: usize = 1 << 10;

/// Numbers `n` objects by first touch in `rows` with `each` places, `[rows, each]`. `object` returns the object at an index of a
/// row, or `None`. Also returns the first places. Objects without a place have the number 2³² − 1.
pub(super) fn numbers(
    n: usize,
    [rows, each]: [usize; 2],
    object: impl Fn(usize, usize) -> Option<u32> + Sync,
) -> (Vec<u32>, FirstPlaceRanks) {
    let first = filled_atomics(n, u32::MAX);
    let all = || (0..rows).into_par_iter().with_min_len(GRAIN);
    let object = &object;
    let objects = move |row: usize| {
        let at_each = move |at| object(row, at).map(|object| ((row * each + at) as u32, object));
        (0..each).filter_map(at_each)
    };
    all().each(|row| {
        for (place, object) in objects(row) {
            let first = &first[object as usize];
            // A load is cheaper, and most objects have their first place already.
            if first.load(Relaxed) > place {
                first.fetch_min(place, Relaxed);
            }
        }
    });
    let ranks = FirstPlaceRanks::new([rows, each], |row, at| {
        let place = (row * each + at) as u32;
        object(row, at).is_some_and(|object| first[object as usize].load(Relaxed) == place)
    });
    let mut numbers = plain_numbers(first);
    let touched = numbers.par_iter_mut().with_min_len(GRAIN).filter(|place| **place != u32::MAX);
    touched.for_each(|place| *place = ranks.of(*place));
    (numbers, ranks)
}

/// The first places, with the number of first places before each.
pub(super) struct FirstPlaceRanks {
    words: Vec<RankedWord>,
    count: usize,
}

/// Marks of some places, and the number of marked places before them.
struct RankedWord {
    marks: u64,
    before: u32,
}

impl FirstPlaceRanks {
    /// Counts the first places in `rows` with `each` places, given by the row and the index in it.
    pub(super) fn new(
        [rows, each]: [usize; 2],
        is_first: impl Fn(usize, usize) -> bool + Sync,
    ) -> Self {
        let n = rows * each;
        let marks = |word: usize| {
            let start = word * WORD;
            let (mut row, mut at, mut marks) = (start / each, start % each, 0);
            for bit in 0..WORD.min(n - start) {
                marks |= u64::from(is_first(row, at)) << bit;
                at += 1;
                if at == each {
                    (row, at) = (row + 1, 0);
                }
            }
            RankedWord { marks, before: 0 }
        };
        let words = (0..n.div_ceil(WORD)).into_par_iter().with_min_len(WORDS);
        let mut words = words.map(marks).listed();
        let mut count = 0;
        for word in &mut words {
            word.before = count;
            count += word.marks.count_ones();
        }
        Self { words, count: count as usize }
    }

    /// Returns the number of first places.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of first places before a place.
    pub(super) fn of(&self, place: u32) -> u32 {
        let word = &self.words[place as usize / WORD];
        word.before + (word.marks & ((1 << (place as usize % WORD)) - 1)).count_ones()
    }

    /// Returns `each` items for each first place, in order, as `write` enters them.
    pub(super) fn listed<T: Copy + Default + Send + Sync>(
        &self,
        each: usize,
        write: impl Fn(usize, &mut [T]) + Sync,
    ) -> Vec<T> {
        let mut all = vec![T::default(); self.count * each];
        let (mut parts, mut rest) = (Vec::new(), &mut all[..]);
        for words in self.words.chunks(WORDS) {
            let count: usize = words.iter().map(|word| word.marks.count_ones() as usize).sum();
            let own;
            (own, rest) = rest.split_at_mut(count * each);
            parts.push((words, own));
        }
        parts.into_par_iter().enumerate().each(|(part, (words, own))| {
            let places = words.iter().zip(part * WORDS..).flat_map(|(word, at)| word.places(at));
            places.zip(own.chunks_exact_mut(each)).for_each(|(place, own)| write(place, own));
        });
        all
    }
}

impl RankedWord {
    /// Returns the marked places of the word with an index.
    fn places(&self, word: usize) -> impl Iterator<Item = usize> {
        let mut marks = self.marks;
        std::iter::from_fn(move || {
            let bit = (marks != 0).then(|| marks.trailing_zeros() as usize)?;
            marks &= marks - 1;
            Some(word * WORD + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_places_are_counted_and_listed() {
        let n = 3 * (WORDS * WORD + 5);
        let is_first = |place| place % 7 == 3 || place % 64 == 0;
        let firsts: Vec<u32> =
            (0..n as u32).filter(|place| place % 7 == 3 || place % 64 == 0).collect();
        let ranks = FirstPlaceRanks::new([n / 3, 3], |row, at| is_first(3 * row + at));
        assert_eq!(ranks.count(), firsts.len());
        assert!((0..).zip(&firsts).all(|(rank, &place)| ranks.of(place) == rank));
        let listed =
            ranks.listed(2, |place, own| own.copy_from_slice(&[place as u32, place as u32 + 1]));
        assert_eq!(listed, firsts.iter().flat_map(|&place| [place, place + 1]).collect::<Vec<_>>());
    }
}

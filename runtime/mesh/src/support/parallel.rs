//! Parallel loops over rayon's iterators, with their own division of the work.
//!
//! Rayon's own consumers compile division, stealing and joining separately for each loop, which is 30 % of this crate's
//! code. These consumers halve the items until each thread has [`PARTS`] parts, and use [`fork`], which is compiled
//! once. Parts depend on the number of threads. Sums therefore use chunks that do not: their results are listed and
//! added in order.

use rayon::iter::plumbing::{Producer, ProducerCallback};
pub use rayon::prelude::{
    IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator,
    IntoParallelRefMutIterator, ParallelIterator, ParallelSlice, ParallelSliceMut,
};
use std::sync::atomic::AtomicU32;

/// Parts per thread: threads with cheap parts take over parts of others.
const PARTS: usize = 8;

/// Consumers of parallel iterators.
pub trait ParallelLoop: IndexedParallelIterator {
    /// Calls `f` for each item.
    fn each(self, f: impl Fn(Self::Item) + Sync) {
        go_through(self, &EachConsumer { begin: || (), f: |(): &mut (), item| f(item) });
    }

    /// Like [`ParallelLoop::each`], with a value that `begin` creates for each part.
    fn each_with<S>(self, begin: impl Fn() -> S + Sync, f: impl Fn(&mut S, Self::Item) + Sync) {
        go_through(self, &EachConsumer { begin, f });
    }

    /// Collects all items in order.
    fn listed(self) -> Vec<Self::Item> {
        let count = self.len();
        let mut parts = go_through(self, &ListConsumer).into_iter();
        let mut all = parts.next().unwrap_or_default();
        all.reserve_exact(count - all.len());
        parts.for_each(|mut part| all.append(&mut part));
        all
    }

    /// Writes all items to `places`, which has the same length.
    fn put(self, places: &mut [Self::Item]) {
        assert_eq!(self.len(), places.len(), "a place for each item");
        places.par_iter_mut().zip(self).each(|(place, item)| *place = item);
    }

    /// Returns the result of `f` for the first item with a result.
    fn first<R: Send>(self, f: impl Fn(Self::Item) -> Option<R> + Sync) -> Option<R> {
        go_through(self, &FirstConsumer(f))
    }

    /// Returns whether `f` holds for all items.
    fn holds(self, f: impl Fn(Self::Item) -> bool + Sync) -> bool {
        self.first(|item| (!f(item)).then_some(())).is_none()
    }

    /// Combines all items by an associative rule; `None` without items.
    fn merged(
        self,
        rule: impl Fn(Self::Item, Self::Item) -> Self::Item + Sync,
    ) -> Option<Self::Item> {
        go_through(self, &MergeConsumer(rule))
    }
}

impl<I: IndexedParallelIterator> ParallelLoop for I {}

/// Items per part of lists of numbers.
const NUMBERS: usize = 1 << 16;

/// Returns `n` equal numbers, written by all threads: the system clears a page when it is touched.
pub fn filled<T: Copy + Default + Send + Sync>(n: usize, value: T) -> Vec<T> {
    let mut all = vec![T::default(); n];
    all.par_chunks_mut(NUMBERS).each(|part| part.fill(value));
    all
}

/// Returns a copy, written by all threads.
pub fn copied<T: Copy + Default + Send + Sync>(all: &[T]) -> Vec<T> {
    let mut copy = vec![T::default(); all.len()];
    copy.par_chunks_mut(NUMBERS)
        .zip(all.par_chunks(NUMBERS))
        .each(|(to, from)| to.copy_from_slice(from));
    copy
}

/// Returns `n` equal numbers that several threads may change, written by all threads.
pub fn filled_atomics(n: usize, value: u32) -> Vec<AtomicU32> {
    let all = (0..n).into_par_iter().with_min_len(NUMBERS);
    all.map(|_| AtomicU32::new(value)).collect()
}

/// Returns the numbers once no other thread changes them. They stay where they are, which other threads could not do.
pub fn plain_numbers(all: Vec<AtomicU32>) -> Vec<u32> {
    all.into_iter().map(AtomicU32::into_inner).collect()
}

/// Processing of a part's items, and combination of two adjacent parts.
trait Consumer<T>: Sync {
    type Partial: Send;

    fn of(&self, part: impl Iterator<Item = T>) -> Self::Partial;

    fn both(&self, left: Self::Partial, right: Self::Partial) -> Self::Partial;
}

struct EachConsumer<B, F> {
    begin: B,
    f: F,
}

impl<T, S, B: Fn() -> S + Sync, F: Fn(&mut S, T) + Sync> Consumer<T> for EachConsumer<B, F> {
    type Partial = ();

    fn of(&self, part: impl Iterator<Item = T>) {
        let mut own = (self.begin)();
        part.for_each(|item| (self.f)(&mut own, item));
    }

    fn both(&self, (): (), (): ()) {}
}

/// Collects items part by part.
struct ListConsumer;

impl<T: Send> Consumer<T> for ListConsumer {
    type Partial = Vec<Vec<T>>;

    fn of(&self, part: impl Iterator<Item = T>) -> Vec<Vec<T>> {
        vec![part.collect()]
    }

    fn both(&self, mut left: Vec<Vec<T>>, mut right: Vec<Vec<T>>) -> Vec<Vec<T>> {
        left.append(&mut right);
        left
    }
}

struct FirstConsumer<F>(F);

impl<T, R: Send, F: Fn(T) -> Option<R> + Sync> Consumer<T> for FirstConsumer<F> {
    type Partial = Option<R>;

    fn of(&self, mut part: impl Iterator<Item = T>) -> Option<R> {
        part.find_map(&self.0)
    }

    fn both(&self, left: Option<R>, right: Option<R>) -> Option<R> {
        left.or(right)
    }
}

struct MergeConsumer<F>(F);

impl<T: Send, F: Fn(T, T) -> T + Sync> Consumer<T> for MergeConsumer<F> {
    type Partial = Option<T>;

    fn of(&self, part: impl Iterator<Item = T>) -> Option<T> {
        part.reduce(&self.0)
    }

    fn both(&self, left: Option<T>, right: Option<T>) -> Option<T> {
        match (left, right) {
            (Some(left), Some(right)) => Some((self.0)(left, right)),
            (left, right) => left.or(right),
        }
    }
}

/// Processes a loop in parts.
fn go_through<I: IndexedParallelIterator, E: Consumer<I::Item>>(items: I, end: &E) -> E::Partial {
    struct SplitConsumer<'a, E>(usize, &'a E);

    impl<T, E: Consumer<T>> ProducerCallback<T> for SplitConsumer<'_, E> {
        type Output = E::Partial;

        fn callback<P: Producer<Item = T>>(self, items: P) -> E::Partial {
            let Self(count, end) = self;
            let parts = parts(count, items.min_len());
            divide(items, count, parts, end)
        }
    }

    let count = items.len();
    items.with_producer(SplitConsumer(count, end))
}

/// Returns the number of parts of a loop.
fn parts(count: usize, least: usize) -> usize {
    match rayon::current_num_threads() {
        1 => 1,
        threads => (count / least.max(1)).clamp(1, PARTS * threads),
    }
}

fn divide<P: Producer, E: Consumer<P::Item>>(
    items: P,
    count: usize,
    parts: usize,
    end: &E,
) -> E::Partial {
    if parts <= 1 {
        return end.of(items.into_iter());
    }
    let before = parts / 2;
    let middle = count * before / parts;
    let (left, right) = items.split_at(middle);
    let (mut left, mut right) = (Some(left), Some(right));
    let (mut of_left, mut of_right) = (None, None);
    fork(
        &mut || of_left = left.take().map(|items| divide(items, middle, before, end)),
        &mut || {
            of_right = right.take().map(|items| divide(items, count - middle, parts - before, end))
        },
    );
    // INVARIANT: both parts have run.
    let (Some(left), Some(right)) = (of_left, of_right) else {
        unreachable!("both parts are done")
    };
    end.both(left, right)
}

/// Runs two functions, in parallel if a thread is free.
#[inline(never)]
fn fork(left: &mut (dyn FnMut() + Send), right: &mut (dyn FnMut() + Send)) {
    rayon::join(left, right);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    fn with_threads(threads: usize, test: impl Fn() + Send + Sync) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("a pool").install(test);
    }

    #[test]
    fn items_keep_their_order_for_any_number_of_threads() {
        for threads in [1, 2, 3, 7] {
            with_threads(threads, || {
                for count in [0, 1, 2, 15, 1000] {
                    let squares = (0..count).into_par_iter().map(|i| i * i).listed();
                    assert_eq!(squares, (0..count).map(|i| i * i).collect::<Vec<_>>());
                    let texts = squares.par_iter().with_min_len(3).map(usize::to_string).listed();
                    assert!(texts.iter().zip(&squares).all(|(text, n)| *text == n.to_string()));
                    let mut sums = vec![0; count];
                    let pairs = sums.par_iter_mut().zip(&squares).enumerate();
                    pairs.each(|(i, (sum, square))| *sum += i + square);
                    assert!((0..count).all(|i| sums[i] == i + i * i));
                }
            });
        }
    }

    #[test]
    fn lists_are_filled() {
        with_threads(3, || {
            let n = 3 * NUMBERS + 1;
            assert_eq!(filled(n, u32::MAX), vec![u32::MAX; n]);
            let numbers: Vec<usize> = (0..n).collect();
            assert_eq!(copied(&numbers), numbers);
            for value in [0, 7] {
                let all = filled_atomics(n, value);
                all[n - 1].store(3, Relaxed);
                let mut numbers = plain_numbers(all);
                assert_eq!(numbers.pop(), Some(3));
                assert_eq!(numbers, vec![value; n - 1]);
            }
        });
    }

    #[test]
    fn the_first_is_the_first_of_all_parts() {
        with_threads(4, || {
            let above = |limit: usize| move |i: usize| (i > limit).then_some(i);
            assert_eq!((0..1000).into_par_iter().first(above(17)), Some(18));
            assert_eq!((0..1000).into_par_iter().first(above(1000)), None);
            assert!((0..1000).into_par_iter().holds(|i| i < 1000));
            assert!(!(0..1000).into_par_iter().holds(|i| i != 999));
        });
    }

    #[test]
    fn all_items_become_one() {
        with_threads(3, || {
            let most = (0..1000).into_par_iter().map(|i| i ^ 21).merged(usize::max);
            assert_eq!(most, (0..1000).map(|i| i ^ 21).max());
            assert_eq!((0..0).into_par_iter().merged(usize::max), None);
            let text = |i: usize| i.to_string();
            let joined = (0..30).into_par_iter().map(text).merged(|a, b| a + &b);
            assert_eq!(joined, Some((0..30).map(text).collect()));
        });
    }

    #[test]
    fn parts_begin_with_a_value_of_their_own() {
        with_threads(4, || {
            let mut places = vec![0; 640];
            let chunks = places.par_chunks_mut(10).with_min_len(16);
            chunks.each_with(
                || 0,
                |done, chunk| {
                    *done += 1;
                    chunk.fill(*done);
                },
            );
            // Four parts of sixteen chunks.
            assert_eq!(places.iter().filter(|&&done| done == 1).count(), 40);
            assert_eq!(places.iter().max(), Some(&16));
        });
    }
}

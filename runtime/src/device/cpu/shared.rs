//! A vector that many threads write at once, each its own part: the result of an operator.

use super::{Argument, Plain};
use std::marker::PhantomData;
use std::ops::Range;

/// A slice lent to a launch for writing, parts of which are also cleared beside it.
#[derive(Clone, Copy, Debug)]
pub struct Shared<'a, T: Plain> {
    pointer: *mut T,
    len: usize,
    borrows: PhantomData<&'a mut [T]>,
}

// SAFETY: a lent slice of plain numbers, which may be written from any thread; that two threads do
// not write one element at once is the duty of the caller (see `Shared::fill`), as it is for
// `Launch::run`.
unsafe impl<T: Plain> Send for Shared<'_, T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Plain> Sync for Shared<'_, T> {}

impl<'a, T: Plain> Shared<'a, T> {
    /// Lends `values`.
    pub fn new(values: &'a mut [T]) -> Self {
        Self { pointer: values.as_mut_ptr(), len: values.len(), borrows: PhantomData }
    }

    /// The slice as an argument that a kernel writes.
    pub fn argument(&self) -> Argument<'a> {
        Argument::new(self.pointer.cast(), self.len, T::NAME, true)
    }

    /// A part of the slice as an argument that a kernel writes.
    ///
    /// # Panics
    ///
    /// If the range leaves the slice.
    pub fn part(&self, range: Range<usize>) -> Argument<'a> {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        // SAFETY: the part begins within the lent slice, or at its end.
        let first = unsafe { self.pointer.add(range.start) };
        Argument::new(first.cast(), range.len(), T::NAME, true)
    }

    /// Sets the elements of `range` to `value`.
    ///
    /// No kernel that runs at the same time may touch them: the driver clears the unknowns that a
    /// chunk touches first before any cell that has them is visited.
    ///
    /// # Panics
    ///
    /// If the range leaves the slice.
    pub fn fill(&self, range: Range<usize>, value: T) {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        for i in range {
            // SAFETY: the element lies within the lent slice, and nobody else touches it now.
            unsafe { self.pointer.add(i).write(value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_filled_apart() {
        let mut values = vec![1.0_f64; 100];
        let shared = Shared::new(&mut values);
        std::thread::scope(|scope| {
            scope.spawn(|| shared.fill(0..40, 2.0));
            scope.spawn(|| shared.fill(40..90, 3.0));
        });
        assert_eq!((shared.argument().elements(), shared.argument().is_writable()), (100, true));
        let expected = |i: usize| {
            if i < 40 {
                2.0
            } else if i < 90 {
                3.0
            } else {
                1.0
            }
        };
        assert!(values.iter().enumerate().all(|(i, &value)| value == expected(i)));
    }

    #[test]
    #[should_panic(expected = "10..21 of 20")]
    fn a_range_outside_is_refused() {
        Shared::new(&mut [0u32; 20]).fill(10..21, 1);
    }
}

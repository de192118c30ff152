//! A vector that several threads write concurrently in parts: the result of an operator.

use super::argument::Access;
use super::{Argument, PlainNumber};
use std::marker::PhantomData;
use std::ops::Range;

/// A slice borrowed for the launches of one pass, each of which writes parts of it. Only a
/// [`Schedule`](super::Schedule) runs them. It is private to this crate:
///
/// ```compile_fail,E0603
/// #![forbid(unsafe_code)]
/// use runtime::device::cpu::SharedSlice;
/// ```
#[derive(Debug)]
pub(crate) struct SharedSlice<'a, T: PlainNumber> {
    pointer: *mut T,
    len: usize,
    borrows: PhantomData<&'a mut [T]>,
}

// SAFETY: a borrowed slice of plain numbers, which any thread may write. Only `fill` writes it; its callers guarantee
// exclusive access to the elements.
unsafe impl<T: PlainNumber> Send for SharedSlice<'_, T> {}
// SAFETY: as for `Send`.
unsafe impl<T: PlainNumber> Sync for SharedSlice<'_, T> {}

impl<'a, T: PlainNumber> SharedSlice<'a, T> {
    /// Borrows `values`.
    pub(super) fn new(values: &'a mut [T]) -> Self {
        Self { pointer: values.as_mut_ptr(), len: values.len(), borrows: PhantomData }
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns a part of the slice as a writable argument.
    ///
    /// # Panics
    ///
    /// The range is not within the slice.
    pub(crate) fn part(&self, range: Range<usize>) -> Argument<'a> {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        // SAFETY: the part starts within the borrowed slice, or at its end.
        let first = unsafe { self.pointer.add(range.start) };
        Argument::new(first.cast(), range.len(), T::NAME, Access::Shared)
    }

    /// Returns the start of an argument in the slice, if it is a part of it.
    pub(super) fn place_of(&self, argument: &Argument<'_>) -> Option<usize> {
        let bytes = (argument.pointer() as usize).checked_sub(self.pointer as usize)?;
        let first = bytes / size_of::<T>();
        let inside = first.checked_add(argument.elements()).is_some_and(|end| end <= self.len);
        let whole = bytes.is_multiple_of(size_of::<T>()) && argument.kind() == T::NAME;
        (argument.is_shared() && inside && whole).then_some(first)
    }

    /// Sets the elements in `range` to `value`.
    ///
    /// # Safety
    ///
    /// Nobody else accesses these elements concurrently.
    ///
    /// # Panics
    ///
    /// The range is not within the slice.
    pub(super) unsafe fn fill(&self, range: Range<usize>, value: T) {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        for i in range {
            // SAFETY: the element is within the borrowed slice, and nobody else accesses it.
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
        let shared = SharedSlice::new(&mut values);
        std::thread::scope(|scope| {
            // SAFETY: the parts are disjoint.
            scope.spawn(|| unsafe { shared.fill(0..40, 2.0) });
            // SAFETY: as above.
            scope.spawn(|| unsafe { shared.fill(40..90, 3.0) });
        });
        let part = shared.part(40..90);
        assert_eq!((part.elements(), part.is_writable(), part.is_shared()), (50, true, true));
        assert_eq!(shared.place_of(&part), Some(40));
        let other = [0.0_f64; 4];
        assert_eq!(shared.place_of(&Argument::read(&other)), None);
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
        // SAFETY: nobody else accesses the numbers.
        unsafe { SharedSlice::new(&mut [0u32; 20]).fill(10..21, 1) };
    }
}

//! Aligned arrays of plain numbers, on 2 MiB pages if they are large.
//!
//! Kernels stream through vectors of many megabytes; with 4 KiB pages, page walks take a substantial part of the time.
//! Large buffers are therefore aligned to 2 MiB and marked with `MADV_HUGEPAGE` before first touch, small ones to a
//! cache line.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Number of readable zero bytes after the last element of every [`Buffer`].
///
/// A gather of whole SIMD vectors may read past the end of the last run by at most this.
pub const PADDING: usize = 128;

/// A cache line: the minimal alignment of a buffer, and the width of the widest SIMD vector.
const LINE: usize = 64;
/// A large page; buffers of at least this size are aligned to it.
const PAGE: usize = 2 << 20;
/// The alignment up to which the system's allocator gives memory that is zero already.
const LEAST: usize = 8;

mod sealed {
    pub trait SealedElement {}
}

/// Number type without padding or invalid bit patterns; all-zero bytes mean 0.
pub trait PlainNumber:
    sealed::SealedElement + Copy + Default + Send + Sync + fmt::Debug + 'static
{
    /// The name of the type in Rust, for messages.
    const NAME: &'static str;
}

macro_rules! plain {
    ($($kind:ty),*) => {$(
        impl sealed::SealedElement for $kind {}
        impl PlainNumber for $kind {
            const NAME: &'static str = stringify!($kind);
        }
    )*};
}
plain!(f64, f32, u64, u32, u16, u8, i64, i32);

/// An array of `len` numbers, aligned for kernels; dereferences to a slice.
pub struct Buffer<T: PlainNumber> {
    pointer: NonNull<T>,
    len: usize,
    /// The allocation.
    start: NonNull<u8>,
    layout: Layout,
    owns: PhantomData<T>,
}

// SAFETY: the buffer owns its memory exclusively, as a `Vec` does, and `T` is `Send`.
unsafe impl<T: PlainNumber> Send for Buffer<T> {}
// SAFETY: shared access only reads, and `T` is `Sync`.
unsafe impl<T: PlainNumber> Sync for Buffer<T> {}

impl<T: PlainNumber> Buffer<T> {
    /// Creates a buffer of `len` zeros. The system clears the pages of a large one when they are touched, so that the
    /// threads that fill it share the work.
    ///
    /// # Panics
    ///
    /// The size in bytes overflows. A failed allocation ends the program, as for `Vec`.
    pub fn zeroed(len: usize) -> Self {
        let layout = layout_for::<T>(len);
        if layout.align() < PAGE {
            let start = allocate(layout);
            // SAFETY: `start` is a new allocation of `layout.size()` bytes, and all-zero bytes are a valid `T`.
            unsafe { start.as_ptr().write_bytes(0, layout.size()) };
            return Self { pointer: start.cast(), len, start, layout, owns: PhantomData };
        }
        // Rust clears aligned memory itself, so it is aligned here.
        let bytes = layout.size().checked_add(PAGE);
        let layout = bytes.and_then(|bytes| Layout::from_size_align(bytes, LEAST).ok());
        let layout = layout.expect("the size of a buffer should fit into the address space");
        // SAFETY: the size is at least `PAGE`, so it is not zero.
        let raw = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(raw) else { handle_alloc_error(layout) };
        let skipped = start.as_ptr().align_offset(PAGE);
        // SAFETY: at most `PAGE - 1` bytes are skipped, and the allocation has `PAGE` more than the elements and the padding.
        let pointer = unsafe { start.add(skipped) };
        advise(pointer, layout.size() - PAGE);
        Self { pointer: pointer.cast(), len, start, layout, owns: PhantomData }
    }

    /// Creates a buffer whose element `i` is `value(i)`; memory is touched once.
    ///
    /// # Panics
    ///
    /// Those of [`Buffer::zeroed`] and of `value`.
    pub fn from_fn(len: usize, mut value: impl FnMut(usize) -> T) -> Self {
        let layout = layout_for::<T>(len);
        // The length stays 0 until every element is written: a panic in `value` frees the memory without exposing it.
        let start = allocate(layout);
        let mut buffer = Self { pointer: start.cast(), len: 0, start, layout, owns: PhantomData };
        for i in 0..len {
            // SAFETY: `i < len`, and the allocation holds `len` elements.
            unsafe { buffer.pointer.add(i).write(value(i)) };
        }
        let used = len * size_of::<T>();
        // SAFETY: `layout.size()` is at least `used`, which `layout_for` checked for overflow.
        unsafe { start.add(used).write_bytes(0, layout.size() - used) };
        buffer.len = len;
        buffer
    }

    /// Creates a buffer with the elements of `values`.
    pub fn from_slice(values: &[T]) -> Self {
        Self::from_fn(values.len(), |i| values[i])
    }
}

/// Returns the layout of `len` elements and padding, in multiples of 2 MiB pages from one page on.
fn layout_for<T: PlainNumber>(len: usize) -> Layout {
    let bytes = len.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(PADDING));
    let layout = bytes.and_then(|bytes| {
        let align = if bytes >= PAGE { PAGE } else { LINE };
        Layout::from_size_align(bytes, align).ok().map(|layout| layout.pad_to_align())
    });
    layout.expect("the size of a buffer should fit into the address space")
}

/// Allocates uninitialised memory, marked for large pages before first touch.
fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: the size is at least `PADDING`, so it is not zero.
    let raw = unsafe { alloc(layout) };
    let Some(raw) = NonNull::new(raw) else { handle_alloc_error(layout) };
    if layout.align() >= PAGE {
        advise(raw, layout.size());
    }
    raw
}

/// Marks new memory, which starts at a large page, for large pages.
fn advise(start: NonNull<u8>, bytes: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        // SAFETY: the range is within a new allocation and aligned to pages; the advice changes no contents. Its result is
        // ignored: without large pages everything works, only slower.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (start, bytes);
}

impl<T: PlainNumber> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed only here.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

impl<T: PlainNumber> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements are initialised, and `&self` excludes writers.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.len) }
    }
}

impl<T: PlainNumber> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` makes the access unique.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.len) }
    }
}

impl<T: PlainNumber> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Self::from_slice(self)
    }
}

impl<T: PlainNumber> Default for Buffer<T> {
    fn default() -> Self {
        Self::zeroed(0)
    }
}

impl<T: PlainNumber> PartialEq for Buffer<T>
where
    T: PartialEq,
{
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: PlainNumber> fmt::Debug for Buffer<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, out)
    }
}

impl<T: PlainNumber> FromIterator<T> for Buffer<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::from_slice(&values.into_iter().collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_buffers_start_at_a_cache_line() {
        for len in [0, 1, 7, 1000] {
            let buffer = Buffer::<f64>::zeroed(len);
            assert_eq!(buffer.as_ptr() as usize % LINE, 0);
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|&value| value == 0.0));
        }
    }

    #[test]
    fn large_buffers_start_at_a_large_page() {
        const LEN: usize = PAGE / 8;
        let zeros = Buffer::<f64>::zeroed(LEN);
        assert_eq!(zeros.as_ptr() as usize % PAGE, 0);
        assert!(zeros.iter().all(|&value| value == 0.0));
        let buffer = Buffer::<f64>::from_fn(LEN, |i| i as f64);
        assert_eq!(buffer.as_ptr() as usize % PAGE, 0);
        assert_eq!(buffer[LEN - 1], (LEN - 1) as f64);
        assert_eq!(buffer.clone(), buffer);
    }

    #[test]
    fn the_padding_reads_as_zero() {
        let buffer = Buffer::from_fn(3, |i| i as u64 + 1);
        for byte in 0..PADDING {
            // SAFETY: the padding belongs to the allocation and is initialised.
            let value = unsafe { *buffer.as_ptr().add(3).cast::<u8>().add(byte) };
            assert_eq!(value, 0);
        }
    }

    #[test]
    fn writes_stay() {
        let mut buffer: Buffer<i32> = (0..5).collect();
        buffer[2] = 9;
        assert_eq!(&buffer[..], [0, 1, 9, 3, 4]);
    }
}

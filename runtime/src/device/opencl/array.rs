//! Arrays of plain numbers in a device's memory.

use super::api::Memory;
use crate::device::cpu::Plain;

/// An array on the device.
#[derive(Debug)]
pub struct Array {
    pub(super) memory: Memory,
    kind: &'static str,
    width: usize,
    len: usize,
}

impl Array {
    pub(super) fn new<T: Plain>(memory: Memory, len: usize) -> Self {
        Self { memory, kind: T::NAME, width: size_of::<T>(), len }
    }

    /// The name of its elements' type in Rust.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Bytes of an element.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The bytes of numbers.
pub(super) fn bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: plain numbers have no padding, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of numbers, to be written.
pub(super) fn bytes_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes`; and whatever the bytes are, they are numbers.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

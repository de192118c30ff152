//! Arrays of plain numbers in a device's memory.

use super::api::Memory;
use crate::device::Kind;
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

    pub(super) fn of(kind: Kind, memory: Memory, len: usize) -> Self {
        Self { memory, kind: kind.name(), width: kind.width(), len }
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

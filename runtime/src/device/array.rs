//! Arrays in the memory of devices ([`Array`]), and their elements.

use super::DeviceError;
use super::cpu::{LargestIndex, PlainNumber};
use crate::support::parallel::*;
use kernels_gen::abi::Precision;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    /// Double precision.
    F64,
    /// Single precision.
    F32,
    /// Indices and counts.
    U32,
}

impl ElementKind {
    /// Returns the name of the Rust type.
    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => f64::NAME,
            Self::F32 => f32::NAME,
            Self::U32 => u32::NAME,
        }
    }

    /// Bytes per element.
    pub fn width(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 | Self::U32 => 4,
        }
    }
}

impl From<Precision> for ElementKind {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::F64 => Self::F64,
            Precision::F32 => Self::F32,
        }
    }
}

/// Element type of a device array.
pub trait Element: PlainNumber {
    /// The type's name for arrays.
    const KIND: ElementKind;

    /// Returns the values as indices, if the type is that of indices.
    fn as_indices(values: &[Self]) -> Option<&[u32]> {
        let _ = values;
        None
    }
}

impl Element for f64 {
    const KIND: ElementKind = ElementKind::F64;
}

impl Element for f32 {
    const KIND: ElementKind = ElementKind::F32;
}

impl Element for u32 {
    const KIND: ElementKind = ElementKind::U32;

    fn as_indices(values: &[Self]) -> Option<&[u32]> {
        Some(values)
    }
}

/// Backend-specific data, shared with recordings that need it.
pub(super) type BackendData = Arc<dyn Any + Send + Sync>;

/// Identity of a device, which prevents the use of another device's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnerId(u64);

impl OwnerId {
    /// Creates a new identity.
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// An array in a device's memory.
pub struct Array {
    kind: ElementKind,
    len: usize,
    owner: OwnerId,
    pub(super) memory: BackendData,
    /// Properties of indices that were uploaded and not changed since.
    pub(super) indices: Option<IndexBounds>,
}

/// Properties of the indices in an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexBounds {
    pub(super) largest: LargestIndex,
    /// The position from which all entries equal the last one.
    pub(super) settled: usize,
}

impl IndexBounds {
    pub(super) fn of(values: &[u32]) -> Self {
        let last = values.last();
        let settled = values.iter().rposition(|value| Some(value) != last);
        let parts = values.par_chunks(1 << 16).map(LargestIndex::of);
        let largest = parts.merged(LargestIndex::and).unwrap_or_default();
        Self { largest, settled: settled.map_or(0, |at| at + 1) }
    }

    /// Returns the properties of entries that are followed by others from position `at` on; `ends` are the last entry of
    /// both.
    pub(super) fn followed_by(self, at: usize, other: Self, ends: [Option<u32>; 2]) -> Self {
        let is_one_value = other.settled == 0 && ends[0] == ends[1];
        let settled = if is_one_value { self.settled } else { at + other.settled };
        Self { largest: self.largest.and(other.largest), settled }
    }
}

impl Array {
    /// Wraps device memory of `len` elements.
    pub(super) fn new(owner: OwnerId, kind: ElementKind, len: usize, memory: BackendData) -> Self {
        Self { kind, len, owner, memory, indices: None }
    }

    /// Creates an array without memory, of no device.
    pub(crate) fn nowhere(kind: ElementKind) -> Self {
        Self::new(OwnerId(0), kind, 0, Arc::new(()))
    }

    /// Declares the indices that a kernel has written: at most `largest`, and constant from position `settled` on.
    pub(crate) fn with_indices(self, largest: u32, settled: usize) -> Self {
        Self {
            indices: Some(IndexBounds { largest: LargestIndex::of(&[largest]), settled }),
            ..self
        }
    }

    /// Returns the type of its elements.
    pub fn kind(&self) -> ElementKind {
        self.kind
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of its elements.
    pub fn bytes(&self) -> usize {
        self.len * self.kind.width()
    }

    /// Checks a range of bytes for writing, and discards the known properties of indices.
    pub(super) fn changes(&mut self, at: usize, len: usize) -> Result<(), DeviceError> {
        self.indices = None;
        self.holds(at, len)
    }

    /// Checks that a range of bytes lies within the array.
    pub(super) fn holds(&self, at: usize, len: usize) -> Result<(), DeviceError> {
        match at.checked_add(len) {
            Some(end) if end <= self.bytes() => Ok(()),
            _ => Err(DeviceError::Mismatch { operation: "copy" }),
        }
    }

    /// Returns the backend's memory; an error if the array belongs to another device.
    pub(super) fn memory<M: 'static>(&self, owner: OwnerId) -> Result<&M, DeviceError> {
        let own = self.memory.downcast_ref().filter(|_| self.owner == owner);
        own.ok_or(DeviceError::Foreign)
    }

    /// Returns the reference that keeps the memory alive.
    pub(super) fn own(&self) -> BackendData {
        Arc::clone(&self.memory)
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} on a device", self.len, self.kind.name())
    }
}

/// Returns bytes as numbers; `None` unless they are aligned.
pub(super) fn numbers_mut(bytes: &mut [u8]) -> Option<&mut [u32]> {
    // SAFETY: any bytes are valid numbers.
    let (before, numbers, _) = unsafe { bytes.align_to_mut::<u32>() };
    before.is_empty().then_some(numbers)
}

/// Returns the bytes of numbers.
pub(super) fn bytes<T: PlainNumber>(values: &[T]) -> &[u8] {
    // SAFETY: plain numbers have no padding, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Returns the bytes of numbers, writable.
pub(super) fn bytes_mut<T: PlainNumber>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes`; and any bytes are valid numbers.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

#[cfg(test)]
mod tests {
    use super::IndexBounds;

    #[test]
    fn bounds_of_parts_are_those_of_the_whole() {
        let lists: [&[u32]; 5] =
            [&[3, 7, 1, 5, 5, 5, 5], &[2; 6], &[1, 2, 3, u32::MAX, 9], &[4, 4, 4, 6], &[0]];
        for list in lists {
            for most in 1..=list.len() {
                let (mut known, mut last) = (None::<IndexBounds>, None);
                for (number, part) in list.chunks(most).enumerate() {
                    let (own, end) = (IndexBounds::of(part), part.last().copied());
                    known = Some(match known {
                        None => own,
                        Some(before) => before.followed_by(number * most, own, [last, end]),
                    });
                    last = end;
                }
                let (found, wanted) = (known.expect("a part"), IndexBounds::of(list));
                assert_eq!((found.largest, found.settled), (wanted.largest, wanted.settled));
            }
        }
    }
}

//! The global arrays of an interpreted kernel.

use super::Fault;
use crate::kir::{Element, Kernel, Precision};
use std::cell::Cell;

/// An array passed to a kernel.
///
/// Writable arrays are passed as cells, so that several threads can share the whole array, each to write its own part
/// of it.
#[derive(Clone, Copy, Debug)]
pub enum Array<'a> {
    /// Doubles to read.
    F64(&'a [f64]),
    /// Doubles to read and write.
    F64Mut(&'a [Cell<f64>]),
    /// Singles to read.
    F32(&'a [f32]),
    /// Singles to read and write.
    F32Mut(&'a [Cell<f32>]),
    /// Indices or counts.
    U32(&'a [u32]),
}

impl<'a> From<&'a mut [f64]> for Array<'a> {
    fn from(values: &'a mut [f64]) -> Self {
        Self::F64Mut(Cell::from_mut(values).as_slice_of_cells())
    }
}

impl<'a> From<&'a mut [f32]> for Array<'a> {
    fn from(values: &'a mut [f32]) -> Self {
        Self::F32Mut(Cell::from_mut(values).as_slice_of_cells())
    }
}

impl Array<'_> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F64(values) => values.len(),
            Self::F64Mut(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::F32Mut(values) => values.len(),
            Self::U32(values) => values.len(),
        }
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the name of the elements' type.
    fn kind(&self) -> &'static str {
        match self {
            Self::F64(_) | Self::F64Mut(_) => "f64",
            Self::F32(_) | Self::F32Mut(_) => "f32",
            Self::U32(_) => "u32",
        }
    }

    fn is_writable(&self) -> bool {
        matches!(self, Self::F64Mut(_) | Self::F32Mut(_))
    }

    /// Returns an element as a double; `None` beyond the end.
    pub(super) fn real(&self, index: usize) -> Option<f64> {
        match self {
            Self::F64(values) => values.get(index).copied(),
            Self::F64Mut(values) => values.get(index).map(Cell::get),
            Self::F32(values) => values.get(index).copied().map(f64::from),
            Self::F32Mut(values) => values.get(index).map(Cell::get).map(f64::from),
            Self::U32(_) => None,
        }
    }

    /// Reads elements from `first` on as doubles; `false` if some are out of bounds.
    pub(super) fn reals(&self, first: usize, out: &mut [f64]) -> bool {
        fn copy<T>(values: &[T], first: usize, out: &mut [f64], real: impl Fn(&T) -> f64) -> bool {
            let Some(values) = first.checked_add(out.len()).and_then(|end| values.get(first..end))
            else {
                return false;
            };
            out.iter_mut().zip(values).for_each(|(out, value)| *out = real(value));
            true
        }
        match self {
            Self::F64(values) => copy(values, first, out, |&value| value),
            Self::F64Mut(values) => copy(values, first, out, Cell::get),
            Self::F32(values) => copy(values, first, out, |&value| f64::from(value)),
            Self::F32Mut(values) => copy(values, first, out, |value| f64::from(value.get())),
            Self::U32(_) => false,
        }
    }

    /// Returns an index; `None` beyond the end.
    pub(super) fn index(&self, index: usize) -> Option<u32> {
        match self {
            Self::U32(values) => values.get(index).copied(),
            _ => None,
        }
    }

    /// Overwrites an element; `false` if it is out of bounds or the array is read-only.
    pub(super) fn set(&self, index: usize, value: f64) -> bool {
        match self {
            Self::F64Mut(values) => values.get(index).map(|slot| slot.set(value)).is_some(),
            Self::F32Mut(values) => values.get(index).map(|slot| slot.set(value as f32)).is_some(),
            Self::F64(_) | Self::F32(_) | Self::U32(_) => false,
        }
    }
}

/// Checks arguments against the kernel's declarations.
pub(super) fn check(kernel: &Kernel, arguments: &[Array<'_>]) -> Result<(), Fault> {
    let (expected, found) = (kernel.arguments.len(), arguments.len());
    if expected != found {
        return Err(Fault::WrongCount { expected, found });
    }
    for (wanted, given) in kernel.arguments.iter().zip(arguments) {
        let array = wanted.name.clone();
        let expected = match (wanted.element, kernel.precision) {
            (Element::U32, _) => "u32",
            (Element::Real, Precision::F64) => "f64",
            (Element::Real, Precision::F32) => "f32",
        };
        if given.kind() != expected {
            return Err(Fault::WrongElement { array, expected, found: given.kind() });
        }
        if wanted.written && !given.is_writable() {
            return Err(Fault::ReadOnly { array });
        }
    }
    Ok(())
}

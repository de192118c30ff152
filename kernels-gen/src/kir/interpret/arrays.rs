//! The global arrays of an interpreted kernel.

use super::Fault;
use crate::kir::{Element, Kernel, Precision};

/// An array lent to a kernel.
#[derive(Debug)]
pub enum Array<'a> {
    /// Doubles to read.
    F64(&'a [f64]),
    /// Doubles to read and write.
    F64Mut(&'a mut [f64]),
    /// Singles to read.
    F32(&'a [f32]),
    /// Singles to read and write.
    F32Mut(&'a mut [f32]),
    /// Indices or counts.
    U32(&'a [u32]),
}

impl Array<'_> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F64(values) => values.len(),
            Self::F64Mut(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::F32Mut(values) => values.len(),
            Self::U32(values) => values.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of the elements' type.
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

    /// An element as a double; `None` beyond the end.
    pub(super) fn real(&self, index: usize) -> Option<f64> {
        match self {
            Self::F64(values) => values.get(index).copied(),
            Self::F64Mut(values) => values.get(index).copied(),
            Self::F32(values) => values.get(index).copied().map(f64::from),
            Self::F32Mut(values) => values.get(index).copied().map(f64::from),
            Self::U32(_) => None,
        }
    }

    /// An index; `None` beyond the end.
    pub(super) fn index(&self, index: usize) -> Option<u32> {
        match self {
            Self::U32(values) => values.get(index).copied(),
            _ => None,
        }
    }

    /// Overwrites an element; `false` beyond the end or where the array is lent for reading.
    pub(super) fn set(&mut self, index: usize, value: f64) -> bool {
        match self {
            Self::F64Mut(values) => values.get_mut(index).map(|slot| *slot = value).is_some(),
            Self::F32Mut(values) => {
                values.get_mut(index).map(|slot| *slot = value as f32).is_some()
            }
            Self::F64(_) | Self::F32(_) | Self::U32(_) => false,
        }
    }
}

/// Compares arguments with what the kernel takes.
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

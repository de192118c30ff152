//! Kernel arguments: slices and index arrays, checked against a `KernelAbi`.

use std::marker::PhantomData;
use std::ops::Range;

use kernels_gen::abi::{self, KernelAbi, Precision, Role};

use super::indices::LargestIndex;
use super::{IndexArray, LaunchError, PlainNumber};

/// Data lent to a kernel: pointer, length and access. Writable data is borrowed exclusively.
#[derive(Debug)]
pub struct Argument<'a> {
    pointer: *const u8,
    elements: usize,
    kind: &'static str,
    access: Access,
    /// The index array, if its largest index is known.
    indices: Option<&'a IndexArray>,
    borrows: PhantomData<&'a mut [u8]>,
}

/// Access to an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
    /// Several launches write parts of one vector, ordered by [`super::Schedule`]; see [`super::SharedSlice`].
    Shared,
}

// SAFETY: an argument is a borrowed slice of plain numbers, which any thread may access. It is read if borrowed for
// reading, and written only through `&mut Launch` or as a `Schedule` has proved sound.
unsafe impl Send for Argument<'_> {}
// SAFETY: nothing is read or written through a shared argument.
unsafe impl Sync for Argument<'_> {}

impl<'a> Argument<'a> {
    /// Borrows data for reading.
    pub fn read<T: PlainNumber>(values: &'a [T]) -> Self {
        Self::new(values.as_ptr().cast(), values.len(), T::NAME, Access::Read)
    }

    /// Borrows data for reading and writing.
    pub fn write<T: PlainNumber>(values: &'a mut [T]) -> Self {
        Self::new(values.as_mut_ptr().cast(), values.len(), T::NAME, Access::Write)
    }

    /// Borrows indices with known maximum. The maximum of other read-only indices is computed at binding.
    pub fn indices(indices: &'a IndexArray) -> Self {
        Self { indices: Some(indices), ..Self::read::<u32>(indices) }
    }

    pub(super) fn new(
        pointer: *const u8,
        elements: usize,
        kind: &'static str,
        access: Access,
    ) -> Self {
        Self { pointer, elements, kind, access, indices: None, borrows: PhantomData }
    }

    /// Returns the address of the data.
    pub(super) fn pointer(&self) -> *const u8 {
        self.pointer
    }

    /// Returns the number of elements.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Returns the name of the element type in Rust.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns whether the kernel may write the data.
    pub fn is_writable(&self) -> bool {
        self.access != Access::Read
    }

    /// Returns whether other launches write the same vector.
    pub(super) fn is_shared(&self) -> bool {
        self.access == Access::Shared
    }

    /// Returns the identity of the index array, if the argument is an [`IndexArray`].
    pub(super) fn id(&self) -> Option<u64> {
        self.indices.map(IndexArray::id)
    }

    /// Returns the elements; their type must be `T`.
    pub(super) fn slice<T: PlainNumber>(&self) -> &'a [T] {
        assert!(self.kind == T::NAME && self.access != Access::Shared, "lent otherwise");
        // SAFETY: the argument was created from a slice of this type and length, borrowed for 'a. Nobody writes it:
        // indices and read-only data are not written.
        unsafe { std::slice::from_raw_parts(self.pointer.cast(), self.elements) }
    }
}

/// Compares arguments with an interface; returns the number of batches for which all have data.
pub(super) fn fit(abi: &KernelAbi, arguments: &[Argument<'_>]) -> Result<usize, LaunchError> {
    let (expected, found) = (abi.arguments.len(), arguments.len());
    if found != expected {
        return Err(LaunchError::WrongCount { kernel: abi.name.clone(), expected, found });
    }
    let mut batches = usize::MAX;
    for (given, wanted) in arguments.iter().zip(&abi.arguments) {
        batches = batches.min(one(abi, given, wanted)?);
    }
    let largest = |at: usize, among: Option<&Range<usize>>| {
        let (given, extent) = (&arguments[at], abi.arguments[at].extent);
        Ok(match (given.indices, among) {
            (Some(indices), among) => indices.largest(extent, among),
            (None, Some(among)) => {
                let rows = given.slice::<u32>().chunks_exact(extent.max(1));
                let each = rows.map(|row| LargestIndex::of(row.get(among.clone()).unwrap_or(row)));
                each.fold(LargestIndex::default(), LargestIndex::and)
            }
            (None, None) => LargestIndex::of(given.slice()),
        })
    };
    indices_fit(abi, largest, |at| arguments[at].elements)?;
    Ok(batches)
}

/// Compares an argument with the interface; returns the number of batches for which it has data.
fn one(
    abi: &KernelAbi,
    given: &Argument<'_>,
    wanted: &abi::Argument,
) -> Result<usize, LaunchError> {
    let names = || (abi.name.clone(), wanted.name.clone());
    let expected = element(wanted.role, abi.precision);
    if given.kind != expected {
        let ((kernel, argument), found) = (names(), given.kind);
        return Err(LaunchError::WrongType { kernel, argument, expected, found });
    }
    if wanted.written && !given.is_writable() {
        let (kernel, argument) = names();
        return Err(LaunchError::ReadOnly { kernel, argument });
    }
    match wanted.role {
        Role::Params | Role::Tables if given.elements < wanted.extent => {
            let ((kernel, argument), expected) = (names(), wanted.extent);
            Err(LaunchError::TooShort { kernel, argument, expected, found: given.elements })
        }
        Role::Params | Role::Tables => Ok(usize::MAX),
        _ => Ok(given.elements.checked_div(wanted.extent).unwrap_or(usize::MAX)),
    }
}

/// Returns the Rust type of an argument's elements.
fn element(role: Role, precision: Precision) -> &'static str {
    match precision {
        _ if role.is_integer() => u32::NAME,
        Precision::F64 => f64::NAME,
        Precision::F32 => f32::NAME,
    }
}

/// Checks that accesses through index arrays are in range. `largest` gives the largest index of an argument, optionally
/// within a part of its rows, `elements` the length of one.
pub(in crate::device) fn indices_fit(
    abi: &KernelAbi,
    largest: impl Fn(usize, Option<&Range<usize>>) -> Result<LargestIndex, LaunchError>,
    elements: impl Fn(usize) -> usize,
) -> Result<(), LaunchError> {
    let within = |at: usize, array: &str, expected: usize, found: usize| {
        if expected <= found {
            return Ok(());
        }
        let (kernel, argument) = (abi.name.clone(), abi.arguments[at].name.clone());
        let array = array.to_owned();
        Err(LaunchError::OutOfRange { kernel, argument, array, expected, found })
    };
    for reach in &abi.reaches {
        let index = largest(reach.map, reach.part.as_ref())?.index(reach.masked);
        let expected = index.map_or(0, |index| reach.elements(index));
        within(reach.map, &abi.arguments[reach.array].name, expected, elements(reach.array))?;
    }
    for (at, argument) in abi.arguments.iter().enumerate() {
        let (array, found) = match argument.role {
            Role::Active => ("the lanes of a batch", abi.lanes),
            Role::Turns(_) => ("the entries of a cell", argument.extent.saturating_sub(1)),
            Role::Terms(field) => {
                let slots = abi.slots.get(field).map_or(0, |slots| slots.stride() * slots.terms);
                ("the terms of a batch", slots.saturating_sub(1))
            }
            _ => continue,
        };
        let most = largest(at, None)?.index(false);
        within(at, array, most.map_or(0, |most| most as usize), found)?;
    }
    Ok(())
}

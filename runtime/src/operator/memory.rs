//! Memory of an operator's tables, matrices and stored data: the host, or a device ([`Memory`]).

use super::batch::IndexRows;
use super::tables::HostTable;
use crate::algebra::vector::{Precision, Real, Vector};
use crate::device::cpu::{Buffer, IndexArray};
use crate::device::{self, Arithmetic, Device, DeviceError, EntrySelection};
use crate::support::parallel::*;
use std::borrow::Cow;
use std::sync::Arc;

/// Minimum number of gathered entries per task.
const GRAIN: usize = 1 << 14;

/// An array in host or device memory.
#[derive(Debug)]
pub(super) enum MemoryArray {
    /// In host memory.
    Host(HostTable),
    /// In device memory.
    Device(device::Array),
}

impl MemoryArray {
    /// Returns the array if it is in host memory.
    pub(super) fn host(&self) -> Option<&HostTable> {
        match self {
            Self::Host(table) => Some(table),
            Self::Device(_) => None,
        }
    }

    /// Returns the indices of an array in host memory.
    pub(super) fn host_indices(&self) -> Result<&IndexArray, DeviceError> {
        match self {
            Self::Host(HostTable::U32(indices)) => Ok(indices),
            _ => Err(DeviceError::Foreign),
        }
    }

    /// Returns the array if it is in device memory.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Foreign`] for host memory.
    pub(super) fn device(&self) -> Result<&device::Array, DeviceError> {
        match self {
            Self::Device(array) => Ok(array),
            Self::Host(_) => Err(DeviceError::Foreign),
        }
    }

    /// Returns the array mutably if it is in device memory.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Foreign`] for host memory.
    pub(super) fn device_mut(&mut self) -> Result<&mut device::Array, DeviceError> {
        match self {
            Self::Device(array) => Ok(array),
            Self::Host(_) => Err(DeviceError::Foreign),
        }
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Host(table) => table.len(),
            Self::Device(array) => array.len(),
        }
    }

    /// Returns the size in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Host(table) => table.bytes(),
            Self::Device(array) => array.bytes(),
        }
    }
}

/// A list of entries of an array or a vector, for repeated use.
pub(super) enum EntryList {
    /// In host memory.
    Host(Vec<u32>),
    /// In device memory.
    Device(EntrySelection),
}

/// Memory in which an operator's arrays live.
pub(super) trait Memory: Send + Sync {
    /// Copies a table into this memory.
    fn array(&self, table: HostTable) -> Result<MemoryArray, DeviceError>;

    /// Creates an index table from its rows.
    fn index_table(&self, rows: &IndexRows<'_>) -> Result<MemoryArray, DeviceError>;

    /// Creates an array of reals.
    fn reals(&self, values: &[f64]) -> Result<MemoryArray, DeviceError>;

    /// Creates an array of zeros.
    fn zeros(&self, len: usize) -> Result<MemoryArray, DeviceError>;

    /// Creates an array of indices with `entries` · `lanes` per batch; both are 1 for arrays without batches.
    fn indices(
        &self,
        indices: Vec<u32>,
        entries: usize,
        lanes: usize,
    ) -> Result<MemoryArray, DeviceError>;

    /// Overwrites an array of reals.
    fn overwrite(&self, array: &mut MemoryArray, values: &[f64]) -> Result<(), DeviceError>;

    /// Reads an array of reals; borrows it from host memory in double precision.
    fn read_reals<'a>(&self, array: &'a MemoryArray) -> Result<Cow<'a, [f64]>, DeviceError>;

    /// Reads an array of indices.
    fn read_indices<'a>(&self, array: &'a MemoryArray) -> Result<Cow<'a, [u32]>, DeviceError>;

    /// Creates a list of entries of arrays of length `len`.
    fn list(&self, entries: Vec<u32>, len: usize) -> Result<EntryList, DeviceError>;

    /// Creates a list of degrees of freedom of vectors of length `len`.
    fn list_dofs(&self, dofs: Vec<u32>, len: usize) -> Result<EntryList, DeviceError>;

    /// Gathers the listed entries of a vector.
    fn gather(
        &self,
        list: &EntryList,
        x: &Vector,
        into: &mut MemoryArray,
    ) -> Result<(), DeviceError>;

    /// Sets the listed entries of an array to a value.
    fn fill_listed(
        &self,
        list: &EntryList,
        value: f64,
        array: &mut MemoryArray,
    ) -> Result<(), DeviceError>;

    /// Returns the vector arithmetic of a device.
    fn arithmetic(&self) -> Option<&Arc<Arithmetic>>;
}

/// Host memory, with reals of one precision.
pub(super) struct HostMemory(pub(super) Precision);

impl Memory for HostMemory {
    fn array(&self, table: HostTable) -> Result<MemoryArray, DeviceError> {
        Ok(MemoryArray::Host(table))
    }

    fn index_table(&self, rows: &IndexRows<'_>) -> Result<MemoryArray, DeviceError> {
        let mut table = Buffer::zeroed(rows.len());
        rows.write(0, &mut table);
        Ok(MemoryArray::Host(HostTable::indices(table, rows.extent(), rows.lanes())))
    }

    fn reals(&self, values: &[f64]) -> Result<MemoryArray, DeviceError> {
        Ok(MemoryArray::Host(HostTable::reals(values, self.0)))
    }

    fn zeros(&self, len: usize) -> Result<MemoryArray, DeviceError> {
        Ok(MemoryArray::Host(HostTable::zeros(len, self.0)))
    }

    fn indices(
        &self,
        indices: Vec<u32>,
        entries: usize,
        lanes: usize,
    ) -> Result<MemoryArray, DeviceError> {
        let numbers = Buffer::from_slice(&indices);
        let array = match (entries, lanes) {
            (1, 1) => IndexArray::plain(numbers),
            _ => IndexArray::new(numbers, entries, lanes),
        };
        Ok(MemoryArray::Host(HostTable::U32(array)))
    }

    fn overwrite(&self, array: &mut MemoryArray, values: &[f64]) -> Result<(), DeviceError> {
        *array = self.reals(values)?;
        Ok(())
    }

    fn read_reals<'a>(&self, array: &'a MemoryArray) -> Result<Cow<'a, [f64]>, DeviceError> {
        array.host().and_then(HostTable::numbers).ok_or(DeviceError::Foreign)
    }

    fn read_indices<'a>(&self, array: &'a MemoryArray) -> Result<Cow<'a, [u32]>, DeviceError> {
        array.host_indices().map(|indices| Cow::Borrowed(&**indices))
    }

    fn list(&self, entries: Vec<u32>, _: usize) -> Result<EntryList, DeviceError> {
        Ok(EntryList::Host(entries))
    }

    fn list_dofs(&self, dofs: Vec<u32>, _: usize) -> Result<EntryList, DeviceError> {
        Ok(EntryList::Host(dofs))
    }

    fn gather(
        &self,
        list: &EntryList,
        x: &Vector,
        into: &mut MemoryArray,
    ) -> Result<(), DeviceError> {
        fn take<T: Real>(list: &[u32], x: &Vector, into: &mut [T]) -> Result<(), DeviceError> {
            let x = x.entries::<T>().ok_or(DeviceError::Foreign)?;
            let chunks = into.par_chunks_mut(GRAIN).zip(list.par_chunks(GRAIN));
            chunks.each(|(into, list)| {
                into.iter_mut().zip(list).for_each(|(into, &at)| *into = x[at as usize]);
            });
            Ok(())
        }
        match (list, into) {
            (EntryList::Host(list), MemoryArray::Host(HostTable::F64(into))) => {
                take::<f64>(list, x, into)
            }
            (EntryList::Host(list), MemoryArray::Host(HostTable::F32(into))) => {
                take::<f32>(list, x, into)
            }
            _ => Err(DeviceError::Foreign),
        }
    }

    fn fill_listed(
        &self,
        list: &EntryList,
        value: f64,
        array: &mut MemoryArray,
    ) -> Result<(), DeviceError> {
        let EntryList::Host(list) = list else { return Err(DeviceError::Foreign) };
        let list = list.iter().map(|&at| at as usize);
        match array {
            MemoryArray::Host(HostTable::F64(entries)) => list.for_each(|at| entries[at] = value),
            MemoryArray::Host(HostTable::F32(entries)) => {
                list.for_each(|at| entries[at] = value as f32);
            }
            _ => return Err(DeviceError::Foreign),
        }
        Ok(())
    }

    fn arithmetic(&self) -> Option<&Arc<Arithmetic>> {
        None
    }
}

/// Memory of a device.
pub(super) struct DeviceMemory(pub(super) Arc<Arithmetic>);

impl DeviceMemory {
    fn device(&self) -> &dyn Device {
        &**self.0.device()
    }
}

/// Indices that pass through host memory at once, a multiple of what a thread should write.
const STAGED: usize = 1 << 23;

impl Memory for DeviceMemory {
    fn index_table(&self, rows: &IndexRows<'_>) -> Result<MemoryArray, DeviceError> {
        let extent = rows.extent().max(1);
        let most = (STAGED / extent).max(1) * extent;
        let mut fill = |at: usize, part: &mut [u32]| rows.write(at / extent, part);
        Ok(MemoryArray::Device(self.device().upload_in_parts(rows.len(), most, &mut fill)?))
    }

    fn array(&self, table: HostTable) -> Result<MemoryArray, DeviceError> {
        let device = self.device();
        Ok(MemoryArray::Device(match &table {
            HostTable::F64(buffer) => device.upload::<f64>(buffer)?,
            HostTable::F32(buffer) => device.upload::<f32>(buffer)?,
            HostTable::U32(buffer) => device.upload::<u32>(buffer)?,
        }))
    }

    fn reals(&self, values: &[f64]) -> Result<MemoryArray, DeviceError> {
        Ok(MemoryArray::Device(self.0.upload(values)?))
    }

    fn zeros(&self, len: usize) -> Result<MemoryArray, DeviceError> {
        Ok(MemoryArray::Device(self.0.zeros(len)?))
    }

    fn indices(&self, indices: Vec<u32>, _: usize, _: usize) -> Result<MemoryArray, DeviceError> {
        Ok(MemoryArray::Device(self.device().upload::<u32>(&indices)?))
    }

    fn overwrite(&self, array: &mut MemoryArray, values: &[f64]) -> Result<(), DeviceError> {
        self.0.overwrite(array.device_mut()?, 0, values)
    }

    fn read_reals<'a>(&self, array: &'a MemoryArray) -> Result<Cow<'a, [f64]>, DeviceError> {
        self.device().download(array.device()?).map(Cow::Owned)
    }

    fn read_indices<'a>(&self, array: &'a MemoryArray) -> Result<Cow<'a, [u32]>, DeviceError> {
        let indices = self.device().download(array.device()?)?;
        Ok(indices.into_iter().map(|index| index as u32).collect())
    }

    fn list(&self, entries: Vec<u32>, len: usize) -> Result<EntryList, DeviceError> {
        Ok(EntryList::Device(EntrySelection::listed(&self.0, len, &entries)?))
    }

    fn list_dofs(&self, dofs: Vec<u32>, len: usize) -> Result<EntryList, DeviceError> {
        let layout = self.0.layout();
        let positions = dofs.into_iter().map(|dof| layout.place(dof as usize) as u32);
        self.list(positions.collect(), layout.len(len))
    }

    fn gather(
        &self,
        list: &EntryList,
        x: &Vector,
        into: &mut MemoryArray,
    ) -> Result<(), DeviceError> {
        let EntryList::Device(list) = list else { return Err(DeviceError::Foreign) };
        list.read(&self.0, device_array(x)?, into.device_mut()?)
    }

    fn fill_listed(
        &self,
        list: &EntryList,
        value: f64,
        array: &mut MemoryArray,
    ) -> Result<(), DeviceError> {
        let EntryList::Device(list) = list else { return Err(DeviceError::Foreign) };
        list.fill(&self.0, array.device_mut()?, value)
    }

    fn arithmetic(&self) -> Option<&Arc<Arithmetic>> {
        Some(&self.0)
    }
}

/// Returns the array of a vector in device memory.
///
/// # Errors
///
/// [`DeviceError::Foreign`] for a host vector.
pub(super) fn device_array(vector: &Vector) -> Result<&device::Array, DeviceError> {
    vector.array().map(|(_, array)| array).ok_or(DeviceError::Foreign)
}

/// Returns the array of a vector in device memory mutably.
///
/// # Errors
///
/// [`DeviceError::Foreign`] for a host vector.
pub(super) fn device_array_mut(vector: &mut Vector) -> Result<&mut device::Array, DeviceError> {
    vector.array_mut().ok_or(DeviceError::Foreign)
}

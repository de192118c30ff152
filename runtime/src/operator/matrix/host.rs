//! Computations with sparse matrices in host memory.

use super::acoo;
use super::kernels::MatrixKernels;
use super::lists::SummationLists;
use super::stored::StoredMatrix;
use crate::algebra::sparse::dot;
use crate::algebra::vector::{Real, Vector};
use crate::device::DeviceError;
use crate::device::acoo::ElementPositions;
use crate::device::cpu::{Buffer, IndexArray};
use crate::operator::memory::MemoryArray;
use crate::operator::tables::HostTable;
use crate::support::parallel::*;

/// Minimum number of rows or entries of a matrix per task.
const GRAIN: usize = 1 << 10;

/// Computations in host memory.
pub(super) struct HostMatrixKernels;

/// Returns the entries of a table, in one precision.
type TableEntries<T> = fn(&HostTable) -> Option<&Buffer<T>>;

fn doubles(table: &HostTable) -> Option<&Buffer<f64>> {
    match table {
        HostTable::F64(entries) => Some(entries),
        _ => None,
    }
}

fn singles(table: &HostTable) -> Option<&Buffer<f32>> {
    match table {
        HostTable::F32(entries) => Some(entries),
        _ => None,
    }
}

/// Concatenates all elements: appends the others to the first, and 1 for constrained degrees of freedom.
fn concatenate<T: Real>(
    elements: &ElementPositions,
    cells: &mut [T],
    others: &[(usize, MemoryArray)],
    entries: TableEntries<T>,
) -> Result<(), DeviceError> {
    for (first, own) in others {
        let own = own.host().and_then(entries).ok_or(DeviceError::Foreign)?;
        cells[*first..first + own.len()].copy_from_slice(own);
    }
    let fixed = elements.works.last().map_or(0, |work| work.first);
    cells[fixed..].fill(T::from_f64(1.0));
    Ok(())
}

/// Computes entries as sums of stored elements.
fn sum_in<T: Real>(
    stored: &[(&MemoryArray, &SummationLists)],
    entries: &mut [T],
    of: TableEntries<T>,
) -> Result<(), DeviceError> {
    let mut sources: Vec<(&Buffer<T>, &IndexArray, &IndexArray)> = Vec::new();
    for (array, lists) in stored {
        let own = array.host().and_then(of).ok_or(DeviceError::Foreign)?;
        sources.push((own, lists.starts.host_indices()?, lists.elements.host_indices()?));
    }
    entries.par_chunks_mut(GRAIN).enumerate().each(|(block, entries)| {
        for (i, entry) in entries.iter_mut().enumerate() {
            let position = block * GRAIN + i;
            let mut sum = T::from_f64(0.0);
            for (values, starts, elements) in &sources {
                let list = &elements[starts[position] as usize..starts[position + 1] as usize];
                list.iter().for_each(|&element| sum = sum + values[element as usize]);
            }
            *entry = sum;
        }
    });
    Ok(())
}

fn multiply_in<T: Real>(
    a: &StoredMatrix,
    values: &[T],
    x: &Vector,
    y: &mut Vector,
) -> Result<(), DeviceError> {
    let (starts, columns) = (a.starts.host_indices()?, a.columns.host_indices()?);
    let x = x.entries::<T>().ok_or(DeviceError::Foreign)?;
    let y = y.entries_mut::<T>().ok_or(DeviceError::Foreign)?;
    y.par_chunks_mut(GRAIN).enumerate().each(|(block, y)| {
        for (i, y) in y.iter_mut().enumerate() {
            let row = block * GRAIN + i;
            let range = starts[row] as usize..starts[row + 1] as usize;
            *y = dot(&columns[range.clone()], &values[range], x);
        }
    });
    Ok(())
}

impl MatrixKernels for HostMatrixKernels {
    fn sum(
        &self,
        stored: &[(&MemoryArray, &SummationLists)],
        entries: &mut MemoryArray,
    ) -> Result<(), DeviceError> {
        match entries {
            MemoryArray::Host(HostTable::F64(entries)) => sum_in(stored, entries, doubles),
            MemoryArray::Host(HostTable::F32(entries)) => sum_in(stored, entries, singles),
            _ => Err(DeviceError::Foreign),
        }
    }

    fn merge(
        &self,
        elements: &ElementPositions,
        first: MemoryArray,
        others: Vec<(usize, MemoryArray)>,
        len: usize,
    ) -> Result<[MemoryArray; 3], DeviceError> {
        let (starts, columns, entries) = match first {
            MemoryArray::Host(HostTable::F64(mut cells)) => {
                concatenate(elements, &mut cells, &others, doubles)?;
                let (starts, columns, entries) = acoo::merge(elements, &cells, len);
                (starts, columns, HostTable::F64(Buffer::from_slice(&entries)))
            }
            MemoryArray::Host(HostTable::F32(mut cells)) => {
                concatenate(elements, &mut cells, &others, singles)?;
                let (starts, columns, entries) = acoo::merge(elements, &cells, len);
                (starts, columns, HostTable::F32(Buffer::from_slice(&entries)))
            }
            _ => return Err(DeviceError::Foreign),
        };
        let [starts, columns] = [starts, columns]
            .map(|indices| HostTable::U32(IndexArray::plain(Buffer::from_slice(&indices))));
        Ok([starts, columns, entries].map(MemoryArray::Host))
    }

    fn multiply(&self, a: &StoredMatrix, x: &Vector, y: &mut Vector) -> Result<(), DeviceError> {
        match a.entries.host() {
            Some(HostTable::F64(values)) => multiply_in::<f64>(a, values, x, y),
            Some(HostTable::F32(values)) => multiply_in::<f32>(a, values, x, y),
            _ => Err(DeviceError::Foreign),
        }
    }
}

//! Computations with sparse matrices in the memory of an operator ([`MatrixKernels`]).

use super::lists::SummationLists;
use super::stored::{StoredMatrix, VendorMatrix};
use crate::algebra::vector::Vector;
use crate::device::DeviceError;
use crate::device::acoo::ElementPositions;
use crate::operator::memory::MemoryArray;

/// Computations with sparse matrices in one memory.
pub(in crate::operator) trait MatrixKernels: Send + Sync {
    /// Computes the entries of a matrix as sums of stored element entries.
    fn sum(
        &self,
        stored: &[(&MemoryArray, &SummationLists)],
        entries: &mut MemoryArray,
    ) -> Result<(), DeviceError>;

    /// Prepares the merge of elements, for vectors of length `len`.
    fn prepare_merge(
        &mut self,
        elements: &ElementPositions,
        len: usize,
    ) -> Result<(), DeviceError> {
        let _ = (elements, len);
        Ok(())
    }

    /// Merges elements into starts, columns and entries of a matrix: `first` holds those of the first kernel with
    /// capacity for all, `others` those of the others.
    fn merge(
        &self,
        elements: &ElementPositions,
        first: MemoryArray,
        others: Vec<(usize, MemoryArray)>,
        len: usize,
    ) -> Result<[MemoryArray; 3], DeviceError>;

    /// Creates a matrix handle of the vendor's library from starts, columns and entries, if there is one.
    fn vendor(
        &self,
        arrays: [&MemoryArray; 3],
        len: usize,
    ) -> Result<Option<VendorMatrix>, DeviceError> {
        let _ = (arrays, len);
        Ok(None)
    }

    /// Computes y = A x.
    fn multiply(&self, a: &StoredMatrix, x: &Vector, y: &mut Vector) -> Result<(), DeviceError>;
}

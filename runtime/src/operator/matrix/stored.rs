//! Sparse matrix in the memory of an operator ([`StoredMatrix`]).

use crate::device::{DeviceError, SparseMatrix};
use crate::operator::memory::{Memory, MemoryArray};
use std::sync::Mutex;

/// Handle of a matrix in the vendor's library.
pub(in crate::operator) type VendorMatrix = Mutex<Box<dyn SparseMatrix>>;

/// Order of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::operator) enum EntryOrder {
    /// Compressed sparse rows.
    Rows,
    /// Slices of rows ([`Slices`](crate::algebra::sparse::Slices)), for adjacent device threads on adjacent rows.
    Slices,
}

/// A square sparse matrix; rows and columns are positions in vectors.
pub(in crate::operator) struct StoredMatrix {
    pub(super) order: EntryOrder,
    /// Number of degrees of freedom; other positions are padding, without entries.
    pub(super) n_dofs: usize,
    /// Offset of each row or slice, and the end of the last, padded for the thread groups of a product.
    pub(super) starts: MemoryArray,
    /// Columns; the largest index for padding.
    pub(super) columns: MemoryArray,
    pub(super) entries: MemoryArray,
    /// Handle of the vendor's library, if it multiplies.
    pub(super) vendor: Option<VendorMatrix>,
}

impl StoredMatrix {
    /// Creates a matrix without entries.
    pub(super) fn empty(memory: &dyn Memory, n_dofs: usize) -> Result<Self, DeviceError> {
        Ok(Self {
            order: EntryOrder::Rows,
            n_dofs,
            starts: memory.indices(vec![0], 1, 1)?,
            columns: memory.indices(Vec::new(), 1, 1)?,
            entries: memory.zeros(0)?,
            vendor: None,
        })
    }
}

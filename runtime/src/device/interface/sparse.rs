//! Sparse matrices for the sparse library of a device's vendor.

use super::{Array, Device, DeviceError, ElementKind};

/// Sparse matrix in device memory, multiplied by the vendor's library.
pub trait SparseMatrix: Send {
    /// Computes y = A x in double precision.
    ///
    /// # Errors
    ///
    /// A driver error; vectors of another device, or too short ones.
    fn apply(&self, x: &Array, y: &mut Array) -> Result<(), DeviceError>;
}

impl dyn Device + '_ {
    /// Creates a square CSR matrix for the vendor's library, as a benchmark reference for operators; `None` without
    /// such a library. Row i has the columns and values from `starts[i]` to `starts[i + 1]`.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] if it is no square matrix; insufficient memory, or a driver error.
    pub fn sparse(
        &self,
        starts: &[usize],
        columns: &[u32],
        values: &[f64],
    ) -> Result<Option<Box<dyn SparseMatrix>>, DeviceError> {
        let rows = starts.len().saturating_sub(1);
        let ends = starts.first().copied().unwrap_or(0) == 0
            && starts.last().copied().unwrap_or(0) == columns.len();
        let inside = columns.iter().all(|&column| (column as usize) < rows);
        if !ends || !starts.is_sorted() || !inside || columns.len() != values.len() {
            return Err(DeviceError::Mismatch { operation: "make a square sparse matrix" });
        }
        let Ok(_) = u32::try_from(columns.len()) else { return Ok(None) };
        let starts: Vec<u32> = starts.iter().map(|&start| start as u32).collect();
        let (starts, columns) = (self.upload(&starts)?, self.upload(columns)?);
        let values = self.upload(values)?;
        // SAFETY: these conditions have just been checked.
        unsafe { self.sparse_matrix(rows, [&starts, &columns, &values]) }
    }

    /// Like `sparse`, for rows on the device that this crate created, of a square matrix.
    pub(crate) fn sparse_in_place(
        &self,
        rows: usize,
        arrays: [&Array; 3],
    ) -> Result<Option<Box<dyn SparseMatrix>>, DeviceError> {
        let [starts, columns, values] = arrays;
        let largest = |array: &Array| array.indices.and_then(|known| known.largest.index(false));
        let inside = largest(columns).is_none_or(|column| (column as usize) < rows)
            && largest(starts).is_some_and(|end| end as usize == columns.len());
        let kinds = [ElementKind::U32, ElementKind::U32, ElementKind::F64];
        let typed = arrays.map(Array::kind) == kinds && columns.len() == values.len();
        if !typed || !inside || starts.len() <= rows {
            return Ok(None);
        }
        // SAFETY: lengths and largest indices have just been compared. Starts ascend: the callers, in this crate,
        // create them as sums of counts.
        unsafe { self.sparse_matrix(rows, arrays) }
    }
}

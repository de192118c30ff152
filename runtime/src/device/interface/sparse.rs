//! Sparse matrices that the library of a device's vendor multiplies with.

use super::{Array, Device, DeviceError, Kind};

/// A sparse matrix in a device's memory, multiplied by the vendor's library.
pub trait SparseMatrix: Send {
    /// y = A x in double precision.
    ///
    /// # Errors
    ///
    /// A driver that fails; vectors of another device, or too short.
    fn apply(&self, x: &Array, y: &mut Array) -> Result<(), DeviceError>;
}

impl dyn Device + '_ {
    /// A square matrix in compressed rows for the vendor's library, which operators are measured against; nothing
    /// where there is no such library. Row i has the columns and values from `starts[i]` to `starts[i + 1]`.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] if that is no square matrix; too little memory, a driver that fails.
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
        // SAFETY: that has just been checked.
        unsafe { self.sparse_matrix(rows, [&starts, &columns, &values]) }
    }

    /// The same of rows that lie on the device: those that this crate has made there, of a matrix that is square.
    pub(crate) fn sparse_in_place(
        &self,
        rows: usize,
        arrays: [&Array; 3],
    ) -> Result<Option<Box<dyn SparseMatrix>>, DeviceError> {
        let [starts, columns, values] = arrays;
        let largest = |array: &Array| array.indices.and_then(|known| known.largest.index(false));
        let inside = largest(columns).is_none_or(|column| (column as usize) < rows)
            && largest(starts).is_some_and(|end| end as usize == columns.len());
        let kinds = [Kind::U32, Kind::U32, Kind::F64];
        let typed = arrays.map(Array::kind) == kinds && columns.len() == values.len();
        if !typed || !inside || starts.len() <= rows {
            return Ok(None);
        }
        // SAFETY: lengths and the largest indices have just been compared; that starts do not descend is the callers' word,
        // who are in this crate and have made them as sums of counts.
        unsafe { self.sparse_matrix(rows, arrays) }
    }
}

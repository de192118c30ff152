//! Validation of a matrix and its near-null vectors before aggregation.

use crate::algebra::sparse::Csr;
use crate::support::parallel::*;

/// Tolerance of a_ij = a_ji, relative to √(a_ii a_jj): kernels sum in different orders.
const UNLIKE: f64 = 1e-6;

/// Reason why a hierarchy cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AggregationError {
    /// An entry that is not finite.
    #[error("row {row} of the matrix has an entry that is not finite")]
    NotFinite {
        /// Index of the row.
        row: usize,
    },
    /// A diagonal entry that is not positive.
    #[error("row {row} of the matrix has {value} on its diagonal, which is not positive")]
    NotPositive {
        /// Index of the row.
        row: usize,
        /// Its value.
        value: f64,
    },
    /// Entries a_ij and a_ji that differ.
    #[error(
        "the matrix is not symmetric: row {row} has another entry in column {column} than row {column} in column {row}"
    )]
    NotSymmetric {
        /// Index of the row.
        row: usize,
        /// Index of the column.
        column: usize,
    },
    /// Row offsets that are invalid, or columns that are not ascending.
    #[error("row {row} of the matrix has columns that do not ascend, or are none of the matrix")]
    Columns {
        /// Index of the row.
        row: usize,
    },
    /// A size beyond 32-bit indices.
    #[error("{unknowns} unknowns are more than 32 bits can number")]
    Wide {
        /// Number of degrees of freedom.
        unknowns: usize,
    },
    /// A size that is no multiple of the block size.
    #[error("a matrix of {unknowns} unknowns is none of nodes with {blocks} each")]
    Blocks {
        /// Number of degrees of freedom.
        unknowns: usize,
        /// Number of degrees of freedom per node.
        blocks: usize,
    },
    /// No near-null vector, or one of another matrix.
    #[error("near-null vector {vector} is missing, not as long as the matrix, or not finite")]
    NearNull {
        /// Index of the vector.
        vector: usize,
    },
    /// A setting out of its range.
    #[error("`{setting}` is out of its range")]
    Setting {
        /// Its name.
        setting: &'static str,
    },
}

/// Checks that 32-bit indices can address the degrees of freedom.
pub(super) fn narrow(unknowns: usize) -> Result<u32, AggregationError> {
    // The largest index marks an absent position.
    let number = u32::try_from(unknowns).ok().filter(|&unknowns| unknowns < u32::MAX);
    number.ok_or(AggregationError::Wide { unknowns })
}

/// Checks that a matrix is symmetric with a positive diagonal.
pub(super) fn check(
    matrix: &Csr,
    blocks: usize,
    near_null: &[Vec<f64>],
) -> Result<(), AggregationError> {
    let unknowns = matrix.size();
    narrow(unknowns)?;
    if blocks == 0 || !unknowns.is_multiple_of(blocks) {
        return Err(AggregationError::Blocks { unknowns, blocks });
    }
    let good = |vector: &Vec<f64>| vector.len() == unknowns && vector.iter().all(|x| x.is_finite());
    let bad = near_null.iter().position(|vector| !good(vector));
    if let Some(vector) = bad.or(near_null.is_empty().then_some(0)) {
        return Err(AggregationError::NearNull { vector });
    }
    first(unknowns, |row| ascending(matrix, row))?;
    first(unknowns, |row| positive(matrix, row))?;
    first(unknowns, |row| symmetric(matrix, row))
}

/// Returns the first error of any row.
fn first(
    rows: usize,
    of: impl Fn(usize) -> Option<AggregationError> + Send + Sync,
) -> Result<(), AggregationError> {
    (0..rows).into_par_iter().first(of).map_or(Ok(()), Err)
}

fn ascending(matrix: &Csr, row: usize) -> Option<AggregationError> {
    let (start, end) = (matrix.starts[row], matrix.starts[row + 1]);
    let count = matrix.columns.len().min(matrix.values.len());
    let columns = (start <= end && end <= count).then(|| &matrix.columns[start..end]);
    let good = columns.is_some_and(|columns| {
        columns.windows(2).all(|pair| pair[0] < pair[1])
            && columns.last().is_none_or(|&last| (last as usize) < matrix.size())
    });
    (!good).then_some(AggregationError::Columns { row })
}

fn positive(matrix: &Csr, row: usize) -> Option<AggregationError> {
    if matrix.row(row).any(|(_, value)| !value.is_finite()) {
        return Some(AggregationError::NotFinite { row });
    }
    let value = entry(matrix, row, row);
    (value <= 0.0).then_some(AggregationError::NotPositive { row, value })
}

fn symmetric(matrix: &Csr, row: usize) -> Option<AggregationError> {
    let own = entry(matrix, row, row);
    let unlike = |&(column, value): &(usize, f64)| {
        let difference = (value - entry(matrix, column, row)).abs();
        difference > 0.0 && difference > UNLIKE * (own * entry(matrix, column, column)).sqrt()
    };
    let (column, _) = matrix.row(row).filter(|(column, _)| *column != row).find(unlike)?;
    Some(AggregationError::NotSymmetric { row, column })
}

/// Returns a_ij.
pub(super) fn entry(matrix: &Csr, i: usize, j: usize) -> f64 {
    let range = matrix.starts[i]..matrix.starts[i + 1];
    let found = matrix.columns[range.clone()].binary_search(&(j as u32));
    found.map_or(0.0, |at| matrix.values[range.start + at])
}

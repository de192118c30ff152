//! Sparse matrices in Matrix Market format (math.nist.gov/MatrixMarket/formats.html): a banner, a line with rows,
//! columns and entries, and one line per entry, counted from 1. Symmetric matrices are written as lower triangle.

use super::{OutputError, failed};
use crate::algebra::sparse::Csr;
use crate::support::atomic_file;
use std::io::{Result, Write};
use std::path::Path;

/// Writes a square matrix atomically; numbers are restored exactly on reading. `symmetric` means that the upper
/// triangle mirrors the lower one.
///
/// # Errors
///
/// [`OutputError::Write`].
pub fn write_matrix(
    path: &Path,
    matrix: &Csr,
    symmetric: bool,
) -> std::result::Result<(), OutputError> {
    atomic_file::write(path, |out| fill(out, matrix, symmetric))
        .map_err(|error| failed(path, error))
}

fn fill(out: &mut dyn Write, matrix: &Csr, symmetric: bool) -> Result<()> {
    let n = matrix.size();
    let entries =
        |row: usize| matrix.row(row).filter(move |&(column, _)| !symmetric || column <= row);
    let count: usize = (0..n).map(|row| entries(row).count()).sum();
    let kind = if symmetric { "symmetric" } else { "general" };
    writeln!(out, "%%MatrixMarket matrix coordinate real {kind}")?;
    writeln!(out, "{n} {n} {count}")?;
    for row in 0..n {
        for (column, value) in entries(row) {
            writeln!(out, "{} {} {value:e}", row + 1, column + 1)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(symmetric: bool) -> String {
        let (starts, columns) = (vec![0, 2, 4], vec![0, 1, 0, 1]);
        let matrix = Csr::square(starts, columns, vec![2.0, -0.1, -0.1, 1.0 / 3.0]);
        let mut out = Vec::new();
        fill(&mut out, &matrix, symmetric).expect("a vector takes all");
        String::from_utf8(out).expect("a text")
    }

    #[test]
    fn entries_are_written_by_rows_and_to_the_bit() {
        let general =
            "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 2e0\n1 2 -1e-1\n2 1 -1e-1\n";
        let whole = text(false);
        assert!(whole.starts_with(general), "{whole}");
        let last = whole.trim_end().rsplit(' ').next().and_then(|number| number.parse().ok());
        assert_eq!(last, Some(1.0 / 3.0));
    }

    #[test]
    fn of_symmetric_matrices_the_lower_triangle_is_written() {
        let lower =
            "%%MatrixMarket matrix coordinate real symmetric\n2 2 3\n1 1 2e0\n2 1 -1e-1\n2 2 ";
        assert!(text(true).starts_with(lower), "{}", text(true));
    }
}

//! Linear systems of any program from files: matrix, right-hand side and solution → [`ResidualNorms`].
//!
//! ```text
//! r = b − A x        relative: ‖r‖₂ / ‖b‖₂, backward: ‖r‖_∞ / (‖A‖_∞ ‖x‖_∞ + ‖b‖_∞)
//! ```
//!
//! Matrices have the coordinate format of Matrix Market (math.nist.gov/MatrixMarket/formats.html): real, integer or
//! pattern; general, symmetric or skew-symmetric. Duplicate entries are summed. Vectors are NumPy arrays, Matrix Market
//! arrays with one column, or one number per line.

use super::npy::{self, NpyError};
use crate::algebra::sparse::Csr;
use crate::algebra::vector::norm;
use crate::support::input::{self, InputError};
use crate::support::memory::InsufficientMemory;
use crate::support::parallel::*;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The first word of a Matrix Market file.
const BANNER: &str = "%%matrixmarket";

/// Bytes of a row without entries: its start, and its entry of the residual.
const A_ROW: f64 = 24.0;

/// Error of a matrix or vector file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SystemError {
    /// A file that cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// Insufficient memory.
    #[error("{}: {error}", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// The allocation.
        error: InsufficientMemory,
    },
    /// An invalid line.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// The defect.
        what: String,
    },
    /// An invalid NumPy array.
    #[error("{}: {error}", path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: NpyError,
    },
    /// A vector whose length is not the number of rows.
    #[error("{} has {found} numbers, but the matrix has {wanted} rows", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// The length of the vector.
        found: usize,
        /// The number of rows.
        wanted: usize,
    },
}

/// Residual norms of a solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResidualNorms {
    /// The norm ‖b − A x‖₂.
    pub absolute: f64,
    /// The ratio ‖b − A x‖₂ / ‖b‖₂; 0 for a zero residual, infinite if only b is 0.
    pub relative: f64,
    /// The backward error ‖b − A x‖_∞ / (‖A‖_∞ ‖x‖_∞ + ‖b‖_∞): x solves a system perturbed by this, relative to its
    /// largest entries.
    pub backward: f64,
    /// The row with the largest residual, from 0.
    pub worst: usize,
}

impl ResidualNorms {
    /// Creates the residual of x; x and b have one entry per row of A.
    pub fn new(matrix: &Csr, x: &[f64], b: &[f64]) -> Self {
        let rows = (0..matrix.size()).into_par_iter().with_min_len(1 << 12);
        let row = |i: usize| {
            let product: f64 = matrix.row(i).map(|(j, value)| value * x[j]).sum();
            let sum: f64 = matrix.row(i).map(|(_, value)| value.abs()).sum();
            (b[i] - product, sum)
        };
        let rows: Vec<(f64, f64)> = rows.map(row).listed();
        let absolute = norm(rows.iter().map(|(left, _)| *left));
        // A NaN counts as the largest.
        let largest = |most: f64, value: f64| if value.abs() <= most { most } else { value.abs() };
        let most = |values: &[f64]| values.iter().copied().fold(0.0, largest);
        let (mut worst, mut left) = (0, 0.0);
        for (i, (own, _)) in rows.iter().enumerate() {
            if largest(left, *own) != left {
                (worst, left) = (i, own.abs());
            }
        }
        let sums = rows.iter().map(|(_, sum)| *sum).fold(0.0, largest);
        // A zero residual is 0 relative to 0, too.
        let part = |left: f64, of: f64| if left == 0.0 { 0.0 } else { left / of };
        let relative = part(absolute, norm(b.iter().copied()));
        Self { absolute, relative, backward: part(left, sums * most(x) + most(b)), worst }
    }
}

/// Reads a square matrix.
///
/// # Errors
///
/// [`SystemError`], with the line.
pub fn read_matrix(path: &Path) -> Result<Csr, SystemError> {
    // The shortest entry, `1 1` and a newline, becomes two entries of 16 bytes.
    let bytes = bytes_of(path, 9.0, |bytes| bytes.starts_with(b"%%"))?;
    let text = text_of(path, &bytes)?;
    matrix(text).map_err(|(line, what)| SystemError::Line { path: path.to_owned(), line, what })
}

/// Reads a vector with `wanted` entries.
///
/// # Errors
///
/// [`SystemError`], with the line of a text file.
pub fn read_vector(path: &Path, wanted: usize) -> Result<Vec<f64>, SystemError> {
    let fits = |bytes: &[u8]| npy::is_one(bytes) || input::is_text(bytes);
    let bytes = bytes_of(path, 5.0, fits)?;
    let numbers = if npy::is_one(&bytes) {
        let table = npy::read(&bytes);
        table.map_err(|error| SystemError::Npy { path: path.to_owned(), error })?.values
    } else {
        let found = vector(text_of(path, &bytes)?);
        found.map_err(|(line, what)| SystemError::Line { path: path.to_owned(), line, what })?
    };
    match numbers.len() {
        found if found == wanted => Ok(numbers),
        found => Err(SystemError::Length { path: path.to_owned(), found, wanted }),
    }
}

fn bytes_of(path: &Path, times: f64, fits: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>, SystemError> {
    input::read(path, times, fits).map_err(|error| match error {
        InputError::Open(error) => SystemError::Read { path: path.to_owned(), error },
        InputError::Memory(error) => SystemError::Memory { path: path.to_owned(), error },
    })
}

fn text_of<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str, SystemError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        let what = "bytes that are no text: neither Matrix Market nor one of NumPy's arrays".into();
        SystemError::Line { path: path.to_owned(), line, what }
    })
}

/// A line number and the defect.
type LineDefect = (usize, String);

/// Returns the numbered lines without comments and empty lines.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('%'))
}

/// Returns the words after `%%MatrixMarket matrix`, in lower case.
fn banner(text: &str) -> Result<Vec<String>, LineDefect> {
    let first = text.lines().next().unwrap_or_default().to_ascii_lowercase();
    let words: Vec<&str> = first.split_whitespace().collect();
    match words[..] {
        [BANNER, "matrix", ref rest @ ..] => Ok(rest.iter().map(ToString::to_string).collect()),
        _ => Err((
            1,
            "Matrix Market's files begin with `%%MatrixMarket matrix coordinate real general`"
                .into(),
        )),
    }
}

/// Relation of the upper to the lower triangle.
#[derive(Clone, Copy, PartialEq)]
enum TriangleRelation {
    General,
    Symmetric,
    SkewSymmetric,
}

fn matrix(text: &str) -> Result<Csr, LineDefect> {
    let words = banner(text)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["coordinate", sort, symmetry] = words[..] else {
        let found = words.join(" ");
        return Err((1, format!("a sparse matrix is `coordinate real general`, not `{found}`")));
    };
    if !matches!(sort, "real" | "integer" | "pattern") {
        return Err((1, format!("entries are real, integer or pattern, not `{sort}`")));
    }
    let other = match symmetry {
        "general" => TriangleRelation::General,
        "symmetric" => TriangleRelation::Symmetric,
        "skew-symmetric" => TriangleRelation::SkewSymmetric,
        _ => {
            let what = "a matrix is general, symmetric or skew-symmetric";
            return Err((1, format!("{what}, not `{symmetry}`")));
        }
    };
    let mut lines = lines(text);
    let end = || (text.lines().count().max(1), "the file ends before its sizes".to_owned());
    let (at, sizes) = lines.next().ok_or_else(end)?;
    let numbers: Result<Vec<usize>, _> = sizes.split_whitespace().map(str::parse).collect();
    let Ok([rows, columns, count]) = numbers.as_deref() else {
        return Err((at, format!("rows, columns and entries should stand here, not `{sizes}`")));
    };
    let (rows, columns, count) = (*rows, *columns, *count);
    if rows != columns {
        return Err((at, format!("a system has as many columns as rows, not {rows} × {columns}")));
    }
    if rows >= u32::MAX as usize {
        return Err((at, format!("{rows} rows are more than 32-bit indices number")));
    }
    let bytes = A_ROW * rows as f64;
    input::room(|| format!("a matrix of {rows} rows"), bytes)
        .map_err(|error| (at, error.to_string()))?;
    let mut triples: Vec<(u32, u32, f64)> = Vec::with_capacity(2 * count.min(text.len() / 4));
    let (mut found, mut last) = (0, at);
    for (at, line) in lines {
        last = at;
        if found == count {
            return Err((at, format!("the file announces {count} entries, and here is one more")));
        }
        found += 1;
        let (row, column, value) = entry(line, sort, rows).map_err(|what| (at, what))?;
        triples.push((row, column, value));
        if row == column && other == TriangleRelation::SkewSymmetric {
            return Err((at, "a skew-symmetric matrix has nothing on its diagonal".into()));
        }
        if row < column && other != TriangleRelation::General {
            return Err((at, format!("of a {symmetry} matrix the lower triangle is written")));
        }
        if row != column && other != TriangleRelation::General {
            triples.push((
                column,
                row,
                if other == TriangleRelation::Symmetric { value } else { -value },
            ));
        }
    }
    if found < count {
        return Err((last, format!("the file announces {count} entries, and ends after {found}")));
    }
    Ok(rows_of(rows, triples))
}

/// Parses an entry, `1 2 -0.5`, counted from 1.
fn entry(line: &str, sort: &str, n: usize) -> Result<(u32, u32, f64), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (row, column, value) = match (&words[..], sort) {
        (&[row, column], "pattern") => (row, column, "1"),
        (&[row, column, value], "real" | "integer") => (row, column, value),
        _ => {
            let wanted = if sort == "pattern" { "" } else { " and a number" };
            return Err(format!("an entry has a row, a column{wanted}, not `{line}`"));
        }
    };
    let index = |word: &str, what: &str| match word.parse::<usize>() {
        Ok(at) if (1..=n).contains(&at) => Ok((at - 1) as u32),
        Ok(at) => Err(format!("there is no {what} {at}: they are numbered from 1 to {n}")),
        Err(_) => Err(format!("`{word}` is no {what}")),
    };
    Ok((index(row, "row")?, index(column, "column")?, number(value)?))
}

fn number(word: &str) -> Result<f64, String> {
    // Fortran writes 1.0D-3.
    let parsed = word.parse().or_else(|_| word.replace(['d', 'D'], "e").parse());
    parsed.map_err(|_| format!("`{word}` is no number"))
}

/// Returns the CSR matrix of entries; duplicates are summed in file order.
fn rows_of(n: usize, mut triples: Vec<(u32, u32, f64)>) -> Csr {
    triples.par_sort_by_key(|&(row, column, _)| (row, column));
    triples.dedup_by(|next, kept| {
        let same = (next.0, next.1) == (kept.0, kept.1);
        if same {
            kept.2 += next.2;
        }
        same
    });
    let mut starts = vec![0; n + 1];
    triples.iter().for_each(|(row, ..)| starts[*row as usize + 1] += 1);
    (0..n).for_each(|row| starts[row + 1] += starts[row]);
    let (columns, values) = triples.into_iter().map(|(_, column, value)| (column, value)).unzip();
    Csr::square(starts, columns, values)
}

fn vector(text: &str) -> Result<Vec<f64>, LineDefect> {
    let market = text.get(..BANNER.len()).is_some_and(|own| own.eq_ignore_ascii_case(BANNER));
    let mut lines = lines(text);
    let mut announced = None;
    if market {
        let words = banner(text)?;
        if !matches!(
            words.iter().map(String::as_str).collect::<Vec<_>>()[..],
            ["array", "real" | "integer", "general"]
        ) {
            let found = words.join(" ");
            return Err((1, format!("a vector is `array real general`, not `{found}`")));
        }
        let (at, sizes) = lines.next().ok_or((1, "the file ends before its sizes".to_owned()))?;
        let numbers: Result<Vec<usize>, _> = sizes.split_whitespace().map(str::parse).collect();
        match numbers.as_deref() {
            Ok([rows, 1]) => announced = Some(*rows),
            _ => return Err((at, format!("rows and one column should stand here, not `{sizes}`"))),
        }
    }
    let (mut numbers, mut last) = (Vec::new(), 1);
    for (at, line) in lines.filter(|(_, line)| !line.starts_with('#')) {
        last = at;
        numbers.push(number(line).map_err(|_| (at, format!("`{line}` is no number")))?);
    }
    match announced.filter(|&rows| rows != numbers.len()) {
        Some(rows) => {
            let found = numbers.len();
            Err((last, format!("the file announces {rows} numbers, and has {found}")))
        }
        None => Ok(numbers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(matrix: &Csr) -> Vec<Vec<f64>> {
        let n = matrix.size();
        let row = |i: usize| {
            let mut row = vec![0.0; n];
            matrix.row(i).for_each(|(j, value)| row[j] += value);
            row
        };
        (0..n).map(row).collect()
    }

    #[test]
    fn matrices_of_all_kinds_are_read() {
        let head =
            |kind: &str, rest: &str| format!("%%MatrixMarket matrix coordinate {kind}\n{rest}");
        let read = |kind: &str, rest: &str| dense(&matrix(&head(kind, rest)).expect("a matrix"));
        let general = read("real general", "% of a code\n\n2 2 3\n2 1 -1.5\n1 1 2\n2 1 1D-1\n");
        assert_eq!(general, [[2.0, 0.0], [-1.4, 0.0]]);
        let symmetric = read("real symmetric", "2 2 2\n1 1 2e0\n2 1 -1\n");
        assert_eq!(symmetric, [[2.0, -1.0], [-1.0, 0.0]]);
        let skew = read("integer skew-symmetric", "2 2 1\n2 1 3\n");
        assert_eq!(skew, [[0.0, -3.0], [3.0, 0.0]]);
        assert_eq!(read("pattern general", "2 2 1\n1 2\n"), [[0.0, 1.0], [0.0, 0.0]]);
        assert_eq!(read("real general", "0 0 0\n"), Vec::<Vec<f64>>::new());
    }

    /// Invalid files with line numbers and parts of the messages.
    #[test]
    fn bad_lines_are_named() {
        let general = "%%MatrixMarket matrix coordinate real general\n";
        let cases = [
            (String::new(), 1, "begin with"),
            ("2 2 1\n1 1 1\n".into(), 1, "begin with"),
            ("%%MatrixMarket matrix array real general\n".into(), 1, "not `array real general`"),
            ("%%MatrixMarket matrix coordinate complex general\n".into(), 1, "not `complex`"),
            ("%%MatrixMarket matrix coordinate real hermitian\n".into(), 1, "not `hermitian`"),
            (format!("{general}% sizes are missing\n"), 2, "ends before its sizes"),
            (format!("{general}2 2\n"), 2, "rows, columns and entries"),
            (format!("{general}2 3 1\n1 1 1\n"), 2, "2 × 3"),
            (format!("{general}4294967295 4294967295 0\n"), 2, "32-bit"),
            (format!("{general}18446744073709551615 18446744073709551615 0\n"), 2, "32-bit"),
            (format!("{general}2 2 1\n\n0 1 1\n"), 4, "no row 0"),
            (format!("{general}2 2 1\n1 3 1\n"), 3, "no column 3"),
            (format!("{general}2 2 1\n1 1 one\n"), 3, "`one` is no number"),
            (format!("{general}2 2 1\n1 1\n"), 3, "and a number"),
            (format!("{general}2 2 2\n1 1 1\n"), 3, "ends after 1"),
            (format!("{general}2 2 1\n1 1 1\n2 2 1\n"), 4, "one more"),
            (
                "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n".into(),
                3,
                "lower triangle",
            ),
        ];
        for (text, line, part) in cases {
            let (at, what) = matrix(&text).expect_err(&text);
            assert!(at == line && what.contains(part), "{text}: {at}: {what}");
        }
        let array = "%%MatrixMarket matrix array real general\n";
        for (text, line, part) in [
            ("1\n# a remark\nx\n".to_owned(), 3, "`x` is no number"),
            (format!("{array}2 2\n1\n2\n3\n4\n"), 2, "one column"),
            (format!("{array}3 1\n1\n2\n"), 4, "announces 3 numbers, and has 2"),
        ] {
            let (at, what) = vector(&text).expect_err(&text);
            assert!(at == line && what.contains(part), "{text}: {at}: {what}");
        }
        assert_eq!(vector(&format!("{array}2 1\n1\n-2.5\n")), Ok(vec![1.0, -2.5]));
        assert_eq!(vector("1\n\n# a remark\n2e1\n"), Ok(vec![1.0, 20.0]));
    }

    #[test]
    fn residuals_are_relative_to_the_right_hand_side_and_to_all_numbers() {
        let matrix = Csr::square(vec![0, 1, 3], vec![0, 0, 1], vec![2.0, 1.0, -3.0]);
        let residual = ResidualNorms::new(&matrix, &[1.0, 2.0], &[2.0, -1.0]);
        // b − A x = (0, 4), ‖b‖₂ = √5, ‖A‖_∞ = 4.
        assert_eq!((residual.absolute, residual.worst), (4.0, 1));
        assert_eq!(residual.relative, 4.0 / 5.0_f64.sqrt());
        assert_eq!(residual.backward, 4.0 / (4.0 * 2.0 + 2.0));
        assert_eq!(ResidualNorms::new(&matrix, &[1.0, 1.0], &[2.0, -2.0]).absolute, 0.0);
        let broken = ResidualNorms::new(&matrix, &[f64::NAN, 1.0], &[2.0, -2.0]);
        assert!(broken.absolute.is_nan() && broken.backward.is_nan());
    }

    #[test]
    fn residuals_whose_squares_underflow_are_told() {
        let matrix = Csr::square(vec![0, 1], vec![0], vec![1.0]);
        for size in [1e-200, 1.0, 1e200] {
            let residual = ResidualNorms::new(&matrix, &[3.8 * size], &[size]);
            assert!((residual.absolute / size - 2.8).abs() < 1e-15, "{residual:?}");
            assert!((residual.relative - 2.8).abs() < 1e-15, "{residual:?}");
        }
        let solved = ResidualNorms::new(&matrix, &[0.0], &[0.0]);
        assert_eq!((solved.absolute, solved.relative, solved.backward), (0.0, 0.0, 0.0));
    }
}

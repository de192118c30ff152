//! NumPy array files (`.npy`): bytes → [`NpyTable`].
//!
//! The format consists of six magic bytes, two version bytes, the length of the header, the header and the numbers. The
//! header is a Python dictionary with the type (`descr`), the order (`fortran_order`) and the extents (`shape`)
//! (numpy.org, "numpy.lib.format").

use crate::mesh::read::vtk::numbers::NumberType;
use thiserror::Error;

const MAGIC: &[u8] = b"\x93NUMPY";

/// A table of numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NpyTable {
    pub(super) rows: usize,
    /// The number of columns.
    pub(super) columns: usize,
    pub(super) values: Vec<f64>,
}

/// Error of a NumPy file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NpyError {
    /// An invalid or truncated header.
    #[error("its header is damaged: {0}")]
    Header(&'static str),
    /// An unsupported element type.
    #[error(
        "its numbers are of type {0}, which is not read\nhelp: save floating-point numbers or integers: `a.astype(float)`"
    )]
    Type(String),
    /// A shape other than one or two dimensions.
    #[error("its shape is ({0}), but data has one row a cell or node: one or two dimensions")]
    Shape(String),
    /// A length that does not match the shape.
    #[error("it announces {expected} bytes of numbers, but {found} follow")]
    Length {
        /// The length by the header.
        expected: u64,
        /// The length found.
        found: usize,
    },
}

/// Returns whether the bytes start with the magic bytes.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

pub(super) fn read(bytes: &[u8]) -> Result<NpyTable, NpyError> {
    let damaged = NpyError::Header;
    let rest = bytes.strip_prefix(MAGIC).ok_or(damaged("it does not begin as one"))?;
    let cut = damaged("the file ends in it");
    let (version, rest) = rest.split_at_checked(2).ok_or(cut.clone())?;
    // The length has two bytes in version 1, and four from version 2 on.
    let size = if version[0] == 1 { 2 } else { 4 };
    let (length, rest) = rest.split_at_checked(size).ok_or(cut.clone())?;
    let length = length.iter().rev().fold(0, |all, &byte| all << 8 | usize::from(byte));
    let (header, numbers) = rest.split_at_checked(length).ok_or(cut)?;
    let header = std::str::from_utf8(header).map_err(|_| damaged("it is no text"))?;
    let kind = value(header, "descr").ok_or(damaged("it has no `descr`"))?;
    let (kind, big) = number_type(kind)?;
    let fortran =
        match value(header, "fortran_order").ok_or(damaged("it has no `fortran_order`"))? {
            text if text.starts_with("True") => true,
            text if text.starts_with("False") => false,
            _ => return Err(damaged("`fortran_order` is neither True nor False")),
        };
    let (rows, columns) = shape(value(header, "shape").ok_or(damaged("it has no `shape`"))?)?;
    let expected = (rows as u64).saturating_mul(columns as u64).saturating_mul(kind.size() as u64);
    if expected != numbers.len() as u64 {
        return Err(NpyError::Length { expected, found: numbers.len() });
    }
    let mut values = kind.bytes(numbers, big).reals();
    if fortran {
        let at = |i: usize| values[i % columns * rows + i / columns];
        values = (0..values.len()).map(at).collect();
    }
    Ok(NpyTable { rows, columns, values })
}

/// Returns the rest of the text after a key of the dictionary.
fn value<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    ['\'', '"'].iter().find_map(|quote| {
        let (_, rest) = header.split_once(&format!("{quote}{key}{quote}"))?;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    })
}

/// Parses `'<f8'`: byte order, kind and size.
fn number_type(text: &str) -> Result<(NumberType, bool), NpyError> {
    let other = || {
        let end = text.find("'fortran_order'").unwrap_or(text.len());
        let shown: String = text[..end].trim_end_matches([',', ' ']).chars().take(40).collect();
        NpyError::Type(shown)
    };
    let quoted = text.strip_prefix(['\'', '"']).and_then(|rest| rest.split(['\'', '"']).next());
    let quoted = quoted.ok_or_else(other)?;
    let (big, name) = match quoted.split_at_checked(1) {
        Some(("<" | "|", name)) => (false, name),
        Some((">", name)) => (true, name),
        _ => return Err(other()),
    };
    let kind = match name {
        "f4" | "f8" => NumberType::Real(if name == "f4" { 4 } else { 8 }),
        "i1" => NumberType::Signed(1),
        "i2" => NumberType::Signed(2),
        "i4" => NumberType::Signed(4),
        "i8" => NumberType::Signed(8),
        "u1" | "b1" => NumberType::Unsigned(1),
        "u2" => NumberType::Unsigned(2),
        "u4" => NumberType::Unsigned(4),
        "u8" => NumberType::Unsigned(8),
        _ => return Err(other()),
    };
    Ok((kind, big))
}

/// Parses `(100, 3)`: rows and columns.
fn shape(text: &str) -> Result<(usize, usize), NpyError> {
    let inside = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let (inside, _) = inside.ok_or(NpyError::Header("`shape` is no tuple"))?;
    let words = inside.split(',').map(str::trim).filter(|word| !word.is_empty());
    let extents: Result<Vec<usize>, _> = words.map(str::parse).collect();
    match extents.as_deref() {
        Ok([rows]) => Ok((*rows, 1)),
        Ok([rows, columns]) if *columns > 0 => Ok((*rows, *columns)),
        Ok(_) => Err(NpyError::Shape(inside.chars().take(40).collect())),
        Err(_) => Err(NpyError::Header("`shape` holds what is no number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, numbers: &[u8]) -> Vec<u8> {
        let length = (header.len() as u16).to_le_bytes();
        [MAGIC, &[1, 0], &length[..], header.as_bytes(), numbers].concat()
    }

    fn header(kind: &str, fortran: &str, shape: &str) -> String {
        format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}   \n")
    }

    #[test]
    fn numbers_of_all_types_and_orders_are_read() {
        let reals: Vec<u8> =
            [1.0_f64, -0.1, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let table = read(&file(&header("<f8", "False", "(4,)"), &reals)).expect("a column");
        assert_eq!(table, NpyTable { rows: 4, columns: 1, values: vec![1.0, -0.1, 3.0, 4.0] });
        let table = read(&file(&header("<f8", "True", "(2, 2)"), &reals)).expect("columns");
        assert_eq!(table, NpyTable { rows: 2, columns: 2, values: vec![1.0, 3.0, -0.1, 4.0] });
        let floats: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|x| x.to_be_bytes()).collect();
        let table = read(&file(&header(">f4", "False", "(1, 2)"), &floats)).expect("a row");
        assert_eq!(table, NpyTable { rows: 1, columns: 2, values: vec![1.5, -2.0] });
        for (kind, bytes) in
            [("|u1", vec![7, 255]), ("|b1", vec![0, 1]), ("<i2", vec![254, 255, 3, 0])]
        {
            let table = read(&file(&header(kind, "False", "(2,)"), &bytes)).expect(kind);
            let known: [f64; 2] = match kind {
                "|u1" => [7.0, 255.0],
                "|b1" => [0.0, 1.0],
                _ => [-2.0, 3.0],
            };
            assert_eq!(table.values, known, "{kind}");
        }
        // Version 2 has a longer length field.
        let text = header("<f8", "False", "(4,)");
        let long = [MAGIC, &[2, 0], &(text.len() as u32).to_le_bytes(), text.as_bytes(), &reals];
        assert_eq!(read(&long.concat()).map(|table| table.rows), Ok(4));
    }

    #[test]
    fn unsigned_numbers_of_eight_bytes_are_not_negative() {
        let numbers = [3, u64::MAX, 1 << 63];
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let table = read(&file(&header("<u8", "False", "(3,)"), &bytes)).expect("numbers");
        assert_eq!(table.values, [3.0, 18_446_744_073_709_551_616.0, 9_223_372_036_854_775_808.0]);
    }

    #[test]
    fn what_is_no_table_is_said() {
        let refused = |kind: &str, shape: &str, bytes: usize| {
            read(&file(&header(kind, "False", shape), &vec![0; bytes]))
                .expect_err(shape)
                .to_string()
        };
        assert!(refused("<f8", "(3,)", 16).starts_with("it announces 24 bytes of numbers, but 16"));
        assert!(refused("<f8", "(3, 2, 2)", 96).starts_with("its shape is (3, 2, 2), but"));
        assert!(refused("<f8", "()", 8).starts_with("its shape is (), but"));
        assert!(refused("<f8", "(3, 0)", 0).starts_with("its shape is (3, 0), but"));
        assert!(refused("<c16", "(3,)", 48).starts_with("its numbers are of type '<c16'"));
        assert!(refused("|O", "(3,)", 24).starts_with("its numbers are of type '|O'"));
        assert!(refused("<f8", "(18446744073709551615, 9)", 24).starts_with("it announces"));
        assert!(refused("<f8", "(-1,)", 24).contains("no number"));
        let whole = file(&header("<f8", "False", "(2,)"), &[0; 16]);
        for end in 0..whole.len() {
            assert!(read(&whole[..end]).is_err(), "{end}");
        }
    }
}

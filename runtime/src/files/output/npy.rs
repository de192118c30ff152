//! NumPy array files (numpy.org, "numpy.lib.format", version 1.0).

use super::{OutputError, failed};
use crate::support::atomic_file;
use std::io::{Result, Write};
use std::path::Path;

/// Alignment of the numbers in bytes.
const ALIGNED: usize = 64;

/// Number types supported by NumPy.
pub trait NpyNumber: Copy {
    /// NumPy's name of the type, with byte order.
    const DESCR: &'static str;

    /// Returns the bytes of the number.
    fn bytes(self) -> Vec<u8>;
}

impl NpyNumber for f64 {
    const DESCR: &'static str = "<f8";

    fn bytes(self) -> Vec<u8> {
        self.to_le_bytes().into()
    }
}

impl NpyNumber for bool {
    const DESCR: &'static str = "|b1";

    fn bytes(self) -> Vec<u8> {
        vec![u8::from(self)]
    }
}

/// Writes an array atomically: rows of `columns` numbers, or a one-dimensional array.
///
/// # Errors
///
/// [`OutputError::Write`].
pub fn write_npy<T: NpyNumber>(
    path: &Path,
    values: &[T],
    columns: Option<usize>,
) -> std::result::Result<(), OutputError> {
    atomic_file::write(path, |out| fill(out, values, columns)).map_err(|error| failed(path, error))
}

fn fill<T: NpyNumber>(out: &mut dyn Write, values: &[T], columns: Option<usize>) -> Result<()> {
    let shape = match columns {
        None => format!("({},)", values.len()),
        Some(columns) => format!("({}, {columns})", values.len() / columns.max(1)),
    };
    let mut header =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': {shape}, }}", T::DESCR);
    // The name has six bytes, version and length two each; a newline ends the header.
    let before = 10;
    let whole = (before + header.len() + 1).next_multiple_of(ALIGNED);
    header.push_str(&" ".repeat(whole - before - header.len() - 1));
    header.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    values.iter().try_for_each(|value| out.write_all(&value.bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_the_length_that_they_say() {
        for (values, columns, shape) in [
            (vec![1.0, -0.1, 3.0, 4.0, 5.0, 6.0], None, "'shape': (6,), }"),
            (vec![1.0, -0.1, 3.0, 4.0, 5.0, 6.0], Some(3), "'shape': (2, 3), }"),
            (Vec::new(), None, "'shape': (0,), }"),
        ] {
            let mut out = Vec::new();
            fill(&mut out, &values, columns).expect("a vector takes all");
            let length = usize::from(u16::from_le_bytes([out[8], out[9]]));
            assert_eq!((10 + length) % ALIGNED, 0);
            let header = std::str::from_utf8(&out[10..10 + length]).expect("a text");
            assert!(header.starts_with("{'descr': '<f8', 'fortran_order': False, "), "{header}");
            assert!(header.trim_end().ends_with(shape) && header.ends_with('\n'), "{header}");
            let numbers = out[10 + length..].chunks_exact(8);
            let numbers: Vec<f64> =
                numbers.map(|bytes| f64::from_le_bytes(bytes.try_into().expect("eight"))).collect();
            assert_eq!(numbers, values);
        }
    }
}

//! Numbers of VTK types, as text or as bytes of either byte order.

use crate::mesh::read::cursor::shorten;

/// A type of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberType {
    /// Signed integers of this many bytes.
    Signed(usize),
    /// Unsigned integers of this many bytes.
    Unsigned(usize),
    /// Floating-point numbers of this many bytes.
    Real(usize),
}

/// Values of one array.
#[derive(Debug)]
pub enum ArrayValues {
    /// Integers.
    Integers(Vec<i64>),
    /// Values, some above the largest `i64`.
    Large(Vec<u64>),
    /// Reals.
    Reals(Vec<f64>),
}

impl NumberType {
    /// Returns the type with an XML name, such as `Int32`.
    pub(crate) fn of_xml(name: &str) -> Option<NumberType> {
        Some(match name {
            "Int8" => NumberType::Signed(1),
            "Int16" => NumberType::Signed(2),
            "Int32" => NumberType::Signed(4),
            "Int64" => NumberType::Signed(8),
            "UInt8" => NumberType::Unsigned(1),
            "UInt16" => NumberType::Unsigned(2),
            "UInt32" => NumberType::Unsigned(4),
            "UInt64" => NumberType::Unsigned(8),
            "Float32" => NumberType::Real(4),
            "Float64" => NumberType::Real(8),
            _ => return None,
        })
    }

    /// Returns the type with a legacy name, such as `unsigned_char`. `vtkIdType` is stored as `int`.
    pub(crate) fn of_legacy(name: &str) -> Option<NumberType> {
        Some(match name.to_ascii_lowercase().as_str() {
            "char" | "signed_char" => NumberType::Signed(1),
            "unsigned_char" => NumberType::Unsigned(1),
            "short" => NumberType::Signed(2),
            "unsigned_short" => NumberType::Unsigned(2),
            "int" | "vtkidtype" => NumberType::Signed(4),
            "unsigned_int" => NumberType::Unsigned(4),
            "long" | "long_long" | "vtktypeint64" => NumberType::Signed(8),
            "unsigned_long" | "unsigned_long_long" | "vtktypeuint64" => NumberType::Unsigned(8),
            "vtktypeint32" => NumberType::Signed(4),
            "vtktypeuint32" => NumberType::Unsigned(4),
            "vtktypeint16" => NumberType::Signed(2),
            "vtktypeuint16" => NumberType::Unsigned(2),
            "vtktypeint8" => NumberType::Signed(1),
            "vtktypeuint8" => NumberType::Unsigned(1),
            "float" => NumberType::Real(4),
            "double" => NumberType::Real(8),
            _ => return None,
        })
    }

    /// Bytes per number.
    pub fn size(self) -> usize {
        match self {
            NumberType::Signed(size) | NumberType::Unsigned(size) | NumberType::Real(size) => size,
        }
    }

    /// Returns an empty list of values.
    pub(crate) fn none(self) -> ArrayValues {
        match self {
            NumberType::Real(_) => ArrayValues::Reals(Vec::new()),
            _ => ArrayValues::Integers(Vec::new()),
        }
    }

    /// Appends a number given as text; returns false if it is invalid.
    pub(crate) fn word(self, word: &[u8], numbers: &mut ArrayValues) -> bool {
        let Ok(text) = std::str::from_utf8(word) else { return false };
        match numbers {
            ArrayValues::Reals(all) => text.parse().map(|x| all.push(x)).is_ok(),
            ArrayValues::Integers(all) => text.parse().map(|n| all.push(n)).is_ok(),
            ArrayValues::Large(all) => text.parse().map(|n| all.push(n)).is_ok(),
        }
    }

    /// Decodes the complete numbers in some bytes.
    pub fn bytes(self, bytes: &[u8], big: bool) -> ArrayValues {
        // Up to eight bytes, least significant first.
        let bits = |chunk: &[u8]| {
            let mut all = [0; 8];
            for (i, slot) in all[..chunk.len()].iter_mut().enumerate() {
                *slot = chunk[if big { chunk.len() - 1 - i } else { i }];
            }
            u64::from_le_bytes(all)
        };
        let chunks = bytes.chunks_exact(self.size()).map(bits);
        match self {
            NumberType::Real(4) => {
                ArrayValues::Reals(chunks.map(|b| f64::from(f32::from_bits(b as u32))).collect())
            }
            NumberType::Real(_) => ArrayValues::Reals(chunks.map(f64::from_bits).collect()),
            NumberType::Unsigned(_) => {
                let all: Vec<u64> = chunks.collect();
                let signed: Result<Vec<i64>, _> = all.iter().map(|&b| i64::try_from(b)).collect();
                signed.map_or(ArrayValues::Large(all), ArrayValues::Integers)
            }
            NumberType::Signed(size) => {
                let unused = 64 - 8 * size as u32;
                ArrayValues::Integers(chunks.map(|b| (b << unused) as i64 >> unused).collect())
            }
        }
    }
}

impl ArrayValues {
    /// Returns the number of values.
    pub fn count(&self) -> usize {
        match self {
            ArrayValues::Integers(all) => all.len(),
            ArrayValues::Large(all) => all.len(),
            ArrayValues::Reals(all) => all.len(),
        }
    }

    /// Returns the values as floating-point numbers; `self` is unchanged.
    pub fn to_reals(&self) -> Vec<f64> {
        match self {
            ArrayValues::Integers(all) => all.iter().map(|&n| n as f64).collect(),
            ArrayValues::Large(all) => all.iter().map(|&n| n as f64).collect(),
            ArrayValues::Reals(all) => all.clone(),
        }
    }

    /// Returns the values as reals.
    pub fn reals(self) -> Vec<f64> {
        match self {
            ArrayValues::Integers(all) => all.into_iter().map(|n| n as f64).collect(),
            ArrayValues::Large(all) => all.into_iter().map(|n| n as f64).collect(),
            ArrayValues::Reals(all) => all,
        }
    }

    /// Returns the values as indices or counts, or the first invalid one.
    pub(crate) fn counts(self) -> Result<Vec<u64>, String> {
        match self {
            ArrayValues::Integers(all) => {
                all.into_iter().map(|n| u64::try_from(n).map_err(|_| n.to_string())).collect()
            }
            // Values of this size are no counts.
            ArrayValues::Large(all) => Err(all
                .iter()
                .find(|&&n| i64::try_from(n).is_err())
                .map_or("no integers".to_owned(), u64::to_string)),
            ArrayValues::Reals(all) => {
                Err(all.first().map_or("no integers".to_owned(), f64::to_string))
            }
        }
    }

    /// Returns the values as integers, if all are integral.
    pub fn whole(&self) -> Option<Vec<i64>> {
        let whole = |x: f64| (x.fract() == 0.0 && x.abs() < 9e15).then_some(x as i64);
        match self {
            ArrayValues::Integers(all) => Some(all.clone()),
            ArrayValues::Large(_) => None,
            ArrayValues::Reals(all) => all.iter().map(|&x| whole(x)).collect(),
        }
    }

    /// Returns the values as points with three coordinates, or the first coordinate that is not finite.
    pub(crate) fn points(self) -> Result<Vec<[f64; 3]>, String> {
        let all = self.reals();
        match all.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(x.to_string()),
            None => Ok(all.chunks_exact(3).map(|x| [x[0], x[1], x[2]]).collect()),
        }
    }
}

/// Returns a word, formatted for a message.
pub(crate) fn shown(word: &[u8]) -> String {
    if word.is_empty() { "the end".to_owned() } else { format!("`{}`", shorten(word)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_either_order_are_the_same_numbers() {
        let integers = |kind: NumberType, bytes: &[u8], big| kind.bytes(bytes, big).whole();
        assert_eq!(integers(NumberType::Signed(2), &[0xFE, 0xFF, 1, 0], false), Some(vec![-2, 1]));
        assert_eq!(integers(NumberType::Signed(2), &[0xFF, 0xFE, 0, 1], true), Some(vec![-2, 1]));
        assert_eq!(integers(NumberType::Unsigned(1), &[255, 1], true), Some(vec![255, 1]));
        assert_eq!(integers(NumberType::Signed(8), &(-7_i64).to_be_bytes(), true), Some(vec![-7]));
        assert_eq!(NumberType::Real(4).bytes(&1.5_f32.to_be_bytes(), true).reals(), [1.5]);
        assert_eq!(NumberType::Real(8).bytes(&(-0.1_f64).to_le_bytes(), false).reals(), [-0.1]);
        let large = || NumberType::Unsigned(8).bytes(&[0xFF; 8], false);
        assert_eq!(large().counts(), Err(u64::MAX.to_string()));
        assert_eq!((large().count(), large().whole()), (1, None));
    }
}

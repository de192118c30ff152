//! Decoding of array bytes in an XML file: raw or base64, with or without zlib blocks.
//!
//! A header of 4- or 8-byte integers precedes the bytes. Uncompressed: the number of bytes. Compressed: the number of
//! blocks, the uncompressed block size, the size of a smaller last block (else 0), and the compressed size of each
//! block (docs.vtk.org, "VTK XML Formats").
//!
//! Base64 (RFC 4648) is decoded here, four letters at a time. VTK pads header and data separately, other programs
//! together, and a text may hold several arrays without separators.

use crate::support::memory::{Bytes, InsufficientMemory, MemoryBudget};
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use std::borrow::Cow;

/// The largest expansion factor of zlib.
const MOST_UNPACKED: u64 = 1032;

/// Encoding of bytes in an XML file.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByteEncoding {
    /// Bytes per header integer.
    pub(super) header: usize,
    /// True for big-endian data.
    pub(super) big: bool,
    pub(super) compressed: bool,
}

/// Error of the decoder.
#[derive(Debug, PartialEq)]
pub(super) enum DecodeError {
    /// More bytes are announced than left.
    Short { count: u64, left: usize },
    /// The expected and the found content.
    Wrong { expected: String, found: String },
    /// Insufficient memory for the decompressed data.
    Memory(InsufficientMemory),
}

/// Source of bytes, consumed piecewise.
pub(super) enum ByteSource<'a> {
    Raw(&'a [u8]),
    Base64 {
        /// The remaining letters.
        text: &'a [u8],
        /// Decoded bytes that are not consumed yet.
        ready: Vec<u8>,
    },
}

impl<'a> ByteSource<'a> {
    pub(super) fn base64(text: &'a [u8]) -> Self {
        Self::Base64 { text, ready: Vec::new() }
    }

    /// Returns an upper bound for the bytes left.
    fn left(&self) -> usize {
        match self {
            Self::Raw(bytes) => bytes.len(),
            Self::Base64 { text, ready } => ready.len() + text.len() / 4 * 3 + 3,
        }
    }

    fn take(&mut self, count: u64) -> Result<Cow<'a, [u8]>, DecodeError> {
        let left = self.left();
        let short = DecodeError::Short { count, left };
        let Some(n) = usize::try_from(count).ok().filter(|&n| n <= left) else { return Err(short) };
        match self {
            Self::Raw(bytes) => {
                let (first, rest) = bytes.split_at(n);
                *bytes = rest;
                Ok(Cow::Borrowed(first))
            }
            Self::Base64 { text, ready } => {
                while ready.len() < n {
                    if !quartet(text, ready)? {
                        return Err(DecodeError::Short { count, left: ready.len() });
                    }
                }
                let rest = ready.split_off(n);
                Ok(Cow::Owned(std::mem::replace(ready, rest)))
            }
        }
    }
}

/// Decodes up to four letters to one to three bytes; returns false at the end of the text.
fn quartet(text: &mut &[u8], out: &mut Vec<u8>) -> Result<bool, DecodeError> {
    let (mut bits, mut letters, mut padding) = (0_u32, 0, 0);
    while letters + padding < 4 {
        let Some((&letter, rest)) = text.split_first() else { break };
        *text = rest;
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' if letters >= 2 => {
                padding += 1;
                continue;
            }
            letter if letter.is_ascii_whitespace() => continue,
            other => return Err(no_letter(other)),
        };
        if padding > 0 {
            return Err(no_letter(letter));
        }
        bits = bits << 6 | u32::from(value);
        letters += 1;
    }
    if letters == 0 {
        return Ok(false);
    }
    if letters == 1 {
        let expected = "four letters of base64 or `=`".to_owned();
        return Err(DecodeError::Wrong { expected, found: "one".to_owned() });
    }
    let bytes = (bits << (6 * (4 - letters))).to_be_bytes();
    out.extend_from_slice(&bytes[1..letters]);
    Ok(true)
}

fn no_letter(found: u8) -> DecodeError {
    let found = format!("`{}`", found.escape_ascii());
    DecodeError::Wrong { expected: "a letter of base64".to_owned(), found }
}

/// Reads the bytes of an array.
pub(super) fn array<'a>(
    source: &mut ByteSource<'a>,
    coding: ByteEncoding,
) -> Result<Cow<'a, [u8]>, DecodeError> {
    let size = number(source, coding)?;
    if !coding.compressed {
        return source.take(size);
    }
    let (blocks, whole, last) = (size, number(source, coding)?, number(source, coding)?);
    let header = source.take(blocks.saturating_mul(coding.header as u64))?;
    let sizes: Vec<u64> =
        header.chunks_exact(coding.header).map(|chunk| integer(chunk, coding.big)).collect();
    let length = unpacked(&sizes, whole, last)?;
    let mut all = Vec::with_capacity(length);
    for (block, &size) in sizes.iter().enumerate() {
        let packed = source.take(size)?;
        let partial = block + 1 == sizes.len() && last > 0;
        let length = usize::try_from(if partial { last } else { whole }).unwrap_or(usize::MAX);
        let bytes = decompress_to_vec_zlib_with_limit(&packed, length).map_err(|error| {
            let expected = format!("block {block} of zlib with {length} bytes");
            DecodeError::Wrong { expected, found: error.to_string() }
        })?;
        if bytes.len() != length {
            let expected = format!("block {block} with {length} bytes");
            return Err(DecodeError::Wrong { expected, found: bytes.len().to_string() });
        }
        all.extend_from_slice(&bytes);
    }
    Ok(Cow::Owned(all))
}

/// Returns the decompressed size of the blocks, if it is possible and memory suffices.
fn unpacked(sizes: &[u64], whole: u64, last: u64) -> Result<usize, DecodeError> {
    let packed: u64 = sizes.iter().fold(0, |sum, size| sum.saturating_add(*size));
    let partial = u64::from(last > 0);
    let full = (sizes.len() as u64).saturating_sub(partial).saturating_mul(whole);
    let length = full.saturating_add(if sizes.is_empty() { 0 } else { last });
    let most = packed.saturating_mul(MOST_UNPACKED);
    if length > most {
        let expected = format!("at most {most} bytes in {packed} bytes of zlib");
        return Err(DecodeError::Wrong { expected, found: length.to_string() });
    }
    // Memory for the bytes and for the numbers parsed from them.
    let what = || format!("unpacking an array of {}", Bytes(length as f64));
    MemoryBudget::check(what, 3.0 * length as f64).map_err(DecodeError::Memory)?;
    Ok(usize::try_from(length).unwrap_or(usize::MAX))
}

/// Reads a header integer.
fn number(source: &mut ByteSource<'_>, coding: ByteEncoding) -> Result<u64, DecodeError> {
    Ok(integer(&source.take(coding.header as u64)?, coding.big))
}

fn integer(bytes: &[u8], big: bool) -> u64 {
    let shift = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
    if big { bytes.iter().fold(0, shift) } else { bytes.iter().rev().fold(0, shift) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: ByteEncoding = ByteEncoding { header: 4, big: false, compressed: false };

    fn of(text: &[u8]) -> Result<Vec<u8>, DecodeError> {
        array(&mut ByteSource::base64(text), PLAIN).map(Cow::into_owned)
    }

    #[test]
    fn headers_may_be_padded_by_themselves_or_not() {
        // The number 4 in four bytes, and the bytes 1 to 4.
        assert_eq!(of(b"BAAAAA==AQIDBA=="), Ok(vec![1, 2, 3, 4]));
        assert_eq!(of(b"BAAAAAECAwQ="), Ok(vec![1, 2, 3, 4]));
        assert_eq!(of(b"\n BAAA\tAAECAwQ=\n"), Ok(vec![1, 2, 3, 4]));
        // Two arrays in one text.
        let mut source = ByteSource::base64(b"AQAAAA==/w==AQAAAA==fw==");
        assert_eq!(array(&mut source, PLAIN).as_deref(), Ok(&[255][..]));
        assert_eq!(array(&mut source, PLAIN).as_deref(), Ok(&[127][..]));
    }

    #[test]
    fn broken_base64_is_said() {
        assert!(
            matches!(of(b"BAAAAA==AQI?BA=="), Err(DecodeError::Wrong { found, .. }) if found == "`?`")
        );
        assert!(matches!(of(b"BAAAAA==AQ=DBA=="), Err(DecodeError::Wrong { .. })));
        assert!(matches!(of(b"BAAAAA==AQIDB"), Err(DecodeError::Wrong { .. })));
        assert!(matches!(of(b"BAAAAA==AQI="), Err(DecodeError::Short { count: 4, .. })));
        assert!(matches!(of(b"////fw=="), Err(DecodeError::Short { count: 0x7FFF_FFFF, .. })));
        assert!(matches!(of(b""), Err(DecodeError::Short { count: 4, .. })));
    }

    #[test]
    fn blocks_of_zlib_are_joined() {
        let pack = |bytes: &[u8]| miniz_oxide::deflate::compress_to_vec_zlib(bytes, 6);
        let (first, second) = (pack(&[7; 100]), pack(&[8; 20]));
        let mut bytes = Vec::new();
        for n in [2, 100, 20, first.len() as u64, second.len() as u64] {
            bytes.extend(n.to_be_bytes());
        }
        let coding = ByteEncoding { header: 8, big: true, compressed: true };
        let whole = [&bytes[..], &first, &second].concat();
        let joined = array(&mut ByteSource::Raw(&whole), coding).expect("two blocks");
        assert_eq!(joined.as_ref(), [[7; 100].as_slice(), &[8; 20]].concat());
        let short = array(&mut ByteSource::Raw(&whole[..whole.len() - 1]), coding);
        assert!(matches!(short, Err(DecodeError::Short { .. })));
        // Eight blocks of 1 GiB, each from a few bytes.
        let bomb = unpacked(&[9; 8], 1 << 30, 0);
        assert!(
            matches!(bomb, Err(DecodeError::Wrong { found, .. }) if found == (8u64 << 30).to_string())
        );
        let most = u64::MAX / MOST_UNPACKED;
        let huge = unpacked(&[most; 2], 1 << 60, 0);
        assert!(!cfg!(target_os = "linux") || matches!(huge, Err(DecodeError::Memory(_))));
        bytes[15] = 99;
        let longer = [&bytes[..], &first, &second].concat();
        assert!(matches!(
            array(&mut ByteSource::Raw(&longer), coding),
            Err(DecodeError::Wrong { .. })
        ));
    }
}

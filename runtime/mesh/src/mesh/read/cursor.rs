//! Reads words and numbers from a text or binary file, with positions for messages.

use super::{FilePosition, ReadError};

/// A position in the bytes of a file.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    mode: Encoding,
}

/// Encoding of numbers.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Encoding {
    Text,
    /// The size of `size_t` in bytes; `swap` for the other byte order.
    Binary {
        size: usize,
        swap: bool,
    },
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, mode: Encoding::Text }
    }

    /// Returns the current position, for [`place`](Self::place).
    pub(super) fn mark(&self) -> usize {
        self.at
    }

    /// Returns the position of an item for messages. It counts lines: for errors only.
    pub(super) fn place(&self, mark: usize) -> FilePosition {
        match self.mode {
            Encoding::Binary { .. } => FilePosition::Byte(mark),
            Encoding::Text => {
                let blank = self.bytes[mark..].iter().take_while(|b| b.is_ascii_whitespace());
                let before = &self.bytes[..mark + blank.count()];
                FilePosition::Line(1 + before.iter().filter(|&&b| b == b'\n').count())
            }
        }
    }

    /// Returns the number of bytes left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn unsupported(&self, mark: usize, what: impl Into<String>) -> ReadError {
        ReadError::Unsupported { place: self.place(mark), what: what.into() }
    }

    pub(super) fn syntax(&self, mark: usize, expected: &str, found: &str) -> ReadError {
        let place = self.place(mark);
        ReadError::Syntax { place, expected: expected.to_owned(), found: found.to_owned() }
    }

    /// Returns the remaining bytes.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Advances by existing bytes.
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Returns to an earlier position.
    pub(super) fn back(&mut self, mark: usize) {
        self.at = mark;
    }

    /// Sets the encoding of the following numbers.
    pub(super) fn set_mode(&mut self, mode: Encoding) {
        self.mode = mode;
    }

    pub(super) fn mode(&self) -> Encoding {
        self.mode
    }

    /// Returns whether numbers are binary.
    pub(super) fn is_binary(&self) -> bool {
        self.mode != Encoding::Text
    }

    /// Reads the end of a text line that contains nothing else.
    pub(super) fn line_end(&mut self) -> Result<(), ReadError> {
        let rest = &self.bytes[self.at..];
        let blank = rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r')).count();
        if rest.get(blank) == Some(&b'\n') {
            self.at += blank + 1;
            Ok(())
        } else {
            let found = rest.get(blank).map_or("the end of the file".to_owned(), describe);
            Err(self.syntax(self.at, "the end of the line", &found))
        }
    }

    /// Skips white space.
    pub(super) fn skip_blank(&mut self) {
        let blank = self.bytes[self.at..].iter().take_while(|b| b.is_ascii_whitespace());
        self.at += blank.count();
    }

    /// Reads the next word of text, also in a binary file.
    pub(super) fn word(&mut self) -> Result<String, ReadError> {
        self.skip_blank();
        let mark = self.at;
        let word = self.raw_word();
        if word.is_empty() {
            return Err(self.syntax(mark, "more of the file", "its end"));
        }
        Ok(shorten(word))
    }

    /// Reads up to the next white space.
    pub(super) fn raw_word(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().take_while(|b| !b.is_ascii_whitespace()).count();
        self.at += length;
        &rest[..length]
    }

    /// Reads the next word as a value.
    pub(super) fn parsed<T: std::str::FromStr>(&mut self, expected: &str) -> Result<T, ReadError> {
        self.skip_blank();
        let mark = self.at;
        let word = self.raw_word();
        match std::str::from_utf8(word).ok().and_then(|text| text.parse().ok()) {
            Some(value) => Ok(value),
            None => {
                let found = if word.is_empty() {
                    "the end of the file".to_owned()
                } else {
                    format!("`{}`", shorten(word))
                };
                Err(self.syntax(mark, expected, &found))
            }
        }
    }

    /// Reads N bytes.
    pub(super) fn take<const N: usize>(&mut self, expected: &str) -> Result<[u8; N], ReadError> {
        match self.bytes.get(self.at..self.at + N) {
            Some(bytes) => {
                self.at += N;
                let mut all = [0; N];
                all.copy_from_slice(bytes);
                Ok(all)
            }
            None => Err(self.syntax(self.at, expected, "the end of the file")),
        }
    }

    /// Reads a finite `double`.
    pub(super) fn double(&mut self, expected: &str) -> Result<f64, ReadError> {
        let start = self.at;
        let value: f64 = match self.mode {
            Encoding::Text => self.parsed(expected)?,
            Encoding::Binary { swap, .. } => {
                let bits = u64::from_ne_bytes(self.take::<8>(expected)?);
                f64::from_bits(if swap { bits.swap_bytes() } else { bits })
            }
        };
        if value.is_finite() {
            Ok(value)
        } else {
            Err(self.syntax(start, &format!("{expected}, finite"), &format!("{value}")))
        }
    }

    /// Reads three coordinates.
    pub(super) fn point(&mut self) -> Result<[f64; 3], ReadError> {
        let mut point = [0.0; 3];
        for x in &mut point {
            *x = self.double("a coordinate")?;
        }
        Ok(point)
    }

    /// Checks that enough bytes are left for `count` items of at least `bytes` bytes each.
    pub(super) fn checked(
        &self,
        mark: usize,
        what: &'static str,
        count: u64,
        bytes: usize,
    ) -> Result<usize, ReadError> {
        // The last number of a text may lack a trailing blank.
        let most = (self.left() + 1) / bytes.max(1);
        match usize::try_from(count) {
            Ok(n) if n <= most => Ok(n),
            _ => Err(ReadError::Count { place: self.place(mark), what, count, left: self.left() }),
        }
    }
}

/// Returns the beginning of the bytes, escaped for a message.
pub(super) fn shorten(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(&bytes[..bytes.len().min(200)])
        .chars()
        .flat_map(char::escape_default)
        .collect();
    if text.len() > 40 { format!("{}…", &text[..40]) } else { text }
}

fn describe(byte: &u8) -> String {
    format!("`{}`", shorten(&[*byte]))
}

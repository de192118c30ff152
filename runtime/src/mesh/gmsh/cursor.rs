//! Reading numbers from a Gmsh file, text or binary, with the place for messages.

use super::{GmshError, Place};

/// A position in the bytes of a file.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    mode: Mode,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Text,
    /// Bytes of a `size_t`, and whether the byte order is the other one.
    Binary {
        size: usize,
        swap: bool,
    },
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, mode: Mode::Text }
    }

    /// The present position, for [`place`](Self::place).
    pub(super) fn mark(&self) -> usize {
        self.at
    }

    /// What a message calls the item that begins at a position. Counts lines: for errors only.
    pub(super) fn place(&self, mark: usize) -> Place {
        match self.mode {
            Mode::Binary { .. } => Place::Byte(mark),
            Mode::Text => {
                let blank = self.bytes[mark..].iter().take_while(|b| b.is_ascii_whitespace());
                let before = &self.bytes[..mark + blank.count()];
                Place::Line(1 + before.iter().filter(|&&b| b == b'\n').count())
            }
        }
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn unsupported(&self, mark: usize, what: impl Into<String>) -> GmshError {
        GmshError::Unsupported { place: self.place(mark), what: what.into() }
    }

    pub(super) fn syntax(&self, mark: usize, expected: &str, found: &str) -> GmshError {
        let place = self.place(mark);
        GmshError::Syntax { place, expected: expected.to_owned(), found: found.to_owned() }
    }

    /// Switches to binary: the header's integer 1 tells the byte order.
    pub(super) fn binary(&mut self, size: usize) -> Result<(), GmshError> {
        self.line_end()?;
        self.mode = Mode::Binary { size, swap: false };
        let mark = self.at;
        let one = self.take::<4>("the integer 1 that tells the byte order")?;
        let swap = match i32::from_ne_bytes(one) {
            1 => false,
            other if other.swap_bytes() == 1 => true,
            other => {
                let expected = "the integer 1 that tells the byte order";
                return Err(self.syntax(mark, expected, &format!("{other}")));
            }
        };
        self.mode = Mode::Binary { size, swap };
        Ok(())
    }

    /// Whether the file's numbers are binary.
    pub(super) fn is_binary(&self) -> bool {
        self.mode != Mode::Text
    }

    /// The beginning of numbers: in a binary file, the end of the line of text before them.
    pub(super) fn numbers(&mut self) -> Result<(), GmshError> {
        if self.is_binary() { self.line_end() } else { Ok(()) }
    }

    fn line_end(&mut self) -> Result<(), GmshError> {
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

    /// The name of the next section; `None` at the end of the file.
    pub(super) fn section(&mut self) -> Result<Option<String>, GmshError> {
        self.skip_blank();
        if self.left() == 0 {
            return Ok(None);
        }
        let mark = self.at;
        let word = self.word()?;
        match word.strip_prefix('$') {
            Some(name) if !name.is_empty() && !name.starts_with("End") => Ok(Some(name.to_owned())),
            _ => Err(self.syntax(mark, "the beginning of a section, $Name", &format!("`{word}`"))),
        }
    }

    /// The end of a section that was read.
    pub(super) fn end_section(&mut self, name: &str) -> Result<(), GmshError> {
        self.skip_blank();
        let mark = self.at;
        let expected = format!("$End{name}");
        if self.left() == 0 {
            return Err(self.syntax(mark, &expected, "the end of the file"));
        }
        let word = self.word()?;
        if word == expected {
            Ok(())
        } else {
            Err(self.syntax(mark, &expected, &format!("`{word}`")))
        }
    }

    /// Goes past the end of a section that is not read.
    pub(super) fn skip_section(&mut self, name: &str) -> Result<(), GmshError> {
        let mark = self.at;
        let end = format!("$End{name}");
        let found = self.bytes[self.at..].windows(end.len()).position(|w| w == end.as_bytes());
        match found {
            Some(offset) => {
                self.at += offset + end.len();
                Ok(())
            }
            None => Err(self.syntax(mark, &end, "the end of the file")),
        }
    }

    fn skip_blank(&mut self) {
        let blank = self.bytes[self.at..].iter().take_while(|b| b.is_ascii_whitespace());
        self.at += blank.count();
    }

    /// The next word of text, also in a binary file.
    pub(super) fn word(&mut self) -> Result<String, GmshError> {
        self.skip_blank();
        let mark = self.at;
        let word = self.raw_word();
        if word.is_empty() {
            return Err(self.syntax(mark, "more of the file", "its end"));
        }
        Ok(shorten(word))
    }

    fn raw_word(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().take_while(|b| !b.is_ascii_whitespace()).count();
        self.at += length;
        &rest[..length]
    }

    fn parsed<T: std::str::FromStr>(&mut self, expected: &str) -> Result<T, GmshError> {
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

    fn take<const N: usize>(&mut self, expected: &str) -> Result<[u8; N], GmshError> {
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

    /// An `int`.
    pub(super) fn int(&mut self, expected: &str) -> Result<i64, GmshError> {
        let Mode::Binary { swap, .. } = self.mode else { return self.parsed(expected) };
        let value = i32::from_ne_bytes(self.take::<4>(expected)?);
        Ok(i64::from(if swap { value.swap_bytes() } else { value }))
    }

    /// A `size_t`.
    pub(super) fn size(&mut self, expected: &str) -> Result<u64, GmshError> {
        match self.mode {
            Mode::Text => self.parsed(expected),
            Mode::Binary { size: 4, swap } => {
                let value = u32::from_ne_bytes(self.take::<4>(expected)?);
                Ok(u64::from(if swap { value.swap_bytes() } else { value }))
            }
            Mode::Binary { swap, .. } => {
                let value = u64::from_ne_bytes(self.take::<8>(expected)?);
                Ok(if swap { value.swap_bytes() } else { value })
            }
        }
    }

    /// A finite `double`.
    pub(super) fn double(&mut self, expected: &str) -> Result<f64, GmshError> {
        let start = self.at;
        let value: f64 = match self.mode {
            Mode::Text => self.parsed(expected)?,
            Mode::Binary { swap, .. } => {
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

    /// Three coordinates.
    pub(super) fn point(&mut self) -> Result<[f64; 3], GmshError> {
        let mut point = [0.0; 3];
        for x in &mut point {
            *x = self.double("a coordinate")?;
        }
        Ok(point)
    }

    /// A number of items of which each takes at least so many bytes in binary; as text each of
    /// `numbers` numbers takes at least two.
    pub(super) fn count(
        &mut self,
        what: &'static str,
        bytes: usize,
        numbers: usize,
    ) -> Result<usize, GmshError> {
        let mark = self.at;
        let count = self.size("a count")?;
        self.checked(mark, what, count, if self.is_binary() { bytes } else { 2 * numbers })
    }

    /// A count written as text in every file.
    pub(super) fn text_count(
        &mut self,
        what: &'static str,
        bytes: usize,
    ) -> Result<usize, GmshError> {
        let mark = self.at;
        let count = self.parsed("a count")?;
        self.checked(mark, what, count, bytes)
    }

    /// A count in an `int`.
    pub(super) fn int_count(
        &mut self,
        what: &'static str,
        bytes: usize,
    ) -> Result<usize, GmshError> {
        let mark = self.at;
        let count = self.int("a count")?;
        let count =
            u64::try_from(count).map_err(|_| self.syntax(mark, "a count", &format!("{count}")))?;
        self.checked(mark, what, count, bytes)
    }

    fn checked(
        &self,
        mark: usize,
        what: &'static str,
        count: u64,
        bytes: usize,
    ) -> Result<usize, GmshError> {
        // The last number of a text may stand without a blank behind it.
        let most = (self.left() + 1) / bytes.max(1);
        match usize::try_from(count) {
            Ok(n) if n <= most => Ok(n),
            _ => Err(GmshError::Count { place: self.place(mark), what, count, left: self.left() }),
        }
    }

    /// One line of `$PhysicalNames`: dimension, number, name in quotes.
    pub(super) fn physical_name(&mut self) -> Result<(u8, i64, String), GmshError> {
        let mark = self.at;
        let dim: u8 = self.parsed("a physical name's dimension, 0 to 3")?;
        let number: i64 = self.parsed("a physical group's number")?;
        let rest = &self.bytes[self.at..];
        let line = &rest[..rest.iter().take_while(|&&b| b != b'\n').count()];
        self.at += line.len();
        let text = String::from_utf8_lossy(line);
        let name = text.trim().strip_prefix('"').and_then(|name| name.strip_suffix('"'));
        match name {
            Some(name) if dim <= 3 && std::str::from_utf8(line).is_ok() => {
                Ok((dim, number, name.to_owned()))
            }
            _ => {
                let found = format!("`{dim} {number} {}`", shorten(text.trim().as_bytes()));
                let expected = "a dimension from 0 to 3, a number and a UTF-8 name in quotes";
                Err(self.syntax(mark, expected, &found))
            }
        }
    }
}

/// A piece of a file fit for a message.
fn shorten(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(&bytes[..bytes.len().min(200)])
        .chars()
        .flat_map(char::escape_default)
        .collect();
    if text.len() > 40 { format!("{}…", &text[..40]) } else { text }
}

fn describe(byte: &u8) -> String {
    format!("`{}`", shorten(&[*byte]))
}

//! Gmsh-specific parsing: sections, byte order, integer widths, physical names.

use crate::mesh::read::ReadError;
use crate::mesh::read::cursor::{Cursor, Encoding, shorten};

impl Cursor<'_> {
    /// Switches to binary; the header's integer 1 determines the byte order.
    pub(super) fn binary(&mut self, size: usize) -> Result<(), ReadError> {
        self.line_end()?;
        self.set_mode(Encoding::Binary { size, swap: false });
        let mark = self.mark();
        let one = self.take::<4>("the integer 1 that tells the byte order")?;
        let swap = match i32::from_ne_bytes(one) {
            1 => false,
            other if other.swap_bytes() == 1 => true,
            other => {
                let expected = "the integer 1 that tells the byte order";
                return Err(self.syntax(mark, expected, &format!("{other}")));
            }
        };
        self.set_mode(Encoding::Binary { size, swap });
        Ok(())
    }

    /// Starts a list of numbers: in a binary file, reads the end of the text line before them.
    pub(super) fn numbers(&mut self) -> Result<(), ReadError> {
        if self.is_binary() { self.line_end() } else { Ok(()) }
    }

    /// Returns the name of the next section; `None` at the end of the file.
    pub(super) fn section(&mut self) -> Result<Option<String>, ReadError> {
        self.skip_blank();
        if self.left() == 0 {
            return Ok(None);
        }
        let mark = self.mark();
        let word = self.word()?;
        match word.strip_prefix('$') {
            Some(name) if !name.is_empty() && !name.starts_with("End") => Ok(Some(name.to_owned())),
            _ => Err(self.syntax(mark, "the beginning of a section, $Name", &format!("`{word}`"))),
        }
    }

    /// Reads the end of a section.
    pub(super) fn end_section(&mut self, name: &str) -> Result<(), ReadError> {
        self.skip_blank();
        let mark = self.mark();
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

    /// Skips the rest of a section.
    pub(super) fn skip_section(&mut self, name: &str) -> Result<(), ReadError> {
        let mark = self.mark();
        let end = format!("$End{name}");
        let found = self.rest().windows(end.len()).position(|w| w == end.as_bytes());
        match found {
            Some(offset) => {
                self.skip(offset + end.len());
                Ok(())
            }
            None => Err(self.syntax(mark, &end, "the end of the file")),
        }
    }

    /// Reads an `int`.
    pub(super) fn int(&mut self, expected: &str) -> Result<i64, ReadError> {
        let Encoding::Binary { swap, .. } = self.mode() else { return self.parsed(expected) };
        let value = i32::from_ne_bytes(self.take::<4>(expected)?);
        Ok(i64::from(if swap { value.swap_bytes() } else { value }))
    }

    /// Reads a `size_t`.
    pub(super) fn size(&mut self, expected: &str) -> Result<u64, ReadError> {
        match self.mode() {
            Encoding::Text => self.parsed(expected),
            Encoding::Binary { size: 4, swap } => {
                let value = u32::from_ne_bytes(self.take::<4>(expected)?);
                Ok(u64::from(if swap { value.swap_bytes() } else { value }))
            }
            Encoding::Binary { swap, .. } => {
                let value = u64::from_ne_bytes(self.take::<8>(expected)?);
                Ok(if swap { value.swap_bytes() } else { value })
            }
        }
    }

    /// Reads the number of items and checks it: an item takes at least `bytes` bytes in binary, or two per number in
    /// text.
    pub(super) fn count(
        &mut self,
        what: &'static str,
        bytes: usize,
        numbers: usize,
    ) -> Result<usize, ReadError> {
        let mark = self.mark();
        let count = self.size("a count")?;
        self.checked(mark, what, count, if self.is_binary() { bytes } else { 2 * numbers })
    }

    /// Reads a count that is text in every file.
    pub(super) fn text_count(
        &mut self,
        what: &'static str,
        bytes: usize,
    ) -> Result<usize, ReadError> {
        let mark = self.mark();
        let count = self.parsed("a count")?;
        self.checked(mark, what, count, bytes)
    }

    /// Reads a count stored as `int`.
    pub(super) fn int_count(
        &mut self,
        what: &'static str,
        bytes: usize,
    ) -> Result<usize, ReadError> {
        let mark = self.mark();
        let count = self.int("a count")?;
        let count =
            u64::try_from(count).map_err(|_| self.syntax(mark, "a count", &format!("{count}")))?;
        self.checked(mark, what, count, bytes)
    }

    /// Reads a line of `$PhysicalNames`: dimension, number, quoted name.
    pub(super) fn physical_name(&mut self) -> Result<(u8, i64, String), ReadError> {
        let mark = self.mark();
        let dim: u8 = self.parsed("a physical name's dimension, 0 to 3")?;
        let number: i64 = self.parsed("a physical group's number")?;
        let rest = self.rest();
        let line = &rest[..rest.iter().take_while(|&&b| b != b'\n').count()];
        self.skip(line.len());
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

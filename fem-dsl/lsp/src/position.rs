//! Positions: byte offsets of the language ↔ lines and columns of the protocol, in bytes, UTF-16 units or characters.

use fem_dsl::source::Span;
use serde_json::{Value, json};

/// The unit of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Bytes.
    Utf8,
    /// The protocol's default.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// Chooses among the encodings of a client: bytes, which are those of the text, if it has them.
    pub(crate) fn of_client(offered: &[&str]) -> Self {
        let known = [("utf-8", Self::Utf8), ("utf-16", Self::Utf16), ("utf-32", Self::Utf32)];
        let chosen = known.into_iter().find(|(name, _)| offered.contains(name));
        chosen.map_or(Self::Utf16, |(_, encoding)| encoding)
    }

    /// Returns its name in the protocol.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Utf32 => "utf-32",
        }
    }

    fn width(self, character: char) -> usize {
        match self {
            Self::Utf8 => character.len_utf8(),
            Self::Utf16 => character.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    /// Returns the length of a text.
    pub(crate) fn length(self, text: &str) -> usize {
        text.chars().map(|character| self.width(character)).sum()
    }
}

/// The starts of the lines of a text, which end with `\n`, `\r\n` or `\r`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends = |&at: &usize| {
            bytes[at] == b'\n' || bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n')
        };
        let starts = (0..bytes.len()).filter(ends).map(|at| at + 1);
        Self { starts: std::iter::once(0).chain(starts).collect() }
    }

    /// Returns line and column of an offset.
    pub(crate) fn position(&self, text: &str, encoding: Encoding, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        (line, encoding.length(&text[self.starts[line]..offset]))
    }

    /// Returns the offset of a position; beyond a line that of its end, beyond the text that of the text.
    pub(crate) fn offset(&self, text: &str, encoding: Encoding, position: (usize, usize)) -> usize {
        let (line, column) = position;
        let Some(&start) = self.starts.get(line) else { return text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let content = text[start..end].trim_end_matches(['\r', '\n']);
        let mut passed = 0;
        for (at, character) in content.char_indices() {
            passed += encoding.width(character);
            if passed > column {
                return start + at;
            }
        }
        start + content.len()
    }

    /// Returns the protocol's range of a span.
    pub(crate) fn range(&self, text: &str, encoding: Encoding, span: Span) -> Value {
        let position = |offset: u32| {
            let (line, character) = self.position(text, encoding, offset as usize);
            json!({ "line": line, "character": character })
        };
        json!({ "start": position(span.start), "end": position(span.end) })
    }
}

#[cfg(test)]
mod tests {
    use super::{Encoding, Lines};

    #[test]
    fn columns_count_in_the_unit_of_the_client() {
        let text = "é𝛁u\r\n\rx";
        let lines = Lines::of(text);
        assert_eq!(lines.starts.len(), 3);
        for (encoding, columns) in
            [(Encoding::Utf8, [2, 6]), (Encoding::Utf16, [1, 3]), (Encoding::Utf32, [1, 2])]
        {
            for (offset, column) in [2, 6].into_iter().zip(columns) {
                assert_eq!(lines.position(text, encoding, offset), (0, column), "{encoding:?}");
                assert_eq!(lines.offset(text, encoding, (0, column)), offset, "{encoding:?}");
            }
            assert_eq!(lines.offset(text, encoding, (0, 99)), 7, "the end of the line");
            assert_eq!(lines.offset(text, encoding, (2, 1)), text.len());
            assert_eq!(lines.offset(text, encoding, (9, 0)), text.len());
            // Inside a character: before it.
            assert_eq!(lines.position(text, encoding, 4), (0, columns[0]));
        }
    }

    #[test]
    fn bytes_are_preferred() {
        assert_eq!(Encoding::of_client(&["utf-16", "utf-8"]), Encoding::Utf8);
        assert_eq!(Encoding::of_client(&["utf-32"]), Encoding::Utf32);
        assert_eq!(Encoding::of_client(&[]), Encoding::Utf16);
    }
}

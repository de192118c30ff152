//! The text that a compilation begins with: bytes → [`Source`], and places in it.
//!
//! A `Source` never fails to exist: what is wrong with its bytes (not UTF-8, too long) is kept
//! beside the text and comes out of `parse` with every other diagnostic.

use crate::codes::Code;
use crate::diagnostic::Diagnostic;

/// The largest file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// A half-open range of bytes of a [`Source`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span `start..end`.
    pub fn new(start: usize, end: usize) -> Self {
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: clamp(start), end: clamp(end) }
    }

    /// The smallest span that holds both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The span as a range of `usize`.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Whether `other` lies inside.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether the two share a byte, or `other` is empty and touches.
    pub fn touches(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// A text with the name it is called by in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
    defect: Option<Box<Diagnostic>>,
}

impl Source {
    /// A source from text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::build(name.into(), text.into(), None)
    }

    /// A source from the bytes of a file. A byte order mark at the beginning is dropped.
    pub fn from_bytes(name: impl Into<String>, bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let name = name.into();
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::build(name, text.to_owned(), None),
            Err(error) => {
                // Up to the bad byte the lossy text has the same offsets.
                let at = error.valid_up_to();
                let end = (at + 256).min(bytes.len());
                let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let defect = Diagnostic::new(Code::NotUtf8, "this file is not valid UTF-8")
                    .label(
                        Span::new(at, at + char::REPLACEMENT_CHARACTER.len_utf8()),
                        format!("the byte 0x{:02X} cannot stand here", bytes[at]),
                    )
                    .help("save the file as UTF-8");
                Self::build(name, text, Some(Box::new(defect)))
            }
        }
    }

    fn build(name: String, text: String, defect: Option<Box<Diagnostic>>) -> Self {
        let too_long = text.len() > MAX_BYTES;
        let defect = defect.or_else(|| {
            too_long.then(|| {
                let message = format!(
                    "this file has {} bytes, more than the limit of {MAX_BYTES}",
                    text.len()
                );
                Box::new(
                    Diagnostic::new(Code::FileTooLarge, message)
                        .help("put data into a mesh or into `aux`, not into the form"),
                )
            })
        });
        let text = if too_long { String::new() } else { text };
        Self { name, text, defect }
    }

    /// The name, a path as a rule.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is wrong with the bytes as such, if anything.
    pub fn defect(&self) -> Option<&Diagnostic> {
        self.defect.as_deref()
    }

    /// The text of a span; empty where the span lies outside.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// Line and column of a byte offset, both from 1; columns count characters.
    pub fn line_column(&self, offset: u32) -> (usize, usize) {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters() {
        let source = Source::new("a.wf", "// é\nform a {}\r\n");
        assert_eq!(source.line_column(0), (1, 1));
        assert_eq!(source.line_column(5), (1, 5));
        assert_eq!(source.line_column(6), (2, 1));
        assert_eq!(source.line_column(11), (2, 6));
        assert_eq!(source.line_column(10_000), (3, 1));
    }

    #[test]
    fn bad_bytes_become_a_diagnostic() {
        let source = Source::from_bytes("a.wf", b"form a \xFF { }");
        let defect = source.defect().expect("0xFF should not be UTF-8");
        assert_eq!(defect.code, Code::NotUtf8);
        assert_eq!(defect.primary().map(|label| label.span.start), Some(7));
        assert!(Source::from_bytes("a.wf", b"\xEF\xBB\xBFform").defect().is_none());
        assert_eq!(Source::from_bytes("a.wf", b"\xEF\xBB\xBFform").text(), "form");
    }

    #[test]
    fn long_text_becomes_a_diagnostic() {
        assert!(Source::new("a.wf", " ".repeat(MAX_BYTES)).defect().is_none());
        let source = Source::new("a.wf", " ".repeat(MAX_BYTES + 1));
        assert_eq!(source.defect().map(|defect| defect.code), Some(Code::FileTooLarge));
    }
}

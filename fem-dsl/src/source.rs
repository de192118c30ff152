//! The input text of a compilation: bytes → [`Source`], and locations in it.
//!
//! A `Source` can always be created. A [`Defect`] of its bytes (not UTF-8, too long) is stored with the text, and
//! `parse` reports it with all other diagnostics.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Largest size of a file, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// Returns whether a character is unreadable: a control character other than a tab or line end, a line or paragraph
/// separator, or one that changes the text direction.
pub fn is_unseen(character: char) -> bool {
    let control = character.is_control() && !matches!(character, '\t' | '\n' | '\r');
    let separator = matches!(character, '\u{2028}' | '\u{2029}');
    let turning = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    control || separator || turning
}

/// Returns a text for display: unreadable characters are replaced by a mark.
pub fn seen(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unseen) {
        return Cow::Borrowed(text);
    }
    let shown = |c| if is_unseen(c) { char::REPLACEMENT_CHARACTER } else { c };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Returns a name for display: long ones are truncated.
pub fn shortened(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(MOST_SHOWN) {
        None => Cow::Borrowed(name),
        Some((end, _)) => Cow::Owned(format!("{}…", &name[..end])),
    }
}

/// Number of letters of a displayed name.
const MOST_SHOWN: usize = 80;

/// A half-open range of bytes of a [`Source`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the span `start..end`.
    pub fn new(start: usize, end: usize) -> Self {
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: clamp(start), end: clamp(end) }
    }

    /// Returns the smallest span that contains both.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns the span as a range of `usize`.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns whether `other` lies inside.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Returns whether the two share a byte, or `other` is empty and touches.
    pub fn touches(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// The move of a part of a text to another place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift {
    /// The part.
    pub(crate) from: Span,
    /// The new place of its first byte.
    pub(crate) to: u32,
}

impl Shift {
    /// Returns the new location of a span; `None` outside of the part.
    pub(crate) fn of(self, span: Span) -> Option<Span> {
        // The location of generated expressions stays.
        if span == Span::default() {
            return Some(span);
        }
        let moved = |offset: u32| offset - self.from.start + self.to;
        let inside = self.from.contains(span);
        inside.then(|| Span { start: moved(span.start), end: moved(span.end) })
    }
}

/// A defect of the bytes of a [`Source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Invalid UTF-8: the first invalid byte, and the mark that replaces it.
    NotUtf8 {
        /// The byte.
        byte: u8,
        /// The mark.
        at: Span,
    },
    /// More bytes than [`MAX_BYTES`].
    TooLong,
}

/// Folder of the files of tables, `table("data.csv", a)`, and their reader: the language reads no files.
#[derive(Clone, Debug)]
pub struct TableFolder {
    /// The folder from which relative paths start.
    pub path: PathBuf,
    /// Reads the text of a file, or returns the reason why it cannot.
    pub read: fn(&Path) -> Result<String, String>,
}

impl PartialEq for TableFolder {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for TableFolder {}

/// A text with its name in messages. A lone carriage return ends a line; it is replaced by a line feed, so that all
/// readers of the text count the same lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
    bare_returns: bool,
    defect: Option<Defect>,
    folder: Option<TableFolder>,
}

impl Source {
    /// Creates a source from text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::build(name.into(), text.into(), None)
    }

    /// Creates a source from the bytes of a file. A byte order mark at the beginning is removed.
    pub fn from_bytes(name: impl Into<String>, bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let name = name.into();
        // Before anything else: a file that is too long need not have been read completely.
        if bytes.len() > MAX_BYTES {
            return Self::too_long(name);
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::build(name, text.to_owned(), None),
            Err(error) => {
                // Before the invalid byte the lossy text has the same offsets.
                let at = error.valid_up_to();
                let end = (at + 256).min(bytes.len());
                let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let mark = Span::new(at, at + char::REPLACEMENT_CHARACTER.len_utf8());
                Self::build(name, text, Some(Defect::NotUtf8 { byte: bytes[at], at: mark }))
            }
        }
    }

    fn build(name: String, text: String, defect: Option<Defect>) -> Self {
        if text.len() > MAX_BYTES {
            return Self::too_long(name);
        }
        let (text, bare_returns) = with_line_feeds(text);
        Self { name, text, bare_returns, defect, folder: None }
    }

    fn too_long(name: String) -> Self {
        let defect = Some(Defect::TooLong);
        Self { name, text: String::new(), bare_returns: false, defect, folder: None }
    }

    /// Returns the source with the folder of its tables.
    #[must_use]
    pub fn in_folder(self, folder: Option<TableFolder>) -> Self {
        Self { folder, ..self }
    }

    /// Returns the folder of its tables, if it has one.
    pub fn folder(&self) -> Option<&TableFolder> {
        self.folder.as_ref()
    }

    /// Returns the name, usually a path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether line feeds replaced lone carriage returns.
    pub fn had_bare_returns(&self) -> bool {
        self.bare_returns
    }

    /// Returns the defect of the bytes, if any.
    pub fn defect(&self) -> Option<Defect> {
        self.defect
    }

    /// Returns the text of a span; empty if the span is out of range.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// Returns line and column of a byte offset, both from 1; columns count characters.
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

/// Returns the text with lone carriage returns replaced by line feeds, and true if there were any.
fn with_line_feeds(text: String) -> (String, bool) {
    if !text.contains('\r') {
        return (text, false);
    }
    let mut bare = false;
    let mut rest = text.chars().peekable();
    let mut changed = String::with_capacity(text.len());
    while let Some(character) = rest.next() {
        let alone = character == '\r' && rest.peek() != Some(&'\n');
        bare |= alone;
        changed.push(if alone { '\n' } else { character });
    }
    (changed, bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_alone_ends_a_line() {
        let source = Source::new("a.wf", "a\rb\r\nc\r\rd\r");
        assert_eq!(source.text(), "a\nb\r\nc\n\nd\n");
        assert!(source.had_bare_returns() && !Source::new("a.wf", "a\r\nb").had_bare_returns());
        assert_eq!(source.line_column(2), (2, 1));
        assert_eq!(source.line_column(8), (5, 1));
    }

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
    fn bad_bytes_are_a_defect() {
        let source = Source::from_bytes("a.wf", b"form a \xFF { }");
        let at = Span { start: 7, end: 10 };
        assert_eq!(source.defect(), Some(Defect::NotUtf8 { byte: 0xFF, at }));
        assert!(Source::from_bytes("a.wf", b"\xEF\xBB\xBFform").defect().is_none());
        assert_eq!(Source::from_bytes("a.wf", b"\xEF\xBB\xBFform").text(), "form");
    }

    #[test]
    fn long_text_is_a_defect() {
        assert!(Source::new("a.wf", " ".repeat(MAX_BYTES)).defect().is_none());
        let source = Source::new("a.wf", " ".repeat(MAX_BYTES + 1));
        assert_eq!(source.defect(), Some(Defect::TooLong));
        // A text truncated within a character is too long rather than invalid.
        let cut = [&b"\xEF\xBB\xBF"[..], &vec![b' '; MAX_BYTES], b"\xC3"].concat();
        let source = Source::from_bytes("a.wf", &cut);
        assert_eq!(source.defect(), Some(Defect::TooLong));
        assert!(Source::from_bytes("a.wf", &cut[..cut.len() - 1]).defect().is_none());
    }
}

//! Lines of an Abaqus file: keywords with their parameters, and data.
//!
//! A keyword follows `*`, and continues on the next line after a comma; `**` starts a comment. Case and blanks around
//! commas are ignored; quoted names keep their blanks.

use crate::mesh::read::cursor::shorten;
use crate::mesh::read::{FilePosition, ReadError};
use std::borrow::Cow;

/// The remaining lines.
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    /// The number of the next line.
    number: usize,
}

/// A line of numbers or names.
pub(super) struct DataLine<'a> {
    pub(super) number: usize,
    pub(super) text: Cow<'a, str>,
}

/// A keyword line, which determines the meaning of the data lines after it.
#[derive(Debug)]
pub(super) struct Keyword {
    pub(super) number: usize,
    /// Upper case, without the star.
    pub(super) name: String,
    /// Names in upper case, values as written.
    parameters: Vec<(String, String)>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let rest = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        Self { rest, number: 1 }
    }

    /// Returns the next line that is neither empty nor a comment, without consuming it.
    fn peek(&mut self) -> Option<&'a [u8]> {
        while !self.rest.is_empty() {
            let length = self.rest.iter().position(|&b| b == b'\n');
            let line = self.rest[..length.unwrap_or(self.rest.len())].trim_ascii();
            if !line.is_empty() && !line.starts_with(b"**") {
                return Some(line);
            }
            self.take();
        }
        None
    }

    fn take(&mut self) {
        let length = self.rest.iter().position(|&b| b == b'\n').map(|end| end + 1);
        self.rest = &self.rest[length.unwrap_or(self.rest.len())..];
        self.number += 1;
    }

    /// Reads the next line, unless it is a keyword.
    pub(super) fn data(&mut self) -> Option<DataLine<'a>> {
        let line = self.peek()?;
        if line.starts_with(b"*") {
            return None;
        }
        let data = DataLine { number: self.number, text: String::from_utf8_lossy(line) };
        self.take();
        Some(data)
    }

    /// Advances to the next keyword; `None` at the end of the file.
    pub(super) fn keyword(&mut self) -> Option<Keyword> {
        while self.data().is_some() {}
        let mut text = String::from_utf8_lossy(self.peek()?).into_owned();
        let number = self.number;
        self.take();
        while text.ends_with(',')
            && let Some(next) = self.peek()
            && next.first().is_some_and(u8::is_ascii_alphabetic)
        {
            text.push_str(&String::from_utf8_lossy(next));
            self.take();
        }
        Some(Keyword::new(number, &text))
    }

    /// Returns the position of the next line or of the end.
    pub(super) fn place(&self) -> FilePosition {
        FilePosition::Line(self.number)
    }
}

impl Keyword {
    fn new(number: usize, text: &str) -> Keyword {
        let mut fields = fields(text.trim_start_matches('*')).into_iter();
        let capitals = |text: &str| {
            text.split_ascii_whitespace().collect::<Vec<_>>().join(" ").to_ascii_uppercase()
        };
        let name = capitals(fields.next().unwrap_or_default());
        let parameters = fields.map(|field| {
            let (name, value) = field.split_once('=').unwrap_or((field, ""));
            (capitals(name), unquoted(value).to_owned())
        });
        Keyword { number, name, parameters: parameters.collect() }
    }

    pub(super) fn place(&self) -> FilePosition {
        FilePosition::Line(self.number)
    }

    /// Returns the value of a parameter; empty if it has none.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a required parameter.
    pub(super) fn expect(&self, name: &str) -> Result<&str, ReadError> {
        let value = self.parameter(name).filter(|value| !value.is_empty());
        value.ok_or_else(|| ReadError::Syntax {
            place: self.place(),
            expected: format!("{name}=… behind *{}", shorten(self.name.as_bytes())),
            found: "none".to_owned(),
        })
    }
}

impl DataLine<'_> {
    pub(super) fn place(&self) -> FilePosition {
        FilePosition::Line(self.number)
    }

    /// Returns the comma-separated names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        fields(&self.text).into_iter().map(unquoted).filter(|name| !name.is_empty())
    }

    /// Returns the comma-separated numbers, without a trailing comma.
    pub(super) fn numbers(&self) -> impl Iterator<Item = &str> {
        self.text.trim_end_matches([',', ' ', '\t']).split(',').map(str::trim)
    }

    pub(super) fn wrong(&self, expected: &str, found: &str) -> ReadError {
        let found = format!("`{}`", shorten(found.as_bytes()));
        ReadError::Syntax { place: self.place(), expected: expected.to_owned(), found }
    }

    /// Parses a node or element number.
    pub(super) fn whole(&self, text: &str, expected: &str) -> Result<u64, ReadError> {
        text.parse().map_err(|_| self.wrong(expected, text))
    }

    /// Parses a finite number, with C or Fortran exponents; an empty field is 0.
    pub(super) fn real(&self, text: &str, expected: &str) -> Result<f64, ReadError> {
        if text.is_empty() {
            return Ok(0.0);
        }
        let value: Option<f64> =
            text.parse().ok().or_else(|| text.replace(['d', 'D'], "e").parse().ok());
        match value {
            Some(value) if value.is_finite() => Ok(value),
            Some(_) => Err(self.wrong(&format!("{expected}, finite"), text)),
            None => Err(self.wrong(expected, text)),
        }
    }
}

/// Splits at commas outside quotes.
fn fields(text: &str) -> Vec<&str> {
    let (mut quoted, mut start, mut all) = (false, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => {
                all.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(text[start..].trim());
    all
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_go_on_over_lines_and_comments_are_passed_over() {
        let text = b"** a comment\n\n*Element , Type = c3d8r,\r\n  elset=\"My, Set\"\n1, 2,\n** more\n3\n*end  part\n";
        let mut lines = Lines::new(text);
        let first = lines.keyword().expect("a keyword");
        assert_eq!((first.number, first.name.as_str()), (3, "ELEMENT"));
        assert_eq!(first.parameter("TYPE"), Some("c3d8r"));
        assert_eq!(first.parameter("ELSET"), Some("My, Set"));
        assert_eq!(first.parameter("INPUT"), None);
        let data = lines.data().expect("data");
        assert_eq!((data.number, data.numbers().collect::<Vec<_>>()), (5, vec!["1", "2"]));
        assert_eq!(lines.data().map(|data| data.number), Some(7));
        assert!(lines.data().is_none());
        assert_eq!(lines.keyword().map(|keyword| keyword.name), Some("END PART".to_owned()));
        assert!(lines.keyword().is_none());
    }

    #[test]
    fn numbers_may_have_the_exponents_of_fortran() {
        let data = DataLine { number: 1, text: Cow::Borrowed("") };
        assert_eq!(data.real("-1.5D-1", "a coordinate").ok(), Some(-0.15));
        assert_eq!(data.real(".5", "a coordinate").ok(), Some(0.5));
        assert_eq!(data.real("", "a coordinate").ok(), Some(0.0));
        assert!(
            data.real("nan", "a coordinate").is_err() && data.real("x", "a coordinate").is_err()
        );
    }
}

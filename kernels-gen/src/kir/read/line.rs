//! One line of the text of a kernel, read from left to right.

use super::ReadError;
use std::fmt::Display;
use std::str::FromStr;

/// The remedy for a line that differs from the form that is printed.
const GRAMMAR: &str =
    "write the line as `wf emit --stage lower` prints it; the grammar is in docs/design/kir.md";

/// A position in the text, for errors that are found later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    line: usize,
    column: usize,
}

impl Position {
    pub(super) fn error(self, expected: &str, found: &str, help: &str) -> ReadError {
        let [expected, found, help] = [expected, found, help].map(str::to_owned);
        ReadError { line: self.line, column: self.column, expected, found, help }
    }
}

/// A line without its end, with the position of the next character.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    number: usize,
    text: &'t str,
    at: usize,
}

impl<'t> Line<'t> {
    pub(super) fn new(number: usize, text: &'t str) -> Self {
        Self { number, text, at: 0 }
    }

    /// The rest of the line.
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn position(&self) -> Position {
        let before = self.text.get(..self.at).unwrap_or_default();
        Position { line: self.number, column: before.chars().count() + 1 }
    }

    /// Returns an error at this position.
    pub(super) fn error(&self, expected: &str, help: &str) -> ReadError {
        let rest = self.rest();
        let word = rest.split(' ').find(|word| !word.is_empty()).unwrap_or_default();
        let found = match word.char_indices().nth(40) {
            _ if word.is_empty() => "the end of the line".to_owned(),
            Some((end, _)) => format!("`{}…`", &word[..end]),
            None => format!("`{word}`"),
        };
        self.position().error(expected, &found, help)
    }

    /// Returns an error where the line differs from the form that is printed.
    pub(super) fn unexpected(&self, expected: &str) -> ReadError {
        self.error(expected, GRAMMAR)
    }

    /// Skips characters if they come next, and returns whether they do.
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let comes = self.rest().starts_with(text);
        if comes {
            self.at += text.len();
        }
        comes
    }

    /// Skips characters that must come next.
    pub(super) fn expect(&mut self, text: &str) -> Result<(), ReadError> {
        if self.eat(text) { Ok(()) } else { Err(self.unexpected(&format!("`{text}`"))) }
    }

    /// Checks that the line ends here.
    pub(super) fn end(&self) -> Result<(), ReadError> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.unexpected("the end of the line")) }
    }

    /// Reads the indentation as a number of levels of two spaces.
    pub(super) fn depth(&mut self) -> Result<usize, ReadError> {
        let spaces = self.rest().bytes().take_while(|&byte| byte == b' ').count();
        self.at += spaces;
        if spaces % 2 == 0 {
            return Ok(spaces / 2);
        }
        Err(self.error("an even number of spaces", "indent each level by two spaces"))
    }

    /// Reads the longest run of characters that satisfy a condition.
    fn run(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Reads a word of letters, if one comes next.
    pub(super) fn word(&mut self) -> &'t str {
        self.run(|c| c.is_ascii_alphanumeric())
    }

    /// Reads a whole number without a sign.
    pub(super) fn natural<T: FromStr>(&mut self) -> Result<T, ReadError> {
        let start = *self;
        let digits = self.run(|c| c.is_ascii_digit());
        digits.parse().map_err(|_| start.unexpected("a whole number that is not negative"))
    }

    /// Reads a whole number.
    pub(super) fn whole(&mut self) -> Result<i64, ReadError> {
        let start = *self;
        self.eat("-");
        self.run(|c| c.is_ascii_digit());
        let text = &start.rest()[..self.at - start.at];
        text.parse().map_err(|_| start.unexpected("a whole number of 64 bits"))
    }

    /// Returns whether a real comes next.
    pub(super) fn is_at_number(&self) -> bool {
        let rest = self.rest();
        rest.strip_prefix('-').unwrap_or(rest).starts_with(|c: char| c.is_ascii_digit())
    }

    /// Reads a real: a decimal, or its bits after `0x`.
    pub(super) fn real(&mut self) -> Result<f64, ReadError> {
        let start = *self;
        let failed = || start.unexpected("a number");
        if self.eat("0x") {
            let digits = self.run(|c| c.is_ascii_hexdigit());
            return match u64::from_str_radix(digits, 16) {
                Ok(bits) if digits.len() == 16 => Ok(f64::from_bits(bits)),
                _ => Err(start.unexpected("the 16 hexadecimal digits of a number's bits")),
            };
        }
        self.eat("-");
        self.run(|c| c.is_ascii_digit());
        if self.eat(".") {
            self.run(|c| c.is_ascii_digit());
        }
        if self.eat("e") {
            self.eat("-");
            self.run(|c| c.is_ascii_digit());
        }
        let number = start.rest()[..self.at - start.at].parse::<f64>().map_err(|_| failed())?;
        if number.is_finite() {
            return Ok(number);
        }
        Err(start.error("a number in double precision", "write the bits of an infinity after `0x`"))
    }

    /// Reads a name: letters, digits and underscores, or anything in quotes.
    pub(super) fn name(&mut self) -> Result<String, ReadError> {
        if self.rest().starts_with('"') {
            return self.quoted();
        }
        let start = *self;
        let name = self.run(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() { Err(start.unexpected("a name")) } else { Ok(name.to_owned()) }
    }

    /// Reads the number of an id such as `arg3`, if it comes next and `after` follows, which is not read.
    pub(super) fn id(&mut self, prefix: &str, after: &str) -> Option<usize> {
        let mut ahead = *self;
        if !ahead.eat(prefix) || !ahead.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let number = ahead.natural::<u32>().ok()?;
        if !ahead.rest().starts_with(after) {
            return None;
        }
        *self = ahead;
        usize::try_from(number).ok()
    }

    /// Reads the text behind `//`, which ends the line.
    pub(super) fn remark(&mut self) -> Result<String, ReadError> {
        if self.rest().starts_with('"') {
            let text = self.quoted()?;
            self.end()?;
            return Ok(text);
        }
        let text = self.rest();
        self.at = self.text.len();
        Ok(text.to_owned())
    }

    /// Reads a text in quotes with the escapes of Rust.
    fn quoted(&mut self) -> Result<String, ReadError> {
        let mut text = String::new();
        self.eat("\"");
        loop {
            let start = *self;
            let Some(next) = self.next() else { return Err(start.unexpected("`\"`")) };
            match next {
                '"' => return Ok(text),
                '\\' => text.push(self.escape().ok_or_else(|| {
                    start.error("an escape", r#"the escapes are \n \r \t \0 \\ \" \' and \u{…}"#)
                })?),
                other => text.push(other),
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Reads the character that stands behind a backslash.
    fn escape(&mut self) -> Option<char> {
        match self.next()? {
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            '0' => Some('\0'),
            same @ ('\\' | '"' | '\'') => Some(same),
            'u' if self.eat("{") => {
                let digits = self.run(|c| c.is_ascii_hexdigit());
                let code = u32::from_str_radix(digits, 16).ok()?;
                if self.eat("}") { char::from_u32(code) } else { None }
            }
            _ => None,
        }
    }
}

/// Lists alternatives for messages.
pub(super) fn one_of(words: &[impl Display]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing".to_owned(),
    }
}

//! `scan`: text → input of the grammar, with information that the grammar does not provide.
//!
//! One pass over the characters. Comments and malformed tokens are blanked (every byte keeps its offset), so that one
//! bad token does not break its item. Documentation comments are stored with the token that they precede. Brackets are
//! matched and their depth is bounded, which makes the recursion of the subsequent parser safe.

use super::MAX_ERRORS;
use crate::ast::Span;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::is_unseen;
use std::collections::BTreeMap;

mod brackets;

use brackets::Brackets;

/// A token, for messages, for recovery, and for the formatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

/// The kinds of token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    Number,
    String,
    Punctuation,
}

/// A comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) span: Span,
    /// True for documentation.
    pub(crate) documents: bool,
}

/// The result of `scan`.
pub(crate) struct Scan {
    /// The text with comments and malformed tokens blanked; same offsets as the source.
    pub(super) text: String,
    /// The tokens in order.
    pub(crate) tokens: Vec<Token>,
    /// The comments in order.
    pub(crate) comments: Vec<Comment>,
    /// Documentation by the start of the following token.
    pub(super) docs: BTreeMap<u32, Documentation>,
    /// The errors found.
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// A run of documentation comments.
pub(super) struct Documentation {
    pub(super) text: String,
    pub(super) span: Span,
}

impl Scan {
    /// Returns the index of the first token that begins at or after `offset`.
    pub(super) fn token_at(&self, offset: u32) -> usize {
        self.tokens.partition_point(|token| token.span.start < offset)
    }
}

/// Scans `text`.
pub(crate) fn scan(text: &str) -> Scan {
    let mut scanner = Scanner {
        text,
        at: 0,
        blanked: text.as_bytes().to_vec(),
        tokens: Vec::new(),
        comments: Vec::new(),
        docs: BTreeMap::new(),
        pending: None,
        brackets: Brackets::default(),
        diagnostics: Vec::new(),
    };
    scanner.run();
    let Scanner { blanked, tokens, comments, docs, mut diagnostics, mut brackets, .. } = scanner;
    brackets.finish(text.len());
    let mut blanked = blanked;
    for range in brackets.take_blanks() {
        blank(&mut blanked, range);
    }
    for (at, closer) in brackets.take_replacements() {
        blanked[at] = closer;
    }
    diagnostics.extend(brackets.take_diagnostics());
    let text = String::from_utf8(blanked).expect("whole characters should have been blanked");
    Scan { text, tokens, comments, docs, diagnostics }
}

fn blank(bytes: &mut [u8], range: std::ops::Range<usize>) {
    for byte in &mut bytes[range] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    blanked: Vec<u8>,
    tokens: Vec<Token>,
    comments: Vec<Comment>,
    docs: BTreeMap<u32, Documentation>,
    pending: Option<Documentation>,
    brackets: Brackets,
    diagnostics: Vec<Diagnostic>,
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl Scanner<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn starts_with(&self, prefix: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(prefix.as_bytes())
    }

    /// Returns the end of the run of bytes from `from` on that satisfy `test`.
    fn run_of(&self, from: usize, test: impl Fn(u8) -> bool) -> usize {
        let bytes = self.text.as_bytes();
        from + bytes[from..].iter().take_while(|&&byte| test(byte)).count()
    }

    fn run(&mut self) {
        while self.at < self.text.len() {
            match self.byte(0) {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'/' if self.starts_with("//") => self.line_comment(),
                b'/' if self.starts_with("/*") => self.block_comment(),
                b'"' => self.string(),
                byte if byte.is_ascii_digit() => self.number(),
                byte if byte.is_ascii_alphabetic() => self.word(),
                _ => self.punctuation(),
            }
        }
        if let Some(docs) = self.pending.take() {
            // Keyed by the end of the text, where no item begins.
            self.docs.insert(Span::new(self.text.len(), 0).start, docs);
        }
    }

    fn token(&mut self, kind: TokenKind, end: usize) {
        let token = Token { kind, span: Span::new(self.at, end) };
        if let Some(docs) = self.pending.take() {
            self.docs.insert(token.span.start, docs);
        }
        self.brackets.token(self.text, token);
        self.tokens.push(token);
        self.at = end;
    }

    fn blank_to(&mut self, end: usize) {
        blank(&mut self.blanked, self.at..end);
        self.at = end;
    }

    fn report(&mut self, code: Code, message: &str, end: usize, label: &str, help: &str) {
        let span = Span::new(self.at, end);
        self.keep(Diagnostic::new(code, message).label(span, label).help(help));
    }

    /// Stores a diagnostic, unless there are too many.
    fn keep(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() <= MAX_ERRORS {
            self.diagnostics.push(diagnostic);
        }
    }

    fn line_comment(&mut self) {
        let end = self.run_of(self.at, |byte| byte != b'\n');
        let line = &self.text[self.at..end];
        let documents = line.starts_with("///") && !line.starts_with("////");
        if documents {
            self.document(&line[3..], end);
        }
        self.comment(end, documents);
    }

    fn block_comment(&mut self) {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 2;
        let mut depth = 1;
        let mut documents = false;
        while depth > 0 && end < bytes.len() {
            match &bytes[end..] {
                [b'/', b'*', ..] => (depth, end) = (depth + 1, end + 2),
                [b'*', b'/', ..] => (depth, end) = (depth - 1, end + 2),
                _ => end += 1,
            }
        }
        if depth > 0 {
            let span = Span::new(self.at, self.at + 2);
            let missing =
                if depth == 1 { "`*/`".to_owned() } else { format!("`*/` {depth} times") };
            self.keep(
                Diagnostic::new(Code::UnclosedComment, "this comment does not end")
                    .label(span, "begins here")
                    .note("block comments nest")
                    .help(format!("add {missing}")),
            );
            end = bytes.len();
        } else {
            // As in Rust, `/** … */` is documentation; `/***` and `/**/` are not.
            let comment = &self.text[self.at..end];
            documents =
                comment.len() > 4 && comment.starts_with("/**") && bytes[self.at + 3] != b'*';
            if documents {
                let lines = &comment[3..comment.len() - 2];
                self.document(lines, end);
            }
        }
        self.comment(end, documents);
    }

    fn comment(&mut self, end: usize, documents: bool) {
        self.unseen(end, "in this comment");
        self.comments.push(Comment { span: Span::new(self.at, end), documents });
        self.blank_to(end);
    }

    fn document(&mut self, lines: &str, end: usize) {
        let start = self.at;
        let docs = self.pending.get_or_insert_with(|| Documentation {
            text: String::new(),
            span: Span::new(start, end),
        });
        docs.span = docs.span.to(Span::new(start, end));
        for line in lines.split('\n') {
            if !docs.text.is_empty() {
                docs.text.push('\n');
            }
            docs.text.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
        }
    }

    fn string(&mut self) {
        let end = self.run_of(self.at + 1, |byte| byte != b'"' && byte != b'\n');
        let body = &self.text[self.at..end];
        let length = body.trim_end().len();
        if !self.text[end..].starts_with('"') {
            let end = self.at + length;
            self.report(
                Code::MalformedString,
                "this string does not end",
                end,
                "no `\"` before the end of the line",
                "a string ends on the line where it begins",
            );
            self.blank_to(end);
            return;
        }
        let end = end + 1;
        self.unseen(end, "in this string");
        if body.contains('\\') {
            let help = "write the characters themselves; paths take `/` on every system";
            let message = "a string cannot contain `\\`";
            self.report(Code::MalformedString, message, end, "there are no escapes", help);
        } else if self.at > 0 && is_word(self.text.as_bytes()[self.at - 1]) {
            let message = "a string needs a space before it";
            self.report(Code::MalformedString, message, end, "follows a word", "add a space");
        }
        // The backslash does not matter to the grammar: the string continues as a token.
        self.token(TokenKind::String, end);
    }

    fn number(&mut self) {
        let digits = |scanner: &Self, from| scanner.run_of(from, |byte| byte.is_ascii_digit());
        let at = |index: usize| self.text.as_bytes().get(index).copied().unwrap_or(0);
        let mut end = digits(self, self.at);
        if at(end) == b'.' && at(end + 1).is_ascii_digit() {
            end = digits(self, end + 1);
        }
        if matches!(at(end), b'e' | b'E') {
            let signed = usize::from(matches!(at(end + 1), b'+' | b'-'));
            if at(end + 1 + signed).is_ascii_digit() {
                end = digits(self, end + 1 + signed);
            }
        }
        let good = end;
        if at(end) == b'.' && at(end + 1) != b'.' {
            end += 1;
        }
        end = self.run_of(end, is_word);
        if end > good {
            self.malformed_number(good, end);
        } else if self.text[self.at..end].parse().is_ok_and(f64::is_infinite) {
            let message = "this number is too large";
            let help = "the largest number is about 1.8e308";
            self.report(Code::NumberTooLarge, message, end, "above the largest f64", help);
        } else if vanishes(&self.text[self.at..end]) {
            let message = "this number is too small";
            let help = "the smallest number is about 4.9e-324; write 0 where 0 is meant";
            self.report(Code::NumberTooLarge, message, end, "0 as an f64", help);
        }
        blank(&mut self.blanked, good..end);
        self.token(TokenKind::Number, good);
        self.at = end;
    }

    fn malformed_number(&mut self, good: usize, end: usize) {
        let number = &self.text[self.at..end];
        let tail = &self.text[good..end];
        let (label, help) = if tail == "." {
            (
                "no digit behind the point",
                format!("write `{number}0`, or `{}`", &number[..good - self.at]),
            )
        } else if tail.starts_with('.') {
            ("more than one point", format!("write `{}`", &number[..good - self.at]))
        } else if number.starts_with("0x") || number.starts_with("0b") || number.starts_with("0o") {
            ("only decimal numbers", "write the number in decimal digits".to_owned())
        } else if tail.starts_with('_') {
            ("no `_` between digits", format!("write `{}`", number.replace('_', "")))
        } else if matches!(tail, "e" | "E") {
            ("no digit in the exponent", format!("write `{number}0`, or leave out the exponent"))
        } else {
            ("a number has no suffix", {
                let digits = &number[..good - self.at];
                format!("write `{digits}`, or `{digits} * {tail}` if you mean a product")
            })
        };
        let message = format!("malformed number `{number}`");
        self.report(Code::MalformedNumber, &message, end, label, &help);
    }

    fn word(&mut self) {
        let end = self.run_of(self.at, is_word);
        self.token(TokenKind::Word, end);
    }

    fn punctuation(&mut self) {
        const OPERATORS: &[&str] = &[
            "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "^", "<", ">", "!", "=", ";",
            ",", ":", "(", ")", "[", "]", "{", "}",
        ];
        if let Some(operator) = OPERATORS.iter().find(|operator| self.starts_with(operator)) {
            self.token(TokenKind::Punctuation, self.at + operator.len());
            return;
        }
        if self.byte(0) == b'.' && self.byte(1).is_ascii_digit() {
            let end = self.run_of(self.at + 1, is_word);
            let number = self.text[self.at..end].to_owned();
            self.report(
                Code::MalformedNumber,
                &format!("malformed number `{number}`"),
                end,
                "no digit before the point",
                &format!("write `0{number}`"),
            );
            self.blank_to(self.at + 1);
            return;
        }
        if self.byte(0) == b'|' && self.bars() {
            return;
        }
        self.unknown_character();
    }

    /// Scans `|a|`, a norm in textbook notation: one mistake with two characters.
    fn bars(&mut self) -> bool {
        let rest = &self.text[self.at + 1..];
        let Some(length) = rest.find(['|', ';', '\n', '{', '}']) else { return false };
        let inner = rest[..length].trim();
        if !rest[length..].starts_with('|') || inner.is_empty() {
            return false;
        }
        let end = self.at + length + 2;
        let help = format!("write `norm({inner})`, or `abs({inner})` where it is a scalar");
        self.report(
            Code::UnknownCharacter,
            "unknown character `|`",
            end,
            "not part of the language",
            &help,
        );
        self.blank_to(end);
        true
    }

    /// Reports invisible characters between here and `end`, where any other character is allowed.
    fn unseen(&mut self, end: usize, place: &str) {
        for (offset, character) in self.text[self.at..end].char_indices() {
            if is_unseen(character) {
                let at = self.at + offset;
                let message = format!("unknown character U+{:04X}", character as u32);
                let diagnostic = Diagnostic::new(Code::UnknownCharacter, message)
                    .label(Span::new(at, at + character.len_utf8()), format!("unseen {place}"));
                self.keep(diagnostic.help("remove it"));
            }
        }
    }

    fn unknown_character(&mut self) {
        let Some(first) = self.text[self.at..].chars().next() else { return };
        // A run of foreign letters is one mistake.
        let foreign = |c: char| !c.is_ascii() && c.is_alphanumeric() == first.is_alphanumeric();
        let rest = &self.text[self.at..];
        let length = match first.is_ascii() {
            true => 1,
            false => rest.find(|c: char| !foreign(c)).unwrap_or(rest.len()),
        };
        let (message, label, help) = describe_character(first, &rest[..length]);
        let span = Span::new(self.at, self.at + length);
        let diagnostic = Diagnostic::new(Code::UnknownCharacter, message).label(span, label);
        self.keep(diagnostic.help_if(help));
        self.blank_to(self.at + length);
    }
}

/// Returns whether a nonzero number underflows to 0.
fn vanishes(text: &str) -> bool {
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    digits.contains(|c: char| matches!(c, '1'..='9')) && text.parse().is_ok_and(|n: f64| n == 0.0)
}

/// Returns whether a character is invisible by itself, or only modifies the preceding one.
fn is_invisible(character: char) -> bool {
    let blank = matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180e}'
            | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}'
    );
    let combining = matches!(
        character,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}'
    );
    is_unseen(character) || blank || combining
}

/// Returns message, label and help for a character that the language does not use.
fn describe_character(first: char, run: &str) -> (String, &'static str, Option<&'static str>) {
    let shown = if is_invisible(first) || (first.is_whitespace() && first != ' ') {
        format!("U+{:04X}", first as u32)
    } else {
        let seen = |c: char| match is_invisible(c) {
            true => c.escape_unicode().to_string(),
            false => c.to_string(),
        };
        format!("`{}`", run.chars().take(20).map(seen).collect::<String>())
    };
    let help = match first {
        '∇' => Some("write `grad(u)`, `div(u)` or `curl(u)`"),
        '·' | '⋅' | '×' => Some("write `*`, `dot(a, b)`, `inner(a, b)` or `cross(a, b)`"),
        '−' | '–' | '—' => Some("write `-`"),
        '²' | '³' => Some("write `^2` or `^3`"),
        '≤' | '≥' | '≠' => Some("write `<=`, `>=` or `!=`"),
        'π' => Some("write `pi`"),
        '“' | '”' | '„' | '\'' => Some("strings stand in `\"`"),
        '#' => Some("comments begin with `//`"),
        '%' => Some("comments begin with `//`; there is no remainder"),
        '&' => Some("write `&&`"),
        '|' => Some("write `||`, `norm(a)` or `abs(a)`"),
        '_' => Some("names begin with a letter"),
        '.' => Some("components are written `u[0]`, functions `f(u)`"),
        '?' => Some("write `if c { a } else { b }`"),
        _ if is_invisible(first) => Some("remove it"),
        _ if first.is_alphabetic() => Some("names are made of ASCII letters, digits and `_`"),
        _ => None,
    };
    let label = if first.is_ascii() { "not part of the language" } else { "not ASCII" };
    (format!("unknown character {shown}"), label, help)
}

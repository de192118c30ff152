//! Brackets during scanning: matching, and a bound on the depth.
//!
//! A `;` ends every open `(` and `[`, and the beginning of a form or problem ends every `{`, so that a forgotten
//! bracket affects its own item only. Text beyond the depth bound is blanked.

use super::super::MAX_ERRORS;
use super::{Token, TokenKind};
use crate::ast::Span;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use std::ops::Range;

/// Largest nesting depth of brackets and `else if`.
const MAX_DEPTH: usize = 128;

struct OpenBracket {
    byte: u8,
    span: Span,
    /// Number of `else if` at this level, in the current chain.
    chain: usize,
}

/// The open brackets, and the errors so far.
#[derive(Default)]
pub(super) struct Brackets {
    open: Vec<OpenBracket>,
    /// Numbers of open `(`, `[`, `{`.
    counts: [usize; 3],
    /// Number of `else if` at all levels except the outermost (outside any bracket).
    chains: usize,
    too_deep: Option<usize>,
    /// True until the depth has decreased well below the bound, to report it once.
    depth_reported: bool,
    /// Number of `{` closed by the beginning of forms: as many `}` are unmatched.
    orphans: usize,
    previous: [Option<Token>; 2],
    blanks: Vec<Range<usize>>,
    replacements: Vec<(usize, u8)>,
    diagnostics: Vec<Diagnostic>,
}

const fn kind(byte: u8) -> usize {
    match byte {
        b'(' | b')' => 0,
        b'[' | b']' => 1,
        _ => 2,
    }
}

const fn partner(byte: u8) -> char {
    match byte {
        b'(' => ')',
        b'[' => ']',
        _ => '}',
    }
}

impl Brackets {
    pub(super) fn take_blanks(&mut self) -> Vec<Range<usize>> {
        std::mem::take(&mut self.blanks)
    }

    pub(super) fn take_replacements(&mut self) -> Vec<(usize, u8)> {
        std::mem::take(&mut self.replacements)
    }

    pub(super) fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.diagnostics)
    }

    /// Stores a diagnostic, unless there are too many.
    fn keep(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() <= MAX_ERRORS {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Takes the next token.
    pub(super) fn token(&mut self, text: &str, token: Token) {
        let word = &text[token.span.range()];
        match (token.kind, word) {
            (TokenKind::Punctuation, "(" | "[" | "{") => self.push(word.as_bytes()[0], token.span),
            (TokenKind::Punctuation, ")" | "]" | "}") => self.close(word.as_bytes()[0], token.span),
            (TokenKind::Punctuation, ";") => self.semicolon(token.span),
            (TokenKind::Punctuation, ",") => self.reset_chain(),
            (TokenKind::Word, "if") => self.if_word(text, token.span),
            (TokenKind::Word, "solves") => self.begin_if(text, "problem"),
            _ => {}
        }
        if word == "{" {
            // `form NAME {`: the brace just pushed is the form's own.
            self.begin_form(text);
        }
        self.previous = [self.previous[1], Some(token)];
    }

    /// Returns the token two positions back, if it is `word`.
    fn is_before_last(&self, text: &str, word: &str) -> Option<Token> {
        let [before, last] = self.previous;
        last.filter(|token| token.kind == TokenKind::Word)?;
        before.filter(|token| token.kind == TokenKind::Word && &text[token.span.range()] == word)
    }

    fn begin_if(&mut self, text: &str, word: &str) {
        if let Some(begin) = self.is_before_last(text, word) {
            self.close_all(begin.span);
        }
    }

    fn begin_form(&mut self, text: &str) {
        let Some(begin) = self.is_before_last(text, "form") else { return };
        let Some(own) = self.open.pop() else { return };
        self.counts[2] -= 1;
        self.close_all(begin.span);
        self.push(own.byte, own.span);
    }

    fn depth(&self) -> usize {
        self.open.len() + self.chains
    }

    fn push(&mut self, byte: u8, span: Span) {
        self.open.push(OpenBracket { byte, span, chain: 0 });
        self.counts[kind(byte)] += 1;
        if self.depth() > MAX_DEPTH && self.too_deep.is_none() {
            self.too_deep = Some(self.open.len());
            self.report_depth(span);
        }
    }

    fn report_depth(&mut self, span: Span) {
        if std::mem::replace(&mut self.depth_reported, true) {
            return;
        }
        let message = format!("brackets and `else if` nest more than {MAX_DEPTH} deep");
        self.keep(
            Diagnostic::new(Code::NestedTooDeeply, message)
                .label(span, format!("level {}", MAX_DEPTH + 1))
                .help("name the inner parts with `let`"),
        );
    }

    /// Removes the innermost bracket; `end` is the end of its group.
    fn pop(&mut self, end: usize) -> Option<OpenBracket> {
        let open = self.open.pop()?;
        self.counts[kind(open.byte)] -= 1;
        self.chains -= open.chain;
        self.depth_reported &= self.depth() > MAX_DEPTH / 2;
        if self.too_deep == Some(self.open.len() + 1) {
            self.too_deep = None;
            self.blanks.push(open.span.start as usize..end);
        }
        Some(open)
    }

    fn close(&mut self, byte: u8, span: Span) {
        let end = span.end as usize;
        let Some(innermost) = self.open.last() else { return self.unmatched(byte, span) };
        if kind(innermost.byte) == kind(byte) {
            self.pop(end);
        } else if self.counts[kind(byte)] > 0 {
            // The partner is further out: brackets opened since then are unclosed.
            let mut reported = false;
            while let Some(open) = self.pop(span.start as usize) {
                if kind(open.byte) == kind(byte) {
                    break;
                }
                if !reported {
                    self.unclosed(open.byte, open.span, span);
                    reported = true;
                }
            }
        } else if byte != b'}' && innermost.byte != b'{' {
            let (opener, at) = (innermost.byte, innermost.span);
            self.mismatched(opener, at, span, byte);
            self.replacements.push((span.start as usize, partner(opener) as u8));
            self.pop(end);
        } else {
            self.unmatched(byte, span);
        }
    }

    fn semicolon(&mut self, span: Span) {
        self.reset_chain();
        let mut reported = false;
        while self.open.last().is_some_and(|open| open.byte != b'{') {
            let Some(open) = self.pop(span.start as usize) else { break };
            if !reported {
                self.unclosed(open.byte, open.span, span);
                reported = true;
            }
        }
    }

    fn close_all(&mut self, at: Span) {
        let mut outermost = None;
        while let Some(open) = self.pop(at.start as usize) {
            self.orphans += usize::from(open.byte == b'{');
            outermost = Some(open);
        }
        if let Some(open) = outermost {
            self.unclosed(open.byte, open.span, at);
        }
    }

    /// Takes the end of the text.
    pub(super) fn finish(&mut self, end: usize) {
        self.close_all(Span::new(end, end));
    }

    fn reset_chain(&mut self) {
        if let Some(open) = self.open.last_mut() {
            self.chains -= open.chain;
            open.chain = 0;
        }
    }

    fn if_word(&mut self, text: &str, span: Span) {
        let chained = self.previous[1].is_some_and(|token| &text[token.span.range()] == "else");
        if !chained {
            return self.reset_chain();
        }
        if let Some(open) = self.open.last_mut() {
            open.chain += 1;
            self.chains += 1;
        }
        if self.depth() > MAX_DEPTH {
            self.report_depth(span);
        }
    }

    fn unclosed(&mut self, byte: u8, open: Span, before: Span) {
        let closer = partner(byte);
        let message = format!("`{}` without `{closer}`", byte as char);
        let mut diagnostic =
            Diagnostic::new(Code::UnmatchedBracket, message).label(open, "opened here");
        if before.end > before.start {
            diagnostic = diagnostic.secondary(before, format!("expected `{closer}` before this"));
        }
        self.keep(diagnostic.help(format!("add `{closer}`")));
    }

    fn unmatched(&mut self, byte: u8, span: Span) {
        self.blanks.push(span.range());
        if byte == b'}' && self.orphans > 0 {
            self.orphans -= 1;
            return;
        }
        let message = format!("`{}` without an opening bracket", byte as char);
        self.keep(
            Diagnostic::new(Code::UnmatchedBracket, message)
                .label(span, "nothing is open that this could close")
                .help("remove it"),
        );
    }

    fn mismatched(&mut self, opener: u8, open: Span, span: Span, closer: u8) {
        let expected = partner(opener);
        let message = format!("`{}` is closed by `{}`", opener as char, closer as char);
        self.keep(
            Diagnostic::new(Code::UnmatchedBracket, message)
                .label(span, format!("expected `{expected}`"))
                .secondary(open, "opened here")
                .help(format!("write `{expected}`")),
        );
    }
}

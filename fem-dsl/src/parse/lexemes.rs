//! Tokens and comments of a text in order, for editors.

use super::scan::{self, TokenKind};
use crate::source::{MAX_BYTES, Span};

/// A token or a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lexeme {
    /// Its kind.
    pub kind: LexemeKind,
    /// Its location.
    pub span: Span,
}

/// The kinds of lexemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexemeKind {
    /// A name or a word of the language.
    Word,
    /// A number.
    Number,
    /// A string with its quotes.
    String,
    /// An operator, a bracket or a separator.
    Punctuation,
    /// A comment.
    Comment,
    /// A documentation comment.
    Documentation,
}

/// Returns the tokens and comments of any text in order; none of a text that is too long for a file.
pub fn lexemes(text: &str) -> Vec<Lexeme> {
    if text.len() > MAX_BYTES {
        return Vec::new();
    }
    let scan = scan::scan(text);
    let tokens = scan.tokens.iter().map(|token| {
        let kind = match token.kind {
            TokenKind::Word => LexemeKind::Word,
            TokenKind::Number => LexemeKind::Number,
            TokenKind::String => LexemeKind::String,
            TokenKind::Punctuation => LexemeKind::Punctuation,
        };
        Lexeme { kind, span: token.span }
    });
    let comments = scan.comments.iter().map(|comment| {
        let kind = match comment.documents {
            true => LexemeKind::Documentation,
            false => LexemeKind::Comment,
        };
        Lexeme { kind, span: comment.span }
    });
    let mut all: Vec<Lexeme> = tokens.chain(comments).collect();
    all.sort_unstable_by_key(|lexeme| lexeme.span);
    all
}

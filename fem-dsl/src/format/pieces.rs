//! `pieces`: text → its tokens and comments in order, with their positions on lines.

use crate::parse::scan::{TokenKind, scan};

/// A token or a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    /// The original text; comments may differ in trailing line ends.
    pub(super) text: &'a str,
    pub(super) kind: PieceKind,
    /// True if it is the first of its line.
    pub(super) first: bool,
    /// True if it is the last of its line.
    pub(super) last: bool,
    /// True if a blank line precedes it.
    pub(super) blank_before: bool,
}

/// The kinds of piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    Token(TokenKind),
    /// `// …`, to the end of its line.
    LineComment,
    /// `/* … */`
    BlockComment,
    /// `/// …` or `/** … */`, before the documented item.
    Documentation,
}

impl Piece<'_> {
    pub(super) fn is_comment(&self) -> bool {
        !matches!(self.kind, PieceKind::Token(_))
    }

    /// Returns whether nothing else can follow on its line.
    pub(super) fn ends_line(&self) -> bool {
        self.text.starts_with("//")
    }
}

/// Returns the pieces of a text.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let scan = scan(text);
    let mut spans: Vec<_> =
        scan.tokens.iter().map(|token| (token.span, PieceKind::Token(token.kind))).collect();
    spans.extend(scan.comments.iter().map(|comment| {
        let line = text[comment.span.range()].starts_with("//");
        let kind = match (comment.documents, line) {
            (true, _) => PieceKind::Documentation,
            (false, true) => PieceKind::LineComment,
            (false, false) => PieceKind::BlockComment,
        };
        (comment.span, kind)
    }));
    spans.sort_by_key(|(span, _)| span.start);
    let mut pieces: Vec<Piece<'_>> = Vec::with_capacity(spans.len());
    let mut end = 0;
    for (span, kind) in spans {
        let newlines = text[end..span.range().start].matches('\n').count();
        if let Some(previous) = pieces.last_mut() {
            previous.last = newlines > 0;
        }
        end = span.range().end;
        pieces.push(Piece {
            text: text[span.range()].trim_end(),
            kind,
            first: newlines > 0 || pieces.is_empty(),
            last: true,
            blank_before: newlines > 1,
        });
    }
    pieces
}

//! `format`: [`Source`] → its text in the uniform style of the language.
//!
//! Only white space changes: the sequence of tokens and comments is preserved ([`same_pieces`]), and so are the tree
//! and its documentation. There is one item per line, blocks are indented by four columns, and single blank lines are
//! kept. Lines longer than [`WIDTH`] columns are broken: sums before their operators, lists with one entry per line.
//! Comments keep their position, at the end of a line or on their own line; those at the ends of neighbouring lines are
//! aligned. Formatting is idempotent.
//!
//! Steps: `pieces` (tokens and comments in order), `item` (the pieces of one item → text, breaks and nested groups),
//! `layout` (selection of the broken groups), `page` (lines, blank lines, comments next to lines).
//!
//! ```
//! use fem_dsl::format::format;
//! use fem_dsl::source::Source;
//!
//! let source = Source::new("a.wf", "form a{field u:scalar;f0[u]=u ^ 2-1;}");
//! let text = format(&source).expect("there are no errors");
//! assert_eq!(text, "form a {\n    field u: scalar;\n    f0[u] = u^2 - 1;\n}\n");
//! ```

mod item;
mod layout;
mod page;
mod pieces;

use crate::diagnostic::Diagnostic;
use crate::parse::parse;
use crate::source::Source;
use page::Page;
use pieces::{Piece, PieceKind, pieces};

/// Maximal line length, if possible.
pub const WIDTH: usize = 110;

/// The columns of a level of indentation.
const INDENT: usize = 4;

/// Returns the text of a file in the style of the language.
///
/// # Errors
///
/// All syntax errors. The semantics of a file is not checked.
pub fn format(source: &Source) -> Result<String, Vec<Diagnostic>> {
    let (_, diagnostics) = parse(source);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(diagnostics);
    }
    let text = source.text().replace("\r\n", "\n");
    Ok(page(&pieces(&text)))
}

/// Returns whether two texts have the same tokens and comments in the same order. They may differ in white space,
/// including that at the line ends of comments.
pub fn same_pieces(one: &str, other: &str) -> bool {
    let (one, other) = (one.replace("\r\n", "\n"), other.replace("\r\n", "\n"));
    let (one, other) = (pieces(&one), pieces(&other));
    let same = |(a, b): (&Piece<'_>, &Piece<'_>)| a.text == b.text && a.kind == b.kind;
    one.len() == other.len() && one.iter().zip(&other).all(same)
}

/// Returns the tokens and comments of a text in order, unchanged.
pub fn tokens_and_comments(text: &str) -> Vec<&str> {
    pieces(text).iter().map(|piece| piece.text).collect()
}

/// Lays out the pieces of a file without errors.
fn page(pieces: &[Piece<'_>]) -> String {
    let mut page = Page::default();
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        match (piece.kind, piece.text) {
            (PieceKind::Token(_), "}") => {
                page.close();
                if page.outermost() {
                    page.separate(!parted(&pieces[at + 1..]));
                }
                at += 1;
            }
            (PieceKind::Token(_), _) => {
                let end = item_end(pieces, at);
                page.item(piece.blank_before, &item::operations(&pieces[at..=end]));
                if pieces[end].text == "{" {
                    page.open();
                }
                at = end + 1;
            }
            _ => {
                page.comment(piece);
                at += 1;
            }
        }
    }
    page.finish()
}

/// Returns whether no blank line needs to be added after a form: there is one before the next form, or no next form.
fn parted(following: &[Piece<'_>]) -> bool {
    let next = following.iter().position(|piece| !piece.is_comment());
    next.is_none_or(|next| following[..=next].iter().any(|piece| piece.blank_before))
}

/// Returns the last piece of the item that begins at `start`: its `;`, or the `{` of its block.
fn item_end(pieces: &[Piece<'_>], start: usize) -> usize {
    let last = if matches!(pieces[start].text, "form" | "problem" | "on") { "{" } else { ";" };
    let ends = |piece: &Piece<'_>| piece.text == last && !piece.is_comment();
    let length = pieces[start..].iter().position(ends);
    length.map_or(pieces.len() - 1, |length| start + length)
}

#[cfg(test)]
mod tests;

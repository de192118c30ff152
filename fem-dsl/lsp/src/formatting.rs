//! Formatting: the edit of the lines that `wf fmt` changes.

use crate::document::Document;
use fem_dsl::format::{format, same_pieces};
use fem_dsl::source::Span;
use serde_json::{Value, json};

/// Returns the edits that format a file: none for a formatted file, and for one with syntax errors.
pub(crate) fn edits(document: &Document) -> Value {
    let Ok(formatted) = format(document.analysis.program.source()) else { return json!([]) };
    let text = &document.text;
    if formatted == *text || !same_pieces(document.analysis.program.source().text(), &formatted) {
        return json!([]);
    }
    // The lines before and after the change stay, and with them the cursor and the folds.
    let before = common(text.split_inclusive('\n').zip(formatted.split_inclusive('\n')));
    let (old, new) = (&text[before..], &formatted[before..]);
    let after = common(old.split_inclusive('\n').rev().zip(new.split_inclusive('\n').rev()));
    let span = Span::new(before, text.len() - after);
    let new = &new[..new.len() - after];
    json!([{ "range": document.range(span), "newText": new }])
}

/// Returns the length of the equal lines at the beginning.
fn common<'a>(lines: impl Iterator<Item = (&'a str, &'a str)>) -> usize {
    lines.take_while(|(old, new)| old == new).map(|(old, _)| old.len()).sum()
}

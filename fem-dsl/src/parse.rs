//! `parse`: [`Source`] → [`ast::File`](crate::ast::File), syntax only.
//!
//! There are three steps. `scan` finds comments, malformed tokens, brackets and their depth. Then follows the grammar,
//! `grammar.pest` of the crate `fem-dsl-grammar`; only this module depends on the parser generator. `build` converts
//! the parser's pairs to the tree and resolves precedence on an explicit stack. Each unreadable item is parsed again by
//! its own rule, to find the position of the error and the expected tokens. Its readable part (usually the name) still
//! enters the tree, so that one mistake causes one message.

use crate::ast::File;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::Source;

mod build;
mod builder;
mod expect;
mod expression;
mod items;
mod lexemes;
pub(crate) mod scan;
mod tables;

pub use lexemes::{Lexeme, LexemeKind, lexemes};

/// Number of errors after which parsing stops.
const MAX_ERRORS: usize = 100;

/// Parses a file. The tree contains all readable parts, whether or not there are errors.
pub fn parse(source: &Source) -> (File, Vec<Diagnostic>) {
    if let Some(defect) = Diagnostic::of_defect(source) {
        return (File::default(), vec![defect]);
    }
    let mut scan = scan::scan(source.text());
    let (file, mut diagnostics) = build::build(&mut scan, source.folder());
    diagnostics.append(&mut scan.diagnostics);
    sort(&mut diagnostics);
    if diagnostics.len() > MAX_ERRORS {
        diagnostics.truncate(MAX_ERRORS);
        diagnostics.push(Diagnostic::new(
            Code::TooManyErrors,
            format!("more than {MAX_ERRORS} errors; the others are not shown"),
        ));
    }
    (file, diagnostics)
}

/// Orders diagnostics by their location.
pub(crate) fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by_key(|diagnostic| {
        diagnostic.primary().map_or((u32::MAX, 0), |label| (label.span.start, label.span.end))
    });
}

//! `parse`: [`Source`] → [`ast::File`](crate::ast::File), syntax only.
//!
//! Three steps: `scan` (comments, malformed tokens, brackets and their depth), the grammar
//! (`grammar.pest` of the crate `fem-dsl-grammar`; nothing else knows the parser generator), and `build`, which
//! turns the parser's pairs into the tree and resolves precedence on an explicit stack. Each item
//! that the grammar could not read is parsed once more by its own rule, to learn where it stops
//! and what could have stood there; what was readable of it (its name, as a rule) still enters
//! the tree, so that one mistake causes one message.

use crate::ast::File;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::Source;

mod build;
mod expect;
mod expression;
mod items;
pub(crate) mod scan;

/// After so many errors the rest is not read.
const MAX_ERRORS: usize = 100;

/// Parses a file. The tree holds what could be read, whether or not there are errors.
pub fn parse(source: &Source) -> (File, Vec<Diagnostic>) {
    if let Some(defect) = Diagnostic::of_defect(source) {
        return (File::default(), vec![defect]);
    }
    let mut scan = scan::scan(source.text());
    let (file, mut diagnostics) = build::build(&mut scan);
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

/// Orders diagnostics by their place.
pub(crate) fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by_key(|diagnostic| {
        diagnostic.primary().map_or((u32::MAX, 0), |label| (label.span.start, label.span.end))
    });
}

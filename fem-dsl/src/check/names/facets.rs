//! Names and functions that have a value only at facets, or only between cells.

use super::ExprContext;
use crate::ast::SideWord;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// Checks that a function of facets has a value at `place`.
pub(super) fn available(
    name: &str,
    span: Span,
    place: ExprContext<'_>,
) -> Result<(), Box<Diagnostic>> {
    if name == "penalty" && !place.is_of_facets() {
        return Err(Box::new(of_facets("`penalty` is a number of a field at a facet", span)));
    }
    if name == "tangential" && !place.is_of_facets() {
        let message = "`tangential` is a part of a vector along a facet";
        return Err(Box::new(of_facets(message, span)));
    }
    let Some(word) = SideWord::of(name) else { return Ok(()) };
    if word == SideWord::Inside || place.is_interior() {
        return Ok(());
    }
    let message = format!("`{name}` needs a facet between two cells");
    let help = match place.region {
        None => {
            "use it, and what contains it, in an `on interior { … }` block or a report's `integral(…, on: interior)`"
        }
        Some(_) => "leave it out, or use it in an `on interior { … }` block",
    };
    Err(Box::new(
        Diagnostic::new(Code::MisplacedSide, message)
            .label(span, "there is one cell here")
            .help(help),
    ))
}

/// Returns the diagnostic for a value that facets have, in cells.
pub(super) fn of_facets(message: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::NotAvailableHere, message)
        .label(span, "there is no facet inside a cell")
        .help("use it, and what is computed from it, in an `on boundary` or `on interior` block")
}

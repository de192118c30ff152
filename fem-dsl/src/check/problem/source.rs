//! Sources at points: `source u[i] = EXPR at [x, y];`.

use super::{Checker, Statement, conditions};
use crate::ast::ProblemItemKind;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::point::Shape;
use crate::problem::PointSource;

/// Checks a source: a value of a field, or of one component, at a point.
pub(super) fn check(checker: &mut Checker<'_>, statement: Statement<'_>) {
    let ProblemItemKind::Source { field, component, value, place } = statement.kind else { return };
    let piece = statement.piece;
    let Some(place) = conditions::vertex(checker, piece, *place) else { return };
    let Some(index) = checker.field(piece, field) else { return };
    let (shape, space) = (checker.form.fields[index].shape, checker.form.fields[index].space);
    if space.is_piola() {
        let message = format!("`{}` in `{space}` has no source at a point", field.name);
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(field.span, "its functions have no value at a point between cells")
            .help("write the source as data on cells or points, near the place");
        return checker.report(piece, diagnostic);
    }
    if checker.content.manufacturing {
        let message = "a manufactured solution has a source of its own";
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(statement.span, "a further source changes the solution")
            .help("leave it out, or the manufactured solution");
        return checker.report(piece, diagnostic);
    }
    let component = match component {
        None => None,
        Some(at) => match conditions::component_index(checker, piece, field, *at, shape) {
            None => return,
            component => component,
        },
    };
    let (expected, what) = match component {
        None => (shape, format!("`{}`", field.name)),
        Some(component) => (Shape::Scalar, format!("`{}[{component}]`", field.name)),
    };
    let Some(value) = checker.expression(piece, *value, expected, &what) else { return };
    if conditions::is_of_nodes(
        checker,
        statement,
        &format!("the source of `{}`", field.name),
        &value,
    ) {
        checker.content.sources.push(PointSource { field: index, component, value, place });
    }
}

//! Second derivatives that only values test: in a continuous space they leave out the kinks between cells.

use crate::ast;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{Expr, Form, Terminal};
use crate::source::Span;
use crate::suggestions;

/// Returns a warning for each field of a form without errors whose rows over cells have second derivatives in f0, and no
/// other part.
pub(crate) fn strong(written: &ast::Form, form: &Form) -> Vec<Diagnostic> {
    let declared = written.items.iter().filter_map(|item| match &item.kind {
        ast::FormItemKind::Field { name, .. } => Some(name),
        _ => None,
    });
    let warning = |(field, name): (usize, &ast::Ident)| {
        let cells = form.integrals.iter().filter(|integral| integral.region.is_of_cells());
        let rows = || cells.clone().flat_map(|integral| &integral.rows);
        if rows().any(|row| row.field == field && row.f1.or(row.f2).is_some()) {
            return None;
        }
        let values: Vec<_> =
            rows().filter(|row| row.field == field).filter_map(|row| row.f0).collect();
        let second = form.exprs.reachable_in_order(&values).into_iter().find(|&id| {
            let expr = form.exprs.expr(id);
            matches!(expr, Expr::Terminal(Terminal::FieldHessian(of, _)) if *of == field)
                && !form.fields[field].space.is_piola()
        })?;
        let place: Span = match form.exprs.origin(second) {
            Some(origin) => origin.span,
            None => name.span,
        };
        let message = format!("second derivatives of `{}` are tested by values alone", name.name);
        Some(
            Diagnostic::warning(Code::TestedByValues, message)
                .label(place, "taken in each cell, without the kinks between cells")
                .help(suggestions::INTEGRATE_BY_PARTS),
        )
    };
    declared.enumerate().filter_map(warning).collect()
}

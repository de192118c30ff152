//! Discontinuous fields whose cells lack a coupling: a gradient without jump terms, or a flux with discontinuous test
//! functions, without terms on the facets between cells.

use crate::ast;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{Expr, Form, Terminal};
use crate::point::Space;
use crate::suggestions;
use std::collections::BTreeSet;

/// Returns a warning for each such field of a form without errors.
pub(crate) fn uncoupled(written: &ast::Form, form: &Form) -> Vec<Diagnostic> {
    let cells = form.integrals.iter().filter(|integral| integral.region.is_of_cells());
    let rows: Vec<_> = cells.flat_map(|integral| &integral.rows).collect();
    let tested: BTreeSet<usize> =
        rows.iter().filter(|row| row.f1.or(row.f2).is_some()).map(|row| row.field).collect();
    let roots: Vec<_> = rows.iter().flat_map(|row| row.factors()).collect();
    let reachable = form.exprs.reachable_in_order(&roots).into_iter();
    let differentiated: BTreeSet<usize> = reachable
        .filter_map(|id| match form.exprs.expr(id) {
            Expr::Terminal(
                Terminal::FieldGradient(field, _) | Terminal::FieldHessian(field, _),
            ) => Some(*field),
            _ => None,
        })
        .collect();
    let interior = form.integrals.iter().filter(|integral| integral.region.is_interior());
    let coupled: BTreeSet<usize> =
        interior.flat_map(|integral| &integral.rows).map(|row| row.field).collect();
    let declared = written.items.iter().filter_map(|item| match &item.kind {
        ast::FormItemKind::Field { name, .. } => Some(name),
        _ => None,
    });
    let warning = |(index, name): (usize, &ast::Ident)| {
        let space = form.fields.get(index)?.space;
        let (message, label) = match (differentiated.contains(&index), tested.contains(&index)) {
            (true, _) => (
                format!("`grad({})` leaves out the jumps of `{}`", name.name, name.name),
                "its cells do not see each other",
            ),
            (_, true) => (
                format!("the flux of `{}` does not go from cell to cell", name.name),
                "tested against functions that jump",
            ),
            _ => return None,
        };
        (matches!(space, Space::L2(_)) && !coupled.contains(&index)).then(|| {
            Diagnostic::warning(Code::UncoupledCells, message)
                .label(name.span, format!("in `{space}`: {label}"))
                .help(suggestions::COUPLE_CELLS)
        })
    };
    declared.enumerate().filter_map(warning).collect()
}

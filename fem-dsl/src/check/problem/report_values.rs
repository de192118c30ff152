//! Checks of the values inside of functionals and of outputs: their shape, and where they exist.

use super::{Checker, Piece};
use crate::ast::{self, ExprId, ExprKind, Ident};
use crate::check::expression::Checker as Expressions;
use crate::check::names::subtree;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{self, Expr, Terminal, Type};
use crate::point::Location;
use std::collections::BTreeMap;

/// Returns a value with a shape that a field may have, without test functions.
pub(super) fn tensor(
    expressions: &mut Expressions<'_>,
    root: ExprId,
    value: form::ExprId,
) -> Option<form::ExprId> {
    let span = expressions.span(root);
    let exprs = &expressions.form.exprs;
    let Type::Tensor(shape) = exprs.ty(value) else {
        let message = "this is a condition, but a value is expected";
        expressions.report(
            Diagnostic::new(Code::NotACondition, message)
                .label(span, "a condition")
                .help("`if c { 1 } else { 0 }` makes a number of a condition"),
        );
        return None;
    };
    if shape.to_point().is_none() {
        let message = format!("{shape} cannot be reported");
        expressions.report(Diagnostic::new(Code::WrongShape, message).label(span, "this"));
        return None;
    }
    let form = &expressions.form;
    let unknown = form.terminals(&[value]).find(|terminal| match *terminal {
        Terminal::Rate(field, order, _) | Terminal::RateGradient(field, order, _) => {
            form.rate(field, order).is_none()
        }
        _ => false,
    });
    if let Some(terminal) = unknown {
        let message =
            format!("`{}` is no part of the form, and not known", form.terminal_name(terminal));
        expressions.report(Diagnostic::new(Code::NotAvailableHere, message).label(span, "here"));
        return None;
    }
    let of_test = exprs.reachable_in_order(&[value]).into_iter().any(|id| {
        matches!(
            exprs.expr(id),
            Expr::Terminal(
                Terminal::Test(..) | Terminal::TestGradient(..) | Terminal::TestHessian(..)
            )
        )
    });
    if of_test {
        let message = "a test function has no value after a solve";
        expressions.report(Diagnostic::new(Code::NotAvailableHere, message).label(span, "here"));
        return None;
    }
    Some(value)
}

/// Returns whether an expression has a value at any point: data at quadrature points has none elsewhere.
pub(super) fn has_values_everywhere(
    expressions: &mut Expressions<'_>,
    root: ExprId,
    value: form::ExprId,
) -> bool {
    let form = &expressions.form;
    let parts = form.exprs.reachable_in_order(&[value]);
    let data = parts.into_iter().find_map(|part| match form.exprs.expr(part) {
        Expr::Terminal(Terminal::Aux(i, _)) if form.aux[*i].location == Location::Points => {
            Some(form.aux[*i].name.clone())
        }
        _ => None,
    });
    let Some(name) = data else { return true };
    let span = expressions.span(root);
    let message = format!("`{name}` lies at the quadrature points, and has no value elsewhere");
    expressions.report(
        Diagnostic::new(Code::NotAvailableHere, message)
            .label(span, format!("this needs `{name}` at other points"))
            .help(format!("integrate it, or declare it at nodes: `aux {name}: …;`")),
    );
    false
}

/// Reports calls of a form's expressions: `s([0.5, 0.1])`.
pub(super) fn expressions_at_places(
    checker: &mut Checker<'_>,
    piece: &Piece,
    written: &ast::Form,
    value: ExprId,
) {
    for id in subtree(&piece.file, value) {
        let ExprKind::Call { function, .. } = &piece.file.exprs[id].kind else { continue };
        let name = &function.name;
        let is_expression = |item: &ast::FormItem| matches!(&item.kind, ast::FormItemKind::Let { name: own, .. } if own.name == *name);
        if written.items.iter().any(is_expression) {
            let example = vec!["0"; checker.form.dim].join(", ");
            let diagnostic =
                Diagnostic::new(Code::NotAFunction, format!("`{name}` is no function"))
                    .label(function.span, "an expression of the form, called here")
                    .help(format!("its value at a place is `at({name}, [{example}])`"));
            checker.report(piece, diagnostic);
        }
    }
}

/// Reports line plots whose file names differ in case only.
pub(super) fn same_files(
    checker: &mut Checker<'_>,
    stated: &[(&Piece, &Ident, ExprId)],
    lines: &[ExprId],
) {
    let mut seen: BTreeMap<String, &Ident> = BTreeMap::new();
    for &(piece, name, value) in stated.iter().filter(|(.., value)| lines.contains(value)) {
        let Some(first) = seen.insert(name.name.to_lowercase(), name) else { continue };
        if first.name == name.name {
            // Given twice, which has been reported.
            continue;
        }
        let message = format!(
            "the lines `{}` and `{}` are one file where letters have no case",
            first.name, name.name
        );
        let diagnostic = Diagnostic::new(Code::DuplicateName, message)
            .label(piece.file.exprs[value].span, "written to `PROBLEM-NAME.csv`")
            .help("choose another name");
        checker.report(piece, diagnostic);
    }
}

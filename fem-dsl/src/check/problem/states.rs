//! States at points: `state p: scalar on points = 0;` with `update p = EXPR;` in a form → initial data, and the
//! expressions of the next step among the outputs of the problem.

use super::{Checker, Piece, Statement};
use crate::ast::{self, ExprId, FormItemKind, Ident};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form;
use crate::point::Shape;
use crate::problem::{Data, PointState, ValueSource};
use std::collections::BTreeMap;

/// Returns the text of the problem with the block of its form.
pub(super) fn written<'a>(
    statements: &[Statement<'a>],
    name: &str,
) -> Option<(&'a Piece, &'a ast::Form)> {
    statements.iter().find_map(|statement| {
        let mut forms = statement.piece.file.forms.iter();
        forms.find(|form| form.name.name == name).map(|form| (statement.piece, form))
    })
}

/// Returns whether the block of a form in this text has states.
pub(super) fn written_in(piece: &Piece, name: &str) -> bool {
    piece.file.forms.iter().any(|form| form.name.name == name && !updates(form).is_empty())
}

/// Returns the initial values or the updates of a form.
fn values(
    form: &ast::Form,
    of: impl Fn(&FormItemKind) -> Option<(&Ident, ExprId)>,
) -> Vec<(&Ident, ExprId)> {
    form.items.iter().filter_map(|item| of(&item.kind)).collect()
}

/// Returns the updates of a form.
pub(super) fn updates(form: &ast::Form) -> Vec<(&Ident, ExprId)> {
    values(form, |item| match item {
        FormItemKind::Update { name, value } => Some((name, *value)),
        _ => None,
    })
}

fn starts(form: &ast::Form) -> Vec<(&Ident, ExprId)> {
    values(form, |item| match item {
        FormItemKind::Start { name, value } => Some((name, *value)),
        _ => None,
    })
}

/// Checks the states of a problem's form, and gives those without data in the problem their initial values.
pub(super) fn check(checker: &mut Checker<'_>, statements: &[Statement<'_>]) {
    let Some((piece, written)) = written(statements, &checker.form.name) else { return };
    let (starts, updates) = (starts(written), updates(written));
    for &(name, value) in &starts {
        let Some(index) = aux_of(checker, name) else { continue };
        match updates.iter().filter(|(own, _)| own.name == name.name).count() {
            0 => missing(checker, piece, name),
            1 => {}
            _ => {
                let last = updates.iter().rfind(|(own, _)| own.name == name.name);
                let span = last.map_or(name.span, |(own, _)| own.span);
                let message = format!("the state `{}` has two updates", name.name);
                let diagnostic = Diagnostic::new(Code::DuplicateItem, message)
                    .label(span, "given again")
                    .help("remove one of them");
                checker.report(piece, diagnostic);
            }
        }
        if checker.content.aux.iter().any(|data| data.aux == index) {
            continue;
        }
        let what = format!("the start of `{}`", name.name);
        let shape = checker.form.aux[index].shape;
        if let Some(value) = start(checker, piece, (value, shape), &what) {
            let value = ValueSource::Formula(value);
            checker.content.aux.push(Data { aux: index, tags: None, value });
        }
    }
    for (name, _) in updates {
        if !starts.iter().any(|(own, _)| own.name == name.name) {
            let message = format!("`{}` is no state of the form", name.name);
            let diagnostic = Diagnostic::new(Code::NotInForm, message)
                .label(name.span, "updated here")
                .help(format!("write `state {}: scalar on points = 0;`", name.name));
            checker.report(piece, diagnostic);
        }
    }
    if let (Some((first, _)), Some(_)) = (starts.first(), &checker.content.adapt) {
        let message = format!("the state `{}` does not move to other cells", first.name);
        let diagnostic = Diagnostic::new(Code::NotAvailableHere, message)
            .label(first.span, "it belongs to the points of a cell, and `adapt` changes the cells")
            .help("leave `adapt` out, or make a finer mesh where it is needed, `refine = 1;`");
        checker.report(piece, diagnostic);
    }
    if let (Some((first, _)), false) = (starts.first(), checker.content.timed) {
        let message = format!(
            "the state `{}` changes from step to step, and this problem has no time",
            first.name
        );
        let diagnostic = Diagnostic::new(Code::MissingSetting, message)
            .label(first.span, "updated when a step has converged")
            .help("write `time = theta(theta: 1, to: 1, step: 0.1);`, and let loads depend on t");
        checker.report(piece, diagnostic);
    }
}

/// Returns an initial value; a number is that of all components.
fn start(
    checker: &mut Checker<'_>,
    piece: &Piece,
    (value, shape): (ExprId, Shape),
    what: &str,
) -> Option<crate::problem::Expression> {
    let is_zero = matches!(piece.file.exprs[value].kind, ast::ExprKind::Number(0.0));
    if !is_zero || shape == Shape::Scalar {
        return checker.expression(piece, value, shape, what);
    }
    let mut zero = checker.expression(piece, value, Shape::Scalar, what)?;
    let count = shape.components();
    zero.shape = shape;
    zero.value = vec![zero.value[0]; count];
    zero.gradient = zero.gradient.repeat(count);
    zero.rates = zero.rates.map(|rate| rate.repeat(count));
    Some(zero)
}

fn aux_of(checker: &Checker<'_>, name: &Ident) -> Option<usize> {
    checker.form.aux.iter().position(|aux| aux.name == name.name)
}

fn missing(checker: &mut Checker<'_>, piece: &Piece, name: &Ident) {
    let message = format!("the state `{}` has no update", name.name);
    let diagnostic =
        Diagnostic::new(Code::MissingSetting, message).label(name.span, "never changes").help(
            format!("write `update {0} = …;` in the form, or `aux {0}: … on points;`", name.name),
        );
    checker.report(piece, diagnostic);
}

/// Stores the states with the places of their updates among the outputs, `derived` by expression.
pub(super) fn store(
    checker: &mut Checker<'_>,
    (piece, written): (&Piece, &ast::Form),
    derived: &BTreeMap<ExprId, (Shape, usize)>,
) {
    for (name, value) in updates(written) {
        let Some(aux) = aux_of(checker, name) else { continue };
        let Some(&(found, first)) = derived.get(&value) else { continue };
        let expected = checker.form.aux[aux].shape;
        if found != expected {
            let (found, expected) = (form::Shape::from(found), form::Shape::from(expected));
            let message = format!("the state `{}` is {expected}, but this is {found}", name.name);
            let diagnostic = Diagnostic::new(Code::WrongShape, message)
                .label(piece.file.exprs[value].span, format!("this is {found}"));
            checker.report(piece, diagnostic);
            continue;
        }
        checker.content.states.push(PointState { aux, first });
    }
}

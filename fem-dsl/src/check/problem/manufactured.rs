//! Manufactured solutions: `manufactured u = EXPR;` for every field, and data with the derivatives that the source
//! needs.

use super::{Checker, Piece, Statement, file};
use crate::ast::{ExprId, Ident, ProblemItemKind, SupportSpec};
use crate::check::value;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{self, Expr, ExprId as ExprOfForm, Exprs, Form, Integral, Terminal};
use crate::interior::inconsistent;
use crate::manufacture::CoordinateFunction;
use crate::point::{Field, InteriorFacets, Location, Region, Space, Unary};
use crate::source::Span;

/// A manufactured solution.
#[derive(Clone, Debug)]
pub(crate) struct Solutions {
    /// One function for each field.
    pub(crate) fields: Vec<CoordinateFunction>,
    /// One for each of the form's auxiliary data.
    pub(crate) aux: Vec<CoordinateFunction>,
}

/// Checks all statements; the solutions count as known ones afterwards.
pub(super) fn check(checker: &mut Checker<'_>, statements: &[Statement<'_>]) {
    let stated = statements.iter().filter_map(|statement| match statement.kind {
        ProblemItemKind::Manufactured { field, value } => Some((*statement, field, *value)),
        _ => None,
    });
    let stated: Vec<(Statement<'_>, &Ident, ExprId)> = stated.collect();
    let Some(&(first, ..)) = stated.first() else { return };
    checker.content.manufacturing = true;
    let form = checker.form;
    if let Some(field) = jumping(form) {
        return report_jumping(checker, first, field);
    }
    if let Some(number) = form.fields.iter().find(|field| field.space.is_number()) {
        let message = format!("the unknown number `{}` has no manufactured value", number.name);
        let diagnostic = Diagnostic::new(Code::BadManufactured, message)
            .label(first.span, "the source of a number is no function")
            .help("compare with a known solution: `exact u = …;`");
        return checker.report(first.piece, diagnostic);
    }
    if by_regions(form, statements) {
        return report_regions(checker, first);
    }
    let mut fields: Vec<Option<CoordinateFunction>> = vec![None; form.fields.len()];
    let mut named = vec![false; form.fields.len()];
    for &(statement, field, value) in &stated {
        let Some(index) = checker.field(statement.piece, field) else { continue };
        named[index] = true;
        let what = format!("`{}`", field.name);
        let shape = form.fields[index].shape;
        let Some(known) = checker.expression(statement.piece, value, shape, &what) else {
            continue;
        };
        if fields[index].is_some() {
            // Given twice, which has been reported.
            continue;
        }
        if checker.content.exact.iter().any(|(of, _)| *of == index) {
            exact_too(checker, statement, statements, field);
            continue;
        }
        checker.content.exact.push((index, known));
        fields[index] = value::known(&statement.piece.file, value, form).ok();
    }
    let missing = form.fields.iter().zip(&named).filter(|(_, named)| !**named);
    let missing: Vec<&str> = missing.map(|(field, _)| field.name.as_str()).collect();
    if !missing.is_empty() && !checker.content.broken {
        let list: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        let message = format!("there is no manufactured solution of {}", list.join(", "));
        let diagnostic = Diagnostic::new(Code::BadManufactured, message)
            .label(first.span, "every field needs one")
            .help(format!("add `manufactured {} = …;`", missing[0]));
        checker.report(first.piece, diagnostic);
    }
    let fields: Option<Vec<CoordinateFunction>> = fields.into_iter().collect();
    let aux = data(checker, statements);
    if let (Some(fields), Some(aux)) = (fields, aux) {
        if let Some((field, place)) = broken_flux(form, &aux) {
            return report_broken_flux(checker, first, &field.name, place);
        }
        checker.content.manufactured = Some(Solutions { fields, aux });
    }
}

/// Returns a discontinuous field that is tested by its derivatives in the cells, without the terms of its flux between
/// cells. That of second derivatives has third ones, which no form has. Its test functions jump there, so that ∮ φ·(f1 n) of two neighbours does not cancel, and f0 − div f1 is not
/// its source.
fn jumping(form: &Form) -> Option<&Field> {
    let cells = form.integrals.iter().filter(|integral| integral.region.is_of_cells());
    let all = |integral: &&Integral| integral.region == Region::Interior(InteriorFacets::All);
    let between = form.integrals.iter().filter(all).flat_map(|integral| &integral.rows);
    let inconsistent = inconsistent(form);
    let second = |field: usize| {
        let mut rows = cells.clone().flat_map(|integral| &integral.rows);
        rows.any(|row| row.field == field && row.f2.is_some())
    };
    let joined = |field: usize| {
        !second(field)
            && between.clone().any(|row| row.field == field)
            && inconsistent.iter().all(|(other, _)| *other != field)
    };
    let rows = cells.clone().flat_map(|integral| &integral.rows);
    let rows = rows.filter(|row| row.f1.or(row.f2).is_some());
    let mut fields = rows.map(|row| row.field);
    let jumps = |&field: &usize| matches!(form.fields[field].space, Space::L2(_)) && !joined(field);
    fields.find(jumps).map(|field| &form.fields[field])
}

/// Returns whether cells of another region have other terms, or other data.
fn by_regions(form: &Form, statements: &[Statement<'_>]) -> bool {
    let under = |integral: &Integral| matches!(integral.region, Region::CellsUnder(_));
    let tagged = |statement: &Statement<'_>| {
        matches!(statement.kind, ProblemItemKind::Aux { place: Some(SupportSpec::Tags(_)), .. })
    };
    form.integrals.iter().any(under) || statements.iter().any(tagged)
}

fn report_regions(checker: &mut Checker<'_>, statement: Statement<'_>) {
    let message = "the flux may jump from region to region: no source makes a solution of that";
    let diagnostic = Diagnostic::new(Code::BadManufactured, message)
        .label(statement.span, "the source f0 − div f1 is for fluxes that are continuous")
        .help("compare with a solution that is known, `exact u = …;`");
    checker.report(statement.piece, diagnostic);
}

fn report_jumping(checker: &mut Checker<'_>, statement: Statement<'_>, field: &Field) {
    let Field { name, space, .. } = field;
    let form = checker.form;
    let rows = form.integrals.iter().flat_map(|integral| &integral.rows);
    let mut own = rows.filter(|row| form.fields[row.field].name == *name);
    let what = if own.any(|row| row.f2.is_some()) { "second derivatives" } else { "an `f1`" };
    let message =
        format!("`{name}` lives in `{space}` and has {what}: no source makes a solution of that");
    let diagnostic = Diagnostic::new(Code::BadManufactured, message)
        .label(statement.span, "the source f0 − div f1 is for test functions that are continuous")
        .note("where cells meet, what is tested against the gradient of a discontinuous field leaves a jump")
        .help("leave `f1` out, let the field live in `H1(k)`, or join the cells by the terms of its flux in `on interior { … }`");
    checker.report(statement.piece, diagnostic);
}

/// Returns a field whose flux in the cells contains an `if` on the position, or a `sign` of it, and the location in the
/// text. The flux jumps at the interface of the branches, and f0 − div f1 lacks its surface term. `abs`, `min` and
/// `max` do not jump, and derivatives of an energy are assumed not to.
fn broken_flux<'f>(form: &'f Form, aux: &[CoordinateFunction]) -> Option<(&'f Field, Span)> {
    let exprs = &form.exprs;
    let of_place = |terminal: Terminal| match terminal {
        Terminal::Coordinates | Terminal::Diameter(_) => true,
        Terminal::Aux(i, _) => aux.get(i).is_some_and(varies),
        _ => false,
    };
    let on_place = |condition: ExprOfForm| {
        let parts = exprs.reachable_in_order(&[condition]);
        parts.iter().any(
            |&part| matches!(exprs.expr(part), Expr::Terminal(terminal) if of_place(*terminal)),
        )
    };
    let jumps = |id: ExprOfForm| match *exprs.expr(id) {
        Expr::Select(condition, ..) | Expr::Unary(Unary::Sign, condition) => {
            exprs.origin(id).filter(|origin| !origin.derived && on_place(condition))
        }
        _ => None,
    };
    let cells = form.integrals.iter().filter(|integral| integral.region.is_of_cells());
    cells.flat_map(|integral| &integral.rows).find_map(|row| {
        let parts = exprs.reachable_in_order(&[row.f1?]);
        let origin = parts.into_iter().find_map(jumps)?;
        Some((&form.fields[row.field], origin.span))
    })
}

fn report_broken_flux(
    checker: &mut Checker<'_>,
    statement: Statement<'_>,
    field: &str,
    place: Span,
) {
    let message = format!(
        "the flux of `{field}` jumps inside the domain: no source makes a solution of that"
    );
    let (source, jump) = (
        "the source f0 − div f1 is for fluxes that are continuous",
        "another value from one place to the next",
    );
    let diagnostic = Diagnostic::new(Code::BadManufactured, message);
    // A solution from the command line has no location in the file.
    let diagnostic = match statement.piece.is_of_file() {
        true => diagnostic.label(statement.span, source).secondary(place, jump),
        false => diagnostic.label(place, jump),
    };
    let diagnostic = diagnostic
        .note("an `if` or a `sign` in `f1` that asks for the place makes it jump there, and orders of errors mean nothing then")
        .help("take a coefficient without a jump (`abs`, `min` and `max` have none), or compare with `exact`");
    checker.diagnostics.push(diagnostic);
}

/// Reports a field with two solutions.
fn exact_too(
    checker: &mut Checker<'_>,
    statement: Statement<'_>,
    statements: &[Statement<'_>],
    field: &Ident,
) {
    let message = format!("the solution of `{}` is given twice", field.name);
    let mut diagnostic = Diagnostic::new(Code::DuplicateItem, message)
        .label(statement.span, "makes this the solution")
        .help("leave `exact` out: errors are reported beside a manufactured solution too");
    let exact = statements.iter().find(|other| {
        matches!(other.kind, ProblemItemKind::Exact { field: of, .. } if of.name == field.name)
    });
    if let Some(exact) = exact.filter(|exact| std::ptr::eq(exact.piece, statement.piece)) {
        diagnostic = diagnostic.secondary(exact.span, "says what it is");
    }
    checker.report(statement.piece, diagnostic);
}

/// Returns the auxiliary data as functions; `None` if some are missing or wrong, which is already reported.
fn data(
    checker: &mut Checker<'_>,
    statements: &[Statement<'_>],
) -> Option<Vec<CoordinateFunction>> {
    let form = checker.form;
    let mut all = Vec::new();
    let mut complete = true;
    for (index, aux) in form.aux.iter().enumerate() {
        // The history of a time integrator is in no expression of the form.
        if form.rates.iter().any(|rate| rate.aux == index) {
            let mut exprs = Exprs::new();
            let value = exprs.zero(form::Shape::from(aux.shape));
            all.push(CoordinateFunction { exprs, value });
            continue;
        }
        let stated = statements.iter().rev().find_map(|statement| match statement.kind {
            ProblemItemKind::Aux { name, value, .. } if name.name == aux.name => {
                Some((statement.piece, *value))
            }
            _ => None,
        });
        if let Some((piece, value)) = stated
            && file::call(&piece.file, value).is_some()
        {
            report_file(checker, piece, value, &aux.name);
            complete = false;
            continue;
        }
        let known = stated.and_then(|(piece, value)| value::known(&piece.file, value, form).ok());
        let (Some((piece, value)), Some(known)) = (stated, known) else {
            complete = false;
            continue;
        };
        if !matches!(aux.location, Location::Nodes(_)) && varies(&known) {
            report_varying(checker, piece, value, &aux.name, aux.location);
            complete = false;
        }
        all.push(known);
    }
    complete.then_some(all)
}

fn report_file(checker: &mut Checker<'_>, piece: &Piece, value: ExprId, name: &str) {
    let message = format!(
        "`{name}` is data from a file, of which the manufactured solution would need a formula"
    );
    let diagnostic = Diagnostic::new(Code::BadManufactured, message)
        .label(piece.file.exprs[value].span, "no derivative of this is known")
        .help(format!(
            "give `{name}` a formula here or by `--aux {name}=…`, or compare with a solution that is known, `exact u = …;`"
        ));
    checker.report(piece, diagnostic);
}

/// Returns whether an expression depends on the position.
fn varies(known: &CoordinateFunction) -> bool {
    let order = known.exprs.reachable_in_order(&[known.value]);
    order.into_iter().any(|id| {
        matches!(
            known.exprs.expr(id),
            Expr::Terminal(Terminal::Coordinates | Terminal::Diameter(_))
        )
    })
}

fn report_varying(
    checker: &mut Checker<'_>,
    piece: &Piece,
    value: ExprId,
    name: &str,
    location: Location,
) {
    let place = match location {
        Location::Cells => "on cells",
        _ => "at points",
    };
    let message = format!(
        "`{name}` lies {place} and has no derivative, which the manufactured solution needs"
    );
    let diagnostic = Diagnostic::new(Code::BadManufactured, message)
        .label(piece.file.exprs[value].span, "not constant")
        .help(format!("give `{name}` a constant here, or declare it at nodes: `aux {name}: …;`"));
    checker.report(piece, diagnostic);
}

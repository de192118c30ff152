//! Adaptive mesh refinement: the arguments of `adapt(…)` → [`AdaptiveRefinement`].
//!
//! The default of `steps` is [`STEPS`] without another limit, and [`ENOUGH`] with `until` or `max_dofs`. θ is smaller
//! in three dimensions, where a cell is divided into eight instead of four.

use super::arguments::{self, ArgumentKind, ArgumentTable};
use super::{Checker, Statement};
use crate::ast::{self, Ident, ProblemItemKind};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::problem::{AdaptiveRefinement, Argument};
use std::collections::BTreeMap;

/// Steps without another limit.
const STEPS: usize = 10;
/// Steps with another limit.
const ENOUGH: usize = 100;
/// Largest number of steps.
const MOST: u32 = 1000;

const ARGUMENTS: ArgumentTable = &[
    ("steps", ArgumentKind::Whole(0, MOST)),
    ("fraction", ArgumentKind::Share),
    ("until", ArgumentKind::Positive),
    ("max_dofs", ArgumentKind::Whole(1, u32::MAX)),
    ("coarsen", ArgumentKind::Part),
];

/// Checks the statements, once the parameters are known.
pub(super) fn check(checker: &mut Checker<'_>, statements: &[Statement<'_>]) {
    for statement in statements {
        if let ProblemItemKind::Adapt { arguments } = statement.kind {
            checker.content.adapt = read(checker, *statement, arguments);
        }
    }
}

/// Reads one statement; `None` if a part of it is wrong.
fn read(
    checker: &mut Checker<'_>,
    statement: Statement<'_>,
    given: &[ast::Argument],
) -> Option<AdaptiveRefinement> {
    let piece = statement.piece;
    let owner = Ident { name: "adapt".to_owned(), span: statement.span };
    let (known, mut wrong) = arguments::known(piece, &owner, given, ARGUMENTS);
    let mut values: BTreeMap<&str, f64> = BTreeMap::new();
    for &(argument, kind) in &known {
        match arguments::read_of(checker.form, &checker.params, piece, argument, kind) {
            Ok(Argument::Number(value)) => drop(values.insert(&argument.name.name, value)),
            Ok(_) => {}
            Err(found) => wrong.extend(found),
        }
    }
    let value = |name: &str| values.get(name).copied();
    let whole = |name: &str| value(name).map(|value| value as usize);
    let (until, max_dofs) = (value("until"), whole("max_dofs"));
    let limited = until.is_some() || max_dofs.is_some();
    let adapt = AdaptiveRefinement {
        steps: whole("steps").unwrap_or(if limited { ENOUGH } else { STEPS }),
        fraction: value("fraction").unwrap_or(if checker.form.dim == 3 { 0.3 } else { 0.5 }),
        until,
        max_dofs,
        coarsen: value("coarsen").unwrap_or(0.0),
    };
    let coarsen = known.iter().find(|(argument, _)| argument.name.name == "coarsen");
    if let Some((coarsen, _)) = coarsen
        && wrong.is_empty()
        && adapt.coarsen + adapt.fraction > 1.0 + f64::EPSILON
    {
        let message = format!(
            "`coarsen` and `fraction` are {} and {}, but both are shares of one sum",
            adapt.coarsen, adapt.fraction
        );
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(piece.file.exprs[coarsen.value].span, "no cell is made both coarser and finer")
            .help("choose them so that together they are at most 1");
        wrong.push(piece.place(diagnostic));
    }
    if let Some(field) = checker.form.fields.iter().find(|field| !field.cells.is_empty()) {
        let message = format!("`adapt` does not estimate errors of `{}`", field.name);
        let diagnostic = Diagnostic::new(Code::NotAvailableHere, message)
            .label(statement.span, "its error at the boundary of its cells is not known")
            .help("refine the whole mesh, `refine = 1;`, or make a finer mesh where it is needed");
        wrong.push(piece.place(diagnostic));
    }
    let right = wrong.is_empty();
    checker.diagnostics.extend(wrong);
    right.then_some(adapt)
}

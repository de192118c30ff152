//! Adaptive mesh refinement: the arguments of `adapt(…)` → [`AdaptiveRefinement`].
//!
//! The default of `steps` is [`STEPS`] without another limit, and [`ENOUGH`] with `until`, `max_dofs` or `levels`. θ is
//! smaller in three dimensions, where a cell is divided into eight instead of four. Next to `time` the mesh changes after
//! each `every` steps. One step must then reach all cells with errors, and θ is [`FOLLOWING`]; `steps` bounds the number of
//! meshes before the first one, by default by [`BEFORE`].

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
/// θ through time.
const FOLLOWING: f64 = 0.99;
/// Meshes before the first time step.
const BEFORE: usize = 20;
/// Share of Σ η² in coarsened cells through time.
const BEHIND: f64 = 1e-3;
/// Largest number of steps.
const MOST: u32 = 1000;
/// Largest number of time steps from one mesh to the next.
const RARELY: u32 = 1_000_000;
/// Largest number of divisions of a cell.
const DEEPEST: u32 = 30;

pub(super) const ARGUMENTS: ArgumentTable = &[
    ("steps", ArgumentKind::Whole(0, MOST)),
    ("fraction", ArgumentKind::Share),
    ("until", ArgumentKind::Positive),
    ("max_dofs", ArgumentKind::Whole(1, u32::MAX)),
    ("coarsen", ArgumentKind::Part),
    ("levels", ArgumentKind::Whole(1, DEEPEST)),
    ("every", ArgumentKind::Whole(1, RARELY)),
];

/// Checks the statements, once the parameters are known.
pub(super) fn check(checker: &mut Checker<'_>, statements: &[Statement<'_>]) {
    let in_time = statements.iter().any(|statement| {
        matches!(statement.kind, ProblemItemKind::Setting { name, .. } if name.name == "time")
    });
    for statement in statements {
        if let ProblemItemKind::Adapt { arguments } = statement.kind {
            checker.content.adapt = read(checker, *statement, arguments, in_time);
        }
    }
}

/// Reads one statement; `None` if a part of it is wrong.
fn read(
    checker: &mut Checker<'_>,
    statement: Statement<'_>,
    given: &[ast::Argument],
    in_time: bool,
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
    let (until, max_dofs, levels) = (value("until"), whole("max_dofs"), whole("levels"));
    let limited = until.is_some() || max_dofs.is_some() || levels.is_some();
    let steps = match (in_time, limited) {
        (true, _) => BEFORE,
        (false, true) => ENOUGH,
        (false, false) => STEPS,
    };
    let coarsen = value("coarsen").unwrap_or(if in_time { BEHIND } else { 0.0 });
    let adapt = AdaptiveRefinement {
        every: whole("every"),
        steps: whole("steps").unwrap_or(steps),
        fraction: value("fraction").unwrap_or(match checker.form.dim {
            _ if in_time => FOLLOWING.min(1.0 - coarsen),
            3 => 0.3,
            _ => 0.5,
        }),
        until,
        max_dofs,
        coarsen,
        levels,
    };
    if wrong.is_empty()
        && let Some((message, label, help)) = contradiction(&adapt, in_time, limited)
    {
        let diagnostic = Diagnostic::new(Code::BadArgument, message);
        wrong.push(piece.place(diagnostic.label(statement.span, label).help(help)));
    }
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

/// Returns the message, the label and the remedy if the arguments do not fit a problem with or without time.
fn contradiction(
    adapt: &AdaptiveRefinement,
    in_time: bool,
    is_limited: bool,
) -> Option<(&'static str, &'static str, &'static str)> {
    match (in_time, adapt.every) {
        (false, Some(_)) => Some((
            "`every` counts time steps, and the problem has no `time`",
            "there are no time steps",
            "add `time = …;`, or write `steps: 6` for the number of meshes",
        )),
        (true, None) => Some((
            "`adapt` does not state how often the mesh follows the solution through time",
            "no `every`",
            "write `adapt(every: 5, levels: 4);` for a mesh after each five time steps",
        )),
        (true, Some(_)) if !is_limited => Some((
            "`adapt` does not state how fine the mesh may become through time",
            "no limit",
            "write `levels: 4`, `max_dofs: 1e5` or `until: 1e-2`",
        )),
        _ => None,
    }
}

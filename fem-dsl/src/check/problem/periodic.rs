//! Periodic sides: `periodic "left" = "right";`, `periodic "left" = "right" by rotation(about: [0, 0]);`.

use super::arguments::{self, ArgumentKind, ArgumentTable};
use super::{Checker, MeshChoice, Statement, conditions};
use crate::ast::{NamedCall, ProblemItemKind, SupportSpec, Text};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::problem::{Argument, PeriodicMap, PeriodicSides};
use crate::source::shortened;
use std::collections::BTreeMap;

pub(super) const TRANSLATION: &str = "translation";
pub(super) const ROTATION: &str = "rotation";

pub(super) const OF_TRANSLATION: ArgumentTable = &[("factor", ArgumentKind::Number)];
pub(super) const OF_ROTATION: ArgumentTable = &[
    ("about", ArgumentKind::Point),
    ("axis", ArgumentKind::Numbers),
    ("factor", ArgumentKind::Number),
];

/// Checks that each tag has exactly one partner, which is another tag, and reads the map.
pub(super) fn check(
    checker: &mut Checker<'_>,
    statement: Statement<'_>,
    mesh: Option<&MeshChoice>,
) {
    let ProblemItemKind::Periodic { sides, map } = statement.kind else { return };
    let piece = statement.piece;
    conditions::known_tags(checker, piece, sides, mesh);
    let [first, second] = sides;
    let before = &checker.content.periodic;
    let is_taken = |side: &Text| before.iter().any(|own| own.tags.contains(&side.text));
    let taken = sides.iter().find(|side| is_taken(side));
    let wrong = match taken {
        _ if first.text == second.text => Some((second, "the same side")),
        Some(side) => Some((side, "this side has a partner already")),
        None => None,
    };
    if let Some((side, label)) = wrong {
        let message = format!("\"{}\" cannot be periodic here", shortened(&side.text));
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(side.span, label)
            .help("a side has one partner: write `periodic \"left\" = \"right\";` with two tags");
        return checker.report(piece, diagnostic);
    }
    let tags = [first.text.clone(), second.text.clone()];
    let read = match map {
        None => Ok((PeriodicMap::Translation, 1.0)),
        Some(call) => read(checker, statement, call),
    };
    match read {
        Ok((map, factor)) => checker.content.periodic.push(PeriodicSides { tags, map, factor }),
        Err(found) => checker.diagnostics.extend(found),
    }
}

/// Reads the map of one side to the other, and the factor of values.
fn read(
    checker: &Checker<'_>,
    statement: Statement<'_>,
    call: &NamedCall,
) -> Result<(PeriodicMap, f64), Vec<Diagnostic>> {
    let (piece, dim) = (statement.piece, checker.form.dim);
    let table = match call.name.name.as_str() {
        TRANSLATION => OF_TRANSLATION,
        ROTATION if dim == 3 => OF_ROTATION,
        // In two dimensions the axis is a point.
        ROTATION => &[OF_ROTATION[0], OF_ROTATION[2]],
        other => {
            let diagnostic =
                Diagnostic::new(Code::BadValue, format!("`{other}` is no map of sides"))
                    .label(call.name.span, "neither `translation` nor `rotation`")
                    .suggest(other, [TRANSLATION, ROTATION]);
            return Err(vec![piece.place(diagnostic)]);
        }
    };
    let (known, mut wrong) = arguments::known(piece, &call.name, &call.arguments, table);
    let mut values = BTreeMap::new();
    for (argument, kind) in known {
        let name = argument.name.name.as_str();
        let at = piece.file.exprs[argument.value].span;
        let expected =
            match arguments::read_of(checker.form, &checker.params, piece, argument, kind) {
                Err(found) => {
                    wrong.extend(found);
                    continue;
                }
                Ok(Argument::Number(factor)) if factor.abs() != 1.0 => "1 or -1",
                Ok(Argument::Numbers(list)) if name == "axis" && !is_direction(&list) => {
                    "three numbers in brackets, not all 0"
                }
                Ok(Argument::Number(_)) if name == "axis" => "three numbers in brackets, not all 0",
                Ok(value) => {
                    values.insert(name, value);
                    continue;
                }
            };
        let diagnostic = Diagnostic::new(Code::BadValue, format!("`{name}` should be {expected}"))
            .label(at, "another value");
        wrong.push(piece.place(diagnostic));
    }
    if dim == 1 && call.name.name == ROTATION {
        let diagnostic = Diagnostic::new(Code::BadValue, "a line has no rotation")
            .label(call.name.span, "needs two or three dimensions")
            .help("leave out `by rotation`");
        wrong.push(piece.place(diagnostic));
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let factor = match values.get("factor") {
        Some(Argument::Number(factor)) => *factor,
        _ => 1.0,
    };
    let vector = |name: &str, default: [f64; 3]| match values.get(name) {
        Some(Argument::Numbers(list)) => {
            std::array::from_fn(|c| list.get(c).copied().unwrap_or(0.0))
        }
        _ => default,
    };
    let map = match call.name.name.as_str() {
        ROTATION => {
            let (about, axis) = (vector("about", [0.0; 3]), vector("axis", [0.0, 0.0, 1.0]));
            let length = axis.iter().map(|entry| entry * entry).sum::<f64>().sqrt();
            PeriodicMap::Rotation { about, axis: axis.map(|entry| entry / length) }
        }
        _ => PeriodicMap::Translation,
    };
    Ok((map, factor))
}

/// Returns whether these numbers are a direction in space.
fn is_direction(list: &[f64]) -> bool {
    list.len() == 3
        && list.iter().all(|entry| entry.is_finite())
        && list.iter().any(|entry| *entry != 0.0)
}

/// Checks that periodic sides have no conditions: they are no boundaries.
pub(super) fn check_conditions(checker: &mut Checker<'_>, statements: &[Statement<'_>]) {
    for statement in statements {
        let ProblemItemKind::Dirichlet { place: Some(SupportSpec::Tags(tags)), .. } =
            statement.kind
        else {
            continue;
        };
        let periodic = &checker.content.periodic;
        let is_periodic = |tag: &&Text| periodic.iter().any(|own| own.tags.contains(&tag.text));
        let Some(tag) = tags.iter().find(is_periodic) else {
            continue;
        };
        let message = format!("\"{}\" is periodic, and no end of the domain", shortened(&tag.text));
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(tag.span, "a condition on a periodic side")
            .help("leave the condition out, or the `periodic`");
        checker.report(statement.piece, diagnostic);
    }
}

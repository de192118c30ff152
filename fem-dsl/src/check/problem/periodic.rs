//! Periodic sides: `periodic "left" = "right";`.

use super::{Checker, MeshChoice, Statement, conditions};
use crate::ast::{ProblemItemKind, SupportSpec, Text};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::source::shortened;

/// Checks that each tag has exactly one partner, which is another tag.
pub(super) fn check(
    checker: &mut Checker<'_>,
    statement: Statement<'_>,
    mesh: Option<&MeshChoice>,
) {
    let ProblemItemKind::Periodic { sides } = statement.kind else { return };
    let piece = statement.piece;
    conditions::known_tags(checker, piece, sides, mesh);
    let [first, second] = sides;
    let before = checker.content.periodic.as_flattened();
    let taken = sides.iter().find(|side| before.contains(&side.text));
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
    checker.content.periodic.push([first.text.clone(), second.text.clone()]);
}

/// Checks that periodic sides have no conditions: they are no boundaries.
pub(super) fn check_conditions(checker: &mut Checker<'_>, statements: &[Statement<'_>]) {
    for statement in statements {
        let ProblemItemKind::Dirichlet { place: Some(SupportSpec::Tags(tags)), .. } =
            statement.kind
        else {
            continue;
        };
        let periodic = checker.content.periodic.as_flattened();
        let Some(tag) = tags.iter().find(|tag: &&Text| periodic.contains(&tag.text)) else {
            continue;
        };
        let message = format!("\"{}\" is periodic, and no end of the domain", shortened(&tag.text));
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(tag.span, "a condition on a periodic side")
            .help("leave the condition out, or the `periodic`");
        checker.report(statement.piece, diagnostic);
    }
}

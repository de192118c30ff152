//! Inequalities: `bound u[i] >= EXPR on "tag";` → [`Bound`], incompatible statements, and multipliers in reports.

use super::conditions::{component_index, is_of_nodes, known_tags};
use super::{Checker, MeshChoice, Piece, Statement};
use crate::ast::{ExprId, ExprKind, Ident, ProblemItemKind, SupportSpec};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::point::{Shape, Space};
use crate::problem::{Bound, SolverSettings};

/// Checks the bounds of a problem, after its other statements.
pub(super) fn check(
    checker: &mut Checker<'_>,
    statements: &[Statement<'_>],
    mesh: Option<&MeshChoice>,
) {
    for &statement in statements {
        of_field(checker, statement, mesh);
    }
    let bound =
        |statement: &&Statement<'_>| matches!(statement.kind, ProblemItemKind::Bound { .. });
    let Some(first) = statements.iter().find(bound) else { return };
    for other in statements {
        let found = match other.kind {
            ProblemItemKind::Setting { name, .. } if name.name == "eigen" => {
                Some(("`eigen`", "leave the bounds out: modes are those of the equations alone"))
            }
            ProblemItemKind::Setting { name, .. } if name.name == "time" => Some((
                "`time`",
                "leave the bounds out, or push back with a penalty: `k * min(0, u - psi)` in `f0[u]`",
            )),
            ProblemItemKind::Manufactured { .. } => {
                Some(("`manufactured`", "give the source in the form, and the solution by `exact`"))
            }
            ProblemItemKind::Solver(_) => match &checker.content.solver {
                Some(SolverSettings::Newton(newton))
                    if newton.steps.is_some() || newton.path.is_some() =>
                {
                    Some((
                        "load steps",
                        "let a parameter grow instead: `wf run --param load=1..10:5`",
                    ))
                }
                _ => None,
            },
            _ => None,
        };
        let Some((word, help)) = found else { continue };
        let message = format!("{word} and `bound` do not go together");
        let diagnostic = Diagnostic::new(Code::BadArgument, message)
            .label(other.span, "not with inequalities")
            .secondary(first.span, "an inequality")
            .help(help);
        checker.report(other.piece, diagnostic);
    }
}

fn of_field(checker: &mut Checker<'_>, statement: Statement<'_>, mesh: Option<&MeshChoice>) {
    let ProblemItemKind::Bound { field, component, normal, side, value, place } = statement.kind
    else {
        return;
    };
    let piece = statement.piece;
    let tags = match place {
        Some(SupportSpec::Tags(tags)) => {
            known_tags(checker, piece, tags, mesh);
            Some(tags.iter().map(|tag| tag.text.clone()).collect())
        }
        Some(SupportSpec::All(span)) => {
            let message = "a bound holds at all nodes, or on parts of the boundary";
            let diagnostic = Diagnostic::new(Code::BadValue, message)
                .label(*span, "no tag")
                .help("name the parts, `on \"x0\", \"x1\"`, or leave `on all` out");
            return checker.report(piece, diagnostic);
        }
        Some(SupportSpec::At(_)) | None => None,
    };
    let Some(index) = checker.field(piece, field) else { return };
    let (shape, space) = (checker.form.fields[index].shape, checker.form.fields[index].space);
    if !matches!(space, Space::H1(_)) {
        let message = format!("a bound is of the values at nodes, which `{space}` does not have");
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(field.span, format!("this lives in `{space}`"))
            .help("bound a field in `H1(k)`");
        return checker.report(piece, diagnostic);
    }
    if let Some(product) = normal {
        let message = "a bound is of a number or of one component of a vector";
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(product.normal.span, "the component along a normal")
            .help(format!(
                "write `bound {0}[0] >= …;`, with the axes of the mesh along the obstacle",
                field.name
            ));
        return checker.report(piece, diagnostic);
    }
    let component = match (component, shape) {
        (Some(at), _) => component_index(checker, piece, field, *at, shape),
        (None, Shape::Scalar) => Some(0),
        (None, _) => {
            let message = "a bound is of a number or of one component of a vector";
            let diagnostic = Diagnostic::new(Code::WrongShape, message)
                .label(field.span, "this has several components")
                .help(format!("write `bound {}[0] >= …;`", field.name));
            return checker.report(piece, diagnostic);
        }
    };
    let Some(component) = component else { return };
    if checker.content.mean.iter().any(|(of, _)| *of == index) {
        return with_mean(checker, statement, field);
    }
    let what = format!("the bound of `{}`", field.name);
    let Some(value) = checker.expression(piece, *value, Shape::Scalar, &what) else { return };
    if is_of_nodes(checker, statement, &what, &value) {
        let bound = Bound { field: index, component, side: *side, value, tags };
        checker.content.bounds.push(bound);
    }
}

/// Reports a bound of a field whose mean is prescribed.
fn with_mean(checker: &mut Checker<'_>, statement: Statement<'_>, field: &Ident) {
    let message = format!("`mean {0}` and a bound of `{0}` do not go together", field.name);
    let diagnostic = Diagnostic::new(Code::BadArgument, message)
        .label(statement.span, "a field that is free up to a constant has no values to bound")
        .help("leave `mean` out, and give a condition at a vertex");
    checker.report(statement.piece, diagnostic);
}

/// Returns the field of a reaction or multiplier.
pub(super) fn field_of(
    checker: &mut Checker<'_>,
    piece: &Piece,
    (word, value): (&str, ExprId),
) -> Option<usize> {
    let expr = &piece.file.exprs[value];
    let ExprKind::Name(name) = &expr.kind else {
        let diagnostic = Diagnostic::new(Code::BadValue, format!("a {word} is that of a field"))
            .label(expr.span, "not the name of a field")
            .help(format!("write `{word}(u, on: \"tag\")`, and calculate with its components"));
        checker.report(piece, diagnostic);
        return None;
    };
    let field = checker.field(piece, &Ident { name: name.clone(), span: expr.span })?;
    let space = checker.form.fields[field].space;
    if space.is_piola() {
        let message = format!("`{name}` in `{space}` has no {word}");
        let diagnostic = Diagnostic::new(Code::BadValue, message)
            .label(expr.span, "its unknowns lie on edges, sides and in cells")
            .help("integrate its flux: `integral(…, on: \"tag\")`");
        checker.report(piece, diagnostic);
        return None;
    }
    Some(field)
}

/// Returns whether a field, named by an expression, has a bound; reports it otherwise.
pub(super) fn has_bound(
    checker: &mut Checker<'_>,
    piece: &Piece,
    (field, name): (usize, ExprId),
) -> bool {
    // A manufactured solution takes the place of the obstacle.
    let is_manufactured = checker.content.manufacturing;
    if is_manufactured || checker.content.bounds.iter().any(|bound| bound.field == field) {
        return true;
    }
    let own = &checker.form.fields[field].name;
    let message = format!("`{own}` has no bound, and so no multiplier");
    let diagnostic = Diagnostic::new(Code::BadValue, message)
        .label(piece.file.exprs[name].span, "no `bound` of this field")
        .help(format!("write `bound {own} >= …;`, or `reaction({own})`"));
    checker.report(piece, diagnostic);
    false
}

//! Blocks between cells: the words of their rows, values that need a word, and properties of their integrals.

use super::expression::{Checker, Value};
use super::names::{Block, ExprContext};
use crate::ast::{self, ExprKind, RowKind, SideWord};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{ExprId, Terminal};
use crate::interior::{asymmetric, inconsistent};
use crate::point::{Field, InteriorFacets, Region, Side};
use crate::source::Span;
use std::collections::BTreeMap;

/// Checks the word of a row, and returns the sides of its test function with their factors.
pub(super) fn of_row(
    checker: &mut Checker<'_>,
    (field, row, row_span): (usize, RowKind, Span),
    side: Option<(SideWord, Span)>,
    block: Option<Block>,
) -> Option<&'static [(Side, f64)]> {
    let name = checker.form.fields[field].name.clone();
    let space = checker.form.fields[field].space;
    let (kind, function) = match row {
        RowKind::F0 => ("f0", name.clone()),
        RowKind::F1 => ("f1", format!("{}({name})", space.derivative())),
    };
    let interior = block.is_some_and(|block| block.region.is_interior());
    let one = !interior || row == RowKind::F0 && space.is_continuous();
    let diagnostic = match side {
        None if one => return Some(&[(Side::Inside, 1.0)]),
        Some((word, _)) if !one => {
            return Some(match word {
                SideWord::Inside => &[(Side::Inside, 1.0)],
                SideWord::Outside => &[(Side::Outside, 1.0)],
                SideWord::Jump => &[(Side::Inside, 1.0), (Side::Outside, -1.0)],
                SideWord::Average => &[(Side::Inside, 0.5), (Side::Outside, 0.5)],
            });
        }
        None => {
            let message = format!("the test function of `{function}` has two values here");
            let words = list(|word| format!("`{kind}[{word}({name})]`"));
            Diagnostic::new(Code::TwoValues, message)
                .label(row_span, "one in each of the two cells")
                .help(format!("write {words}"))
        }
        Some((word, span)) => {
            let message = match interior {
                true => format!("test functions of `{name}` in `{space}` have one value here"),
                false => format!("`{}` needs a facet between two cells", word.name()),
            };
            let label = if interior { "they do not jump" } else { "there is one cell here" };
            Diagnostic::new(Code::MisplacedSide, message)
                .label(span, label)
                .help(format!("write `{kind}[{name}] = …;`"))
        }
    };
    checker.report(diagnostic);
    None
}

/// Returns the list of the words in a text.
fn list(text: impl Fn(&str) -> String) -> String {
    let words: Vec<String> = SideWord::ALL.iter().map(|word| text(word.name())).collect();
    format!("{} or {}", words[..words.len() - 1].join(", "), words[words.len() - 1])
}

/// Checks that an expression of a block between cells has one value.
pub(super) fn has_one_value(
    checker: &mut Checker<'_>,
    (written, value): (ast::ExprId, ExprId),
    block: Option<Block>,
) -> bool {
    let Some(block) = block.filter(|block| block.region.is_interior()) else { return true };
    let two = |checker: &Checker<'_>, value: ExprId| {
        let form = &checker.form;
        form.terminals(&[value]).find(|&terminal| form.has_two_values(terminal))
    };
    if two(checker, value).is_none() {
        return true;
    }
    let values: BTreeMap<ast::ExprId, Value> =
        checker.values(written, ExprContext::region(Some(block)));
    let terminal = |checker: &Checker<'_>, id: ast::ExprId| {
        values.get(&id).copied().flatten().and_then(|value| two(checker, value))
    };
    let mut open = vec![written];
    let mut found = Vec::new();
    while let Some(id) = open.pop() {
        let Some(first) = terminal(checker, id) else { continue };
        let derivative = matches!(&checker.file.exprs[id].kind, ExprKind::Call { function, .. }
            if matches!(function.name.as_str(), "grad" | "div" | "curl" | "dt" | "penalty"));
        let mut inner = super::names::operands(&checker.file.exprs[id].kind);
        inner.retain(|&operand| terminal(checker, operand).is_some());
        if derivative || inner.is_empty() {
            found.push((id, first));
        } else {
            open.extend(inner.into_iter().rev());
        }
    }
    for (id, terminal) in found {
        let diagnostic = two_values(checker, id, terminal);
        checker.report(diagnostic);
    }
    false
}

/// Returns the diagnostic for a part of an expression with two values.
fn two_values(checker: &Checker<'_>, id: ast::ExprId, terminal: Terminal) -> Diagnostic {
    let name = match terminal {
        Terminal::Test(field, _) => checker.test_name(field),
        Terminal::TestGradient(field, _) => {
            let of = checker.form.fields[field].space.derivative();
            format!("{of}({})", checker.test_name(field))
        }
        Terminal::TestHessian(field, _) => {
            let name = checker.test_name(field);
            match checker.form.is_cellwise_gradient(terminal) {
                true => format!("grad({name})"),
                false => format!("grad(grad({name}))"),
            }
        }
        terminal => checker.form.terminal_name(terminal),
    };
    let text = text(checker, id);
    let label = match &text {
        Some(text) if *text != name => format!("`{text}` contains `{name}`"),
        _ => "one in each of the two cells".to_owned(),
    };
    let text = text.unwrap_or_else(|| "…".to_owned());
    Diagnostic::new(Code::TwoValues, format!("`{name}` has two values here"))
        .label(checker.span(id), label)
        .help(format!("write {}", list(|word| format!("`{word}({text})`"))))
}

/// Returns the text of a name, or of a function of one.
fn text(checker: &Checker<'_>, id: ast::ExprId) -> Option<String> {
    match &checker.file.exprs[id].kind {
        ExprKind::Name(name) => Some(name.clone()),
        ExprKind::Call { function, arguments, .. } => match arguments[..] {
            [argument] => match &checker.file.exprs[argument].kind {
                ExprKind::Name(name) => Some(format!("{}({name})", function.name)),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Checks the symmetry and the consistency of integrals between cells; each is given with the location of its physics.
pub(super) fn properties(checker: &mut Checker<'_>, integrals: &[(usize, Span)]) {
    for &(integral, span) in integrals {
        let form = &checker.form;
        let Some(field) = asymmetric(form, &form.integrals[integral]) else { continue };
        let message = format!(
            "the terms of `{}` depend on which of the two cells comes first",
            form.fields[field].name
        );
        checker.report(
            Diagnostic::new(Code::DependsOnOrder, message)
                .label(span, "another value if the cells are exchanged and `n` is reversed")
                .help(
                    "either cell may be the inside: use `jump`, `avg`, `max` and `dot(b, n)`; upwind is \
                     `dot(b, n) * avg(u) + abs(dot(b, n)) / 2 * jump(u)`",
                )
                .help(
                    "between two regions write `on interior from \"a\" to \"b\" { … }`: the inside is tagged a",
                ),
        );
    }
    if checker.has_errors() {
        return;
    }
    let all = |&&(integral, _): &&(usize, Span)| {
        checker.form.integrals[integral].region == Region::Interior(InteriorFacets::All)
    };
    let Some(span) = integrals.iter().rfind(all).map(|(_, span)| *span) else { return };
    for (field, size) in inconsistent(&checker.form) {
        let Field { name, space, .. } = checker.form.fields[field].clone();
        let (label, help) = match space.is_continuous() {
            false if space.is_piola() => (
                "not what its gradient leaves on the part of the test function that jumps",
                format!(
                    "check signs: `n` points to the outside, so that `inner(q, grad(v))` in cells, with `v` the test function of `{name}`, \
                     needs `-dot(avg(q) * n, jump(v))` here"
                ),
            ),
            false => (
                "not `-f1·n` on the jump of the test function",
                format!(
                    "check signs: `n` points to the outside, so that `f1[{name}] = q` in cells needs `f0[jump({name})] = -dot(avg(q), n)` \
                     here, and an energy `-dot(avg(q), n) * jump({name})`"
                ),
            ),
            true => (
                "not what its second derivatives leave on the jump of the test function's normal derivative",
                format!(
                    "check signs: `n` points to the outside, so that an energy `inner(H, H) / 2` with `H = grad(grad({name}))` in cells \
                     needs `-dot(avg(H) * n, n) * dot(jump(grad({name})), n)` here"
                ),
            ),
        };
        let message = format!(
            "with equal values in both cells the terms of `{name}` differ from its flux by {size:.2} of it"
        );
        checker.report(
            Diagnostic::warning(Code::InconsistentFlux, message).label(span, label).help(help),
        );
    }
}

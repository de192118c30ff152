//! Statements without effect: a condition that a later one replaces, a setting that nothing reads. Each is a warning,
//! and only reported for a problem without errors.

use super::{Content, Statement};
use crate::ast::{ProblemItemKind, SupportSpec};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::eval;
use crate::form::{Expr, Form, Terminal};
use crate::point::{Degree, Input, Node, Space};
use crate::problem::{
    Dirichlet, Expression, Method, NewtonSettings, SolverSettings, Support, Trace, ValueSource,
};

/// Number of points at which two values are compared.
const PLACES: u32 = 3;

/// Returns all warnings about a problem without errors.
pub(super) fn without_effect(
    statements: &[Statement<'_>],
    form: &Form,
    content: &Content,
    params: &[Vec<f64>],
) -> Vec<Diagnostic> {
    let mut found = replaced(statements, form, content, params);
    found.extend(settings(statements, form, content));
    found.extend(solver(statements, content));
    found
}

/// Warns about conditions that a later one replaces by other values. A condition on a tag after one on `all`, or on a
/// component after one on the whole field, is an exception, and causes no warning.
fn replaced(
    statements: &[Statement<'_>],
    form: &Form,
    content: &Content,
    params: &[Vec<f64>],
) -> Vec<Diagnostic> {
    let is_condition =
        |statement: &&Statement<'_>| matches!(statement.kind, ProblemItemKind::Dirichlet { .. });
    let stated: Vec<&Statement<'_>> = statements.iter().filter(is_condition).collect();
    let conditions = &content.dirichlet;
    if stated.len() != conditions.len() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (i, earlier) in conditions.iter().enumerate() {
        let later = (i + 1..conditions.len()).find_map(|j| {
            let later = &conditions[j];
            let tags = shared(earlier, later)?;
            let component = matches!(earlier.trace, Trace::Whole | Trace::Component(_));
            let whole = later.trace == earlier.trace || later.trace == Trace::Whole && component;
            let same = earlier.field == later.field && whole;
            (same && differ(earlier, later, content, params)).then_some((j, tags))
        });
        let Some((j, tags)) = later else { continue };
        let name = &form.fields[earlier.field].name;
        let what = match earlier.trace {
            Trace::Component(component) => format!("{name}[{component}]"),
            Trace::Whole => name.clone(),
            Trace::Normal => format!("dot({name}, n)"),
            Trace::Tangential => format!("cross(n, {name})"),
        };
        let place = match &tags[..] {
            [] if matches!(earlier.support, Support::Vertex(_)) => "one vertex".to_owned(),
            [] => "all of the boundary".to_owned(),
            tags => tags.iter().map(|tag| format!("\"{tag}\"")).collect::<Vec<_>>().join(", "),
        };
        let (first, second) = (stated[i], stated[j]);
        let message = format!("two conditions give `{what}` different values on {place}");
        let mut diagnostic = Diagnostic::warning(Code::ReplacedCondition, message)
            .label(second.span, "this later one holds");
        if std::ptr::eq(first.piece, second.piece) {
            diagnostic = diagnostic.secondary(first.span, "this one does not hold there");
        }
        diagnostic = diagnostic.help(match later_is_all(second) && !later_is_all(first) {
            true => "write what holds on all of the boundary first, and what differs on its parts behind it",
            false => "remove one of them, or name the part of the boundary where each holds",
        });
        found.push(second.piece.place(diagnostic));
    }
    found
}

fn later_is_all(statement: &Statement<'_>) -> bool {
    matches!(
        statement.kind,
        ProblemItemKind::Dirichlet { place: None | Some(SupportSpec::All(_)), .. }
    )
}

/// Returns the tags of a condition that a later one also covers; an empty list for `all`.
fn shared<'a>(earlier: &'a Dirichlet, later: &Dirichlet) -> Option<Vec<&'a str>> {
    let own = earlier.support.tags().iter().map(String::as_str);
    match (&earlier.support, &later.support) {
        (Support::Boundary | Support::Tags(_), Support::Boundary) => Some(own.collect()),
        (Support::Vertex(one), Support::Vertex(other)) => (one == other).then(Vec::new),
        (_, Support::Tags(theirs)) => {
            let common: Vec<&str> = own.filter(|tag| theirs.iter().any(|own| own == tag)).collect();
            (!common.is_empty()).then_some(common)
        }
        _ => None,
    }
}

/// Returns whether two conditions, the later of which covers the earlier, have different values.
fn differ(earlier: &Dirichlet, later: &Dirichlet, content: &Content, params: &[Vec<f64>]) -> bool {
    (0..PLACES).any(|place| {
        let earlier_values = values(&earlier.value, place, content, params);
        let mut later_values = values(&later.value, place, content, params);
        if let (Trace::Component(component), Trace::Whole) = (earlier.trace, later.trace) {
            later_values = later_values.get(component).copied().into_iter().collect();
        }
        let equal = |(a, b): (&f64, &f64)| {
            let bound = 1e-12 * (a.abs() + b.abs());
            (a - b).abs() <= bound || a.total_cmp(b).is_eq()
        };
        !earlier_values.iter().zip(&later_values).all(equal)
    })
}

/// Returns the components of an expression at a sample point.
fn values(expression: &Expression, place: u32, content: &Content, params: &[Vec<f64>]) -> Vec<f64> {
    // Multiples of the golden ratio, so that no two coordinates are equal by accident.
    let drawn = |number: u32| (f64::from(10 * place + number) * 0.618_033_988_749_895).fract();
    let all = eval(&expression.graph, |input| match input {
        Input::Coordinate(i) => drawn(1 + u32::try_from(i).unwrap_or(0)),
        Input::Param(i, component) => {
            params.get(i).and_then(|value| value.get(component)).copied().unwrap_or(f64::NAN)
        }
        Input::Time => content.time,
        Input::Degree => content.degree.unwrap_or(1) as f64,
        _ => drawn(9),
    });
    expression.value.iter().map(|&node| all[node]).collect()
}

/// Warns about `degree` and `t` if nothing depends on them.
fn settings(statements: &[Statement<'_>], form: &Form, content: &Content) -> Vec<Diagnostic> {
    let relative = |(_, space): (&str, Space)| matches!(space.degree(), Degree::Relative(_));
    let reachable = form.exprs.reachable_in_order(&form.roots());
    let reads = |terminal: Terminal, input: Input| {
        reachable.iter().any(|&id| *form.exprs.expr(id) == Expr::Terminal(terminal))
            || expressions(content).any(|expression| reads(expression, input))
    };
    let mut found = Vec::new();
    for statement in statements {
        let ProblemItemKind::Setting { name, .. } = statement.kind else { continue };
        let (needed, message, help) = match name.name.as_str() {
            "t" => (
                reads(Terminal::Time, Input::Time),
                format!(
                    "`t` has no effect: neither `{}` nor this problem depends on time",
                    form.name
                ),
                "leave it out",
            ),
            "degree" => (
                form.spaces().any(relative) || reads(Terminal::Degree, Input::Degree),
                format!(
                    "`degree` has no effect: all spaces of `{}` have degrees of their own",
                    form.name
                ),
                "leave it out, or declare a field `in H1(k)`",
            ),
            _ => continue,
        };
        if !needed {
            let diagnostic = Diagnostic::warning(Code::SettingWithoutEffect, message)
                .label(statement.span, "nothing reads it")
                .help(help);
            found.push(statement.piece.place(diagnostic));
        }
    }
    found
}

/// Returns the expressions of a problem.
fn expressions(content: &Content) -> impl Iterator<Item = &Expression> {
    let conditions = content.dirichlet.iter().map(|condition| &condition.value);
    let exact = content.exact.iter().map(|(_, value)| value);
    let data = content.aux.iter().map(|data| &data.value);
    let given = data.chain(content.initial.iter().map(|(_, value)| value));
    conditions.chain(exact).chain(given.filter_map(ValueSource::formula))
}

fn reads(expression: &Expression, input: Input) -> bool {
    expression.graph.nodes().iter().any(|node| *node == Node::Input(input))
}

/// Warns about settings of Newton's linear solver that the selected one does not have.
fn solver(statements: &[Statement<'_>], content: &Content) -> Vec<Diagnostic> {
    let Some(SolverSettings::Newton(NewtonSettings { linear: Some(linear), .. })) = content.solver
    else {
        return Vec::new();
    };
    let idle: &[&str] = match linear {
        Method::Direct => &["max_inner", "restart", "preconditioner"],
        Method::Cg | Method::Minres | Method::Bicgstab => &["restart"],
        Method::Gmres | Method::Fgmres => &[],
    };
    let linear = linear.word();
    let mut found = Vec::new();
    for statement in statements {
        let ProblemItemKind::Solver(named) = statement.kind else { continue };
        for argument in
            named.arguments.iter().filter(|found| idle.contains(&found.name.name.as_str()))
        {
            let message = format!("`{}` has no effect with `linear: {linear}`", argument.name.name);
            let diagnostic = Diagnostic::warning(Code::SettingWithoutEffect, message)
                .label(argument.name.span, "nothing reads it")
                .help("leave it out, or choose another linear solver");
            found.push(statement.piece.place(diagnostic));
        }
    }
    found
}

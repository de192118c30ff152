//! `solution(warm, "T")`: a field of another problem of the text. It is the whole value of `aux` or `initial`.

use super::file::Call;
use super::{Checker, Piece};
use crate::ast::{self, ExprId, ExprKind, ProblemItemKind};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::point::{Aux, Location};
use crate::problem::{SolutionField, ValueSource};
use crate::words;

/// Returns the call of `solution` in an expression.
pub(super) fn call(file: &ast::File, value: ExprId) -> Option<Call<'_>> {
    Call::of(words::SOLUTION, file, value)
}

/// Checks data from a solution, at nodes or on cells.
pub(super) fn of_aux(
    checker: &mut Checker<'_>,
    piece: &Piece,
    call: Call<'_>,
    aux: &Aux,
) -> Option<ValueSource> {
    let field = field(checker, piece, call)?;
    if aux.location != Location::Points {
        return Some(field);
    }
    let name = &aux.name;
    let message = format!("`{name}` lies at the quadrature points, where no solution is stored");
    let diagnostic = Diagnostic::new(Code::MisplacedFile, message)
        .label(call.function.span, "solutions have values at nodes")
        .help(format!("declare it as `aux {name}: … on nodes;` or `on cells`"));
    checker.report(piece, diagnostic);
    None
}

/// Returns the field of a call.
pub(super) fn field(
    checker: &mut Checker<'_>,
    piece: &Piece,
    call: Call<'_>,
) -> Option<ValueSource> {
    match checked(piece, call) {
        Ok((problem, field)) => {
            Some(ValueSource::Solution(SolutionField { problem, field, source: None }))
        }
        Err(diagnostic) => {
            checker.report(piece, *diagnostic);
            None
        }
    }
}

fn checked(piece: &Piece, call: Call<'_>) -> Result<(String, String), Box<Diagnostic>> {
    let usage = "write `solution(NAME, \"u\")`, the name of a problem and of a field of it";
    let error = |code, span, message: String, label: &str| {
        Box::new(Diagnostic::new(code, message).label(span, label).help(usage))
    };
    call.without_names(usage)?;
    let [problem, field] = *call.arguments else {
        let message = format!("`solution` takes 2 arguments, not {}", call.arguments.len());
        return Err(error(Code::WrongArgumentCount, call.function.span, message, "in this call"));
    };
    let [problem, field] = [problem, field].map(|argument| &piece.file.exprs[argument]);
    let ExprKind::Name(name) = &problem.kind else {
        let message = "the first argument is the name of a problem".to_owned();
        return Err(error(Code::BadArgument, problem.span, message, "no name"));
    };
    let ExprKind::Text(of) = &field.kind else {
        let message = "the second argument is the name of a field in double quotes".to_owned();
        return Err(error(Code::BadArgument, field.span, message, "no such text"));
    };
    let problems = &piece.file.problems;
    let Some(source) = problems.iter().find(|own| own.name.name == *name) else {
        let names = problems.iter().map(|own| own.name.name.as_str());
        let message = format!("there is no problem `{name}` in the text");
        let diagnostic = Diagnostic::new(Code::UnknownProblem, message)
            .label(problem.span, "no such problem")
            .suggest(name, names);
        return Err(Box::new(diagnostic));
    };
    if let Some(path) = cycle(&piece.file, source) {
        let message = format!("the problems need each other: {}", path.join(" → "));
        return Err(Box::new(
            Diagnostic::new(Code::BadValue, message)
                .label(problem.span, "needs its own solution")
                .help("let one of them take its data from a file of an earlier run"),
        ));
    }
    Ok((name.clone(), of.clone()))
}

/// Returns the names of the problems from whose solutions a problem takes data.
pub(crate) fn sources<'a>(file: &'a ast::File, problem: &'a ast::Problem) -> Vec<&'a str> {
    let values = problem.items.iter().filter_map(|item| match &item.kind {
        ProblemItemKind::Aux { value, .. } | ProblemItemKind::Initial { value, .. } => Some(*value),
        _ => None,
    });
    let named = values.filter_map(|value| {
        let first = *call(file, value)?.arguments.first()?;
        match &file.exprs[first].kind {
            ExprKind::Name(name) => Some(name.as_str()),
            _ => None,
        }
    });
    named.collect()
}

/// Returns the names of the stages of a problem, if it states any.
pub(super) fn stages_of<'a>(
    file: &'a ast::File,
    problem: &'a ast::Problem,
) -> Option<Vec<&'a str>> {
    let value = problem.items.iter().find_map(|item| match &item.kind {
        ProblemItemKind::Setting { name, value } if name.name == "stages" => Some(*value),
        _ => None,
    })?;
    let ExprKind::Call { arguments, .. } = &file.exprs[value].kind else { return Some(Vec::new()) };
    let names = arguments.iter().filter_map(|&argument| match &file.exprs[argument].kind {
        ExprKind::Name(name) => Some(name.as_str()),
        _ => None,
    });
    Some(names.collect())
}

/// Returns whether a problem is a stage of another one.
pub(crate) fn is_stage(file: &ast::File, name: &str) -> bool {
    file.problems.iter().filter_map(|own| stages_of(file, own)).any(|names| names.contains(&name))
}

/// Returns whether two problems are stages of one, or one of the other: each takes the latest solution of the other.
fn alternate(file: &ast::File, names: [&str; 2]) -> bool {
    file.problems.iter().any(|own| {
        let Some(mut stages) = stages_of(file, own) else { return false };
        stages.push(&own.name.name);
        names.iter().all(|name| stages.contains(name))
    })
}

/// Returns a cycle of problems through one.
fn cycle(file: &ast::File, from: &ast::Problem) -> Option<Vec<String>> {
    let name = from.name.name.as_str();
    let mut open = vec![vec![name]];
    let mut seen: Vec<&str> = Vec::new();
    while let Some(path) = open.pop() {
        let last = path[path.len() - 1];
        let Some(problem) = file.problems.iter().find(|own| own.name.name == last) else {
            continue;
        };
        let after = sources(file, problem).into_iter();
        for next in after.filter(|next| !alternate(file, [last, *next])) {
            let longer: Vec<&str> = path.iter().copied().chain([next]).collect();
            if next == name {
                return Some(longer.into_iter().map(str::to_owned).collect());
            }
            if !seen.contains(&next) {
                seen.push(next);
                open.push(longer);
            }
        }
    }
    None
}

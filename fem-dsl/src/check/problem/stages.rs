//! Stages of a problem: `stages = repeat(predict, project, steps: 500, step: 0.01, until: 1e-6);` → [`StagesRequest`].

use super::arguments::{self, ArgumentKind, ArgumentTable};
use super::{Checker, Statement, solution};
use crate::ast::{ExprKind, ProblemItemKind};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::problem::Argument;

/// Largest number of steps without another limit.
const STEPS: usize = 100;

pub(super) const ARGUMENTS: ArgumentTable = &[
    ("steps", ArgumentKind::Whole(1, u32::MAX)),
    ("step", ArgumentKind::Positive),
    ("until", ArgumentKind::Positive),
];

/// The stages of a problem before itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StagesRequest {
    /// The names of their problems.
    pub(crate) names: Vec<String>,
    pub(crate) steps: usize,
    pub(crate) step: Option<f64>,
    pub(crate) until: Option<f64>,
}

/// Checks the statement, once the parameters are known.
pub(super) fn check(checker: &mut Checker<'_>, statements: &[Statement<'_>]) {
    let stated = statements.iter().rev().find_map(|statement| match statement.kind {
        ProblemItemKind::Setting { name, value } if name.name == "stages" => {
            Some((*statement, *value))
        }
        _ => None,
    });
    let Some((statement, value)) = stated else { return };
    let piece = statement.piece;
    let expr = &piece.file.exprs[value];
    let usage = "write `stages = repeat(predict, project, steps: 500);` with the names of problems";
    let ExprKind::Call { function, arguments, named } = &expr.kind else {
        let diagnostic = Diagnostic::new(Code::BadValue, "stages are `repeat(…)`");
        return checker.report(piece, diagnostic.label(expr.span, "no such call").help(usage));
    };
    if function.name != "repeat" {
        let message = format!("`{}` is no way to solve stages", function.name);
        let diagnostic = Diagnostic::new(Code::BadValue, message);
        return checker.report(piece, diagnostic.label(function.span, "not `repeat`").help(usage));
    }
    let mut names = Vec::new();
    for &argument in arguments {
        let expr = &piece.file.exprs[argument];
        let problems = &piece.file.problems;
        let known = match &expr.kind {
            ExprKind::Name(name) => problems.iter().find(|own| own.name.name == *name),
            _ => None,
        };
        let Some(problem) = known else {
            let names = problems.iter().map(|own| own.name.name.as_str());
            let mut diagnostic =
                Diagnostic::new(Code::UnknownProblem, "a stage is a problem of the text")
                    .label(expr.span, "no such problem");
            if let ExprKind::Name(name) = &expr.kind {
                diagnostic = diagnostic.suggest(name, names);
            }
            return checker.report(piece, diagnostic);
        };
        if solution::stages_of(&piece.file, problem).is_some() {
            let message = format!("the stage `{}` has stages itself", problem.name.name);
            let diagnostic = Diagnostic::new(Code::BadValue, message)
                .label(expr.span, "this stage")
                .help("name its stages here, and leave its own `stages` out");
            return checker.report(piece, diagnostic);
        }
        names.push(problem.name.name.clone());
    }
    let (known, mut wrong) = arguments::known(piece, function, named, ARGUMENTS);
    let (mut steps, mut step, mut until) = (None, None, None);
    for &(argument, kind) in &known {
        match arguments::read_of(checker.form, &checker.params, piece, argument, kind) {
            Ok(Argument::Number(value)) => match argument.name.name.as_str() {
                "steps" => steps = Some(value as usize),
                "step" => step = Some(value),
                _ => until = Some(value),
            },
            Ok(_) => {}
            Err(found) => wrong.extend(found),
        }
    }
    if !wrong.is_empty() {
        return checker.diagnostics.extend(wrong);
    }
    for other in statements {
        let what = match other.kind {
            ProblemItemKind::Setting { name, .. } if name.name == "time" => "`time`",
            ProblemItemKind::Setting { name, .. } if name.name == "eigen" => "`eigen`",
            ProblemItemKind::Adapt { .. } => "`adapt`",
            _ => continue,
        };
        let diagnostic =
            Diagnostic::new(Code::BadArgument, format!("{what} and `stages` do not go together"))
                .label(other.span, "not next to stages")
                .secondary(statement.span, "asked for here")
                .help(
                    "write the step into the forms of the stages, and its length as `step: …` here",
                );
        checker.report(other.piece, diagnostic);
    }
    let steps = steps.unwrap_or(STEPS);
    checker.content.stages = Some(StagesRequest { names, steps, step, until });
}

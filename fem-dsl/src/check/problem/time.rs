//! Time integration of a problem: `time = bdf(order: 2, from: 0, to: 1, step: 0.01);` → [`Stepping`].

use super::arguments::{self, ArgumentKind, ArgumentTable};
use super::{Checker, Piece, Statement};
use crate::ast::{ExprId, ExprKind, ProblemItemKind};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::problem::stepping::{ORDERS_BDF, ORDERS_RK, STAGES};
use crate::problem::{Argument, Mass, Scheme, Stepping};
use crate::suggestions;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

const MASS: ArgumentKind = ArgumentKind::Word(&["lumped", "consistent"]);

/// Returns the kind of an integer in a range.
const fn whole(range: RangeInclusive<usize>) -> ArgumentKind {
    ArgumentKind::Whole(*range.start() as u32, *range.end() as u32)
}

/// The schemes, with the arguments of each in addition to [`COMMON`].
const SCHEMES: &[(&str, ArgumentTable)] = &[
    ("theta", &[("theta", ArgumentKind::Share)]),
    ("bdf", &[("order", whole(ORDERS_BDF))]),
    ("sdirk", &[("stages", whole(STAGES))]),
    ("rk", &[("order", whole(ORDERS_RK)), ("mass", MASS)]),
    ("newmark", &[("beta", ArgumentKind::Share), ("gamma", ArgumentKind::Share)]),
    ("generalised_alpha", &[("rho", ArgumentKind::Number)]),
    ("leapfrog", &[("mass", MASS)]),
];

/// Arguments of all schemes.
const COMMON: ArgumentTable = &[
    ("from", ArgumentKind::Number),
    ("to", ArgumentKind::Number),
    ("step", ArgumentKind::Positive),
    ("tolerance", ArgumentKind::Positive),
    ("every", ArgumentKind::Positive),
    ("at", ArgumentKind::Numbers),
];

/// Checks the statements, once the parameters are known.
pub(super) fn check(checker: &mut Checker<'_>, statements: &[Statement<'_>]) {
    let of = |name: &str| {
        statements.iter().rev().find_map(|statement| match statement.kind {
            ProblemItemKind::Setting { name: own, value } if own.name == name => {
                Some((*statement, *value))
            }
            _ => None,
        })
    };
    let Some((statement, value)) = of("time") else { return };
    checker.content.timed = true;
    checker.content.stepping = read(checker, statement.piece, value);
    for other in statements {
        let (what, help) = match other.kind {
            ProblemItemKind::Setting { name, .. } if name.name == "t" => {
                ("`t`", "leave it out: `from` says where time begins")
            }
            ProblemItemKind::Setting { name, .. } if name.name == "eigen" => {
                ("`eigen`", "eigenvalues are of a form that stands still: leave one of both out")
            }
            ProblemItemKind::Adapt { .. } => (
                "`adapt`",
                "a mesh that follows a solution through time is not there yet: let `refine = 1;` divide all cells",
            ),
            _ => continue,
        };
        let message = format!("{what} and `time` do not go together");
        let diagnostic = Diagnostic::new(Code::BadArgument, message)
            .label(other.span, "not beside time")
            .secondary(statement.span, "asked for here")
            .help(help);
        checker.report(other.piece, diagnostic);
    }
}

/// Reads the scheme with its settings; `None` if a part of it is wrong.
fn read(checker: &mut Checker<'_>, piece: &Piece, value: ExprId) -> Option<Stepping> {
    let expr = &piece.file.exprs[value];
    let (function, unnamed, named) = match &expr.kind {
        ExprKind::Error => return None,
        ExprKind::Call { function, arguments, named } => (function, arguments, named),
        _ => {
            let diagnostic =
                Diagnostic::new(Code::BadValue, "a problem goes through time by a scheme")
                    .label(expr.span, "not `SCHEME(…)`")
                    .help("write `time = bdf(order: 2, from: 0, to: 1, step: 0.01);`");
            checker.report(piece, diagnostic);
            return None;
        }
    };
    let name = function.name.as_str();
    let Some((_, own)) = SCHEMES.iter().find(|(known, _)| *known == name) else {
        let names = SCHEMES.iter().map(|(name, _)| *name);
        let list: Vec<String> = names.clone().map(|name| format!("`{name}`")).collect();
        let diagnostic = Diagnostic::new(Code::BadValue, format!("unknown scheme `{name}`"))
            .label(function.span, "no such scheme")
            .note(format!("the schemes are {}", list.join(", ")))
            .suggest_or(name, names, suggestions::scheme(name));
        checker.report(piece, diagnostic);
        return None;
    };
    let table: Vec<(&str, ArgumentKind)> = own.iter().chain(COMMON).copied().collect();
    let (known, mut wrong) = arguments::known(piece, function, named, &table);
    let mut values: BTreeMap<&str, Argument> = BTreeMap::new();
    for &(argument, kind) in &known {
        match arguments::read_of(checker.form, &checker.params, piece, argument, kind) {
            Ok(value) => drop(values.insert(&argument.name.name, value)),
            Err(found) => wrong.extend(found),
        }
    }
    let mut say = |code, message: String, label: &str, help: &str| {
        let diagnostic = Diagnostic::new(code, message).label(expr.span, label).help(help);
        wrong.push(piece.place(diagnostic));
    };
    if !unnamed.is_empty() {
        let message = format!("the settings of `{name}` have names");
        say(Code::BadArgument, message, "some have none", "write `step: 0.01`");
    }
    let number = |name: &str| match values.get(name) {
        Some(Argument::Number(number)) => Some(*number),
        _ => None,
    };
    let (from, to) = (number("from").unwrap_or(0.0), number("to"));
    let (step, tolerance) = (number("step"), number("tolerance"));
    match to {
        None if !stated(named, "to") => say(
            Code::BadArgument,
            format!("`{name}` needs to know when it ends"),
            "no `to`",
            "write `to: 1`",
        ),
        _ => {}
    }
    if step.is_none()
        && tolerance.is_none()
        && !stated(named, "step")
        && !stated(named, "tolerance")
    {
        let (message, help) = (
            "neither its steps nor their tolerance are given",
            "write `step: 0.01` or `tolerance: 1e-4`",
        );
        say(Code::BadArgument, format!("`{name}`: {message}"), "how long is a step?", help);
    }
    if stated(named, "tolerance")
        && matches!(name, "rk" | "leapfrog" | "newmark" | "generalised_alpha" | "theta")
    {
        say(
            Code::BadArgument,
            format!("`{name}` takes steps of one length"),
            "a `tolerance`",
            "write `step: 0.01`; `bdf` and `sdirk` estimate what a step adds to the error",
        );
    }
    let at = match values.get("at") {
        Some(Argument::Numbers(at)) => at.clone(),
        Some(Argument::Number(at)) => vec![*at],
        _ => Vec::new(),
    };
    let outside = |at: &f64| *at < from || to.is_some_and(|to| *at > to);
    if !at.is_sorted_by(|a, b| a < b) {
        let message = "the times of `at` are not in order".to_owned();
        say(Code::BadValue, message, "a time before the one before", "write them in order");
    } else if at.iter().any(outside) {
        let message = "a time of `at` is not between `from` and `to`".to_owned();
        say(Code::BadValue, message, "nothing is computed there", "write a time in between");
    }
    if stated(named, "every") && stated(named, "at") {
        let message = "`every` and `at` both say what is written".to_owned();
        say(Code::BadArgument, message, "one of them is enough", "leave one of both out");
    }
    let rho = number("rho").unwrap_or(0.8);
    let whole = |name: &str, default: usize| number(name).map_or(default, |number| number as usize);
    let mass = match values.get("mass").and_then(Argument::word) {
        Some("lumped") => Mass::Lumped,
        _ => Mass::Consistent,
    };
    let scheme = match name {
        "theta" => Scheme::Theta { theta: number("theta").unwrap_or(0.5) },
        "bdf" => Scheme::Bdf { order: whole("order", 2) },
        "sdirk" => Scheme::Sdirk { stages: whole("stages", 2) },
        "rk" => Scheme::RungeKutta { order: whole("order", 4), mass },
        "newmark" => Scheme::Newmark {
            beta: number("beta").unwrap_or(0.25),
            gamma: number("gamma").unwrap_or(0.5),
        },
        "generalised_alpha" => Scheme::GeneralisedAlpha { rho },
        _ => Scheme::Leapfrog { mass },
    };
    let (rates, fields) = (&checker.form.rates, checker.form.fields.len());
    if let Err(error) = scheme.check(rates, fields) {
        say(Code::BadValue, error.to_string(), "not by this scheme", &error.remedy());
    }
    let every = number("every");
    let stepping = to.map(|to| Stepping { scheme, from, to, step, tolerance, every, at });
    if let Some(Err(error)) = stepping.as_ref().map(Stepping::check) {
        say(Code::BadValue, error.to_string(), "no run can take these", &error.remedy());
    }
    let right = wrong.is_empty();
    checker.diagnostics.extend(wrong);
    stepping.filter(|_| right)
}

fn stated(named: &[crate::ast::Argument], name: &str) -> bool {
    named.iter().any(|argument| argument.name.name == name)
}

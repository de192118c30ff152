//! Time integration of a problem: `time = bdf(order: 2, from: 0, to: 1, step: 0.01);` → [`Stepping`].

use super::arguments::{self, ArgumentKind, ArgumentTable};
use super::{Checker, Piece, Statement, states};
use crate::ast::{ExprId, ExprKind, ProblemItemKind};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::problem::stepping::{ORDERS_BDF, ORDERS_RK, STAGES};
use crate::problem::{Argument, Formula, Mass, Scheme, Stepping};
use crate::suggestions;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

const FORMULA: ArgumentKind = ArgumentKind::Word(&["classical", "ssp"]);
const MASS: ArgumentKind = ArgumentKind::Word(&["lumped", "consistent"]);

/// Returns the kind of an integer in a range.
const fn whole(range: RangeInclusive<usize>) -> ArgumentKind {
    ArgumentKind::Whole(*range.start() as u32, *range.end() as u32)
}

/// The schemes, with the arguments of each in addition to [`COMMON`].
pub(super) const SCHEMES: &[(&str, ArgumentTable)] = &[
    ("theta", &[("theta", ArgumentKind::Share)]),
    ("bdf", &[("order", whole(ORDERS_BDF))]),
    ("sdirk", &[("stages", whole(STAGES))]),
    ("rk", &[("order", whole(ORDERS_RK)), ("formula", FORMULA), ("mass", MASS)]),
    ("newmark", &[("beta", ArgumentKind::Share), ("gamma", ArgumentKind::Share)]),
    ("generalised_alpha", &[("rho", ArgumentKind::Number)]),
    ("leapfrog", &[("mass", MASS)]),
];

/// Arguments of all schemes.
pub(super) const COMMON: ArgumentTable = &[
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
    check_numbers(checker, statement);
    for other in statements {
        let (what, help) = match other.kind {
            ProblemItemKind::Setting { name, .. } if name.name == "t" => {
                ("`t`", "leave it out: `from` says where time begins")
            }
            ProblemItemKind::Setting { name, .. } if name.name == "eigen" => {
                ("`eigen`", "eigenvalues are of a form that stands still: leave one of both out")
            }
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

/// Checks that a scheme solves for unknown numbers at the end of each step.
fn check_numbers(checker: &mut Checker<'_>, statement: Statement<'_>) {
    let number = checker.form.fields.iter().find(|field| field.space.is_number());
    let scheme = checker.content.stepping.as_ref().map(|stepping| stepping.scheme);
    let (Some(number), Some(scheme)) = (number, scheme) else { return };
    let at_ends = match scheme {
        Scheme::Bdf { .. } | Scheme::Sdirk { .. } | Scheme::Newmark { .. } => true,
        Scheme::Theta { theta } => theta == 1.0,
        _ => false,
    };
    if at_ends {
        return;
    }
    let message = format!("this scheme does not solve for `{}` at the end of a step", number.name);
    let diagnostic = Diagnostic::new(Code::BadArgument, message)
        .label(statement.span, "a step with another time of its equations")
        .help("write `bdf(…)` or `sdirk(…)`, and `newmark(…)` for second derivatives");
    checker.report(statement.piece, diagnostic);
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
    let mut call = SchemeCall { name, named, values: BTreeMap::new() };
    for &(argument, kind) in &known {
        match arguments::read_of(checker.form, &checker.params, piece, argument, kind) {
            Ok(value) => drop(call.values.insert(&argument.name.name, value)),
            Err(found) => wrong.extend(found),
        }
    }
    let mut complaints = call.complaints(!unnamed.is_empty());
    let scheme = call.scheme();
    let has_states = states::written_in(piece, &checker.form.name);
    if let Err(error) = scheme.check(&checker.form.rates, checker.form.fields.len(), has_states) {
        let (message, help) = (error.to_string(), error.remedy().to_string());
        complaints.push((Code::BadValue, message, "not by this scheme", help));
    }
    let stepping = call.number("to").map(|to| Stepping {
        scheme,
        from: call.from(),
        to,
        step: call.number("step"),
        tolerance: call.number("tolerance"),
        every: call.number("every"),
        at: call.at(),
    });
    if let Some(Err(error)) = stepping.as_ref().map(Stepping::check) {
        let (message, help) = (error.to_string(), error.remedy().to_string());
        complaints.push((Code::BadValue, message, "no run can take these", help));
    }
    wrong.extend(complaints.into_iter().map(|(code, message, label, help)| {
        piece.place(Diagnostic::new(code, message).label(expr.span, label).help(help))
    }));
    let right = wrong.is_empty();
    checker.diagnostics.extend(wrong);
    stepping.filter(|_| right)
}

/// A code, a message, the label of the call, and a remedy.
type Complaint = (Code, String, &'static str, String);

/// A call of a scheme with its settings.
struct SchemeCall<'a> {
    name: &'a str,
    /// All named arguments, readable or not.
    named: &'a [crate::ast::Argument],
    values: BTreeMap<&'a str, Argument>,
}

impl SchemeCall<'_> {
    /// Returns whether an argument is written, readable or not.
    fn states(&self, name: &str) -> bool {
        self.named.iter().any(|argument| argument.name.name == name)
    }

    fn number(&self, name: &str) -> Option<f64> {
        match self.values.get(name) {
            Some(Argument::Number(number)) => Some(*number),
            _ => None,
        }
    }

    fn from(&self) -> f64 {
        self.number("from").unwrap_or(0.0)
    }

    /// Returns the times of output.
    fn at(&self) -> Vec<f64> {
        match self.values.get("at") {
            Some(Argument::Numbers(at)) => at.clone(),
            Some(Argument::Number(at)) => vec![*at],
            _ => Vec::new(),
        }
    }

    fn scheme(&self) -> Scheme {
        let number = |name: &str, default: f64| self.number(name).unwrap_or(default);
        let whole = |name: &str, default: usize| {
            self.number(name).map_or(default, |number| number as usize)
        };
        let mass = match self.values.get("mass").and_then(Argument::word) {
            Some("lumped") => Mass::Lumped,
            _ => Mass::Consistent,
        };
        match self.name {
            "theta" => Scheme::Theta { theta: number("theta", 0.5) },
            "bdf" => Scheme::Bdf { order: whole("order", 2) },
            "sdirk" => Scheme::Sdirk { stages: whole("stages", 2) },
            "rk" => {
                let (formula, order) = match self.values.get("formula").and_then(Argument::word) {
                    Some("ssp") => (Formula::Ssp, 3),
                    _ => (Formula::Classical, 4),
                };
                Scheme::RungeKutta { order: whole("order", order), formula, mass }
            }
            "newmark" => {
                Scheme::Newmark { beta: number("beta", 0.25), gamma: number("gamma", 0.5) }
            }
            "generalised_alpha" => Scheme::GeneralisedAlpha { rho: number("rho", 0.8) },
            _ => Scheme::Leapfrog { mass },
        }
    }

    /// Returns what is missing or contradictory among the settings.
    fn complaints(&self, has_unnamed: bool) -> Vec<Complaint> {
        let (name, mut found) = (self.name, Vec::new());
        let mut say = |code, message: String, label, help: &str| {
            found.push((code, message, label, help.to_owned()));
        };
        if has_unnamed {
            let message = format!("the settings of `{name}` have names");
            say(Code::BadArgument, message, "some have none", "write `step: 0.01`");
        }
        let to = self.number("to");
        if !self.states("to") {
            let message = format!("`{name}` needs to know when it ends");
            say(Code::BadArgument, message, "no `to`", "write `to: 1`");
        }
        if !self.states("step") && !self.states("tolerance") {
            let message = format!("`{name}`: neither its steps nor their tolerance are given");
            let help = "write `step: 0.01` or `tolerance: 1e-4`";
            say(Code::BadArgument, message, "how long is a step?", help);
        }
        if self.states("tolerance")
            && matches!(name, "rk" | "leapfrog" | "newmark" | "generalised_alpha" | "theta")
        {
            let message = format!("`{name}` takes steps of one length");
            let help =
                "write `step: 0.01`; `bdf` and `sdirk` estimate what a step adds to the error";
            say(Code::BadArgument, message, "a `tolerance`", help);
        }
        let at = self.at();
        let outside = |at: &f64| *at < self.from() || to.is_some_and(|to| *at > to);
        if !at.is_sorted_by(|a, b| a < b) {
            let message = "the times of `at` are not in order".to_owned();
            say(Code::BadValue, message, "a time before the one before", "write them in order");
        } else if at.iter().any(outside) {
            let message = "a time of `at` is not between `from` and `to`".to_owned();
            say(Code::BadValue, message, "nothing is computed there", "write a time in between");
        }
        if self.states("every") && self.states("at") {
            let message = "`every` and `at` both say what is written".to_owned();
            say(Code::BadArgument, message, "one of them is enough", "leave one of both out");
        }
        found
    }
}

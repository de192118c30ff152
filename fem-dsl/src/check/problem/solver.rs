//! The solver of a problem and its settings.

use super::Piece;
use super::arguments::{self, ArgumentKind, ArgumentTable};
use crate::ast;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::Form;
use crate::problem::{
    Argument, Forcing, LineSearch, LinearSettings, LoadPath, Method, NewtonSettings,
    PreconditionerSettings, SolverSettings,
};
use crate::suggestions;
use std::collections::BTreeMap;

const ITERATIONS: ArgumentKind = ArgumentKind::Whole(1, u32::MAX);
/// Settings of restarted solvers.
const CYCLES: ArgumentTable = &[
    ("rtol", ArgumentKind::Part),
    ("atol", ArgumentKind::NotNegative),
    ("max_iterations", ITERATIONS),
    ("restart", ITERATIONS),
    ("preconditioner", PreconditionerSettings::ARGUMENT),
];

/// Settings of solvers with short recurrences.
const RECURRENCE: ArgumentTable = &[
    ("rtol", ArgumentKind::Part),
    ("atol", ArgumentKind::NotNegative),
    ("max_iterations", ITERATIONS),
    ("preconditioner", PreconditionerSettings::ARGUMENT),
];

/// The solvers, with their settings.
pub(super) const SOLVERS: &[(&str, ArgumentTable)] = &[
    ("cg", RECURRENCE),
    ("minres", RECURRENCE),
    ("gmres", CYCLES),
    ("fgmres", CYCLES),
    ("bicgstab", RECURRENCE),
    ("direct", &[("rtol", ArgumentKind::Part), ("atol", ArgumentKind::NotNegative)]),
    (
        "newton",
        &[
            ("rtol", ArgumentKind::Part),
            ("atol", ArgumentKind::NotNegative),
            ("max_iterations", ITERATIONS),
            ("max_inner", ITERATIONS),
            ("linear", LINEAR),
            ("forcing", ArgumentKind::Word(&["eisenstat_walker", "exact"])),
            ("line_search", ArgumentKind::Word(&["backtracking", "none"])),
            ("preconditioner", PreconditionerSettings::ARGUMENT),
            ("restart", ITERATIONS),
            ("steps", ArgumentKind::Whole(1, MAX_STEPS)),
            ("load", ArgumentKind::Name),
            ("path", ArgumentKind::Word(&["arc_length"])),
            ("crossing", ArgumentKind::Whole(1, MAX_CROSSINGS)),
        ],
    ),
];

/// The linear solver of a Newton step.
const LINEAR: ArgumentKind =
    ArgumentKind::Word(&["automatic", "cg", "minres", "gmres", "fgmres", "bicgstab", "direct"]);

/// The largest number of passages of a path through the full load.
const MAX_CROSSINGS: u32 = 100;
/// The largest number of load steps.
const MAX_STEPS: u32 = 100_000;

pub(super) fn check(
    piece: &Piece,
    named: &ast::NamedCall,
    form: &Form,
) -> (Option<SolverSettings>, Vec<Diagnostic>) {
    let name = named.name.name.as_str();
    let Some((_, table)) = SOLVERS.iter().find(|(known, _)| *known == name) else {
        let names = SOLVERS.iter().map(|(name, _)| *name);
        let list: Vec<String> = names.clone().map(|name| format!("`{name}`")).collect();
        let diagnostic = Diagnostic::new(Code::UnknownSolver, format!("unknown solver `{name}`"))
            .label(named.name.span, "no such solver")
            .note(format!("the solvers are {}", list.join(", ")))
            .suggest_or(name, names, suggestions::solver(name));
        return (None, vec![piece.place(diagnostic)]);
    };
    let (known, mut diagnostics) = arguments::known(piece, &named.name, &named.arguments, table);
    let mut values = BTreeMap::new();
    for &(argument, kind) in &known {
        let value = match kind {
            ArgumentKind::Call(words) => arguments::keyword(&form.fields, piece, argument, words),
            kind => arguments::read(piece, argument, kind, 3),
        };
        match value {
            Ok(value) => drop(values.insert(argument.name.name.clone(), value)),
            Err(found) => diagnostics.extend(found),
        }
    }
    if let Some((argument, _)) = known.iter().find(|(argument, _)| argument.name.name == "load") {
        diagnostics.extend(load(piece, named, argument, &values, form));
    }
    diagnostics.extend(path(piece, named, &values));
    (Some(typed(name, &values)), diagnostics)
}

/// The settings of a solver, of values that fit its table.
fn typed(name: &str, values: &BTreeMap<String, Argument>) -> SolverSettings {
    let number = |key: &str| match values.get(key) {
        Some(Argument::Number(value)) => Some(*value),
        _ => None,
    };
    let count = |key: &str| number(key).map(|value| value as usize);
    let word = |key: &str| values.get(key).and_then(Argument::word);
    let (rtol, atol, max_iterations) = (number("rtol"), number("atol"), count("max_iterations"));
    let (restart, preconditioner) =
        (count("restart"), values.get("preconditioner").map(PreconditionerSettings::read));
    if let Some(method) = Method::named(name) {
        let settings =
            LinearSettings { method, rtol, atol, max_iterations, restart, preconditioner };
        return SolverSettings::Linear(settings);
    }
    SolverSettings::Newton(NewtonSettings {
        rtol,
        atol,
        max_iterations,
        max_inner: count("max_inner"),
        linear: word("linear").and_then(Method::named),
        forcing: word("forcing").map(|word| match word {
            "exact" => Forcing::Exact,
            _ => Forcing::EisenstatWalker,
        }),
        line_search: word("line_search").map(|word| match word {
            "none" => LineSearch::None,
            _ => LineSearch::Backtracking,
        }),
        preconditioner,
        restart,
        steps: count("steps"),
        load: word("load").map(str::to_owned),
        path: word("path").map(|_| LoadPath::ArcLength),
        crossing: count("crossing"),
    })
}

/// Returns the error of the settings of a path, if any.
fn path(
    piece: &Piece,
    named: &ast::NamedCall,
    values: &BTreeMap<String, Argument>,
) -> Option<Diagnostic> {
    let of = |word: &str| named.arguments.iter().find(|argument| argument.name.name == word);
    let (message, argument) = match (of("path"), of("crossing")) {
        (Some(path), _) if !values.contains_key("load") => {
            ("a path by arc length needs the parameter that it changes", path)
        }
        (None, Some(crossing)) => ("`crossing` is for a path by arc length", crossing),
        _ => return None,
    };
    let diagnostic = Diagnostic::new(Code::BadArgument, message)
        .label(argument.name.span, "not alone")
        .help("write `newton(path: arc_length, load: f, steps: 20, crossing: 2)`");
    Some(piece.place(diagnostic))
}

/// Returns the error of the load parameter, if any.
fn load(
    piece: &Piece,
    named: &ast::NamedCall,
    argument: &ast::Argument,
    values: &BTreeMap<String, Argument>,
    form: &Form,
) -> Option<Diagnostic> {
    let Some(Argument::Word(param)) = values.get("load") else { return None };
    let names = form.own_params().iter().map(|param| param.name.as_str());
    if !names.clone().any(|known| known == param) {
        let list: Vec<String> = names.clone().map(|name| format!("`{name}`")).collect();
        let note = match list.is_empty() {
            true => "it has no parameters".to_owned(),
            false => format!("it has {}", list.join(", ")),
        };
        let message = format!("the form `{}` has no parameter `{param}` to load", form.name);
        let diagnostic = Diagnostic::new(Code::NotInForm, message)
            .label(piece.file.exprs[argument.value].span, "not a parameter of the form")
            .note(note)
            .suggest(param, names);
        return Some(piece.place(diagnostic));
    }
    let mut words = named.arguments.iter().map(|argument| argument.name.name.as_str());
    let stated = words.any(|word| word == "steps" || word == "path");
    (!stated).then(|| {
        let diagnostic = Diagnostic::new(Code::BadArgument, "`load` is for load steps")
            .label(argument.name.span, "grows in steps, but there is no `steps`")
            .help(format!("write `newton(steps: 10, load: {param})`"));
        piece.place(diagnostic)
    })
}

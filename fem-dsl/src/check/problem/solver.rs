//! The solver of a problem and its settings.

use super::Piece;
use super::arguments::{self, Kind, Table};
use crate::ast;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::problem::Solver;
use std::collections::BTreeMap;

const ITERATIONS: Kind = Kind::Whole(1, u32::MAX);
const PRECONDITIONER: Kind = Kind::Word(&["jacobi", "none"]);

/// The solvers that are built, with their settings.
const SOLVERS: &[(&str, Table)] = &[
    (
        "cg",
        &[
            ("rtol", Kind::NotNegative),
            ("atol", Kind::NotNegative),
            ("max_iterations", ITERATIONS),
            ("preconditioner", PRECONDITIONER),
        ],
    ),
    (
        "gmres",
        &[
            ("rtol", Kind::NotNegative),
            ("atol", Kind::NotNegative),
            ("max_iterations", ITERATIONS),
            ("restart", ITERATIONS),
            ("preconditioner", PRECONDITIONER),
        ],
    ),
    (
        "newton",
        &[
            ("rtol", Kind::NotNegative),
            ("atol", Kind::NotNegative),
            ("max_iterations", ITERATIONS),
            ("max_inner", ITERATIONS),
            ("linear", Kind::Word(&["automatic", "cg", "gmres"])),
            ("line_search", Kind::Word(&["backtracking", "none"])),
            ("preconditioner", PRECONDITIONER),
            ("restart", ITERATIONS),
        ],
    ),
];

/// The solvers of the language that are not built yet.
const LATER: &[&str] = &["minres", "direct"];

pub(super) fn check(piece: &Piece, named: &ast::Named) -> (Option<Solver>, Vec<Diagnostic>) {
    let name = named.name.name.as_str();
    if LATER.contains(&name) {
        let diagnostic =
            Diagnostic::new(Code::LaterSolver, format!("the solver `{name}` comes later"))
                .label(named.name.span, "this is understood, but not built yet")
                .help("`cg`, `gmres` and `newton` are built; without `solver` one is chosen");
        return (None, vec![piece.place(diagnostic)]);
    }
    let Some((_, table)) = SOLVERS.iter().find(|(known, _)| *known == name) else {
        let names = SOLVERS.iter().map(|(name, _)| *name).chain(LATER.iter().copied());
        let list: Vec<String> = names.clone().map(|name| format!("`{name}`")).collect();
        let diagnostic = Diagnostic::new(Code::UnknownSolver, format!("unknown solver `{name}`"))
            .label(named.name.span, "no such solver")
            .note(format!("the solvers are {}", list.join(", ")))
            .suggest(name, names);
        return (None, vec![piece.place(diagnostic)]);
    };
    let (known, mut diagnostics) = arguments::known(piece, &named.name, &named.arguments, table);
    let mut values = BTreeMap::new();
    for (argument, kind) in known {
        match arguments::read(piece, argument, kind, 3) {
            Ok(value) => drop(values.insert(argument.name.name.clone(), value)),
            Err(found) => diagnostics.extend(found),
        }
    }
    (Some(Solver { name: name.to_owned(), arguments: values }), diagnostics)
}

//! The eigenvalue problem of a form: `eigen = smallest(5, rtol: 1e-8);` → [`EigenRequest`], and incompatible
//! statements.

use super::arguments::{self, ArgumentKind, ArgumentTable};
use super::{Checker, Piece, Statement};
use crate::ast::{ExprId, ExprKind, ProblemItemKind};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::problem::{Argument, EigenPreconditioner};

/// Default limit of the iterations.
const ITERATIONS: usize = 500;
/// Largest number of eigenvalues: each iteration solves dense problems of three times this size.
const MOST: u32 = 500;

/// The settings of `smallest`, after the number of eigenvalues.
pub(super) const ARGUMENTS: ArgumentTable = &[
    ("rtol", ArgumentKind::Part),
    ("max_iterations", ArgumentKind::Whole(1, u32::MAX)),
    ("preconditioner", ArgumentKind::Word(EigenPreconditioner::WORDS)),
];

/// The requested eigenvalues; their mass is a separate form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EigenRequest {
    pub(crate) count: usize,
    pub(crate) rtol: Option<f64>,
    pub(crate) max_iterations: usize,
    pub(crate) preconditioner: Option<EigenPreconditioner>,
}

/// Checks the statement that requests eigenvalues, and related statements.
pub(super) fn check(checker: &mut Checker<'_>, statements: &[Statement<'_>]) {
    let of = |word: &str| {
        statements.iter().rev().find_map(|statement| match statement.kind {
            ProblemItemKind::Setting { name, value } if name.name == word => {
                Some((*statement, *value))
            }
            _ => None,
        })
    };
    let (eigen, mass) = (of("eigen"), of("mass"));
    let Some((statement, value)) = eigen else {
        // Its parameters are evaluated here, even if a solution from the command line replaces the modes.
        let manufactured = |statement: &Statement<'_>| {
            matches!(statement.kind, ProblemItemKind::Manufactured { .. })
        };
        if let Some((statement, _)) = mass.filter(|_| !statements.iter().any(manufactured)) {
            let message = "`mass` is for eigenvalue problems";
            let diagnostic = Diagnostic::new(Code::MissingSetting, message)
                .label(statement.span, "there is no `eigen = …;` in this problem")
                .help("write `eigen = smallest(5);`, or leave `mass` out");
            checker.report(statement.piece, diagnostic);
        }
        return;
    };
    checker.content.eigen = read(checker, statement.piece, value);
    if let Some(number) = checker.form.fields.iter().find(|field| field.space.is_number()) {
        let message = format!("there are no eigenvalues with the unknown number `{}`", number.name);
        let diagnostic = Diagnostic::new(Code::NotAvailableHere, message)
            .label(statement.span, "an equation of fields alone")
            .help(format!(
                "make it a parameter, `param {} = 0;`, in a form of its own",
                number.name
            ));
        checker.report(statement.piece, diagnostic);
    }
    for other in statements {
        let (word, help) = match other.kind {
            ProblemItemKind::Exact { .. } | ProblemItemKind::Manufactured { .. } => {
                ("known solutions", "compare `--json`'s `eigenvalues` with what is known of them")
            }
            ProblemItemKind::Source { .. } => {
                ("`source`", "leave it out: an eigenvalue problem has no right-hand side")
            }
            ProblemItemKind::Adapt { .. } => ("`adapt`", "let `refine = 1;` divide all cells"),
            ProblemItemKind::Solver(_) => {
                ("`solver`", "write `smallest(5, rtol: 1e-8, preconditioner: multigrid)`")
            }
            _ => continue,
        };
        let message = format!("{word} and `eigen` do not go together");
        let diagnostic = Diagnostic::new(Code::BadArgument, message)
            .label(other.span, "not beside eigenvalues")
            .secondary(statement.span, "asked for here")
            .help(help);
        checker.report(other.piece, diagnostic);
    }
}

/// Reads `smallest(COUNT, …)`.
fn read(checker: &mut Checker<'_>, piece: &Piece, value: ExprId) -> Option<EigenRequest> {
    let expr = &piece.file.exprs[value];
    let (function, unnamed, named) = match &expr.kind {
        ExprKind::Error => return None,
        ExprKind::Call { function, arguments, named } if function.name == "smallest" => {
            (function, arguments, named)
        }
        _ => {
            let message = "eigenvalues are asked for by how many of the smallest there shall be";
            let diagnostic = Diagnostic::new(Code::BadValue, message)
                .label(expr.span, "not `smallest(…)`")
                .help("write `eigen = smallest(5);`");
            checker.report(piece, diagnostic);
            return None;
        }
    };
    let (known, mut wrong) = arguments::known(piece, function, named, ARGUMENTS);
    let mut wanted =
        EigenRequest { count: 0, rtol: None, max_iterations: ITERATIONS, preconditioner: None };
    for (argument, kind) in known {
        match arguments::read_of(checker.form, &checker.params, piece, argument, kind) {
            Ok(Argument::Word(word)) => {
                wanted.preconditioner = Some(EigenPreconditioner::read(&word));
            }
            Ok(Argument::Number(number)) if argument.name.name == "rtol" => {
                wanted.rtol = Some(number);
            }
            Ok(Argument::Number(number)) => wanted.max_iterations = number as usize,
            Ok(Argument::Numbers(_) | Argument::Call { .. }) => {}
            Err(found) => wrong.extend(found),
        }
    }
    let right = wrong.is_empty();
    checker.diagnostics.extend(wrong);
    let [count] = unnamed[..] else {
        let message = "`smallest` takes how many eigenvalues there shall be";
        let diagnostic = Diagnostic::new(Code::BadArgument, message)
            .label(expr.span, format!("{} numbers without a name", unnamed.len()))
            .help("write `eigen = smallest(5);`");
        checker.report(piece, diagnostic);
        return None;
    };
    wanted.count = checker.whole(piece, count, "smallest", 1.0, f64::from(MOST))?;
    right.then_some(wanted)
}

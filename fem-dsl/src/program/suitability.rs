//! Suitability of a problem's solver for its form: a linear solver requires a linear form, CG and MINRES a symmetric
//! Jacobian.

use crate::ast::ProblemItemKind;
use crate::check::problem::Statement;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::eval;
use crate::point::{Input, Integral, Part, PointForm, Slot, eliminated, is_read};
use crate::problem::{Method, Problem, SolverSettings};
use crate::source::Span;

/// Number of points at which a Jacobian is evaluated.
const POINTS: u64 = 4;
/// Tolerated difference of coefficients that should be equal, relative to the largest.
const ROUNDING: f64 = 1e-8;

/// Reports a solver that is not suitable for its form.
pub(super) fn unsuited_solver(
    statements: &[Statement<'_>],
    problem: &Problem,
) -> Option<Diagnostic> {
    unsuited_statement(statements, &problem.form, problem.solver.as_ref())
}

/// Reports the same for a form, at the last statement that names a solver.
pub(super) fn unsuited_statement(
    statements: &[Statement<'_>],
    form: &PointForm,
    solver: Option<&SolverSettings>,
) -> Option<Diagnostic> {
    let unsuited = unsuited(form, solver?)?;
    let (piece, named) = statements.iter().rev().find_map(|statement| match statement.kind {
        ProblemItemKind::Solver(named) => Some((statement.piece, named)),
        _ => None,
    })?;
    Some(piece.place(unsuited.at(named.name.span)))
}

/// The reason why a solver is not suitable for a form.
struct SolverMismatch {
    message: String,
    remark: &'static str,
    help: String,
}

impl SolverMismatch {
    /// Returns the diagnostic, located at the solver's name.
    fn at(self, name: Span) -> Diagnostic {
        let Self { message, remark, help } = self;
        Diagnostic::new(Code::BadValue, message).label(name, remark).help(help)
    }
}

/// Returns the reason why a solver does not suit a form; `None` if it does.
fn unsuited(form: &PointForm, solver: &SolverSettings) -> Option<SolverMismatch> {
    let linear = form.integrals.iter().all(|integral| integral.linear);
    let (name, method) = (solver.word(), solver.method());
    if !linear && name != "newton" {
        return Some(SolverMismatch {
            message: format!("`{name}` solves linear problems, but `{}` is not linear", form.name),
            remark: "a linear solver",
            help: format!("write `solver = newton(linear: {name});`, or leave the solver out"),
        });
    }
    let needing = method.filter(|method| matches!(method, Method::Cg | Method::Minres));
    let needing = needing.filter(|_| is_surely_unsymmetric(form));
    needing.map(|method| SolverMismatch {
        message: format!(
            "`{}` needs a symmetric Jacobian, but that of `{}` is not",
            method.word(),
            form.name
        ),
        remark: "for symmetric Jacobians",
        help: "use `gmres`, `bicgstab` or `direct`, or leave the solver out".to_owned(),
    })
}

/// Reports requested eigenvalues of a Jacobian whose eigenvalues are not real.
pub(super) fn complex_eigenvalues(
    statements: &[Statement<'_>],
    form: &PointForm,
) -> Option<Diagnostic> {
    if !form.integrals.iter().any(surely_unsymmetric) {
        return None;
    }
    let form = &form.name;
    let asked = statements.iter().rev().find(|statement| {
        matches!(statement.kind, ProblemItemKind::Setting { name, .. } if name.name == "eigen")
    })?;
    let message = format!("`smallest` needs a symmetric Jacobian, but that of `{form}` is not");
    let diagnostic = Diagnostic::new(Code::BadValue, message)
        .label(asked.span, "its eigenvalues are complex numbers in general")
        .help("leave the terms out that are not symmetric, or write them symmetrically");
    Some(asked.piece.place(diagnostic))
}

/// Returns whether the Jacobian is not symmetric after elimination of cell-local fields.
fn is_surely_unsymmetric(form: &PointForm) -> bool {
    let local = eliminated(form);
    if local.is_empty() || is_read(form, &local) {
        return form.integrals.iter().any(surely_unsymmetric);
    }
    form.integrals.iter().any(|of| {
        let mut rest = of.clone();
        let stays = |slot: Slot| !local.contains(&slot.field);
        rest.jacobian.retain(|term| stays(term.test) && stays(term.trial));
        surely_unsymmetric(&rest)
    })
}

/// Returns whether the Jacobian is not symmetric at the sample points. One that is not known to be symmetric may be so
/// nevertheless: equal coefficients need not be one node.
fn surely_unsymmetric(integral: &Integral) -> bool {
    !integral.symmetric && (0..POINTS).any(|point| unsymmetric_at(integral, point))
}

fn unsymmetric_at(integral: &Integral, point: u64) -> bool {
    // Multiples of the golden ratio, so that no two inputs are equal by accident; gradients stay small, so that I +
    // grad(u) is far from singular.
    let mut number = point * 1000;
    let values = eval(&integral.graph, |input| {
        number += 1;
        let fraction = (number as f64 * 0.618_033_988_749_895).fract();
        match input {
            Input::State(slot) if matches!(slot.part, Part::Derivative(_)) => 0.2 * fraction - 0.1,
            _ => 0.5 + fraction,
        }
    });
    let coefficient = |test: Slot, trial: Slot| {
        let found =
            integral.jacobian.iter().find(|entry| (entry.test, entry.trial) == (test, trial));
        found.map_or(0.0, |entry| values[entry.value])
    };
    let finite = |entry: &crate::point::Coefficient| values[entry.value].is_finite();
    if !integral.jacobian.iter().all(finite) {
        return false;
    }
    let largest = integral.jacobian.iter().map(|entry| values[entry.value].abs());
    let bound = ROUNDING * largest.fold(0.0, f64::max);
    integral
        .jacobian
        .iter()
        .any(|entry| (values[entry.value] - coefficient(entry.trial, entry.test)).abs() > bound)
}

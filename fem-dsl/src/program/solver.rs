//! A solver that a program names, rather than a text: checked as if it were part of a problem of the form.

use super::{Program, suited, wrong_dimension};
use crate::check::problem::{Statement, content, solver_piece};
use crate::diagnostic::Diagnostic;
use crate::point::PointForm;
use crate::problem::{Argument, Solver};
use std::collections::BTreeMap;

impl Program {
    /// Checks the name of a solver, its settings and their ranges, and its suitability for `point`, the form of this
    /// name.
    ///
    /// # Errors
    ///
    /// All errors, located in the solver as the language writes it.
    pub fn solver(
        &self,
        form: &str,
        point: &PointForm,
        solver: &Solver,
    ) -> Result<(), Vec<Diagnostic>> {
        let named = self.form(form).ok_or_else(|| vec![self.no_form(form, None)])?;
        let checked = named.dimensions.form(point.dim);
        let checked = checked.ok_or_else(|| vec![wrong_dimension(named, point.dim, None)])?;
        let piece = solver_piece(&text(&solver.name, &solver.arguments))?;
        let statements: Vec<_> = Statement::of_piece(&piece).into_iter().collect();
        let (content, found) = content(&statements, checked, None);
        if !found.is_empty() {
            return Err(found);
        }
        match suited::unsuited_statement(&statements, point, content.solver.as_ref()) {
            Some(found) => Err(vec![found]),
            None => Ok(()),
        }
    }
}

/// Returns a keyword with its settings in the notation of the language.
fn text(name: &str, arguments: &BTreeMap<String, Argument>) -> String {
    if arguments.is_empty() {
        return name.to_owned();
    }
    let settings = arguments.iter().map(|(name, value)| format!("{name}: {}", value_text(value)));
    format!("{name}({})", settings.collect::<Vec<_>>().join(", "))
}

fn value_text(value: &Argument) -> String {
    match value {
        Argument::Number(number) => format!("{number:?}"),
        Argument::Numbers(numbers) => format!("{numbers:?}"),
        Argument::Word(word) => word.clone(),
        Argument::Made { name, arguments } => text(name, arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solvers_are_written_as_the_language_has_them() {
        let number = |name: &str, value| (name.to_owned(), Argument::Number(value));
        let levels = BTreeMap::from([number("degree", 4.0)]);
        let levels = Argument::Made { name: "multigrid".to_owned(), arguments: levels };
        let arguments =
            BTreeMap::from([("preconditioner".to_owned(), levels), number("rtol", 1e-8)]);
        assert_eq!(
            text("cg", &arguments),
            "cg(preconditioner: multigrid(degree: 4.0), rtol: 1e-8)"
        );
        assert_eq!(text("direct", &BTreeMap::new()), "direct");
    }
}

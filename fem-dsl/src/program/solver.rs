//! Solver settings that a program gives: checked as if they were written in a problem of the form.

use super::{Program, suitability, wrong_dimension};
use crate::check::problem::{Statement, content, solver_piece};
use crate::diagnostic::Diagnostic;
use crate::point::PointForm;
use crate::problem::SolverSettings;

impl Program {
    /// Reads a solver with its settings, as in `cg(rtol: 1e-8)`, and checks that it suits `point`, the form of this name.
    ///
    /// # Errors
    ///
    /// Unknown names, values out of range and solvers that do not suit the form, each with its place in the text.
    pub fn solver(
        &self,
        form: &str,
        point: &PointForm,
        text: &str,
    ) -> Result<SolverSettings, Vec<Diagnostic>> {
        let named = self.form(form).ok_or_else(|| vec![self.no_form(form, None)])?;
        let checked = named.dimensions.form(point.dim);
        let checked = checked.ok_or_else(|| vec![wrong_dimension(named, point.dim, None)])?;
        let pieces = self.expanded(form, vec![solver_piece(text)?])?;
        let statements: Vec<_> = pieces.iter().flat_map(Statement::of_piece).collect();
        let (content, found) = content(&statements, checked, None);
        if !found.is_empty() {
            return Err(found);
        }
        if let Some(found) =
            suitability::unsuited_statement(&statements, point, content.solver.as_ref())
        {
            return Err(vec![found]);
        }
        Ok(content.solver.expect("a statement without errors names a solver"))
    }
}

//! Input of a manufactured solution before the problem exists: the form's fields, the solution and the conditions in
//! the file. `wf verify` derives its overrides from it.

use super::{CheckedForm, Program};
use crate::ast::{ProblemItemKind, SupportSpec};
use crate::check::problem::{Overrides, Statement};
use crate::diagnostic::Diagnostic;
use crate::form::Form;

impl Program {
    /// Returns the form of a problem.
    ///
    /// # Errors
    ///
    /// No such problem, or no such form.
    pub fn form_of(&self, problem: &str) -> Result<&CheckedForm, Vec<Diagnostic>> {
        let name = &self.find_problem(problem)?.form;
        self.form(&name.name).ok_or_else(|| vec![self.no_form(&name.name, Some(name.span))])
    }

    /// Returns the manufactured solution of a problem: each field with its text.
    ///
    /// # Errors
    ///
    /// No such problem, or mistakes in the overrides.
    pub fn manufactured(
        &self,
        problem: &str,
        overrides: &Overrides,
    ) -> Result<Vec<(String, String)>, Vec<Diagnostic>> {
        let pieces = overrides.pieces()?;
        let statements = Statement::all(&self.piece, self.find_problem(problem)?, &pieces);
        let of = |statement: &Statement<'_>| match statement.kind {
            ProblemItemKind::Manufactured { field, value } => {
                let span = statement.piece.file.exprs[*value].span;
                let text = statement.piece.slice(&self.source, span);
                Some((field.name.clone(), text.to_owned()))
            }
            _ => None,
        };
        Ok(statements.iter().filter_map(of).collect())
    }

    /// Returns the fields with mean-value constraints.
    ///
    /// # Errors
    ///
    /// No such problem.
    pub fn means(&self, problem: &str) -> Result<Vec<String>, Vec<Diagnostic>> {
        let items = &self.find_problem(problem)?.items;
        let field = |kind: &ProblemItemKind| match kind {
            ProblemItemKind::Mean { field, .. } => Some(field.name.clone()),
            _ => None,
        };
        Ok(items.iter().filter_map(|item| field(&item.kind)).collect())
    }

    /// Returns the tags of a problem's periodic sides, as text: `"x0", "x1"`; `None` if there are no such sides.
    ///
    /// # Errors
    ///
    /// No such problem.
    pub fn periodic_sides(&self, problem: &str) -> Result<Option<String>, Vec<Diagnostic>> {
        let items = &self.find_problem(problem)?.items;
        let sides = items.iter().filter_map(|item| match &item.kind {
            ProblemItemKind::Periodic { sides, .. } => Some(sides),
            _ => None,
        });
        let tags: Vec<String> = sides.flatten().map(|tag| format!("\"{}\"", tag.text)).collect();
        Ok((!tags.is_empty()).then(|| tags.join(", ")))
    }

    /// Returns the supports of a problem's conditions on a field, as text without values: `u on "x0"`. A condition on a
    /// normal component is extended to the whole field. On a mesh with corners, the convergence order of a slip
    /// solution is otherwise limited by the approximation of the wall.
    ///
    /// # Errors
    ///
    /// No such problem.
    pub fn conditions(&self, problem: &str, of: &str) -> Result<Vec<String>, Vec<Diagnostic>> {
        let problem = self.find_problem(problem)?;
        let text = |kind: &ProblemItemKind| match kind {
            ProblemItemKind::Dirichlet { field, component, place, .. } if field.name == of => {
                let index = component
                    .map(|at| format!("[{}]", self.source.slice(self.piece.file.exprs[at].span)));
                let place = match place {
                    Some(SupportSpec::Tags(tags)) => {
                        let tags = tags.iter().map(|tag| format!("\"{}\"", tag.text));
                        format!(" on {}", tags.collect::<Vec<_>>().join(", "))
                    }
                    Some(SupportSpec::At(point)) => {
                        format!(" at {}", self.source.slice(self.piece.file.exprs[*point].span))
                    }
                    Some(SupportSpec::All(_)) | None => String::new(),
                };
                Some(format!("{of}{}{place}", index.unwrap_or_default()))
            }
            _ => None,
        };
        Ok(problem.items.iter().filter_map(|item| text(&item.kind)).collect())
    }
}

/// Returns, for each field of a form, whether it has a flux: a row that is tested by the gradient.
pub fn fluxes(form: &Form) -> Vec<bool> {
    let cells = form.integrals.iter().filter(|integral| integral.region.is_of_cells());
    let rows: Vec<_> = cells.flat_map(|integral| &integral.rows).collect();
    let flux = |field| rows.iter().any(|row| row.field == field && row.f1.is_some());
    (0..form.fields.len()).map(flux).collect()
}

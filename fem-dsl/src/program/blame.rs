//! What shows only when a problem is set up (its mesh, the mesh's tags, values that are no numbers),
//! said at the statement that is to blame: in the file, or on the command line.

use super::Program;
use crate::ast::{self, Place, ProblemItemKind};
use crate::check::problem::{Overrides, Piece, Statement};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::problem::Unfixed;
use crate::source::Span;

/// A statement of a problem that can be to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// The mesh.
    Mesh,
    /// The degree.
    Degree,
    /// The value of a parameter.
    Param(&'a str),
    /// The value of auxiliary data.
    Aux(&'a str),
    /// The known or manufactured solution of a field.
    Exact(&'a str),
    /// An essential condition, by its number in [`Problem::dirichlet`](crate::problem::Problem::dirichlet).
    Dirichlet(usize),
}

impl Program {
    /// Adds the place of a statement to a diagnostic, with a remark; that of the problem's name,
    /// where there is no such statement.
    pub fn blame(
        &self,
        problem: &str,
        overrides: &Overrides,
        item: Item<'_>,
        diagnostic: Diagnostic,
        remark: &str,
    ) -> Diagnostic {
        let Ok(ast) = self.find_problem(problem) else { return diagnostic };
        let pieces = overrides.pieces().unwrap_or_default();
        let statements = Statement::all(&self.piece, ast, &pieces);
        match place(&statements, item) {
            Some((piece, span)) => piece.place(diagnostic.label(span, remark)),
            None => diagnostic.label(ast.name.span, remark),
        }
    }

    /// The message that neither a condition of this problem nor its form fixes a field.
    pub fn unfixed(&self, problem: &str, unfixed: &Unfixed) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(Code::Unfixed, unfixed.to_string());
        if let Ok(ast) = self.find_problem(problem) {
            diagnostic = diagnostic.label(ast.name.span, "this problem has no condition on it");
        }
        diagnostic.help(unfixed.remedy())
    }

    /// The message that a mesh lacks a tag which a condition of this problem names.
    pub fn unknown_tag(&self, problem: &str, tag: &str, known: &[String]) -> Diagnostic {
        let list: Vec<String> = known.iter().map(|tag| format!("\"{tag}\"")).collect();
        let note = match list.is_empty() {
            true => "the mesh names no part of its boundary".to_owned(),
            false => format!("its tags are {}", list.join(", ")),
        };
        let mut diagnostic =
            Diagnostic::new(Code::BadValue, format!("the mesh has no boundary \"{tag}\""))
                .note(note)
                .suggest(tag, known.iter().map(String::as_str));
        let problem = self.find_problem(problem).ok();
        let items = problem.into_iter().flat_map(|problem| &problem.items);
        let tags = items.filter_map(|item| match &item.kind {
            ProblemItemKind::Dirichlet { place: Some(Place::Tags(tags)), .. } => Some(tags),
            _ => None,
        });
        if let Some(text) = tags.flatten().find(|text| text.text == tag) {
            diagnostic = diagnostic.label(text.span, "no such tag");
        }
        diagnostic
    }
}

/// Where a statement is: what it says rather than the whole of it, where it says something.
fn place<'a>(statements: &[Statement<'a>], item: Item<'_>) -> Option<(&'a Piece, Span)> {
    let mut conditions = 0;
    let found = statements.iter().filter(|statement| match (item, statement.kind) {
        (Item::Mesh, ProblemItemKind::MeshFile(_) | ProblemItemKind::MeshGenerator(_)) => true,
        (Item::Degree, ProblemItemKind::Setting { name, .. }) => name.name == "degree",
        (Item::Param(wanted), ProblemItemKind::Param { name, .. })
        | (Item::Aux(wanted), ProblemItemKind::Aux { name, .. })
        | (
            Item::Exact(wanted),
            ProblemItemKind::Exact { field: name, .. }
            | ProblemItemKind::Manufactured { field: name, .. },
        ) => name.name == wanted,
        (Item::Dirichlet(wanted), ProblemItemKind::Dirichlet { .. }) => {
            conditions += 1;
            conditions == wanted + 1
        }
        _ => false,
    });
    let statement = found.last()?;
    let value = |id: ast::ExprId| statement.piece.file.exprs[id].span;
    let span = match statement.kind {
        ProblemItemKind::MeshFile(path) => path.span,
        ProblemItemKind::MeshGenerator(named) => named.span,
        ProblemItemKind::Setting { value: id, .. }
        | ProblemItemKind::Param { value: id, .. }
        | ProblemItemKind::Aux { value: id, .. }
        | ProblemItemKind::Exact { value: id, .. }
        | ProblemItemKind::Manufactured { value: id, .. }
        | ProblemItemKind::Dirichlet { value: Some(id), .. } => value(*id),
        _ => statement.span,
    };
    Some((statement.piece, span))
}

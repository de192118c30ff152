//! What shows only when a problem is set up (its mesh, the mesh's tags, values that are no numbers),
//! said at the statement that is to blame: in the file, or on the command line.

use super::Program;
use crate::ast::{self, FormItemKind, Place, ProblemItemKind};
use crate::check::problem::{Overrides, Piece, Statement, unknown_tag};
use crate::codes::Code;
use crate::culprit::{Culprit, Given, culprit};
use crate::diagnostic::Diagnostic;
use crate::point::Region;
use crate::problem::{Unfixed, UnstablePair};
use crate::source::Span;

/// A statement of a problem that can be to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// The mesh.
    Mesh,
    /// How often the mesh is refined.
    Refine,
    /// The degree.
    Degree,
    /// The quadrature.
    Quadrature,
    /// The value of a parameter.
    Param(&'a str),
    /// The value of auxiliary data.
    Aux(&'a str),
    /// A statement about data, by its number in [`Problem::aux`](crate::problem::Problem::aux).
    Data(usize),
    /// The start of a field.
    Initial(&'a str),
    /// The known or manufactured solution of a field.
    Exact(&'a str),
    /// The periodic side with this tag.
    Periodic(&'a str),
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

    /// The message that the conditions of this problem and its form leave a field open.
    pub fn unfixed(&self, problem: &str, unfixed: &Unfixed) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(Code::Unfixed, unfixed.to_string());
        if let Ok(ast) = self.find_problem(problem) {
            diagnostic = diagnostic.label(ast.name.span, unfixed.remark());
        }
        diagnostic.help(unfixed.remedy())
    }

    /// The message that a form has no finite value at a point: `place` says where that is, `help` what to do. None where
    /// the form has one, as it stands.
    pub fn not_finite(
        &self,
        (form, dim): (&str, usize),
        (region, given): (&Region, &Given),
        place: &str,
        help: &str,
    ) -> Option<Diagnostic> {
        let form = self.form(form)?.dimensions.form(dim)?;
        let Culprit { span, what, operands, fields } = culprit(form, &self.source, region, given)?;
        let values = match operands.is_empty() {
            true => String::new(),
            false => format!(": {}", operands.join(", ")),
        };
        let mut diagnostic =
            Diagnostic::new(Code::NoFiniteValue, format!("{what}{values} at {place}")).help(help);
        if let Some(span) = span {
            diagnostic = diagnostic.label(span, "not a finite number there");
        }
        if !fields.is_empty() {
            diagnostic = diagnostic.note(format!("there {}", fields.join(", ")));
        }
        Some(diagnostic)
    }

    /// Adds the place of a tag among the boundary blocks of the form that a problem solves, with a remark.
    pub fn form_tag(
        &self,
        problem: &str,
        tag: &str,
        diagnostic: Diagnostic,
        remark: &str,
    ) -> Diagnostic {
        let Ok(ast) = self.find_problem(problem) else { return diagnostic };
        match self.form_tags(ast, true).find(|known| known.text == tag) {
            Some(known) => diagnostic.label(known.span, remark),
            None => diagnostic.label(ast.name.span, remark),
        }
    }

    /// The message that two fields of this problem's form are not inf-sup stable.
    pub fn unstable(&self, problem: &str, pair: &UnstablePair) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(Code::UnstablePair, pair.to_string());
        let form = self.find_problem(problem).ok().map(|problem| problem.form.name.as_str());
        let form = self.piece.file.forms.iter().find(|of| Some(of.name.name.as_str()) == form);
        let fields = form.into_iter().flat_map(|form| &form.items);
        for item in fields {
            let FormItemKind::Field { name, .. } = &item.kind else { continue };
            if name.name == pair.field {
                diagnostic = diagnostic.label(item.span, "nothing but the other holds it");
            } else if name.name == pair.held_by {
                diagnostic =
                    diagnostic.secondary(item.span, "which has no more unknowns to hold it with");
            }
        }
        diagnostic.help(pair.remedy())
    }

    /// The messages that a mesh with the boundary tags `known` lacks others, which a condition of this problem or its
    /// form names: one for each place.
    pub fn unknown_tags(
        &self,
        problem: &str,
        overrides: &Overrides,
        known: &[String],
    ) -> Vec<Diagnostic> {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let Ok(ast) = self.find_problem(problem) else { return Vec::new() };
        let mut found = self.unknown_form_tags(ast, &known, true);
        let pieces = overrides.pieces().unwrap_or_default();
        let statements = Statement::all(&self.piece, ast, &pieces);
        found.extend(unknown_in(&statements, "boundary", &known, |statement| match statement {
            ProblemItemKind::Dirichlet { place: Some(Place::Tags(tags)), .. } => tags,
            ProblemItemKind::Periodic { sides } => sides,
            _ => &[],
        }));
        found
    }

    /// The messages that a mesh with the cell tags `known` lacks others, which data of this problem or its form names.
    pub fn unknown_cell_tags(
        &self,
        problem: &str,
        overrides: &Overrides,
        known: &[String],
    ) -> Vec<Diagnostic> {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let Ok(ast) = self.find_problem(problem) else { return Vec::new() };
        let pieces = overrides.pieces().unwrap_or_default();
        self.unknown_tags_of_cells(ast, &Statement::all(&self.piece, ast, &pieces), &known)
    }

    /// The messages about cell blocks of the form that a problem solves, and about its data.
    pub(super) fn unknown_tags_of_cells(
        &self,
        problem: &ast::Problem,
        statements: &[Statement<'_>],
        known: &[&str],
    ) -> Vec<Diagnostic> {
        let mut found = self.unknown_form_tags(problem, known, false);
        found.extend(unknown_in(statements, "tag of cells", known, |statement| match statement {
            ProblemItemKind::Aux { place: Some(Place::Tags(tags)), .. } => tags,
            _ => &[],
        }));
        found
    }

    /// The messages about the blocks of facets, or of cells, of the form that a problem solves.
    pub(super) fn unknown_form_tags(
        &self,
        problem: &ast::Problem,
        known: &[&str],
        of_facets: bool,
    ) -> Vec<Diagnostic> {
        let of = if of_facets { "boundary" } else { "tag of cells" };
        let tags = self.form_tags(problem, of_facets);
        let unknown = tags.filter(|tag| !known.contains(&tag.text.as_str()));
        let name = &problem.name;
        let said = |tag| {
            let remark = format!("`{}` solves this form on a mesh without it", name.name);
            unknown_tag(of, tag, known).secondary(name.span, remark)
        };
        unknown.map(said).collect()
    }

    /// The tags of the blocks of facets, or of cells, of the form that a problem solves.
    fn form_tags<'a>(
        &'a self,
        problem: &ast::Problem,
        facets: bool,
    ) -> impl Iterator<Item = &'a ast::Text> {
        let forms = &self.piece.file.forms;
        let form = forms.iter().find(|form| form.name.name == problem.form.name);
        let tags =
            form.into_iter().flat_map(|form| &form.items).filter_map(move |item| {
                match &item.kind {
                    FormItemKind::Block { of_facets, tags, .. } if *of_facets == facets => {
                        Some(tags)
                    }
                    _ => None,
                }
            });
        tags.flatten()
    }
}

/// The messages that a mesh with the tags `known` lacks others, which statements name.
fn unknown_in<'a>(
    statements: &[Statement<'a>],
    of: &str,
    known: &[&str],
    tags: impl Fn(&'a ProblemItemKind) -> &'a [ast::Text],
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for statement in statements {
        let own = tags(statement.kind).iter();
        let unknown = own.filter(|tag| !known.contains(&tag.text.as_str()));
        found.extend(unknown.map(|tag| statement.piece.place(unknown_tag(of, tag, known))));
    }
    found
}

/// Where a statement is: what it says rather than the whole of it, where it says something.
fn place<'a>(statements: &[Statement<'a>], item: Item<'_>) -> Option<(&'a Piece, Span)> {
    let (mut conditions, mut data) = (0, 0);
    let found = statements.iter().filter(|statement| match (item, statement.kind) {
        (Item::Mesh, ProblemItemKind::MeshFile(_) | ProblemItemKind::MeshGenerator(_)) => true,
        (Item::Refine, ProblemItemKind::Setting { name, .. }) => name.name == "refine",
        (Item::Degree, ProblemItemKind::Setting { name, .. }) => name.name == "degree",
        (Item::Quadrature, ProblemItemKind::Setting { name, .. }) => name.name == "quadrature",
        (Item::Param(wanted), ProblemItemKind::Param { name, .. })
        | (Item::Aux(wanted), ProblemItemKind::Aux { name, .. })
        | (Item::Initial(wanted), ProblemItemKind::Initial { field: name, .. })
        | (
            Item::Exact(wanted),
            ProblemItemKind::Exact { field: name, .. }
            | ProblemItemKind::Manufactured { field: name, .. },
        ) => name.name == wanted,
        (Item::Data(wanted), ProblemItemKind::Aux { .. }) => {
            data += 1;
            data == wanted + 1
        }
        (Item::Dirichlet(wanted), ProblemItemKind::Dirichlet { .. }) => {
            conditions += 1;
            conditions == wanted + 1
        }
        (Item::Periodic(wanted), ProblemItemKind::Periodic { sides }) => {
            sides.iter().any(|side| side.text == wanted)
        }
        _ => false,
    });
    let statement = found.last()?;
    let value = |id: ast::ExprId| statement.piece.file.exprs[id].span;
    let span = match statement.kind {
        ProblemItemKind::Periodic { sides } => {
            let tag = |side: &&ast::Text| item == Item::Periodic(&side.text);
            sides.iter().find(tag).map_or(statement.span, |side| side.span)
        }
        ProblemItemKind::MeshFile(path) => path.span,
        ProblemItemKind::MeshGenerator(named) => named.span,
        ProblemItemKind::Setting { value: id, .. }
        | ProblemItemKind::Param { value: id, .. }
        | ProblemItemKind::Aux { value: id, .. }
        | ProblemItemKind::Initial { value: id, .. }
        | ProblemItemKind::Exact { value: id, .. }
        | ProblemItemKind::Manufactured { value: id, .. }
        | ProblemItemKind::Dirichlet { value: Some(id), .. } => value(*id),
        _ => statement.span,
    };
    Some((statement.piece, span))
}

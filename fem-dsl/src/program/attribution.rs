//! Locations of errors that occur only in the setup of a problem: its mesh, the mesh's tags, values that are not
//! finite. They are the responsible statements in the file or on the command line.

use super::Program;
use crate::ast::{self, BlockRegion, FormItemKind, ProblemItemKind, SupportSpec};
use crate::check::problem::{Overrides, Piece, Statement, unknown_tag};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::non_finite::{NonFiniteOrigin, PointInput, non_finite_origin};
use crate::point::Region;
use crate::problem::{UndeterminedField, UnstablePair};
use crate::source::Span;

/// A statement of a problem that can be responsible for an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorOrigin<'a> {
    /// The mesh.
    Mesh,
    /// The number of refinements.
    Refine,
    /// The degree.
    Degree,
    /// The quadrature.
    Quadrature,
    /// The value of a parameter.
    Param(&'a str),
    /// The value of auxiliary data.
    Aux(&'a str),
    /// A statement about data, by its index in [`Problem::aux`](crate::problem::Problem::aux).
    Data(usize),
    /// The initial state of a field.
    Initial(&'a str),
    /// The known or manufactured solution of a field.
    Exact(&'a str),
    /// The periodic side with this tag.
    Periodic(&'a str),
    /// An essential condition, by its index in [`Problem::dirichlet`](crate::problem::Problem::dirichlet).
    Dirichlet(usize),
}

impl Program {
    /// Adds the location of a statement to a diagnostic, with a remark; that of the problem's name, if there is no such
    /// statement.
    pub fn attribute(
        &self,
        problem: &str,
        overrides: &Overrides,
        item: ErrorOrigin<'_>,
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

    /// Returns the diagnostic for a field that the conditions of this problem and its form do not determine.
    pub fn undetermined_field(&self, problem: &str, unfixed: &UndeterminedField) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(Code::Unfixed, unfixed.to_string());
        if let Ok(ast) = self.find_problem(problem) {
            diagnostic = diagnostic.label(ast.name.span, unfixed.remark());
        }
        diagnostic.help(unfixed.remedy())
    }

    /// Returns the diagnostic for a form without a finite value at a point: `place` names the point, `help` the remedy.
    /// `None` if the form has a finite value as written.
    pub fn not_finite(
        &self,
        (form, dim): (&str, usize),
        (region, given): (&Region, &PointInput),
        place: &str,
        help: &str,
    ) -> Option<Diagnostic> {
        let form = self.form(form)?.dimensions.form(dim)?;
        let NonFiniteOrigin { span, what, operands, fields } =
            non_finite_origin(form, &self.source, region, given)?;
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

    /// Adds the location of a tag among the boundary blocks of the problem's form, with a remark.
    pub fn form_tag(
        &self,
        problem: &str,
        tag: &str,
        diagnostic: Diagnostic,
        remark: &str,
    ) -> Diagnostic {
        let Ok(ast) = self.find_problem(problem) else { return diagnostic };
        match self.form_tags(ast, true).find(|(_, known)| known.text == tag) {
            Some((_, known)) => diagnostic.label(known.span, remark),
            None => diagnostic.label(ast.name.span, remark),
        }
    }

    /// Returns the diagnostic for two fields of this problem's form that are not inf-sup stable.
    pub fn unstable(&self, problem: &str, pair: &UnstablePair) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(Code::UnstablePair, pair.to_string());
        let form = self.find_problem(problem).ok().map(|problem| problem.form.name.as_str());
        let form = self.piece.file.forms.iter().find(|of| Some(of.name.name.as_str()) == form);
        let fields = form.into_iter().flat_map(|form| &form.items);
        for item in fields {
            let FormItemKind::Field { name, .. } = &item.kind else { continue };
            if name.name == pair.field {
                diagnostic = diagnostic.label(item.span, "nothing but the other holds it");
            } else if name.name == pair.partner {
                diagnostic =
                    diagnostic.secondary(item.span, "which has no more unknowns to hold it with");
            }
        }
        diagnostic.help(pair.remedy())
    }

    /// Returns diagnostics for tags of conditions of this problem or its form that are not among the boundary tags
    /// `known` of the mesh: one for each location.
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
            ProblemItemKind::Dirichlet { place: Some(SupportSpec::Tags(tags)), .. }
            | ProblemItemKind::Bound { place: Some(SupportSpec::Tags(tags)), .. } => tags,
            ProblemItemKind::Periodic { sides, .. } => sides,
            _ => &[],
        }));
        found
    }

    /// Returns diagnostics for tags that data of this problem or its form refer to, but that the cell tags `known` of
    /// the mesh lack.
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

    /// Returns the diagnostics for cell blocks of the problem's form, and for its data.
    pub(super) fn unknown_tags_of_cells(
        &self,
        problem: &ast::Problem,
        statements: &[Statement<'_>],
        known: &[&str],
    ) -> Vec<Diagnostic> {
        let mut found = self.unknown_form_tags(problem, known, false);
        found.extend(unknown_in(statements, "tag of cells", known, |statement| match statement {
            ProblemItemKind::Aux { place: Some(SupportSpec::Tags(tags)), .. } => tags,
            _ => &[],
        }));
        found
    }

    /// Returns the diagnostics for the blocks of facets, or of cells, of the problem's form.
    pub(super) fn unknown_form_tags(
        &self,
        problem: &ast::Problem,
        known: &[&str],
        of_facets: bool,
    ) -> Vec<Diagnostic> {
        let tags = self.form_tags(problem, of_facets);
        let unknown = tags.filter(|(_, tag)| !known.contains(&tag.text.as_str()));
        let name = &problem.name;
        let said = |(region, tag)| {
            let of = match region {
                BlockRegion::Boundary => "boundary",
                BlockRegion::Interior => "tag of facets",
                BlockRegion::Cells | BlockRegion::OrderedInterior => "tag of cells",
            };
            let remark = format!("`{}` solves this form on a mesh without it", name.name);
            unknown_tag(of, tag, known).secondary(name.span, remark)
        };
        unknown.map(said).collect()
    }

    /// Returns the tags of the blocks of facets, or of cells, of the problem's form. Those of an ordered interior are
    /// tags of cells.
    fn form_tags<'a>(
        &'a self,
        problem: &ast::Problem,
        of_facets: bool,
    ) -> impl Iterator<Item = (BlockRegion, &'a ast::Text)> {
        let forms = &self.piece.file.forms;
        let form = forms.iter().find(|form| form.name.name == problem.form.name);
        let blocks =
            form.into_iter().flat_map(|form| &form.items).filter_map(|item| match &item.kind {
                FormItemKind::Block { region, tags, .. } => Some((*region, tags)),
                _ => None,
            });
        let wanted = move |(region, _): &(BlockRegion, &Vec<ast::Text>)| {
            of_facets == matches!(region, BlockRegion::Boundary | BlockRegion::Interior)
        };
        blocks.filter(wanted).flat_map(|(region, tags)| tags.iter().map(move |tag| (region, tag)))
    }
}

/// Returns diagnostics for tags that statements refer to, but that the tags `known` of a mesh lack.
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

/// Returns the location of a statement: of its value, if it has one, rather than of the whole.
fn place<'a>(statements: &[Statement<'a>], item: ErrorOrigin<'_>) -> Option<(&'a Piece, Span)> {
    let (mut conditions, mut data) = (0, 0);
    let found = statements.iter().filter(|statement| match (item, statement.kind) {
        (ErrorOrigin::Mesh, ProblemItemKind::MeshFile(_) | ProblemItemKind::MeshGenerator(_)) => {
            true
        }
        (ErrorOrigin::Refine, ProblemItemKind::Setting { name, .. }) => name.name == "refine",
        (ErrorOrigin::Degree, ProblemItemKind::Setting { name, .. }) => name.name == "degree",
        (ErrorOrigin::Quadrature, ProblemItemKind::Setting { name, .. }) => {
            name.name == "quadrature"
        }
        (ErrorOrigin::Param(wanted), ProblemItemKind::Param { name, .. })
        | (ErrorOrigin::Aux(wanted), ProblemItemKind::Aux { name, .. })
        | (ErrorOrigin::Initial(wanted), ProblemItemKind::Initial { field: name, .. })
        | (
            ErrorOrigin::Exact(wanted),
            ProblemItemKind::Exact { field: name, .. }
            | ProblemItemKind::Manufactured { field: name, .. },
        ) => name.name == wanted,
        (ErrorOrigin::Data(wanted), ProblemItemKind::Aux { .. }) => {
            data += 1;
            data == wanted + 1
        }
        (ErrorOrigin::Dirichlet(wanted), ProblemItemKind::Dirichlet { .. }) => {
            conditions += 1;
            conditions == wanted + 1
        }
        (ErrorOrigin::Periodic(wanted), ProblemItemKind::Periodic { sides, .. }) => {
            sides.iter().any(|side| side.text == wanted)
        }
        _ => false,
    });
    let statement = found.last()?;
    let value = |id: ast::ExprId| statement.piece.file.exprs[id].span;
    let span = match statement.kind {
        ProblemItemKind::Periodic { sides, .. } => {
            let tag = |side: &&ast::Text| item == ErrorOrigin::Periodic(&side.text);
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

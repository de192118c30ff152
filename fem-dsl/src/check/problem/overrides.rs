//! Overrides of the command line: texts that are parsed as the corresponding problem items. A diagnostic about such a
//! text shows the text instead of the file.

use crate::ast;
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Label};
use crate::parse::parse;
use crate::source::{Source, Span, TableFolder};
use std::sync::Arc;

/// Replacements of a problem's items; each value is text of the language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `box(dim: 3, cells: 8)`; anything without a `(` is the path of a file, without quotes.
    pub mesh: Option<String>,
    /// The number of mesh refinements.
    pub refine: Option<String>,
    /// Degree k.
    pub degree: Option<String>,
    /// Quadrature degree D.
    pub quadrature: Option<String>,
    /// Time.
    pub time: Option<String>,
    /// `cg(rtol: 1e-8)`.
    pub solver: Option<String>,
    /// Parameters: name and value.
    pub params: Vec<(String, String)>,
    /// Auxiliary data: name and value.
    pub aux: Vec<(String, String)>,
    /// Manufactured solutions: field and value. They replace known ones too.
    pub manufactured: Vec<(String, String)>,
    /// Conditions: `u = 0 on "x0"`. A nonempty list replaces all conditions of the problem.
    pub dirichlet: Vec<String>,
    /// True if periodic sides count as boundaries, as required for solutions that are not periodic.
    pub ends: bool,
    /// True for overrides of a Rust program: messages name no options of the command line.
    pub from_program: bool,
    /// True if meshes get the tags that forms refer to, as in a refinement series, so that none of them is missing.
    pub tagged: bool,
}

/// A parsed text with the map of its locations.
#[derive(Clone)]
pub(crate) struct Piece {
    pub(crate) file: Arc<ast::File>,
    origin: Option<Origin>,
}

/// The origin of a text from the command line.
#[derive(Clone)]
struct Origin {
    /// The text that the user wrote.
    source: Arc<Source>,
    /// The number of bytes inserted before it.
    before: u32,
}

impl Piece {
    /// Returns the text of the compiled file.
    pub(crate) fn of_file(file: ast::File) -> Self {
        Self { file: Arc::new(file), origin: None }
    }

    /// Returns the same text with another syntax tree.
    pub(crate) fn with(self, file: ast::File) -> Self {
        Self { file: Arc::new(file), ..self }
    }

    /// Returns whether it is the text of the compiled file.
    pub(crate) fn is_of_file(&self) -> bool {
        self.origin.is_none()
    }

    /// Maps a diagnostic's locations from the parsed text to the user's text.
    pub(crate) fn place(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        let Some(Origin { source, before }) = &self.origin else { return diagnostic };
        let length = Span::new(source.text().len(), source.text().len()).end;
        let moved = |offset: u32| offset.saturating_sub(*before).min(length);
        for Label { span, .. } in &mut diagnostic.labels {
            *span = Span { start: moved(span.start), end: moved(span.end) };
        }
        diagnostic.of_source(source.clone())
    }

    /// Returns the text at a location of the parsed text; `file` is the text of the compiled file.
    pub(crate) fn slice<'a>(&'a self, file: &'a Source, span: Span) -> &'a str {
        let Some(Origin { source, before }) = &self.origin else { return file.slice(span) };
        let moved = |offset: u32| offset.saturating_sub(*before);
        source.slice(Span { start: moved(span.start), end: moved(span.end) })
    }

    /// Parses the item `before` + `text` + `;`.
    fn parse(name: &str, before: &str, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let before = format!("problem command_line solves it {{ {before}");
        Self::within(name, None, before, text)
    }

    /// Parses the item at the end of `before`, + `text` + `;`, with the preceding text.
    fn within(
        name: &str,
        folder: Option<&TableFolder>,
        before: String,
        text: &str,
    ) -> Result<Self, Vec<Diagnostic>> {
        let whole = Source::new(name, format!("{before}{text}\n; }}")).in_folder(folder.cloned());
        let (file, diagnostics) = parse(&whole);
        let origin = Origin {
            source: Arc::new(Source::new(name, text)),
            before: Span::new(before.len(), before.len()).start,
        };
        let piece = Self { file: Arc::new(file), origin: Some(origin) };
        let items = piece.file.problems.iter().map(|problem| problem.items.len()).sum::<usize>();
        if diagnostics.is_empty() && items == 1 && piece.file.problems.len() == 1 {
            return Ok(piece);
        }
        if diagnostics.is_empty() {
            let message = "expected one value, found more";
            let everything = Span::new(before.len(), before.len() + text.len());
            let diagnostic = Diagnostic::new(Code::UnexpectedToken, message).label(everything, "");
            return Err(vec![piece.place(diagnostic)]);
        }
        Err(diagnostics.into_iter().map(|found| piece.place(found)).collect())
    }
}

impl Overrides {
    /// Parses all overrides.
    pub(crate) fn pieces(&self) -> Result<Vec<Piece>, Vec<Diagnostic>> {
        // The option in the user's notation, the beginning of the item, and the user's text.
        let mut wanted: Vec<(&'static str, &str, String)> = Vec::new();
        let settings = [
            ("--refine", "refine = ", &self.refine),
            ("--degree", "degree = ", &self.degree),
            ("--quadrature", "quadrature = ", &self.quadrature),
            ("--time", "t = ", &self.time),
            ("--solver", "solver = ", &self.solver),
        ];
        for (option, before, text) in settings {
            wanted.extend(text.iter().map(|text| (option, before, text.clone())));
        }
        for (option, before, values) in [
            ("--param", "param ", &self.params),
            ("--aux", "aux ", &self.aux),
            ("--solution", "manufactured ", &self.manufactured),
        ] {
            let text = |(name, value): &(String, String)| format!("{name} = {value}");
            wanted.extend(values.iter().map(|value| (option, before, text(value))));
        }
        let conditions = self.dirichlet.iter();
        wanted.extend(conditions.map(|text| ("conditions", "dirichlet ", text.clone())));
        let mut pieces = Vec::new();
        let mut diagnostics = Vec::new();
        let called = |option: &'static str| match self.from_program {
            true => option.trim_start_matches('-'),
            false => option,
        };
        match self.mesh.as_deref().map(|text| mesh(called("--mesh"), text)) {
            Some(Ok(piece)) => pieces.push(piece),
            Some(Err(found)) => diagnostics.extend(found),
            None => {}
        }
        for (name, before, text) in wanted {
            match Piece::parse(called(name), before, &text) {
                Ok(piece) => pieces.push(piece),
                Err(found) => diagnostics.extend(found),
            }
        }
        if diagnostics.is_empty() { Ok(pieces) } else { Err(diagnostics) }
    }
}

/// Parses a generator, or the path of a file.
fn mesh(name: &str, text: &str) -> Result<Piece, Vec<Diagnostic>> {
    if text.contains('(') {
        return Piece::parse(name, "mesh = ", text);
    }
    // A path may contain characters that a string of the language may not: the parsed text has a placeholder.
    let mut piece = Piece::parse(name, "mesh = ", "\"file\"")?;
    let mut before = 0;
    if let Some(origin) = &mut piece.origin {
        origin.source = Arc::new(Source::new(name, text));
        before = origin.before as usize;
    }
    let items =
        Arc::make_mut(&mut piece.file).problems.iter_mut().flat_map(|problem| &mut problem.items);
    for item in items {
        if let ast::ProblemItemKind::MeshFile(path) = &mut item.kind {
            text.clone_into(&mut path.text);
            path.span = Span::new(before, before + text.len());
        }
    }
    Ok(piece)
}

/// Parses the value of a field from the command line: `option` is the user's notation.
pub(crate) fn field_piece(
    option: &str,
    field: &str,
    value: &str,
) -> Result<Piece, Vec<Diagnostic>> {
    Piece::parse(option, "exact ", &format!("{field} = {value}"))
}

/// Parses a report on the solution of a form, given by its text in a folder and its name.
pub(crate) fn report_piece(
    (text, folder): (&str, Option<&TableFolder>),
    (form, name): (&str, &str),
    value: &str,
) -> Result<Piece, Vec<Diagnostic>> {
    let before = format!("{text}\nproblem command_line solves {form} {{ report {name} = ");
    Piece::within("report", folder, before, value)
}

/// Parses a solver in the notation of the language.
pub(crate) fn solver_piece(text: &str) -> Result<Piece, Vec<Diagnostic>> {
    Piece::parse("solver", "solver = ", text)
}

//! `compile`: a whole file, from its text to forms and problems.
//!
//! One run reports all errors of the file. Results that need the mesh (above all its dimension) or the command line are
//! requested later from [`Program`]; `attribute` locates errors that only occur then.

mod attribution;
mod form_reports;
mod mass;
mod numbers;
mod reuse;
mod solution;
mod solver;
mod sources;
mod suitability;

pub use attribution::ErrorOrigin;
use form_reports::reports;
use reuse::{ProblemFindings, Reuse, SyntaxErrors, syntax_errors};
pub use solution::fluxes;

use crate::ast;
use crate::check::Dimensions;
use crate::check::complex::{ComplexNames, expand, expand_statements};
use crate::check::darcy::darcy;
use crate::check::outputs::inlined;
use crate::check::problem::{
    self as check_problem, Content, EigenRequest, Overrides, Piece, Solutions, Statement, content,
    field_piece,
};
use crate::check::strong::strong;
use crate::check::uncoupled::uncoupled;
use crate::check::unused::{expressions, names, unused};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, relocate};
use crate::differentiate::differentiate;
use crate::form::{BuildError, Form, rate_name};
use crate::manufacture::manufacture;
use crate::parse;
use crate::point::{PointForm, point, with_numbers_given};
use crate::problem::{
    Data, EigenProblem, Expression, MeshSource, Problem, Support, Trace, ValueSource,
};
use crate::simplify::simplify;
use crate::source::{Shift, Source, Span};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// A compiled file.
pub struct Program {
    source: Source,
    /// The syntax tree of the text.
    written: ast::File,
    /// The same in real numbers.
    piece: Piece,
    /// The complex names of each form of the text.
    complex: Vec<ComplexNames>,
    forms: Vec<CheckedForm>,
    warnings: Vec<Diagnostic>,
    syntax_errors: SyntaxErrors,
    /// The findings of each problem; of a text with overrides, none.
    found: Vec<ProblemFindings>,
}

/// A form of a [`Program`].
#[derive(Clone, Debug)]
pub struct CheckedForm {
    /// Its name.
    pub name: String,
    /// Its documentation.
    pub doc: String,
    /// The form in each dimension.
    pub dimensions: Dimensions,
    /// Warnings about a form without errors.
    warnings: OnceLock<Vec<Diagnostic>>,
}

impl CheckedForm {
    /// Prepares the check of a form.
    fn new(source: &Source, file: &Arc<ast::File>, form: &ast::Form) -> Self {
        let dimensions = Dimensions::of(source, file, form);
        let (name, doc) = (form.name.name.clone(), form.doc.clone());
        Self { name, doc, dimensions, warnings: OnceLock::new() }
    }

    /// Returns warnings about the form, if it has no errors.
    fn warnings(&self, written: &ast::Form) -> &[Diagnostic] {
        self.warnings.get_or_init(|| {
            let form = self.dimensions.forms().next();
            form.map_or_else(Vec::new, |form| {
                let uncoupled = uncoupled(written, form).into_iter();
                uncoupled.chain(strong(written, form)).chain(darcy(written, form)).collect()
            })
        })
    }

    /// Returns the results for the same form at another location.
    fn moved(self, shift: Shift, file: &Arc<ast::File>, form: &ast::Form) -> Self {
        let dimensions = self.dimensions.moved(shift, file, form);
        let mut warnings = self.warnings;
        if !warnings.get_mut().is_none_or(|found| relocate(found, |span| shift.of(span))) {
            warnings = OnceLock::new();
        }
        Self { dimensions, warnings, ..self }
    }
}

/// The properties of a problem without its mesh.
#[derive(Clone, Copy, Debug)]
pub struct ProblemHead<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its documentation.
    pub doc: &'a str,
    /// The form to solve.
    pub form: &'a str,
}

/// Compiles a file. Returns a program if every form and problem is correct. This version may not implement all of it
/// (codes E09xx), but its stages can be inspected.
pub fn compile(source: &Source) -> (Option<Program>, Vec<Diagnostic>) {
    compile_with(source, None, &Overrides::default())
}

/// Compiles a file with overrides of its problems, or of the selected one, from the command line. Overridden statements
/// need not be correct in the file, nor need items that the selected problem does not use.
pub fn compile_with(
    source: &Source,
    wanted: Option<&str>,
    overrides: &Overrides,
) -> (Option<Program>, Vec<Diagnostic>) {
    let (program, diagnostics) = compiled(source, wanted, overrides, None);
    let fatal = |found: &Diagnostic| found.is_error() && !found.code.id().starts_with("E09");
    let fails = diagnostics.iter().any(fatal);
    ((!fails).then_some(program), diagnostics)
}

/// Compiles a file for inspection: the program may have errors, and then lacks forms in some or all dimensions.
pub fn inspect(source: &Source) -> (Program, Vec<Diagnostic>) {
    compiled(source, None, &Overrides::default(), None)
}

/// Compiles the next text of a file for inspection, with the same result as [`inspect`]. It takes results of `before` for
/// parts of the text that are the same.
pub fn inspect_after(source: &Source, before: &mut Program) -> (Program, Vec<Diagnostic>) {
    compiled(source, None, &Overrides::default(), Some(before))
}

fn compiled(
    source: &Source,
    wanted: Option<&str>,
    overrides: &Overrides,
    before: Option<&mut Program>,
) -> (Program, Vec<Diagnostic>) {
    let (file, mut diagnostics) = parse::parse(source);
    let others = wanted.map_or_else(Vec::new, |name| others(&file, name));
    let pieces = overrides.pieces().unwrap_or_else(|found| {
        diagnostics.extend(found);
        Vec::new()
    });
    unique(&file, &mut diagnostics);
    let written = file;
    let (file, complex, found) = expand(&inlined(&written));
    diagnostics.extend(found);
    let syntax_errors = syntax_errors(&diagnostics);
    let mut reuse = before.map(|before| Reuse::new(before, source, &written, &syntax_errors));
    let piece = Piece::of_file(file);
    let mut forms = Vec::new();
    for (at, form) in piece.file.forms.iter().enumerate() {
        let checked = match reuse.as_mut().and_then(|reuse| reuse.form(at)) {
            Some((before, shift)) => before.moved(shift, &piece.file, form),
            None => CheckedForm::new(source, &piece.file, form),
        };
        diagnostics.extend(checked.dimensions.diagnostics().iter().cloned());
        forms.push(checked);
    }
    let (source, warnings) = (source.clone(), Vec::new());
    let found = Vec::new();
    let mut program =
        Program { source, written, piece, complex, forms, warnings, syntax_errors, found };
    let mut found: Vec<ProblemFindings> = Vec::new();
    let is_wanted = |problem: &&ast::Problem| !others.contains(&problem.span);
    for (at, problem) in program.piece.file.problems.iter().filter(is_wanted).enumerate() {
        let known = reuse.as_mut().and_then(|reuse| reuse.problem(at));
        let check = || program.check_problem(problem, &pieces, overrides.tagged);
        found.push(known.unwrap_or_else(check));
    }
    diagnostics.extend(found.iter().flat_map(|(errors, _)| errors.iter().cloned()));
    let mut warnings: Vec<_> = found.iter().flat_map(|(_, own)| own.iter().cloned()).collect();
    if wanted.is_none() && *overrides == Overrides::default() {
        program.found = found;
    }
    let of_others = |found: &Diagnostic| {
        let place = found.primary().map(|label| label.span);
        place.is_some_and(|place| others.iter().any(|other| other.contains(place)))
    };
    diagnostics.retain(|found| !of_others(found));
    // Errors come first: they make many names seem unused.
    if !diagnostics.iter().any(Diagnostic::is_error) {
        warnings.extend(program.unused(&pieces));
        let checked = program.piece.file.forms.iter().zip(&program.forms);
        warnings.extend(checked.flat_map(|(written, form)| form.warnings(written).iter().cloned()));
        warnings.retain(|found| !of_others(found));
        parse::sort(&mut warnings);
        warnings.dedup();
        diagnostics.extend(warnings.iter().cloned());
        program.warnings = warnings;
    }
    parse::sort(&mut diagnostics);
    diagnostics.dedup();
    (program, diagnostics)
}

/// Returns the locations of the problems and forms that a problem does not use; empty if the file lacks the problem.
fn others(file: &ast::File, wanted: &str) -> Vec<Span> {
    let named = |problem: &&ast::Problem| problem.name.name == wanted;
    let used: Vec<&str> =
        file.problems.iter().filter(named).flat_map(|problem| forms_of(file, problem)).collect();
    if used.is_empty() {
        return Vec::new();
    }
    let problems = file.problems.iter().filter(|problem| !named(problem));
    let forms = file.forms.iter().filter(|form| !used.contains(&form.name.name.as_str()));
    problems.map(|problem| problem.span).chain(forms.map(|form| form.span)).collect()
}

/// Returns the names of the forms that a problem uses: its own, and that of its mass.
fn forms_of<'a>(file: &'a ast::File, problem: &'a ast::Problem) -> Vec<&'a str> {
    let mass = problem.items.iter().filter_map(|item| match &item.kind {
        ast::ProblemItemKind::Setting { name, value } if name.name == "mass" => {
            match &file.exprs[*value].kind {
                ast::ExprKind::Name(name) => Some(name.as_str()),
                _ => None,
            }
        }
        _ => None,
    });
    std::iter::once(problem.form.name.as_str()).chain(mass).collect()
}

/// Checks that the names of forms, and of problems, are unique.
fn unique(file: &ast::File, diagnostics: &mut Vec<Diagnostic>) {
    let forms = file.forms.iter().map(|form| ("form", &form.name));
    let problems = file.problems.iter().map(|problem| ("problem", &problem.name));
    let mut seen: BTreeMap<(&str, &str), Span> = BTreeMap::new();
    for (what, name) in forms.chain(problems).filter(|(_, name)| !name.name.is_empty()) {
        let Some(&first) = seen.get(&(what, name.name.as_str())) else {
            seen.insert((what, &name.name), name.span);
            continue;
        };
        let message = format!("there are two {what}s of the name `{}`", name.name);
        diagnostics.push(
            Diagnostic::new(Code::DuplicateDeclaration, message)
                .label(name.span, "the second")
                .secondary(first, "the first")
                .help("rename one of them"),
        );
    }
}

impl Program {
    /// Returns the compiled text.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns warnings about valid but probably unintended text.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Returns warnings about names that neither the forms nor the problems use, with the overrides of the command
    /// line.
    fn unused(&self, pieces: &[Piece]) -> Vec<Diagnostic> {
        let file = &self.written;
        let names = |file, problem| expressions(problem).flat_map(move |root| names(file, root));
        let of = |form: &ast::Form| {
            let own = file.problems.iter().filter(|problem| problem.form.name == form.name.name);
            let own = own.flat_map(|problem| names(file, problem));
            let given = pieces.iter().map(|piece| &piece.file);
            let given = given.flat_map(|file| file.problems.iter().map(move |it| (file, it)));
            let given = given.flat_map(|(file, problem)| names(file, problem));
            unused(file, form, &own.chain(given).map(str::to_owned).collect())
        };
        file.forms.iter().flat_map(of).collect()
    }

    /// Returns the syntax tree of its text.
    pub fn written(&self) -> &ast::File {
        &self.written
    }

    /// Returns the same in real numbers.
    pub fn file(&self) -> &ast::File {
        &self.piece.file
    }

    /// Returns its forms in order.
    pub fn forms(&self) -> &[CheckedForm] {
        &self.forms
    }

    /// Returns the names of the forms that a problem uses, including its mass; of all forms without a problem.
    pub fn forms_used(&self, problem: Option<&str>) -> Vec<&str> {
        let file = &self.piece.file;
        let of = |name: &str| {
            let problems = file.problems.iter().filter(move |problem| problem.name.name == name);
            problems.flat_map(|problem| forms_of(file, problem)).collect()
        };
        let all = || self.forms.iter().map(|form| form.name.as_str()).collect();
        problem.map_or_else(all, of)
    }

    /// Returns the form of this name.
    pub fn form(&self, name: &str) -> Option<&CheckedForm> {
        self.forms.iter().find(|form| form.name == name)
    }

    /// Returns its problems in order.
    pub fn problems(&self) -> impl Iterator<Item = ProblemHead<'_>> {
        self.piece.file.problems.iter().map(|problem| ProblemHead {
            name: &problem.name.name,
            doc: &problem.doc,
            form: &problem.form.name,
        })
    }

    /// Returns the form of this name in `dim` dimensions, as input of kernel generation.
    ///
    /// # Errors
    ///
    /// An unknown form, or one that is not valid in this dimension.
    pub fn point_form(&self, name: &str, dim: usize) -> Result<PointForm, Vec<Diagnostic>> {
        let form = self.form(name).ok_or_else(|| vec![self.no_form(name, None)])?;
        let checked = form.dimensions.form(dim);
        let checked = checked.ok_or_else(|| vec![wrong_dimension(form, dim, None)])?;
        Ok(with_numbers_given(&point(&simplify(&differentiate(checked)))))
    }

    /// Returns the mesh of a problem, and its dimension if it is known before generation. The path of a file is
    /// relative to the `.wf` file, that of [`Overrides::mesh`] to the current folder.
    ///
    /// # Errors
    ///
    /// No such problem, no mesh, or mistakes in the overrides.
    pub fn mesh(
        &self,
        problem: &str,
        overrides: &Overrides,
    ) -> Result<(MeshSource, Option<usize>), Vec<Diagnostic>> {
        let problem = self.find_problem(problem)?;
        let pieces = overrides.pieces()?;
        let statements = Statement::all(&self.piece, problem, &pieces);
        match check_problem::mesh(&statements) {
            (Some((mesh, _)), found) if found.is_empty() => Ok((mesh.source, mesh.dim)),
            (None, found) if found.is_empty() => Err(vec![missing_mesh(problem)]),
            (_, found) => Err(found),
        }
    }

    /// Returns whether a problem is a stage of another one, which solves it.
    pub fn is_stage(&self, name: &str) -> bool {
        check_problem::is_stage(&self.piece.file, name)
    }

    /// Returns a problem on a mesh of `dim` dimensions.
    ///
    /// # Errors
    ///
    /// All errors of it in this dimension, or of the overrides.
    pub fn problem(
        &self,
        name: &str,
        dim: usize,
        overrides: &Overrides,
    ) -> Result<Problem, Vec<Diagnostic>> {
        self.problem_among(name, dim, overrides, &[])
    }

    /// Returns the same for a problem among the stages `group`, whose latest solutions are its data.
    fn problem_among(
        &self,
        name: &str,
        dim: usize,
        overrides: &Overrides,
        group: &[String],
    ) -> Result<Problem, Vec<Diagnostic>> {
        let problem = self.find_problem(name)?;
        let pieces = self.expanded(&problem.form.name, overrides.pieces()?)?;
        let mut statements = Statement::all(&self.piece, problem, &pieces);
        if overrides.ends {
            statements.retain(|statement| {
                !matches!(statement.kind, ast::ProblemItemKind::Periodic { .. })
            });
        }
        let (mesh, mut diagnostics) = check_problem::mesh(&statements);
        if mesh.is_none() && diagnostics.is_empty() {
            diagnostics.push(missing_mesh(problem));
        }
        let Some(form) = self.form(&problem.form.name) else {
            diagnostics.push(self.no_form(&problem.form.name, Some(problem.form.span)));
            return Err(diagnostics);
        };
        let mesh = mesh.map(|(mesh, _)| mesh);
        let (joined, found) = self.joined(form, &statements);
        diagnostics.extend(found);
        let form = &*joined.form;
        let Some(checked) = form.dimensions.form(dim) else {
            let place = mesh.as_ref().filter(|_| overrides.mesh.is_none()).map(|mesh| mesh.span);
            diagnostics.push(wrong_dimension(form, dim, place));
            return Err(diagnostics);
        };
        let (content, found) = content(&statements, checked, mesh.as_ref());
        diagnostics.extend(found);
        diagnostics.extend(missing_aux(problem, checked, &content));
        diagnostics.extend(missing_time(problem, checked, &content));
        if mesh.is_none() || !diagnostics.is_empty() {
            return Err(diagnostics);
        }
        let (eigen, stages) = (content.eigen.clone(), content.stages.clone());
        let mut finished = finished(problem, checked, content).map_err(|error| {
            let message = format!("there is no source for the manufactured solution: {error}");
            vec![Diagnostic::new(Code::NoDerivative, message).label(problem.name.span, "here")]
        })?;
        if let Some(wanted) = eigen {
            let set: Vec<usize> = finished.params.iter().map(|(param, _)| *param).collect();
            let mass = self.mass_of(&joined, &finished.form, &set)?;
            if let Some(found) = suitability::complex_eigenvalues(&statements, &finished.form) {
                return Err(vec![found]);
            }
            let EigenRequest { count, rtol, max_iterations, preconditioner } = wanted;
            finished.eigen =
                Some(EigenProblem { count, rtol, max_iterations, preconditioner, mass });
        }
        if let Some(diagnostic) = suitability::unsuited_solver(&statements, &finished) {
            return Err(vec![diagnostic]);
        }
        self.find_sources(problem, &mut finished, overrides, (stages, group))?;
        Ok(finished)
    }

    /// Returns values for the fields of a form, from the command line: `option` is the user's option (`--at`), each
    /// value a field's name and an expression.
    ///
    /// # Errors
    ///
    /// All errors of the values.
    pub fn field_values(
        &self,
        form: &str,
        dim: usize,
        option: &str,
        values: &[(String, String)],
    ) -> Result<Vec<(usize, Expression)>, Vec<Diagnostic>> {
        let named = self.form(form).ok_or_else(|| vec![self.no_form(form, None)])?;
        let checked = named.dimensions.form(dim);
        let checked = checked.ok_or_else(|| vec![wrong_dimension(named, dim, None)])?;
        let mut diagnostics = Vec::new();
        let mut pieces = Vec::new();
        for (field, text) in values {
            match field_piece(option, field, text) {
                Ok(piece) => pieces.push(piece),
                Err(found) => diagnostics.extend(found),
            }
        }
        let pieces = match self.expanded(form, pieces) {
            Ok(pieces) => pieces,
            Err(found) => {
                diagnostics.extend(found);
                Vec::new()
            }
        };
        let statements: Vec<_> = pieces.iter().flat_map(Statement::of_piece).collect();
        let (content, found) = content(&statements, checked, None);
        diagnostics.extend(found);
        if diagnostics.is_empty() { Ok(content.exact) } else { Err(diagnostics) }
    }

    /// Returns texts of the command line about a problem of this form in real numbers.
    fn expanded(&self, form: &str, pieces: Vec<Piece>) -> Result<Vec<Piece>, Vec<Diagnostic>> {
        let at = self.written.forms.iter().position(|written| written.name.name == form);
        let Some(names) = at.and_then(|at| self.complex.get(at)) else { return Ok(pieces) };
        let mut diagnostics = Vec::new();
        let mut expanded = Vec::new();
        for piece in pieces {
            let Some((file, found)) = expand_statements(&piece.file, names) else {
                expanded.push(piece);
                continue;
            };
            diagnostics.extend(found.into_iter().map(|found| piece.place(found)));
            expanded.push(piece.with(file));
        }
        if diagnostics.is_empty() { Ok(expanded) } else { Err(diagnostics) }
    }

    fn find_problem(&self, name: &str) -> Result<&ast::Problem, Vec<Diagnostic>> {
        let problems = &self.piece.file.problems;
        problems.iter().find(|problem| problem.name.name == name).ok_or_else(|| {
            let names = problems.iter().map(|problem| problem.name.name.as_str());
            let list: Vec<String> = names.clone().map(|name| format!("`{name}`")).collect();
            let note = match list.is_empty() {
                true => "the file has no problems".to_owned(),
                false => format!("its problems are {}", list.join(", ")),
            };
            let message = format!("there is no problem `{name}` in {}", self.source.name());
            vec![Diagnostic::new(Code::UnknownProblem, message).note(note).suggest(name, names)]
        })
    }

    fn no_form(&self, name: &str, span: Option<Span>) -> Diagnostic {
        let names = self.forms.iter().map(|form| form.name.as_str());
        let diagnostic = Diagnostic::new(Code::UnknownForm, format!("there is no form `{name}`"));
        let diagnostic = match span {
            Some(span) => diagnostic.label(span, "not in this file"),
            None => diagnostic,
        };
        diagnostic.suggest(name, names)
    }

    /// Returns the errors of a problem with its overrides, and its warnings: in its mesh's dimension if known, else in
    /// the dimension with fewer errors.
    fn check_problem(
        &self,
        problem: &ast::Problem,
        pieces: &[Piece],
        tagged: bool,
    ) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let pieces = match self.expanded(&problem.form.name, pieces.to_vec()) {
            Ok(pieces) => pieces,
            Err(found) => return (found, Vec::new()),
        };
        let statements = Statement::all(&self.piece, problem, &pieces);
        let (mesh, mut diagnostics) = check_problem::mesh(&statements);
        let mesh = mesh.map(|(mesh, _)| mesh);
        let Some(form) = self.form(&problem.form.name) else {
            if !problem.form.name.is_empty() {
                diagnostics.push(self.no_form(&problem.form.name, Some(problem.form.span)));
            }
            return (diagnostics, Vec::new());
        };
        if let Some(tags) = mesh.as_ref().and_then(|mesh| mesh.tags).filter(|_| !tagged) {
            diagnostics.extend(self.unknown_form_tags(problem, tags, true));
            // Generators have no cell tags.
            diagnostics.extend(self.unknown_tags_of_cells(problem, &statements, &[]));
        }
        let (joined, found) = self.joined(form, &statements);
        diagnostics.extend(found);
        let form = &*joined.form;
        let known = mesh.as_ref().and_then(|mesh| mesh.dim);
        let checked: Vec<&Form> = match known {
            Some(dim) => form.dimensions.form(dim).into_iter().collect(),
            None => form.dimensions.forms().collect(),
        };
        let outcomes = checked.iter().map(|form| {
            let (content, mut found) = content(&statements, form, mesh.as_ref());
            found.extend(missing_time(problem, form, &content));
            if content.eigen.is_some() && found.is_empty() {
                let set: Vec<usize> = content.params.iter().map(|(param, _)| *param).collect();
                let form = point(&simplify(&differentiate(form)));
                found.extend(self.mass_of(&joined, &form, &set).err().unwrap_or_default());
                found.extend(suitability::complex_eigenvalues(&statements, &form));
            }
            (content, found)
        });
        let mut warnings = Vec::new();
        match outcomes.min_by_key(|(_, found)| found.len()) {
            Some((content, found)) => {
                diagnostics.extend(found);
                warnings = content.warnings;
            }
            None => {
                // If the form is valid in no dimension, its own errors are sufficient.
                if let (Some(dim), Some(mesh)) = (known, &mesh)
                    && form.dimensions.forms().next().is_some()
                {
                    diagnostics.push(wrong_dimension(form, dim, Some(mesh.span)));
                }
            }
        }
        (diagnostics, warnings)
    }
}

/// Reports a mesh of a dimension in which the form is not valid; names the token that determines the other dimension.
fn wrong_dimension(form: &CheckedForm, dim: usize, mesh: Option<Span>) -> Diagnostic {
    let dimensions = match dim {
        1 => "one dimension".to_owned(),
        _ => format!("{dim} dimensions"),
    };
    let message = format!("the form `{}` does not hold in {dimensions}", form.name);
    let reason = form.dimensions.refusal(dim);
    let place = reason.and_then(Diagnostic::primary).map(|label| label.span);
    let mut diagnostic = Diagnostic::new(Code::WrongDimension, message);
    diagnostic = match (mesh, place) {
        (Some(mesh), Some(place)) => diagnostic
            .label(mesh, format!("this mesh has {dimensions}"))
            .secondary(place, "this does not hold there"),
        (Some(mesh), None) => diagnostic.label(mesh, format!("this mesh has {dimensions}")),
        (None, Some(place)) => {
            diagnostic.label(place, format!("this does not hold in {dimensions}"))
        }
        (None, None) => diagnostic,
    };
    match reason {
        Some(reason) => diagnostic.note(format!("in {dimensions}: {}", reason.message)),
        None => diagnostic,
    }
}

fn missing_mesh(problem: &ast::Problem) -> Diagnostic {
    let message = format!("the problem `{}` has no mesh", problem.name.name);
    Diagnostic::new(Code::MissingSetting, message)
        .label(problem.name.span, "no `mesh = …;` in this problem")
        .help("write `mesh = ball(dim: 3, refine: 3);` or `mesh = \"part.msh\";`")
}

/// Reports auxiliary data without a value.
fn missing_aux<'a>(
    problem: &'a ast::Problem,
    form: &'a Form,
    content: &'a Content,
) -> impl Iterator<Item = Diagnostic> + 'a {
    let given = |index: usize| content.aux.iter().any(|data| data.aux == index);
    let stated = |name: &str| {
        problem.items.iter().any(|item| {
            matches!(&item.kind, ast::ProblemItemKind::Aux { name: of, .. } if of.name == name)
        })
    };
    let derived = |index: usize| form.rates.iter().any(|rate| rate.aux == index);
    let missing = form.aux.iter().enumerate().filter(move |(index, aux)| {
        !given(*index) && !derived(*index) && !stated(&aux.name) && !content.broken
    });
    missing.map(|(_, aux)| {
        let message = format!("the auxiliary data `{}` has no value", aux.name);
        Diagnostic::new(Code::MissingSetting, message)
            .label(problem.name.span, "not given in this problem")
            .help(format!("write `aux {} = …;`", aux.name))
    })
}

/// Reports a form with time derivatives in a problem without time.
fn missing_time(problem: &ast::Problem, form: &Form, content: &Content) -> Option<Diagnostic> {
    let rate =
        form.rates.iter().find(|rate| rate.read).filter(|_| !content.timed && !content.broken)?;
    let written = rate_name(&form.fields[rate.field].name, rate.order);
    let message = format!("the form has `{written}`, and this problem no time");
    Some(
        Diagnostic::new(Code::MissingSetting, message)
            .label(problem.name.span, "no `time = …;` in this problem")
            .help("write `time = bdf(order: 2, from: 0, to: 1, step: 0.01);`, or leave the derivative out of the form"),
    )
}

/// Assembles a problem; a manufactured solution changes its form.
fn finished(problem: &ast::Problem, form: &Form, content: Content) -> Result<Problem, BuildError> {
    let (mut aux, mut manufactured) = (content.aux, None);
    if let Some(Solutions { fields, aux: data }) = &content.manufactured {
        let constrained = |field: usize| {
            content.dirichlet.iter().any(|condition| {
                condition.field == field
                    && (condition.trace == Trace::Whole || form.fields[field].space.is_piola())
                    && condition.support == Support::Boundary
            })
        };
        let constrained: Vec<bool> = (0..form.fields.len()).map(constrained).collect();
        let made = manufacture(form, fields, data, &constrained)?;
        let source = |(aux, value)| Data { aux, tags: None, value: ValueSource::Formula(value) };
        aux.extend(made.sources.into_iter().map(source));
        manufactured = Some(made.form);
    }
    let form = manufactured.as_ref().unwrap_or(form);
    let mut made = Problem {
        name: problem.name.name.clone(),
        doc: problem.doc.clone(),
        form: point(&simplify(&differentiate(form))),
        numbers: None,
        refine: content.refine,
        degree: content.degree.unwrap_or_else(|| form.smallest_degree()),
        quadrature: content.quadrature,
        time: content.stepping.as_ref().map_or(content.time, |stepping| stepping.from),
        stepping: content.stepping,
        params: content.params,
        aux,
        dirichlet: content.dirichlet,
        states: content.states,
        bounds: content.bounds,
        sources: content.sources,
        periodic: content.periodic,
        mean: content.mean,
        exact: content.exact,
        initial: content.initial,
        initial_rate: content.initial_rate,
        adapt: content.adapt,
        eigen: None,
        stages: None,
        solver: content.solver,
        reports: reports(content.reports, form.fields.len()),
    };
    numbers::separate(&mut made, &content.numbers);
    Ok(made)
}

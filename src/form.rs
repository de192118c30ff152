//! Forms of the library: checked text → [`Form`].

use crate::{Emission, Error, emit_program};
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::point::{PointForm, Shape};
use fem_dsl::problem::{Reports, SolverSettings};
use fem_dsl::program::{Program, compile};
use fem_dsl::source::Source;
use runtime::device::cpu::LinkedKernels;
use runtime::files::input::tables_in;
use runtime::kernels::compile::{Execution, Target};
use runtime::problem::{ConvergenceError, NonFiniteOrigin, RunError};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A form: the physics of a PDE at one point, checked, with the kernels that were compiled ahead of time.
///
/// [`weak_form!`](crate::weak_form) creates it at compile time, [`Form::parse`] at run time.
#[derive(Clone)]
pub struct Form {
    program: Arc<Program>,
    name: String,
    linked: &'static [LinkedKernels],
}

impl Form {
    /// Compiles text of the language; `name` is one of its forms.
    ///
    /// ```
    /// let text = "form mass { field u: scalar; f0[u] = u; }";
    /// assert_eq!(weakform::Form::parse(text, "mass")?.name(), "mass");
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// All mistakes of the text.
    pub fn parse(text: &str, name: &str) -> Result<Self, Error> {
        let source = Source::new(name, text).in_folder(Some(tables_in(Path::new("."))));
        let program = checked(&source)?;
        let names = program.forms().iter().map(|form| form.name.as_str());
        match program.form(name) {
            Some(_) => Ok(Self::of(Arc::new(program), name)),
            None => Err(Error::unknown("form", name, names)),
        }
    }

    /// Returns a form that a program is known to have.
    pub(crate) fn of(program: Arc<Program>, name: &str) -> Self {
        Self { program, name: name.to_owned(), linked: &[] }
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text from which it was compiled.
    pub fn text(&self) -> &str {
        self.program.source().text()
    }

    /// Returns the documentation comment before the form; empty without one.
    pub fn documentation(&self) -> &str {
        self.program.form(&self.name).map_or("", |form| form.doc.as_str())
    }

    /// Returns the dimensions in which the form is valid.
    pub fn dimensions(&self) -> Vec<usize> {
        let own = self.program.form(&self.name);
        own.map_or_else(Vec::new, |form| form.dimensions.forms().map(|form| form.dim).collect())
    }

    /// Returns warnings about valid but probably unintended text: unused names, conditions that later ones replace,
    /// settings without effect. [`render`](crate::render::render) prints them with their locations in [`Form::text`].
    ///
    /// ```
    /// let text = "form mass { field u: scalar; param c = 2; f0[u] = u; }";
    /// let form = weakform::Form::parse(text, "mass")?;
    /// assert_eq!(form.warnings()[0].message, "the parameter `c` is never used");
    /// # Ok::<(), weakform::Error>(())
    /// ```
    pub fn warnings(&self) -> &[Diagnostic] {
        self.program.warnings()
    }

    /// Returns the form in `dim` dimensions, the input of kernel generation.
    ///
    /// # Errors
    ///
    /// The form is not valid in this dimension.
    pub fn point_form(&self, dim: usize) -> Result<PointForm, Error> {
        let form = self.program.point_form(&self.name, dim);
        form.map_err(|found| Error::language(self.program.source(), found))
    }

    /// Checks that the form has no unknown numbers, whose equations only problems solve.
    pub(crate) fn has_fields_alone(&self, dim: usize) -> Result<(), Error> {
        let checked = self.program.form(&self.name).and_then(|own| own.dimensions.form(dim));
        let mut fields = checked.into_iter().flat_map(|form| &form.fields);
        let Some(number) = fields.find(|field| field.space.is_number()) else { return Ok(()) };
        let name = &number.name;
        let message = format!(
            "`{name}` is an unknown number, and a system has fields alone\n\
             help: run a problem of the text, `form.problem(\"p\")?.run()`, or make it a parameter, `param {name} = 0;`"
        );
        Err(RunError::Setting(message).into())
    }

    /// Returns the functionals of a report of the form, for `text` after the `=` of a `report`.
    pub(crate) fn reports(&self, dim: usize, text: &str) -> Result<Reports, Error> {
        let found = self.program.report(&self.name, dim, text);
        found.map_err(|found| Error::language(self.program.source(), found))
    }

    /// Returns a pointwise expression of the form and its shape; no form for 0.
    pub(crate) fn pointwise(
        &self,
        dim: usize,
        text: &str,
    ) -> Result<(Option<PointForm>, Shape), Error> {
        let found = self.program.pointwise(&self.name, dim, text);
        found.map_err(|found| Error::language(self.program.source(), found))
    }

    /// Reads a solver as the language writes it, and checks that it suits the form.
    pub(crate) fn solver(&self, form: &PointForm, text: &str) -> Result<SolverSettings, Error> {
        let found = self.program.solver(&self.name, form, text);
        found.map_err(|found| Error::language(self.program.source(), found))
    }

    /// Returns the result of a compiler stage for this form; see [`emit`](crate::emit()).
    ///
    /// # Errors
    ///
    /// Unsupported kernels.
    pub fn emit(&self, emission: &Emission) -> Result<String, Error> {
        emit_program(&self.program, &emission.clone().form(&self.name))
    }

    /// Adds the location in the form's text to an error of a solve, if it has one.
    pub(crate) fn run_error(&self, dim: usize, error: RunError) -> Error {
        let found = match &error {
            RunError::Convergence(ConvergenceError::NotFinite {
                cause: NonFiniteOrigin::Form(spot),
                ..
            }) => self.program.not_finite(
                (&self.name, dim),
                (&spot.region, &spot.given),
                &spot.to_string(),
                NonFiniteOrigin::Form(spot.clone()).remedy(),
            ),
            _ => None,
        };
        match found {
            Some(found) => Error::language(self.program.source(), vec![found]),
            None => error.into(),
        }
    }

    /// Returns the target of compilation: this machine, with the kernels linked into the program.
    pub(crate) fn target(&self, execution: Execution) -> Target {
        Target { linked: self.linked, execution, ..Target::native() }
    }
}

/// Compiles a text, and logs its warnings.
pub(crate) fn checked(source: &Source) -> Result<Program, Error> {
    let (program, diagnostics) = compile(source);
    let errors: Vec<_> = diagnostics.into_iter().filter(Diagnostic::is_error).collect();
    let Some(program) = program.filter(|_| errors.is_empty()) else {
        return Err(Error::language(source, errors));
    };
    for warning in program.warnings() {
        tracing::warn!("{}: {} [{}]", source.name(), warning.message, warning.code);
    }
    Ok(program)
}

impl std::fmt::Debug for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Form").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A form embedded by the macro: its text, and its kernels.
#[doc(hidden)]
pub struct EmbeddedKernels {
    text: &'static str,
    name: &'static str,
    linked: &'static [LinkedKernels],
    form: OnceLock<Form>,
}

impl EmbeddedKernels {
    /// Creates it from text that the macro has checked.
    pub const fn new(
        text: &'static str,
        name: &'static str,
        linked: &'static [LinkedKernels],
    ) -> Self {
        Self { text, name, linked, form: OnceLock::new() }
    }

    /// Returns the form.
    ///
    /// # Panics
    ///
    /// Panics if the text was not checked by the macro of this version.
    pub fn form(&self) -> Form {
        let parse = || match Form::parse(self.text, self.name) {
            Ok(form) => Form { linked: self.linked, ..form },
            Err(error) => panic!("the macro is of another version than the library: {error}"),
        };
        self.form.get_or_init(parse).clone()
    }
}

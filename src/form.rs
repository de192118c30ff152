//! Forms and problems of the library: checked text → [`Form`] → [`Problem`] → [`Solution`].

use crate::{Emission, Error, Solution, emit_program, threads};
use fem_dsl::check::problem::Overrides;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::point::PointForm;
use fem_dsl::problem::{Quadrature, Reports, SolverSettings};
use fem_dsl::program::{Program, compile};
use fem_dsl::source::Source;
use runtime::device::Device;
use runtime::device::cpu::LinkedKernels;
use runtime::kernels::compile::{Execution, Target};
use runtime::mesh::load;
use runtime::mesh::refine::forest::refined;
use runtime::problem::{Monitor, NonFiniteOrigin, RunError, Step, run_steps};
use runtime::solve::{Continue, Progress, silent};
use std::path::PathBuf;
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
        let source = Source::new(name, text);
        let (program, diagnostics) = compile(&source);
        let errors: Vec<_> = diagnostics.into_iter().filter(|found| found.is_error()).collect();
        let Some(program) = program.filter(|_| errors.is_empty()) else {
            return Err(Error::language(&source, errors));
        };
        let names = program.forms().iter().map(|form| form.name.as_str());
        for warning in program.warnings() {
            tracing::warn!("{}: {} [{}]", source.name(), warning.message, warning.code);
        }
        match program.form(name) {
            Some(_) => Ok(Self { program: Arc::new(program), name: name.to_owned(), linked: &[] }),
            None => Err(Error::unknown("form", name, names)),
        }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text from which it was compiled.
    pub fn text(&self) -> &str {
        self.program.source().text()
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

    /// Returns the functionals of a report of the form, for `text` after the `=` of a `report`.
    pub(crate) fn reports(&self, dim: usize, text: &str) -> Result<Reports, Error> {
        let found = self.program.report(&self.name, dim, text);
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

    /// Returns the problem of this name, which is in the same text and solves this form.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn problem(&self, name: &str) -> Result<Problem, Error> {
        let heads = self.program.problems().filter(|head| head.form == self.name);
        let names: Vec<&str> = heads.map(|head| head.name).collect();
        match names.contains(&name) {
            true => Ok(self.known_problem(name)),
            false => Err(Error::unknown("problem", name, names)),
        }
    }

    /// Returns a problem that is known to exist.
    #[doc(hidden)]
    pub fn known_problem(&self, name: &str) -> Problem {
        Problem {
            form: self.clone(),
            name: name.to_owned(),
            overrides: Overrides { from_program: true, ..Overrides::default() },
            folder: PathBuf::new(),
            execution: Execution::default(),
            device: None,
        }
    }

    /// Adds the location in the form's text to an error of a solve, if it has one.
    pub(crate) fn told(&self, dim: usize, error: RunError) -> Error {
        let found = match &error {
            RunError::NotFinite { cause: NonFiniteOrigin::Form(spot), .. } => {
                self.program.not_finite(
                    (&self.name, dim),
                    (&spot.region, &spot.given),
                    &spot.to_string(),
                    NonFiniteOrigin::Form(spot.clone()).remedy(),
                )
            }
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

impl std::fmt::Debug for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Form").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A problem: a form with its mesh, degree, boundary conditions and data. The methods override its text.
#[derive(Clone, Debug)]
pub struct Problem {
    form: Form,
    name: String,
    overrides: Overrides,
    folder: PathBuf,
    execution: Execution,
    device: Option<Arc<dyn Device>>,
}

impl Problem {
    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets another mesh: a generator of the language, or a file's path relative to the current folder.
    #[must_use]
    pub fn mesh(mut self, mesh: impl Into<String>) -> Self {
        self.overrides.mesh = Some(mesh.into());
        self
    }

    /// Sets the folder to which the paths of meshes, data and states in the text are relative; by default the current
    /// one.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Sets another degree.
    #[must_use]
    pub fn degree(mut self, degree: usize) -> Self {
        self.overrides.degree = Some(degree.to_string());
        self
    }

    /// Sets another quadrature, a degree or [`Quadrature::Collocated`].
    #[must_use]
    pub fn quadrature(mut self, quadrature: impl Into<Quadrature>) -> Self {
        self.overrides.quadrature = Some(quadrature.into().to_string());
        self
    }

    /// Sets the value of a parameter, an expression of the language.
    #[must_use]
    pub fn param(mut self, name: &str, value: impl ToString) -> Self {
        self.overrides.params.push((name.to_owned(), value.to_string()));
        self
    }

    /// Sets the value of auxiliary data, an expression of the language in x, or `file("data.npy")`, whose path is
    /// relative to the current folder.
    #[must_use]
    pub fn aux(mut self, name: &str, value: impl ToString) -> Self {
        self.overrides.aux.push((name.to_owned(), value.to_string()));
        self
    }

    /// Sets whether kernels are compiled or interpreted; by default they are interpreted only without a compiler.
    #[must_use]
    pub fn execution(mut self, execution: Execution) -> Self {
        self.execution = execution;
        self
    }

    /// Sets the device, opened by [`device`](crate::device()); the CPU by default.
    #[must_use]
    pub fn device(mut self, device: Arc<dyn Device>) -> Self {
        self.device = Some(device);
        self
    }

    /// Solves it, like `wf run`.
    ///
    /// # Errors
    ///
    /// Mistakes in the overrides, a mesh that cannot be created, a solve that fails.
    pub fn run(&self) -> Result<Solution, Error> {
        self.run_observed(silent)
    }

    /// Solves it; `observe` is called for each iteration and may stop the solve.
    ///
    /// # Errors
    ///
    /// See [`Problem::run`].
    pub fn run_observed(
        &self,
        observe: impl FnMut(Progress) -> Continue + Send,
    ) -> Result<Solution, Error> {
        let program = &self.form.program;
        let told = |found| Error::language(program.source(), found);
        let (source, _) = program.mesh(&self.name, &self.overrides).map_err(told)?;
        let mesh = load(&source, &self.folder)?;
        let mut problem = program.problem(&self.name, mesh.dim(), &self.overrides).map_err(told)?;
        problem.start_paths_at(&self.folder);
        let mesh = refined(mesh, problem.refine)?;
        let target = self.form.target(self.execution);
        let mut steps = StepRecorder { observe, taken: Vec::new() };
        let device = self.device.clone();
        let solved =
            threads::roomy(|| run_steps(&problem, mesh, None, &target, device, &mut steps));
        let solved = solved.map_err(|error| self.form.told(problem.form.dim, error))?;
        Ok(Solution::new(problem, solved, steps.taken))
    }
}

/// Collects the statistics of the steps of a run.
struct StepRecorder<F> {
    observe: F,
    taken: Vec<Step>,
}

impl<F: FnMut(Progress) -> Continue> Monitor for StepRecorder<F> {
    fn iteration(&mut self, now: Progress) -> Continue {
        (self.observe)(now)
    }

    fn step(&mut self, step: &Step, _: &runtime::problem::Solution) -> Continue {
        self.taken.push(step.clone());
        Continue::Yes
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

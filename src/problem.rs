//! Problems of the library: [`Form`] → [`Problem`] → [`Solution`].

use crate::{Error, Form, Solution, threads};
use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::Quadrature;
use runtime::device::Device;
use runtime::kernels::compile::Execution;
use runtime::mesh::initial::PartError;
use runtime::problem::{Monitor, Platform, PrepareError, RunError, Step, prepare, run_steps};
use runtime::processes::{ProcessGroup, SingleProcess};
use runtime::solve::{Continue, Progress, silent};
use std::path::PathBuf;
use std::sync::Arc;

/// A problem: a form with its mesh, degree, boundary conditions and data. The methods override its text.
#[derive(Clone, Debug)]
pub struct Problem {
    form: Form,
    name: String,
    overrides: Overrides,
    folder: PathBuf,
    execution: Execution,
    device: Option<Arc<dyn Device>>,
    group: Arc<dyn ProcessGroup>,
}

impl Form {
    /// Returns the problem of this name, which is in the same text and solves this form.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn problem(&self, name: &str) -> Result<Problem, Error> {
        let heads = self.program().problems().filter(|head| head.form == self.name());
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
            group: Arc::new(SingleProcess),
        }
    }
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

    /// Sets whether kernels are compiled or interpreted; by default they are interpreted without a compiler, and where
    /// that is predicted to end before the compiler would.
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

    /// Sets the processes that share the mesh: see [`crate::processes`]. Each of them calls this and [`Problem::run`];
    /// by default there is one.
    #[must_use]
    pub fn processes(mut self, group: Arc<dyn ProcessGroup>) -> Self {
        self.group = group;
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
        let program = self.form.program();
        let prepared = prepare(program, &self.name, &self.overrides, &self.folder, &self.group);
        let (problem, mesh) = prepared.map_err(|error| match error {
            PrepareError::Language(found) => Error::language(program.source(), found),
            PrepareError::Mesh(error) => error.into(),
            PrepareError::Part(of) => match of.1 {
                PartError::Load(error) => error.into(),
                PartError::Periodic(error) => RunError::from(error).into(),
                PartError::Few(error) => Error::Processes(error.to_string()),
            },
        })?;
        let target = self.form.target(self.execution);
        let mut steps = StepRecorder { observe, taken: Vec::new() };
        let platform = Platform::new(target, self.device.clone());
        let solved = threads::roomy(|| run_steps(&problem, mesh, None, &platform, &mut steps));
        let solved = solved.map_err(|error| self.form.run_error(problem.form.dim, error))?;
        Ok(Solution::new(self.form.clone(), solved, steps.taken))
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

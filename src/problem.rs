//! Problems of the library: [`Form`] → [`Problem`] → [`Solution`].

use crate::{Error, Form, Solution, threads};
use fem_dsl::check::problem::Overrides;
use fem_dsl::point::Shape;
use fem_dsl::problem::Quadrature;
use kernels_gen::plan::Scatter;
use runtime::device::Device;
use runtime::files::input::numbers;
use runtime::files::output::{STEP, write_npy};
use runtime::kernels::compile::Execution;
use runtime::kernels::representation::Representation;
use runtime::mesh::initial::PartError;
use runtime::problem::{
    Checkpoint, Monitor, Platform, PrepareError, ReportResult, ReportValue, RunError, Step,
    prepare, run_steps,
};
use runtime::processes::{ProcessGroup, SingleProcess};
use runtime::solve::{Continue, Progress, silent};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// A problem: a form with its mesh, degree, boundary conditions and data. The methods override its text.
#[derive(Clone, Debug)]
pub struct Problem {
    form: Form,
    name: String,
    overrides: Overrides,
    folder: PathBuf,
    execution: Execution,
    device: Option<Arc<dyn Device>>,
    scatter: Option<Scatter>,
    representation: Option<Representation>,
    compiled: bool,
    checkpoint: Option<PathBuf>,
    restart: Option<PathBuf>,
    group: Arc<dyn ProcessGroup>,
}

/// An event of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// An iteration of a solve.
    Iteration(Progress),
    /// A time that the run has reached, and its end.
    Time {
        /// t.
        now: f64,
        /// The end.
        end: f64,
    },
    /// The end of an adaptive step, of a time step that is shown, or of the only solve.
    Step {
        /// Its statistics.
        step: &'a Step,
        /// Its reports, without line plots; the eigenvalues of an eigenvalue problem come first.
        reports: &'a [ReportResult],
    },
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
            scatter: None,
            representation: None,
            compiled: false,
            checkpoint: None,
            restart: None,
            group: Arc::new(SingleProcess),
        }
    }
}

impl Problem {
    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the form that it solves.
    pub fn form(&self) -> &Form {
        &self.form
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

    /// Divides each cell of the mesh so often, in 4 or 8 each time.
    #[must_use]
    pub fn refine(mut self, times: usize) -> Self {
        self.overrides.refine = Some(times.to_string());
        self
    }

    /// Sets another solver, as the language writes it: `cg(preconditioner: multigrid)`.
    #[must_use]
    pub fn solver(mut self, solver: impl Into<String>) -> Self {
        self.overrides.solver = Some(solver.into());
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

    /// Compiles the kernels of small problems, too, which are interpreted otherwise; see [`Problem::execution`].
    #[must_use]
    pub fn compiled(mut self) -> Self {
        self.compiled = true;
        self
    }

    /// Sets the assembly algorithm of vectors on a device; chosen by default.
    #[must_use]
    pub fn scatter(mut self, scatter: Scatter) -> Self {
        self.scatter = Some(scatter);
        self
    }

    /// Sets the representation of the Jacobian; matrix-free by default, except for direct solvers.
    #[must_use]
    pub fn representation(mut self, representation: Representation) -> Self {
        self.representation = Some(representation);
        self
    }

    /// Sets the file (.npy) from which a run through time can go on, written after each time that is shown; `{step}` in
    /// its name stands for the number of the solution.
    #[must_use]
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> Self {
        self.checkpoint = Some(path.into());
        self
    }

    /// Sets such a file, from which a run through time goes on.
    #[must_use]
    pub fn restart(mut self, path: impl Into<PathBuf>) -> Self {
        self.restart = Some(path.into());
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
        mut observe: impl FnMut(Progress) -> Continue + Send,
    ) -> Result<Solution, Error> {
        self.run_with_events(move |event| match event {
            RunEvent::Iteration(now) => observe(now),
            RunEvent::Time { .. } | RunEvent::Step { .. } => Continue::Yes,
        })
    }

    /// Solves it; `observe` is called for each iteration, time and step, and may stop the run.
    ///
    /// ```
    /// use weakform::{Continue, Form, RunEvent};
    ///
    /// let text = "form decay { field u: scalar; f0[u] = dt(u) + u; }
    ///     problem slow solves decay {
    ///         mesh = box(dim: 2, cells: 1);
    ///         initial u = 1;
    ///         time = bdf(order: 2, to: 1, step: 0.1);
    ///         report most = maximum(u);
    ///     }";
    /// let mut last = 0.0;
    /// let solution = Form::parse(text, "decay")?.problem("slow")?.run_with_events(|event| {
    ///     if let RunEvent::Time { now, .. } = event {
    ///         last = now;
    ///     }
    ///     Continue::Yes
    /// })?;
    /// assert!((last - 1.0).abs() < 1e-9 && solution.steps().len() > 1);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`Problem::run`].
    pub fn run_with_events(
        &self,
        observe: impl FnMut(RunEvent<'_>) -> Continue + Send,
    ) -> Result<Solution, Error> {
        let begun = Instant::now();
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
        let seconds = begun.elapsed().as_secs_f64();
        let mut target = self.form.target(self.execution);
        target.wishes.scatter = self.scatter;
        if let Some(representation) = self.representation {
            target = target.representing(representation);
        }
        let restart = self.checkpoint_to_restart(&problem)?;
        let (checkpoint, failure) = (self.checkpoint.clone(), None);
        let (taken, reported) = (Vec::new(), Vec::new());
        let mut steps = StepRecorder { observe, taken, reported, restart, checkpoint, failure };
        let runs = if self.compiled { usize::MAX } else { 1 };
        let platform = Platform { runs, ..Platform::new(target, self.device.clone()) };
        let solved = threads::roomy(|| run_steps(&problem, mesh, None, &platform, &mut steps));
        if let Some(failure) = steps.failure {
            return Err(failure);
        }
        let mut solved = solved.map_err(|error| self.form.run_error(problem.form.dim, error))?;
        solved.seconds.mesh += seconds;
        Ok(Solution::new(self.form.clone(), solved, steps.taken, steps.reported))
    }

    /// Returns the checkpoint from which the run continues.
    fn checkpoint_to_restart(
        &self,
        problem: &fem_dsl::problem::Problem,
    ) -> Result<Option<Checkpoint>, Error> {
        if (self.checkpoint.is_some() || self.restart.is_some()) && problem.stepping.is_none() {
            let message = format!(
                "checkpoints are for runs through time, and the problem `{}` has no `time`\n\
                 help: `aux` and `initial` take a state from a file, such as `initial u = file(\"u.vtu\");`",
                problem.name
            );
            return Err(RunError::Setting(message).into());
        }
        let Some(path) = &self.restart else { return Ok(None) };
        let failed =
            |error: String| Error::from(RunError::Setting(format!("{}: {error}", path.display())));
        let numbers = numbers(path).map_err(|error| failed(error.to_string()))?;
        let found = Checkpoint::from_numbers(&numbers);
        found.map(Some).map_err(|error| failed(error.to_string()))
    }
}

/// Collects the statistics of the steps of a run, and writes its checkpoints.
struct StepRecorder<F> {
    observe: F,
    taken: Vec<Step>,
    reported: Vec<Vec<ReportResult>>,
    restart: Option<Checkpoint>,
    checkpoint: Option<PathBuf>,
    /// A checkpoint that cannot be written; it ends the run.
    failure: Option<Error>,
}

impl<F: FnMut(RunEvent<'_>) -> Continue> Monitor for StepRecorder<F> {
    fn iteration(&mut self, now: Progress) -> Continue {
        (self.observe)(RunEvent::Iteration(now))
    }

    fn time(&mut self, now: f64, end: f64) {
        (self.observe)(RunEvent::Time { now, end });
    }

    fn restart(&mut self) -> Option<Checkpoint> {
        self.restart.take()
    }

    fn wants_checkpoints(&self) -> bool {
        self.checkpoint.is_some()
    }

    fn checkpoint(&mut self, left: &Checkpoint) -> Continue {
        let Some(path) = &self.checkpoint else { return Continue::Yes };
        let number = left.shown.saturating_sub(1).to_string();
        let path = PathBuf::from(path.to_string_lossy().replace(STEP, &number));
        match write_npy(&path, &left.numbers(), None) {
            Ok(()) => Continue::Yes,
            Err(error) => {
                self.failure = Some(error.into());
                Continue::No
            }
        }
    }

    fn step(&mut self, step: &Step, solution: &runtime::problem::Solution) -> Continue {
        let eigenvalues = solution.modes.iter().enumerate().map(|(number, mode)| ReportResult {
            name: format!("eigenvalue_{}", number + 1),
            value: ReportValue::Value(Shape::Scalar, vec![mode.value]),
        });
        let numbers = |of: &ReportResult| matches!(of.value, ReportValue::Value(..));
        let own = solution.reports.iter().filter(|report| numbers(report)).cloned();
        let reports: Vec<ReportResult> = eigenvalues.chain(own).collect();
        let answer = (self.observe)(RunEvent::Step { step, reports: &reports });
        self.taken.push(step.clone());
        self.reported.push(reports);
        answer
    }
}

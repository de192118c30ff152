//! Runs a checked problem on its mesh and returns the solution.
//!
//! ```text
//! mesh → elements, spaces, conditions → plans, kernels → tables → R(u) = 0 → errors, energy
//! ```

mod adaptive;
mod assess;
mod clock;
mod collective_errors;
mod difficulty;
mod eigen;
mod files;
mod initial;
mod integrals;
mod kernels;
mod linear_system;
mod local_dofs;
mod mean;
mod memory;
pub mod multigrid;
mod not_finite;
mod numerical_null_space;
mod plan;
mod prescribed;
mod reduced_integration;
mod reports;
pub mod scaling;
mod singular;
mod solver;
mod step;
mod structural_null_space;
#[cfg(test)]
mod testing;
mod time;

pub use adaptive::InterruptedRun;
use assess::{IntegrationBackend, assess};
pub use clock::Seconds;
use clock::{Clock, Phase};
pub(crate) use collective_errors::together;
use difficulty::unconverged;
pub use difficulty::{DegenerateJacobian, NewtonDifficulty};
pub use eigen::{Mode, side_by_side};
pub use files::{FileData, FileStatement};
pub use kernels::{Kernels, compile_operator, compile_operator_for};
pub use linear_system::{AssembledSystem, MatrixPencil, assembled, assembled_pencil, has_matrices};
pub use memory::{check_room, estimate};
pub use not_finite::{NonFiniteOrigin, NonFinitePoint};
pub use numerical_null_space::check_unique;
pub use plan::{
    FieldPreconditioner, HierarchySettings, LevelSettings, LinearPlan, NewtonPlan,
    PreconditionerPlan, PredictedLevel, Prediction, ProblemProperties, Requirement, STEPS,
    SolvePlan, SolveResources, SystemSize, plan_solve, predict,
};
pub use prescribed::{
    CellDiameter, ConditionConflict, ConditionSupport, FinerLevel, PrescribedData, ProblemData,
    conditions, data, datum, discretise, meetings,
};
pub(crate) use reduced_integration::check_rank;
use reports::ranges;
pub use reports::{EvaluationState, ReportResult, ReportValue, report};
pub use singular::SingularMatrix;
use solver::solve_planned;
pub use solver::{DiscreteProblem, MultigridInput, solve, values};
pub use step::{Monitor, NullMonitor, Step, StepKind, run_steps};
pub use structural_null_space::check_fixed;
pub(crate) use time::at_nodes;
pub use time::{Checkpoint, TimeError, Trajectory, rate_data};

use crate::algebra::vector::Vector;
use crate::device::{Device, DeviceError};
use crate::estimate::EstimateError;
use crate::estimate::adapt::{AdaptError, AdaptiveMesh};
use crate::files::input::FileError;
use crate::kernels::compile::{CompileError, Target};
use crate::mesh::periodic::PeriodicError;
use crate::mesh::refine::mark::MarkError;
use crate::mesh::{Mesh, MeshError};
use crate::operator::{BuildError, Operator};
use crate::solve::{Continue, NonlinearSystem, OperatorError, Progress, Report, SolveError};
use crate::space::SpaceError;
use crate::space::constraint::NonFiniteValue;
use crate::space::discretisation::{Discretisation, WithFieldsError};
use crate::support::expression::Parameters;
use crate::support::memory::InsufficientMemory;
use crate::support::progress::doing;
use crate::support::timers::Timers;
use fem_dsl::point::PointForm;
use fem_dsl::problem::{Problem, UndeterminedField, UnstablePair};
use kernels_gen::element::ElementError;
use kernels_gen::generate::elements;
use kernels_gen::plan::{Elements, PlanError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Error of a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Elements or kernels that cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An element that does not exist.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// An invalid mesh, or one without a tag that the problem names.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// Periodic sides that are not translations of each other.
    #[error("{}\nhelp: {}", .0, .0.remedy())]
    Periodic(#[from] PeriodicError),
    /// Memory demand beyond the memory budget.
    #[error(transparent)]
    Memory(#[from] InsufficientMemory),
    /// A space whose degrees of freedom cannot be numbered.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// Kernels that cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// An operator that cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// An operator application that failed.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A device failure.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An essential boundary condition with a value that is not finite.
    #[error("the condition on `{field}` has no finite value: {source}")]
    Condition {
        /// Index of the condition in the order of statement: in a problem, in [`Problem::dirichlet`].
        index: usize,
        /// The field.
        field: String,
        /// Location and value.
        source: NonFiniteValue,
    },
    /// Auxiliary data without a value.
    #[error("`aux {name}` has no value\nhelp: give it in the problem, `aux {name} = …;`")]
    NoAux {
        /// Its name.
        name: String,
    },
    /// Auxiliary data without a value in some cells.
    #[error(
        "`aux {name}` has no value {}\nhelp: give it one there, `aux {name} = … on \"{}\";`, or everywhere, before the \
         others",
        region(.tag.as_deref(), .point),
        .tag.as_deref().unwrap_or("tag")
    )]
    NoAuxInRegion {
        /// Its name.
        name: String,
        /// A tag of such a cell, if it has one.
        tag: Option<String>,
        /// The centre of such a cell.
        point: [f64; 3],
    },
    /// Auxiliary data with a value that is not finite.
    #[error("`aux {name}` is {value} at {}", shown(.point))]
    AuxNotFinite {
        /// Its name.
        name: String,
        /// Its value.
        value: f64,
        /// Location.
        point: [f64; 3],
    },
    /// An initial state with a value that is not finite.
    #[error("`initial {name}` is {value} at {}", shown(.point))]
    InitialNotFinite {
        /// The field.
        name: String,
        /// Its value.
        value: f64,
        /// Location.
        point: [f64; 3],
    },
    /// A file without usable data or state.
    #[error("`{} {name}`: {}: {source}", .taker.word(), .path.display())]
    File {
        /// The statement that reads the file.
        taker: FileStatement,
        /// Its name.
        name: String,
        /// The file.
        path: PathBuf,
        /// Cause.
        source: Box<FileError>,
    },
    /// A parameter that is not finite.
    #[error("`param {name}` is {value}\nhelp: a parameter must be a finite number")]
    ParamNotFinite {
        /// Its name.
        name: String,
        /// Its value.
        value: f64,
    },
    /// A field with a mean-value constraint that is not free up to a constant.
    #[error(
        "`{field}` is not free up to a constant: its equations change with one, or do not add up to 0\n\
         help: leave `mean {field}` out"
    )]
    NotUpToAConstant {
        /// The field.
        field: String,
    },
    /// Incompatible data of a field with a mean-value constraint.
    #[error(
        "the data for `{field}` is incompatible: its right-hand side is not orthogonal to the constants (imbalance \
         {imbalance:.1e}, relative)\n\
         help: make the sources and the flow through the boundary add up to 0, or leave a part of the boundary without a \
         condition"
    )]
    Incompatible {
        /// The field.
        field: String,
        /// Sum of the right-hand side divided by the sum of its absolute values.
        imbalance: f64,
    },
    /// A field that no term and no boundary condition determines.
    #[error("{}\nhelp: {}", .0, .0.remedy())]
    Unfixed(UndeterminedField),
    /// An error against a known solution that is not finite.
    #[error("the error against the known solution of `{field}` is {value}")]
    ExactNotFinite {
        /// The field.
        field: String,
        /// The error.
        value: f64,
    },
    /// An invalid solver setting.
    #[error("{0}")]
    Setting(String),
    /// Invalid time integration settings, or a failed time integration.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// A matrix that is singular to working precision.
    #[error("{}\nhelp: {}", .0, .0.remedy())]
    Singular(SingularMatrix),
    /// Two fields with spaces that violate the inf-sup condition.
    #[error("the matrix is singular: {}\nhelp: {}", .0, .0.remedy())]
    Unstable(UnstablePair),
    /// A solve that met a number that is not finite.
    #[error("{solver} met a number that is not finite in iteration {iterations}: {cause}\nhelp: {}", .cause.remedy())]
    NotFinite {
        /// The solver.
        solver: &'static str,
        /// Iterations done.
        iterations: usize,
        /// Origin of that number.
        cause: NonFiniteOrigin,
    },
    /// A Jacobian that is singular at the initial state, but regular at states nearby.
    #[error("{}\nhelp: {}", .0, .0.remedy())]
    Degenerate(DegenerateJacobian),
    /// A nonlinear solve that did not converge, with the switches of the form.
    #[error("{source}\n{difficulty}\nhelp: {}", .difficulty.remedy())]
    Difficult {
        /// Error of the solver.
        source: SolveError,
        /// Switches of the form.
        difficulty: NewtonDifficulty,
    },
    /// A load step that did not converge.
    #[error(
        "load step {step} of {steps}, which was halved {} times: {source}\nhelp: take more of them, `newton(steps: {})`",
        crate::solve::HALVINGS,
        2 * steps
    )]
    LoadStep {
        /// Number of the step, from 1.
        step: usize,
        /// Number of steps.
        steps: usize,
        /// Error of the solver.
        source: SolveError,
    },
    /// A time step that failed.
    #[error("at t = {time} no step of {length:.3e} can be taken: {source}")]
    TimeStep {
        /// Time reached.
        time: f64,
        /// Length of the step.
        length: f64,
        /// Cause.
        source: Box<RunError>,
    },
    /// A mesh that cannot be adapted.
    #[error("`adapt`: {0}")]
    Adapt(#[from] AdaptError),
    /// A solution without an error estimate.
    #[error("`adapt`: {0}")]
    Estimate(#[from] EstimateError),
    /// An error estimate by which no cells can be marked.
    #[error("`adapt`: {0}")]
    Mark(#[from] MarkError),
    /// A failed adaptive step after at least one successful step.
    #[error("step {} of `adapt`: {}", .0.step, .0.source)]
    Interrupted(Box<InterruptedRun>),
    /// Failure of another process, which ends the run on all processes.
    #[error("{text}")]
    Elsewhere {
        /// Rank of the process.
        rank: usize,
        /// Number of processes.
        size: usize,
        /// Text of its error.
        text: String,
    },
    /// A solve that did not converge.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// A solve that did not converge, with the state that it reached.
    #[error("{source}")]
    Unconverged {
        /// Cause.
        source: Box<RunError>,
        /// State reached.
        reached: Box<LastState>,
    },
}

impl From<WithFieldsError> for RunError {
    fn from(error: WithFieldsError) -> Self {
        match error {
            WithFieldsError::Space(error) => error.into(),
            WithFieldsError::Mesh(error) => error.into(),
        }
    }
}

/// Last state of a solve that did not converge; not a solution.
#[derive(Debug)]
pub struct LastState {
    /// Its discretisation.
    pub on: Arc<Discretisation>,
    /// Degrees of freedom, node-major, all finite.
    pub u: Vec<f64>,
}

fn region(tag: Option<&str>, point: &[f64; 3]) -> String {
    match tag {
        Some(tag) => format!("on \"{tag}\""),
        None => format!("in the cell at {}, which has no tag", shown(point)),
    }
}

fn shown(point: &[f64; 3]) -> String {
    let large = |x: f64| x.abs() >= 1e6 || (x != 0.0 && x.abs() < 1e-6);
    let shown = |x: f64| if large(x) { format!("{x:e}") } else { x.to_string() };
    format!("({})", point.map(shown).join(", "))
}

/// A problem discretised on its mesh, before kernels are compiled.
pub struct ProblemSetup {
    /// The elements.
    pub elements: Elements,
    /// Spaces, conditions and auxiliary data.
    pub on: Arc<Discretisation>,
    /// Time and parameters.
    pub parameters: Parameters,
    /// Data read from files.
    pub files: FileData,
}

/// A solved problem.
pub struct Solution {
    /// Its discretisation.
    pub on: Arc<Discretisation>,
    /// The elements.
    pub elements: Elements,
    /// The kernels.
    pub kernels: Kernels,
    /// Numbers of cells and of degrees of freedom, summed over all processes.
    pub size: [usize; 2],
    /// Degrees of freedom, node-major.
    pub u: Vec<f64>,
    /// Convergence report of the solver.
    pub report: Report,
    /// Total number of linear iterations.
    pub linear_iterations: usize,
    /// Multigrid levels of the preconditioner, if it has any.
    pub multigrid: Vec<crate::solve::MultigridStatistics>,
    /// ‖R(u)‖ over the free degrees of freedom of the solution.
    pub residual: f64,
    /// Modes of an eigenvalue problem; `u`, `reports` and `ranges` are then those of the first mode.
    pub modes: Vec<Mode>,
    /// L2 and H1 error of each field with a known solution: (field, L2, H1).
    pub errors: Vec<(usize, f64, f64)>,
    /// The energy, for a symmetric Jacobian.
    pub energy: Option<f64>,
    /// Results of the problem's reports, in the order of statement.
    pub reports: Vec<ReportResult>,
    /// Smallest and largest nodal value of each component of each field.
    pub ranges: Vec<Vec<[f64; 2]>>,
    /// Notes about the solution, its mesh and the solve.
    pub notes: Vec<String>,
    /// Wall-clock seconds of each phase.
    pub seconds: Seconds,
    /// Throughput of one Jacobian (or residual) application at the solution, in degrees of freedom per second.
    pub throughput: f64,
}

/// Identifies the periodic sides of the problem in the mesh.
///
/// # Errors
///
/// Sides that are not translations of each other.
pub fn with_periodic_sides(
    problem: &Problem,
    mut mesh: Arc<Mesh>,
) -> Result<Arc<Mesh>, PeriodicError> {
    if mesh.periodic_sides() != problem.periodic {
        Arc::make_mut(&mut mesh).make_periodic(&problem.periodic)?;
    }
    Ok(mesh)
}

/// Builds elements, spaces, conditions and data of a problem.
pub fn set_up(problem: &Problem, mesh: impl Into<Arc<Mesh>>) -> Result<ProblemSetup, RunError> {
    let (form, mesh) = (&problem.form, with_periodic_sides(problem, mesh.into())?);
    let parameters = Parameters::new(&form.params, problem.time, &problem.params, problem.degree);
    check_parameters(form, &parameters)?;
    let (cell, order) = (mesh.cell(), mesh.order());
    let mut elements = elements(form, cell, problem.degree, order, problem.quadrature)?;
    let tags = problem.dirichlet.iter().flat_map(|condition| condition.support.tags());
    let mut on = discretise(form, &elements, mesh, tags)?;
    let fields: Vec<&str> = form.fields.iter().map(|field| field.name.as_str()).collect();
    elements.notes.extend(prescribed::supports::notes(&on.mesh, &problem.dirichlet, &fields));
    let files = FileData::read(problem, &elements, &on)?;
    let given = ProblemData { problem, elements: &elements, files: &files };
    let (conditions, notes) = given.first_conditions(&on, &parameters)?;
    on.constrain(conditions);
    on.aux = given.aux(&on, &parameters)?;
    elements.notes.extend(notes);
    Ok(ProblemSetup { elements, on: Arc::new(on), parameters, files })
}

/// Checks that every parameter is finite.
pub fn check_parameters(form: &PointForm, parameters: &Parameters) -> Result<(), RunError> {
    let names = std::iter::once("t".to_owned()).chain(
        form.params
            .iter()
            .flat_map(|param| std::iter::repeat_n(param.name.clone(), param.shape.components())),
    );
    for (name, &value) in names.zip(&parameters.values) {
        if !value.is_finite() {
            return Err(RunError::ParamNotFinite { name, value });
        }
    }
    Ok(())
}

/// Solves a problem on the host. `observe` is called after each iteration.
pub fn run(
    problem: &Problem,
    mesh: Mesh,
    target: &Target,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Solution, RunError> {
    run_on(problem, mesh, target, None, observe)
}

/// Solves a problem on a device, if one is given. The solver's vectors then stay in device memory; only reductions and
/// the solution are copied to the host. `observe` is called after each iteration.
pub fn run_on(
    problem: &Problem,
    mesh: impl Into<Arc<Mesh>>,
    target: &Target,
    device: Option<Arc<dyn Device>>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Solution, RunError> {
    run_from(problem, mesh, None, target, device, observe)
}

/// Solves a problem from an earlier solution on the same mesh and of the same degree. `adapt` is ignored: this is one
/// solve on this mesh; see [`run_steps`].
pub fn run_from(
    problem: &Problem,
    mesh: impl Into<Arc<Mesh>>,
    start_at: Option<&[f64]>,
    target: &Target,
    device: Option<Arc<dyn Device>>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Solution, RunError> {
    let at = start_at.map_or(StartState::Problem, StartState::Solution);
    run_started(problem, mesh, at, target, device, observe)
}

/// Initial state of a solve.
#[derive(Clone, Copy)]
enum StartState<'a> {
    /// The initial state that the problem states.
    Problem,
    /// A solution on the same mesh and of the same degree.
    Solution(&'a [f64]),
    /// A solution on another mesh of the same adaptive hierarchy.
    OtherMesh(&'a Discretisation, &'a [f64]),
}

fn run_started(
    problem: &Problem,
    mesh: impl Into<Arc<Mesh>>,
    start_at: StartState<'_>,
    target: &Target,
    device: Option<Arc<dyn Device>>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Solution, RunError> {
    let mut clock = Clock::start();
    let setting_up = doing("numbering the degrees of freedom");
    let mesh = with_periodic_sides(problem, mesh.into())?;
    let solver = problem.solver.as_ref();
    let planned =
        elements(&problem.form, mesh.cell(), problem.degree, mesh.order(), problem.quadrature)?;
    check_room(&problem.form, &planned, &mesh, solver, device.as_deref())?;
    let ProblemSetup { elements, on, parameters, files } = set_up(problem, mesh)?;
    let form = &problem.form;
    let size = [on.mesh.cells_in_all(), on.dofs_in_all()];
    if problem.eigen.is_none() {
        check_fixed(form, &on, &parameters)?;
    }
    let reporting = device.clone();
    let plan = plan_solve(&ProblemProperties::of(form, &on, device.is_some()), solver)?;
    let represented = solver::represented(target, &on, &plan);
    let (mut operator, kernels) =
        compile_operator(form, &elements, &on, &parameters.values, &represented, device)?;
    drop(setting_up);
    let checking = doing("checking that the solution is unique");
    let prescribed = ProblemData { problem, elements: &elements, files: &files };
    let system = DiscreteProblem {
        form,
        on: &on,
        parameters: &parameters,
        prescribed: &prescribed,
        rule: elements.rule,
        levels: Some(MultigridInput { elements: &elements, target, device: reporting.as_ref() }),
    };
    let weak = match problem.eigen {
        None => check_unique(&mut operator, system)?,
        Some(_) => Vec::new(),
    };
    drop(checking);
    let mut u = operator.initial()?;
    let moved = match start_at {
        StartState::OtherMesh(before, u) => {
            let mut timers = Timers::new(adaptive::STEP);
            let moved = AdaptiveMesh::transfer(before, u, &on);
            timers.tell("the last solution is on the new mesh");
            moved
        }
        StartState::Problem | StartState::Solution(_) => None,
    };
    let earlier = match start_at {
        // Each mode starts from the problem's initial state, not from an earlier mode.
        _ if problem.eigen.is_some() => None,
        StartState::Solution(u) => Some(u),
        StartState::Problem | StartState::OtherMesh(..) => moved.as_deref(),
    };
    let said = initial::begin(problem, &on, &parameters, earlier, &operator, &mut u)?;
    clock.end(Phase::SetUp);
    if let Some(eigen) = &problem.eigen {
        let found = eigen::modes(problem, eigen, &mut operator, system, &u, observe);
        operator.finish()?;
        let found = found?;
        clock.end(Phase::Solve);
        let throughput = measure(&mut operator, &u, &mut u.like())?;
        clock.end(Phase::Measure);
        let notes = [
            on.mesh.notes(),
            &elements.notes,
            &kernels.notes,
            &said,
            &found.report.notes,
            &found.notes,
        ];
        let notes = notes.concat();
        let first = found.modes.first().cloned();
        let (u, reports, ranges) = match first {
            Some(first) => (first.u, first.reports, first.ranges),
            None => (u.to_vec(), Vec::new(), Vec::new()),
        };
        return Ok(Solution {
            reports,
            ranges,
            on,
            elements,
            kernels,
            size,
            u,
            linear_iterations: found.products,
            residual: found.report.residual(),
            report: found.report,
            multigrid: found.multigrid,
            modes: found.modes,
            errors: Vec::new(),
            energy: None,
            notes,
            seconds: clock.seconds(),
            throughput,
        });
    }
    let solved = solve_planned(&mut operator, system, &mut u, (&plan, 0.0), None, observe);
    // What went wrong on a device comes before what it made of the numbers.
    operator.finish()?;
    let solved = solved
        .and_then(|(report, linear)| Ok((system.converged(&mut operator, &u, report)?, linear)));
    let (report, linear_iterations) = solved.map_err(|error| unconverged(error, &on, &u))?;
    clock.end(Phase::Solve);
    let multigrid = operator.approximation().map(|own| own.figures()).unwrap_or_default();
    // Frees the memory of the levels.
    operator.precondition_by(None);
    let mut r = u.like();
    operator.residual(&u, &mut r)?;
    let residual = r.norm();
    let throughput = measure(&mut operator, &u, &mut r)?;
    let (vector, u) = {
        let numbers = u.to_vec();
        (u, numbers)
    };
    operator.finish()?;
    let of_all = [on.mesh.notes(), &elements.notes, &kernels.notes];
    let mut notes = [of_all.concat(), said, weak, report.notes.clone()].concat();
    let assessing = doing("evaluating errors and reports");
    let of = EvaluationState {
        form: &problem.form,
        on: &on,
        elements: &elements,
        parameters: &parameters,
        u: &u,
        vector: Some(&vector),
        load: None,
    };
    let (means, mut table_cache) =
        (IntegrationBackend::new(target, reporting.as_ref()), operator.table_cache());
    let (errors, energy) = assess(problem, of, means, &mut table_cache)?;
    let energy = energy.filter(|&energy| match unrepresentable(energy, &u) {
        None => true,
        Some(how) => {
            notes.push(format!("the energy {how} and is left out: choose other units to see it"));
            false
        }
    });
    let device = reporting.as_ref();
    let (reports, said) = reports::report(&problem.reports, of, target, device, &mut table_cache)?;
    notes.extend(said);
    let ranges = (0..on.fields.len()).map(|field| ranges(&on, field, &u)).collect();
    drop(assessing);
    clock.end(Phase::Measure);
    Ok(Solution {
        reports,
        ranges,
        on,
        elements,
        kernels,
        size,
        u,
        report,
        linear_iterations,
        multigrid,
        modes: Vec::new(),
        residual,
        errors,
        energy,
        notes,
        seconds: clock.seconds(),
        throughput,
    })
}

/// Returns whether an energy overflows or underflows double precision although the degrees of freedom are finite.
fn unrepresentable(energy: f64, u: &[f64]) -> Option<&'static str> {
    let largest = || u.iter().fold(0.0, |most: f64, u| most.max(u.abs()));
    let tiny = |largest: f64| largest > 0.0 && largest < f64::MIN_POSITIVE.sqrt();
    match energy {
        energy if !energy.is_finite() && largest().is_finite() => Some("overflows"),
        energy if energy.abs() < f64::MIN_POSITIVE && tiny(largest()) => Some("underflows"),
        _ => None,
    }
}

/// Measures residual applications: degrees of freedom per second, median of five.
fn measure(operator: &mut Operator, u: &Vector, r: &mut Vector) -> Result<f64, RunError> {
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        operator.residual(u, r)?;
        operator.finish()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(u.entries_in_all() as f64 / times[times.len() / 2])
}

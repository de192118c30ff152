//! Runs a checked problem on its mesh and returns the solution.
//!
//! ```text
//! mesh → elements, spaces, conditions → plans, kernels → tables → R(u) = 0 → errors, energy
//! ```

mod adaptation;
mod adaptive;
mod assess;
mod bounds;
mod checkpoint;
mod clock;
mod collective_errors;
mod context;
mod derived;
mod difficulty;
mod eigen;
mod evaluation_state;
mod files;
mod initial;
mod integrals;
mod kernel_projection;
mod kernels;
mod linear_system;
mod local_dofs;
mod mean;
mod measure;
mod memory;
pub mod multigrid;
mod nested;
mod not_finite;
mod numbers;
mod numerical_null_space;
mod plan;
mod platform;
mod preconditioner;
mod prefetch;
mod prepare;
mod prescribed;
mod reduced_integration;
mod reports;
mod rotation;
mod run;
pub mod scaling;
mod singular;
mod solver;
mod sources;
mod stages;
mod steady;
mod step;
mod structural_null_space;
#[cfg(test)]
mod testing;
mod time;
mod time_error;
mod vector_fields;

pub use adaptive::InterruptedRun;
pub use checkpoint::Checkpoint;
pub use clock::Seconds;
pub(crate) use collective_errors::together;
pub use context::{Context, check_parameters, with_periodic_sides};
pub use derived::{DerivedField, form_with_outputs, with_derived};
pub use difficulty::{DegenerateJacobian, NewtonDifficulty};
pub use eigen::{Mode, side_by_side};
pub use evaluation_state::EvaluationState;
pub use files::{FileData, FileStatement};
pub use initial::interpolant;
pub use kernels::{Kernels, compile_operator};
pub use linear_system::{AssembledSystem, MatrixPencil, assembled, assembled_pencil, has_matrices};
pub use measure::solution_of;
pub use memory::{check_room, estimate};
use nested::solve_nested;
pub use not_finite::{NonFiniteOrigin, NonFinitePoint};
pub use numerical_null_space::check_unique;
pub use plan::{
    FieldPreconditioner, HierarchySettings, LevelSettings, LinearPlan, ModesPlan, NewtonPlan,
    PreconditionerPlan, PredictedLevel, Prediction, ProblemProperties, Requirement, STEPS,
    SolvePlan, SolveResources, SystemSize, plan_modes, plan_solve, predict,
};
pub use platform::Platform;
pub use prepare::{PrepareError, prepare, prepare_with};
pub use prescribed::images::{relate as relate_images, rows as image_constraints};
pub use prescribed::{
    CellDiameter, ConditionConflict, ConditionSupport, FinerLevel, PointStates, PrescribedData,
    ProblemData, conditions, data, datum, discretise, meetings,
};
pub use reports::{ReportCache, ReportResult, ReportValue, at_quadrature_points, report};
pub use rotation::check as check_periodic_sides;
pub use run::run_steps;
pub use singular::SingularMatrix;
pub(crate) use solver::solve_planned;
pub use solver::{solve, values};
use steady::StartState;
pub use step::{Monitor, NullMonitor, Step, StepKind};
pub use structural_null_space::check_fixed;
pub(crate) use time::at_nodes;
pub use time::{Trajectory, rate_data};
pub use time_error::TimeError;

use crate::device::DeviceError;
use crate::estimate::EstimateError;
use crate::estimate::adapt::AdaptError;
use crate::files::input::FileError;
use crate::kernels::compile::CompileError;
use crate::mesh::periodic::PeriodicError;
use crate::mesh::refine::mark::MarkError;
use crate::mesh::{Mesh, MeshError};
use crate::operator::BuildError;
use crate::solve::{Continue, OperatorError, Progress, Report, SolveError};
use crate::space::SpaceError;
use crate::space::constraint::NonFiniteValue;
use crate::space::discretisation::{Discretisation, WithFieldsError};
use crate::support::memory::InsufficientMemory;
use fem_dsl::problem::{Problem, SchemeError, SteppingError, UndeterminedField, UnstablePair};
use kernels_gen::element::ElementError;
use kernels_gen::plan::PlanError;
use std::path::PathBuf;
use std::sync::Arc;

/// Error of a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A problem that cannot be set up.
    #[error(transparent)]
    Setup(Box<SetupError>),
    /// Data without usable values.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A problem without a unique solution.
    #[error(transparent)]
    IllPosed(#[from] IllPosedError),
    /// A solve without a solution.
    #[error(transparent)]
    Convergence(#[from] ConvergenceError),
    /// An adaptive solve that cannot go on.
    #[error(transparent)]
    Adaptivity(Box<AdaptivityError>),
    /// Memory demand beyond the memory budget.
    #[error(transparent)]
    Memory(#[from] InsufficientMemory),
    /// An operator application that failed.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A device failure.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An invalid solver setting.
    #[error("{0}")]
    Setting(String),
    /// Invalid time integration settings, or a failed time integration.
    #[error(transparent)]
    Time(#[from] TimeError),
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
    /// A solve that did not converge, with the state that it reached.
    #[error("{source}")]
    Unconverged {
        /// Cause.
        source: Box<RunError>,
        /// State reached.
        reached: Box<LastState>,
    },
}

impl From<SetupError> for RunError {
    fn from(error: SetupError) -> Self {
        Self::Setup(Box::new(error))
    }
}

impl From<AdaptivityError> for RunError {
    fn from(error: AdaptivityError) -> Self {
        Self::Adaptivity(Box::new(error))
    }
}

/// Converts errors through their group.
macro_rules! grouped {
    ($($group:ident: $($error:ty),+;)+) => {$($(
        impl From<$error> for RunError {
            fn from(error: $error) -> Self {
                Self::from($group::from(error))
            }
        }
    )+)+};
}

grouped! {
    SetupError: PlanError, ElementError, MeshError, PeriodicError, SpaceError, CompileError, BuildError;
    ConvergenceError: SolveError;
    AdaptivityError: AdaptError, EstimateError, MarkError;
    TimeError: SchemeError, SteppingError;
}

/// Error of a mesh, a space, an element or a kernel that a problem needs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
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
    /// A space whose degrees of freedom cannot be numbered.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// Kernels that cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// An operator that cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Error of a condition, of data, of a parameter or of a known solution.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
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
    /// A state at points whose update is not finite.
    #[error("the update of the state `{name}` is {value} at t = {time}")]
    StateNotFinite {
        /// Its name.
        name: String,
        /// Its value.
        value: f64,
        /// The time of the step.
        time: f64,
    },
    /// A bound with a value that is not finite.
    #[error("the bound of `{name}` is {value} at {}", shown(.point))]
    BoundNotFinite {
        /// The field.
        name: String,
        /// Its value.
        value: f64,
        /// Location.
        point: [f64; 3],
    },
    /// A lower bound above an upper one.
    #[error(
        "`{name}` has no values between its bounds: it is at least {lower} and at most {upper} at one node\n\
         help: keep the lower bound below the upper one"
    )]
    BoundsCross {
        /// The field.
        name: String,
        /// The largest lower bound.
        lower: f64,
        /// The smallest upper bound.
        upper: f64,
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
    /// An error against a known solution that is not finite.
    #[error("the error against the known solution of `{field}` is {value}")]
    ExactNotFinite {
        /// The field.
        field: String,
        /// The error.
        value: f64,
    },
    /// An error of conditions or data that a program prescribes.
    #[error("{0}")]
    Prescribed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Error of a problem without a unique solution.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IllPosedError {
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
    /// A matrix that is singular to working precision.
    #[error("{}\nhelp: {}", .0, .0.remedy())]
    Singular(SingularMatrix),
    /// Two fields with spaces that violate the inf-sup condition.
    #[error("the matrix is singular: {}\nhelp: {}", .0, .0.remedy())]
    Unstable(UnstablePair),
}

/// Error of a solve without a solution.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvergenceError {
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
        difficulty: Box<NewtonDifficulty>,
    },
    /// A path by arc length that did not pass the value of its parameter.
    #[error(
        "the path does not pass `{name}` = {value} {crossing} times in {points} points, {turns}; it goes from {least:.6} to \
         {most:.6}\n\
         help: take a value in this range, another `crossing`, or shorter steps, `newton(path: arc_length, load: {name}, steps: 100)`"
    )]
    Path {
        /// The parameter.
        name: String,
        /// Its value.
        value: f64,
        /// The requested passage.
        crossing: usize,
        /// Number of points.
        points: usize,
        /// The least value.
        least: f64,
        /// The largest value.
        most: f64,
        /// Its folds in words.
        turns: String,
    },
    /// Bounds whose active set did not settle.
    #[error(
        "the set of degrees of freedom at their bounds did not settle: {changed} changed in the last of {sets} sets\n\
         help: take degree 1 and a finer mesh, or approach the data by a sweep, `wf run --param load=1..10:5`"
    )]
    ActiveSet {
        /// Number of active sets.
        sets: usize,
        /// Number of degrees of freedom that changed in the last one.
        changed: usize,
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
    /// A solve that did not converge.
    #[error(transparent)]
    Solve(#[from] SolveError),
}

/// Error of an adaptive solve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdaptivityError {
    /// A mesh that cannot be adapted.
    #[error("`adapt`: {0}")]
    Adapt(#[from] AdaptError),
    /// A solution without an error estimate.
    #[error("`adapt`: {0}")]
    Estimate(#[from] EstimateError),
    /// An error estimate by which no cells can be marked.
    #[error("`adapt`: {0}")]
    Mark(#[from] MarkError),
    /// A solution without an interpolant on the next mesh.
    #[error(
        "`adapt`: the solution has no interpolant on the next mesh\nhelp: leave `adapt` out; let `refine = 1;` divide all cells"
    )]
    NotTransferable,
    /// A failed adaptive step after at least one successful step.
    #[error("step {} of `adapt`: {}", .0.step, .0.source)]
    Interrupted(Box<InterruptedRun>),
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

/// A solved problem.
pub struct Solution {
    /// The problem on its mesh.
    pub context: Context,
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
    /// Modes of an eigenvalue problem; `u`, `reports`, `derived` and `ranges` are then those of the first mode.
    pub modes: Vec<Mode>,
    /// L2 and H1 error of each field with a known solution: (field, L2, H1).
    pub errors: Vec<(usize, f64, f64)>,
    /// The energy, for a symmetric Jacobian.
    pub energy: Option<f64>,
    /// Results of the problem's reports, in the order of statement.
    pub reports: Vec<ReportResult>,
    /// The problem's outputs, in the order of statement.
    pub derived: Vec<DerivedField>,
    /// Smallest and largest nodal value of each component of each field.
    pub ranges: Vec<Vec<[f64; 2]>>,
    /// Notes about the solution, its mesh and the solve.
    pub notes: Vec<String>,
    /// Wall-clock seconds of each phase.
    pub seconds: Seconds,
    /// Throughput of one Jacobian (or residual) application at the solution, in degrees of freedom per second.
    pub throughput: f64,
}

/// Solves a problem once on a mesh, from the initial state that it states; `adapt` and `time` are ignored: see
/// [`run_steps`]. On a device the solver's vectors stay in device memory; only reductions and the solution are copied to
/// the host. `observe` is called after each iteration.
///
/// # Errors
///
/// Errors of the problem on this mesh, a solve that does not converge.
pub fn run(
    problem: &Problem,
    mesh: impl Into<Arc<Mesh>>,
    platform: &Platform,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Solution, RunError> {
    let problem = Arc::new(problem.clone());
    solve_nested(&problem, mesh.into(), StartState::Problem, platform, observe)
}

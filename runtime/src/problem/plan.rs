//! Solve plan of a problem: the solver, its preconditioner and the factorisation, decided once: [`plan_solve`].
//!
//! The defaults of a problem that names no solver:
//!
//! | problem | solver |
//! | --- | --- |
//! | linear, cheap to factorise ([`cost`]) | direct |
//! | linear, symmetric Jacobian | CG, then direct if it fails |
//! | linear, other | GMRES, with multigrid without transport and for fields in H(curl) and H(div), then direct if it fails |
//! | mixed form of diffusion (a flux in H(div), a pressure in L2) | direct if small, else MINRES with the diagonal and aggregation |
//! | saddle point (a field has no term with itself) | direct if small, else FGMRES with multigrid, MINRES or GMRES |
//! | nonlinear | Newton's method with one of these |
//!
//! On a device iterations come first, because they stay there.

pub(super) mod cost;
mod hierarchy;
mod interpreting;
mod levels;
mod modes;
mod prediction;
mod properties;

use super::RunError;
use crate::algebra::factor::{AVAILABLE, FactorError};
use crate::kernels::compile::Target;
use crate::kernels::representation::{Assembly, Representation};
use crate::solve::{
    ArcLengthOptions, CgSettings, DirectFallback, Forcing, InnerSolver, LinearOptions,
    NewtonOptions, Preconditioning,
};
use crate::space::discretisation::Discretisation;
use fem_dsl::problem::{
    Forcing as NamedForcing, LineSearch, LoadPath, Method, MultigridSettings,
    PreconditionerSettings, SolverSettings,
};
pub use hierarchy::{FieldPreconditioner, HierarchySettings, LevelSettings, STEPS};
pub(super) use interpreting::quickest;
pub(super) use levels::{INVERTED, MULTIGRID_STOPS, halved, most_factorised};
pub use modes::{ModesPlan, plan_modes};
pub use prediction::{PredictedLevel, Prediction, predict};
pub(super) use properties::is_saddle;
pub use properties::{ProblemProperties, SolveResources, SystemSize};

/// Iterations of a GMRES cycle of a linear problem; in Newton's method cycles are shorter.
const RESTART: usize = 100;

/// η of steps of Newton's method whose linear systems are solved to rounding.
const EXACT: f64 = 1e-10;

/// Inverse of the first step of a path by arc length, relative to the load.
const ARC_STEPS: usize = 20;
/// Full steps in a row of a form with switches: an active set settles in as many.
const FULL_STEPS: usize = 20;

/// Preconditioner of the iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct PreconditionerPlan {
    /// Its settings.
    pub settings: PreconditionerSettings,
    /// Required if the problem names it; else the diagonal serves if it cannot be made.
    pub requirement: Requirement,
}

impl From<Method> for InnerSolver {
    fn from(method: Method) -> Self {
        match method {
            Method::Cg => Self::Cg,
            Method::Minres => Self::Minres,
            Method::Gmres => Self::Gmres,
            Method::Fgmres => Self::Fgmres,
            Method::Bicgstab => Self::Bicgstab,
            Method::Direct => Self::Direct,
        }
    }
}

/// Plan of the linear solves.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearPlan {
    /// The solver.
    pub solver: InnerSolver,
    /// Iterations of a GMRES cycle.
    pub restart: usize,
    /// The direct solve that may replace iterations.
    pub factors: DirectFallback,
    /// The preconditioner.
    pub preconditioner: PreconditionerPlan,
    /// The redundant factorisation of the whole matrix by each process: required if the problem names it.
    pub factors_at_each: Option<Requirement>,
}

/// Requirement of a part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The solve fails without it.
    Required,
    /// The solve goes on without it.
    Preferred,
}

impl LinearPlan {
    /// The solver with a preconditioner that has been made.
    pub fn with(&self, preconditioning: Preconditioning) -> LinearOptions {
        let (solver, restart, factors) = (self.solver, self.restart, self.factors);
        LinearOptions { solver, restart, preconditioning, factors }
    }

    /// Returns whether the matrix is factorised before anything else.
    pub fn is_direct(&self) -> bool {
        let first = self.factors == DirectFallback::First;
        self.solver == InnerSolver::Direct || self.factors_at_each.is_some() || first
    }

    /// Returns whether the problem names factorisation.
    pub(super) fn names_direct(&self) -> bool {
        self.solver == InnerSolver::Direct || self.factors_at_each == Some(Requirement::Required)
    }
}

/// Plan of Newton's method and its load steps.
#[derive(Clone, Debug, PartialEq)]
pub struct NewtonPlan {
    /// The largest number of linear iterations in a step.
    pub max_inner: usize,
    /// True if a line search shortens steps.
    pub line_search: bool,
    /// The forcing terms.
    pub forcing: Forcing,
    /// Full steps in a row, where backtracking stalls.
    pub full_steps: usize,
    /// Load steps.
    pub load_steps: usize,
    /// The parameter that grows with the load; boundary values grow without one.
    pub load: Option<String>,
    /// The path of the load by arc length, if there is one.
    pub arc_length: Option<ArcLengthOptions>,
    /// True if a failed solve may be repeated by a sweep of a parameter.
    pub may_sweep: bool,
}

/// Plan of a solve.
#[derive(Clone, Debug, PartialEq)]
pub struct SolvePlan {
    /// The relative tolerance.
    pub rtol: f64,
    /// The absolute tolerance.
    pub atol: f64,
    /// True if the problem gives the tolerance, which must be reached; else the solution may be as good as rounding allows.
    pub strict: bool,
    /// The largest number of iterations, or of steps of Newton's method.
    pub max_iterations: usize,
    /// The linear solves.
    pub linear: LinearPlan,
    /// Newton's method; none where one linear solve is enough.
    pub newton: Option<NewtonPlan>,
    /// The reason of the choice; none where the problem names its solver.
    pub reason: Option<&'static str>,
    /// The properties that it was made from.
    pub properties: ProblemProperties,
}

impl SolvePlan {
    /// The target of kernels: for element matrices where factorisation is named and products would take long.
    pub(super) fn represented(&self, target: &Target, on: &Discretisation) -> Target {
        let direct = self.linear.names_direct() && on.affine.is_empty();
        if target.representation.is_none() && direct && cost::worth_matrices(on) {
            let assembly = Assembly::fitting(self.properties.resources.has_device);
            return target.representing(Representation::Assembled(assembly));
        }
        *target
    }
}

/// Plans a solve: from the properties and the settings of the problem's solver, if it names one.
///
/// # Errors
///
/// A linear solver for a nonlinear form; factorisation in a build without it.
pub fn plan_solve(
    properties: &ProblemProperties,
    settings: Option<&SolverSettings>,
) -> Result<SolvePlan, RunError> {
    let newton = match settings {
        Some(SolverSettings::Newton(newton)) => Some(newton.clone()),
        Some(SolverSettings::Linear(linear)) if !properties.is_linear => {
            let name = linear.method.word();
            return Err(RunError::Setting(format!(
                "`{name}` solves linear forms, and this one is nonlinear\nhelp: use `solver = newton(linear: {name});`"
            )));
        }
        Some(SolverSettings::Linear(_)) => None,
        None => (!properties.is_linear).then(Default::default),
    };
    let method = settings.and_then(SolverSettings::method);
    if method == Some(Method::Direct) && !AVAILABLE {
        let absent = FactorError::Absent;
        let message = format!("{absent}, or use another solver than `direct`");
        return Err(RunError::Setting(message));
    }
    let asked = settings.and_then(SolverSettings::preconditioner);
    let is_built = |asked: &PreconditionerSettings| *asked != PreconditionerSettings::BlockJacobi;
    if let Some(asked) = asked.filter(|asked| properties.has_vector_functions && !is_built(asked)) {
        return Err(RunError::Setting(format!(
            "the preconditioner `{}` is not implemented for fields of H(curl) and H(div)\n\
             help: use `preconditioner: jacobi` or `multigrid`, or `solver = direct;`",
            asked.word()
        )));
    }
    let defaults = NewtonOptions::default();
    let of_linear = CgSettings::default();
    let mut linear = plan_linear(properties, settings);
    if let Some(newton) = &newton {
        linear.restart = newton.restart.unwrap_or(defaults.linear.restart);
        // Steps that are cut short on purpose have not failed.
        if newton.max_inner.is_some() && linear.factors != DirectFallback::First {
            linear.factors = DirectFallback::Never;
        }
        // Near folds the Jacobian is almost singular, and indefinite behind them.
        if newton.path.is_some() && linear.factors != DirectFallback::Never {
            linear.factors = DirectFallback::First;
        }
    }
    let (rtol, max_iterations) = match newton {
        Some(_) => (defaults.rtol, defaults.max_iterations),
        None => (of_linear.rtol, of_linear.max_iterations),
    };
    let [named_rtol, atol] = settings.map_or([None; 2], SolverSettings::tolerances);
    let atol = atol.unwrap_or(0.0);
    let newton = newton.map(|newton| NewtonPlan {
        max_inner: newton.max_inner.unwrap_or(defaults.max_inner),
        line_search: newton.line_search != Some(LineSearch::None),
        forcing: match newton.forcing {
            Some(NamedForcing::Exact) => Forcing::Fixed(EXACT),
            None if properties.is_linear => Forcing::Target,
            _ => defaults.forcing,
        },
        full_steps: if properties.has_switches { FULL_STEPS } else { defaults.full_steps },
        load_steps: newton.steps.unwrap_or(1),
        arc_length: newton.path.map(|LoadPath::ArcLength| ArcLengthOptions {
            steps: newton.steps.unwrap_or(ARC_STEPS),
            crossing: newton.crossing.unwrap_or(1),
        }),
        load: newton.load,
        may_sweep: newton.max_iterations.is_none(),
    });
    Ok(SolvePlan {
        rtol: named_rtol.unwrap_or(rtol),
        atol,
        strict: named_rtol.is_some_and(|rtol| rtol > 0.0 || atol > 0.0),
        max_iterations: settings.and_then(SolverSettings::max_iterations).unwrap_or(max_iterations),
        reason: method.is_none().then(|| reason(properties, &linear)),
        linear,
        newton,
        properties: *properties,
    })
}

/// Plans the linear solves.
pub(super) fn plan_linear(
    properties: &ProblemProperties,
    named: Option<&SolverSettings>,
) -> LinearPlan {
    let method = named.and_then(SolverSettings::method);
    let distributed = properties.resources.is_distributed();
    let unasked = cost::factorisation_unasked(properties);
    let (solver, factors) = match method {
        // Each process has the factors of the whole matrix, which precondition.
        Some(Method::Direct) if distributed => (InnerSolver::Fgmres, DirectFallback::Never),
        Some(method) => (InnerSolver::from(method), DirectFallback::Never),
        // Neither factors nor levels in blocks need be positive definite.
        None if distributed
            && properties.is_saddle
            && (cost::factorised_at_each(properties) || !properties.is_symmetric) =>
        {
            (InnerSolver::Fgmres, unasked)
        }
        // Its preconditioner is symmetric, and few vectors are kept.
        None if properties.is_mixed && unasked != DirectFallback::First => {
            (InnerSolver::Minres, unasked)
        }
        None if properties.is_saddle && unasked != DirectFallback::First => {
            (InnerSolver::Indefinite, unasked)
        }
        None => (InnerSolver::Automatic, unasked),
    };
    let asked = named.and_then(SolverSettings::preconditioner);
    let factors_at_each = match method {
        Some(Method::Direct) if distributed => Some(Requirement::Required),
        None if distributed && asked.is_none() && cost::factorised_at_each(properties) => {
            Some(Requirement::Preferred)
        }
        _ => None,
    };
    let (settings, requirement) = match asked {
        // Nothing iterates with factors.
        Some(asked) if asked.is_diagonal() || method != Some(Method::Direct) => {
            (asked.clone(), Requirement::Required)
        }
        None if takes_multigrid(properties, method) => {
            let default = MultigridSettings::default();
            (PreconditionerSettings::Multigrid(default), Requirement::Preferred)
        }
        None if takes_block_jacobi(properties, method) => {
            (PreconditionerSettings::BlockJacobi, Requirement::Preferred)
        }
        _ => (PreconditionerSettings::Jacobi, Requirement::Preferred),
    };
    let preconditioner = PreconditionerPlan { settings, requirement };
    let restart = named.and_then(SolverSettings::restart).unwrap_or(RESTART);
    LinearPlan { solver, restart, factors, preconditioner, factors_at_each }
}

/// Returns whether multigrid preconditions by default: CG is tried, and with the diagonal it would take longer than the
/// setup of the hierarchy.
fn takes_multigrid(properties: &ProblemProperties, method: Option<Method>) -> bool {
    if properties.is_mixed {
        return match method {
            None => cost::factorisation_unasked(properties) != DirectFallback::First,
            Some(method) => matches!(method, Method::Minres | Method::Fgmres),
        };
    }
    if properties.has_vector_functions && !properties.is_single_field {
        let iterates = match method {
            None | Some(Method::Gmres | Method::Fgmres) => true,
            Some(Method::Cg | Method::Minres) => properties.is_symmetric,
            Some(Method::Bicgstab | Method::Direct) => false,
        };
        return iterates
            && properties.has_vector_blocks
            && cost::factorisation_unasked(properties) != DirectFallback::First
            && cost::multigrid_pays(properties);
    }
    // Where one process would factorise, and the diagonal serves badly.
    if properties.resources.is_distributed() && properties.is_saddle {
        return method.is_none();
    }
    let is_served = match method {
        None => properties.is_symmetric || properties.is_diffusive,
        Some(method) => method == Method::Cg && properties.is_symmetric,
    };
    is_served
        && cost::factorisation_unasked(properties) != DirectFallback::First
        && cost::multigrid_pays(properties)
}

/// Returns whether block Jacobi preconditions by default: for transport by discontinuous fields. A nonlinear form would
/// need the blocks again at each state.
fn takes_block_jacobi(properties: &ProblemProperties, method: Option<Method>) -> bool {
    matches!(method, None | Some(Method::Gmres | Method::Fgmres | Method::Bicgstab))
        && properties.has_cell_blocks
        && properties.is_linear
        && !properties.is_symmetric
        && !properties.is_saddle
        && !properties.resources.has_device
}

/// The reason of a choice that the problem leaves open.
fn reason(properties: &ProblemProperties, linear: &LinearPlan) -> &'static str {
    if linear.factors_at_each.is_some() {
        return "a saddle point that is small enough for each process to factorise";
    }
    let multigrid = HierarchySettings::of(&linear.preconditioner.settings).is_some();
    match (linear.solver, properties.is_symmetric) {
        _ if linear.factors == DirectFallback::First && properties.is_saddle => {
            "a saddle point that is small enough to factorise"
        }
        _ if linear.factors == DirectFallback::First => "small enough to factorise",
        (InnerSolver::Indefinite | InnerSolver::Fgmres, _) if multigrid => {
            "a saddle point that is too large to factorise"
        }
        (InnerSolver::Minres, _) => "a flux and a pressure",
        (InnerSolver::Indefinite, true) => "a symmetric saddle point",
        (InnerSolver::Indefinite | InnerSolver::Fgmres, false) => {
            "a saddle point that is not symmetric"
        }
        (_, true) if multigrid => "symmetric, and large enough for multigrid to pay",
        (_, true) => "symmetric, and small enough for the diagonal",
        (_, false) if multigrid => "not symmetric, and large enough for multigrid to pay",
        (_, false) => "not symmetric",
    }
}

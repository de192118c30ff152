//! Linear and nonlinear solvers.
//!
//! Solvers depend on [`LinearOperator`] and [`Vector`] only, not on meshes, kernels or backends. Constrained degrees of
//! freedom remain in the vectors with identity rows in operators, so that a zero residual leaves them unchanged.
//!
//! A numerical failure is not an error of the call but the [`Outcome`] in the [`Report`]. [`Report::converged`] turns
//! it into a [`SolveError`].

mod approximation;
mod bicgstab;
mod blocks;
mod cg;
mod condensation;
mod convergence;
mod direct;
mod gmres;
mod linear_solver;
mod load;
mod lobpcg;
mod local_dofs;
mod minres;
mod multigrid;
mod newton;
mod null_space;
mod ranges;
mod scale;
mod shift_invert;
mod stopping;
#[cfg(test)]
mod tests;
pub mod time;
mod watchdog;
mod wrapper;

pub use crate::algebra::linear::{LinearOperator, OperatorError};
pub use approximation::{
    ApproximateInverse, Approximation, LevelFigures, MultigridStatistics, Smoother,
};
pub use bicgstab::bicgstab;
pub use blocks::{BlockPreconditioner, FieldBlock, SchurMass};
pub use cg::cg;
pub use direct::DirectSolver;
pub use gmres::{GmresSettings, fgmres, gmres};
pub use linear_solver::{DirectFallback, InnerSolver, LinearOptions, Preconditioning};
pub(crate) use load::join;
pub use load::{HALVINGS, LoadReport, LoadableSystem, newton_in_load_steps};
pub use lobpcg::{EigenModes, EigenSettings, lobpcg};
pub use local_dofs::LocalDofs;
pub use minres::minres;
pub use multigrid::{CoarseGridSolver, GridTransfer, LevelOperator, Multigrid, MultigridLevel};
pub use newton::{AffineSolver, Forcing, Newton, NewtonOptions, NewtonStep, newton, solve_affine};
pub use null_space::{Constant, ConstantEntries, NullSpace, pinned, pinned_rows};
pub use shift_invert::{ShiftedPencil, estimate, shift_invert};
pub use stopping::CgSettings;
pub(crate) use wrapper::Wrapper;

use crate::algebra::coupling::Coupling;
use crate::algebra::vector::Vector;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// An approximation of A⁻¹.
#[derive(Clone, Copy, Default)]
pub enum Preconditioner<'a> {
    /// None.
    #[default]
    Identity,
    /// The inverse of A's diagonal, as entries; positive ones for [`minres()`].
    Jacobi(&'a Vector),
    /// Any operator; symmetric and positive definite for [`cg()`] and [`minres()`].
    Operator(&'a dyn LinearOperator),
}

/// Checks that vectors have the same size and precision.
fn alike(b: &Vector, others: &[&Vector]) -> Result<(), OperatorError> {
    let of = |vector: &Vector| (vector.len(), vector.precision());
    let Some(other) = others.iter().find(|other| of(other) != of(b)) else { return Ok(()) };
    let ((n, own), (other, unlike)) = (of(b), of(other));
    Err(OperatorError::new(format!(
        "a right-hand side with {n} entries in {own:?} does not fit a vector with {other} in {unlike:?}\n\
         help: make all vectors of a solve by one system"
    )))
}

impl<'a> Preconditioner<'a> {
    /// Returns the preconditioner's own vector, if it has one.
    fn vectors(&self) -> Option<&'a Vector> {
        match self {
            Self::Jacobi(inverse) => Some(inverse),
            Self::Identity | Self::Operator(_) => None,
        }
    }

    /// Computes z = M⁻¹ r.
    pub(crate) fn apply(&self, r: &Vector, z: &mut Vector) -> Result<(), OperatorError> {
        match self {
            Self::Identity => z.copy_from(r),
            Self::Jacobi(inverse) => {
                z.copy_from(r);
                z.multiply(inverse);
            }
            Self::Operator(operator) => operator.apply(r, z)?,
        }
        Ok(())
    }

    /// See [`LinearOperator::replayable`].
    fn replayable(&self) -> bool {
        match self {
            Self::Identity | Self::Jacobi(_) => true,
            Self::Operator(operator) => operator.replayable(),
        }
    }

    /// Returns the inverse diagonal of a Jacobi preconditioner.
    fn inverse_diagonal(&self) -> Option<&'a Vector> {
        match self {
            Self::Jacobi(inverse) => Some(inverse),
            Self::Identity | Self::Operator(_) => None,
        }
    }
}

/// Reason why a solver stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The residual is below the tolerance.
    Converged,
    /// The limit of iterations was reached.
    IterationLimit,
    /// The residual is at the rounding-error level, above the tolerance: the solution is as accurate as the precision
    /// allows.
    Rounding,
    /// The residual is at the rounding-error level, but the tolerance is mandatory ([`CgSettings::strict`]) or the
    /// solution is useless.
    BelowRounding,
    /// The residual stagnates: the problem is singular, or too hard for the solver.
    Stagnated,
    /// A divisor of the method vanished, again after a restart.
    BrokeDown,
    /// A direction with pᵀAp ≤ 0, or rᵀM⁻¹r ≤ 0: the operator or the preconditioner is not positive
    /// definite.
    Indefinite {
        /// pᵀAp (or rᵀM⁻¹r).
        curvature: f64,
    },
    /// The matrix is singular to working precision.
    Singular {
        /// Degree of freedom in which the null vector is largest.
        unknown: usize,
        /// Estimate of the condition number.
        condition: f64,
    },
    /// A number that is not finite appeared.
    NotFinite,
    /// The right-hand side or the solution overflows the precision.
    Overflow,
    /// The right-hand side or the solution underflows the precision.
    Underflow,
    /// The residual grew beyond bounds.
    Diverged,
    /// No step along the search direction reduces the residual.
    LineSearchFailed,
    /// The equations of a field are not solved relative to their own scale, which is far from those of the others.
    Unsolved {
        /// Index of the field.
        field: usize,
        /// The ratio of the scales.
        ratio: f64,
    },
    /// The caller asked to stop.
    Cancelled,
}

impl Outcome {
    /// Returns whether the solve has a solution.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Converged | Self::Rounding)
    }

    /// Returns whether a nonlinear solve may succeed from a closer initial state.
    pub(crate) fn may_sweep(self) -> bool {
        matches!(self, Self::IterationLimit | Self::Stagnated | Self::LineSearchFailed)
    }

    /// Returns whether another linear solver may succeed.
    fn is_hard(self) -> bool {
        match self {
            Self::IterationLimit
            | Self::Stagnated
            | Self::BrokeDown
            | Self::BelowRounding
            | Self::Indefinite { .. } => true,
            Self::Converged
            | Self::Rounding
            | Self::Singular { .. }
            | Self::NotFinite
            | Self::Overflow
            | Self::Underflow
            | Self::Diverged
            | Self::LineSearchFailed
            | Self::Unsolved { .. }
            | Self::Cancelled => false,
        }
    }
}

/// Computes r = b − A x and returns ‖r‖.
fn residual(
    a: &dyn LinearOperator,
    b: &Vector,
    x: &Vector,
    r: &mut Vector,
) -> Result<f64, OperatorError> {
    a.apply(x, r)?;
    r.axpby(1.0, b, -1.0);
    Ok(r.norm())
}

/// Report of a solve.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The solver's name.
    pub solver: &'static str,
    /// Reason why it stopped.
    pub outcome: Outcome,
    /// Number of iterations.
    pub iterations: usize,
    /// ‖r‖ at the start and after each iteration.
    pub history: Vec<f64>,
    /// Requested residual norm.
    pub target: f64,
    /// Wall-clock seconds.
    pub seconds: f64,
    /// Notes on the solve: rounding error, a change of solver.
    pub notes: Vec<String>,
    /// Newton steps of a nonlinear solve.
    pub newton: Vec<NewtonStep>,
}

impl Report {
    /// Creates the report at the end of a solve; `history` starts with the initial residual.
    fn ended(
        solver: &'static str,
        start: Instant,
        target: f64,
        (outcome, history): (Outcome, Vec<f64>),
    ) -> Self {
        let (iterations, seconds) = (history.len() - 1, start.elapsed().as_secs_f64());
        let (notes, newton) = (Vec::new(), Vec::new());
        Self { solver, outcome, iterations, history, target, seconds, notes, newton }
    }

    /// Adds a note if rounding left the residual above the tolerance.
    fn note_rounding(&mut self) {
        if self.outcome == Outcome::Rounding {
            let aim = match self.target > 0.0 {
                true => format!(", above the {:.1e} that were aimed at", self.target),
                false => String::new(),
            };
            let left = self.residual();
            self.notes
                .push(format!("solved until rounding: it leaves a residual of {left:.1e}{aim}"));
        }
    }

    /// Adds a note on the failure of an earlier solver, with the preconditioner of this name if it had its own.
    fn note_failure(&mut self, before: &Self, preconditioner: Option<&str>) {
        let how = match before.outcome {
            Outcome::Indefinite { .. } => "found the operator not to be positive definite",
            Outcome::IterationLimit => "had not converged",
            Outcome::BelowRounding => "was stopped by rounding",
            Outcome::BrokeDown => "broke down",
            Outcome::NotFinite => "met a number that is not finite",
            _ => "stagnated",
        };
        let (first, after, second) = (before.solver, before.iterations, self.solver);
        let with = preconditioner.map_or_else(String::new, |name| format!(" with {name}"));
        self.notes.push(format!(
            "{first}{with} {how} after {after} iterations; {second} was used instead"
        ));
    }

    /// Returns the number of linear iterations of all Newton steps.
    pub fn inner_iterations(&self) -> usize {
        self.newton.iter().map(|step| step.inner_iterations).sum()
    }

    /// Returns the last residual norm.
    pub fn residual(&self) -> f64 {
        self.history.last().copied().unwrap_or(0.0)
    }

    /// Returns the report of a converged solve, or the error otherwise.
    pub fn converged(self) -> Result<Self, SolveError> {
        let (solver, iterations, residual, target) =
            (self.solver, self.iterations, self.residual(), self.target);
        Err(match self.outcome {
            Outcome::Converged | Outcome::Rounding => return Ok(self),
            Outcome::BelowRounding => SolveError::BelowRounding { solver, residual, target },
            Outcome::IterationLimit => {
                SolveError::IterationLimit { solver, iterations, residual, target }
            }
            Outcome::Stagnated => SolveError::Stagnated { solver, iterations, residual, target },
            Outcome::BrokeDown => SolveError::BrokeDown { solver, iterations, residual, target },
            Outcome::Indefinite { curvature } => {
                SolveError::Indefinite { solver, iterations, curvature }
            }
            Outcome::Singular { unknown, .. } => SolveError::Singular { solver, unknown },
            Outcome::Unsolved { field, ratio } => {
                let field = format!("field {}", field + 1);
                SolveError::Unsolved { solver, field, ratio }
            }
            Outcome::NotFinite => SolveError::NotFinite { solver, iterations },
            Outcome::Overflow => SolveError::Overflow { solver },
            Outcome::Underflow => SolveError::Underflow { solver },
            Outcome::Diverged => SolveError::Diverged { solver, iterations, residual },
            Outcome::LineSearchFailed => {
                SolveError::LineSearchFailed { solver, iterations, residual, target }
            }
            Outcome::Cancelled => SolveError::Cancelled { solver, iterations },
        })
    }
}

/// A solve without a solution.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SolveError {
    /// See [`Outcome::IterationLimit`].
    #[error(
        "{solver} did not converge in {iterations} iterations: the residual is {residual:.3e}, \
         {target:.3e} was asked for"
    )]
    IterationLimit {
        /// The solver.
        solver: &'static str,
        /// Number of iterations.
        iterations: usize,
        /// The last residual norm.
        residual: f64,
        /// Requested norm.
        target: f64,
    },
    /// See [`Outcome::Stagnated`].
    #[error(
        "{solver} stagnated after {iterations} iterations at a residual of {residual:.3e}, \
         {target:.3e} was asked for: the problem may be singular (too few essential conditions)"
    )]
    Stagnated {
        /// The solver.
        solver: &'static str,
        /// Number of iterations.
        iterations: usize,
        /// The last residual norm.
        residual: f64,
        /// Requested norm.
        target: f64,
    },
    /// See [`Outcome::BrokeDown`].
    #[error(
        "{solver} broke down after {iterations} iterations at a residual of {residual:.3e}, {target:.3e} was asked for: \
         a product that it divides by is 0\n\
         help: use `gmres`, which cannot break down"
    )]
    BrokeDown {
        /// The solver.
        solver: &'static str,
        /// Number of iterations.
        iterations: usize,
        /// The last residual norm.
        residual: f64,
        /// Requested norm.
        target: f64,
    },
    /// See [`Outcome::BelowRounding`].
    #[error(
        "{solver} cannot reach a residual of {target:.3e}: rounding leaves {residual:.3e}\n\
         help: raise the tolerance, or leave it out and have what rounding allows; where that is too little, \
         compute with other units or a mesh without extreme cells"
    )]
    BelowRounding {
        /// The solver.
        solver: &'static str,
        /// Residual norm at the rounding-error level.
        residual: f64,
        /// Requested norm.
        target: f64,
    },
    /// See [`Outcome::Indefinite`].
    #[error(
        "{solver} found a direction of curvature {curvature:.3e} in iteration {iterations}: the \
         operator is not positive definite; use minres or gmres, or check the signs of the form"
    )]
    Indefinite {
        /// The solver.
        solver: &'static str,
        /// Number of iterations.
        iterations: usize,
        /// pᵀAp.
        curvature: f64,
    },
    /// See [`Outcome::Singular`].
    #[error(
        "{solver}: the matrix is singular to working precision, most at unknown {unknown}: fix the field there with an \
         essential condition, or its mean, where the equations leave it free, or take other units"
    )]
    Singular {
        /// The solver.
        solver: &'static str,
        /// Degree of freedom in which the null vector is largest.
        unknown: usize,
    },
    /// See [`Outcome::Unsolved`].
    #[error(
        "{solver} has not solved the equations of {field}: their scale and that of another field differ by a factor of {ratio:.0e}\n\
         help: multiply the equations of one field by a factor, take units in which the coefficients are near 1, or another solver"
    )]
    Unsolved {
        /// The solver.
        solver: &'static str,
        /// The field.
        field: String,
        /// The ratio of the scales.
        ratio: f64,
    },
    /// See [`Outcome::NotFinite`].
    #[error(
        "{solver} met a number that is not finite in iteration {iterations}: check the form for \
         a division by zero, a logarithm or a root of a negative number"
    )]
    NotFinite {
        /// The solver.
        solver: &'static str,
        /// Number of iterations.
        iterations: usize,
    },
    /// See [`Outcome::Overflow`].
    #[error(
        "{solver}: the solution or its load overflows, its entries exceed the range of the precision\n\
         help: choose units in which they are smaller"
    )]
    Overflow {
        /// The solver.
        solver: &'static str,
    },
    /// See [`Outcome::Underflow`].
    #[error(
        "{solver}: the solution or its load underflows, its numbers are too small to keep their digits\n\
         help: choose units in which they are larger"
    )]
    Underflow {
        /// The solver.
        solver: &'static str,
    },
    /// See [`Outcome::Diverged`].
    #[error("{solver} diverged: the residual is {residual:.3e} after {iterations} iterations")]
    Diverged {
        /// The solver.
        solver: &'static str,
        /// Number of iterations.
        iterations: usize,
        /// The last residual norm.
        residual: f64,
    },
    /// See [`Outcome::LineSearchFailed`].
    #[error(
        "{solver}: no step reduces the residual of {residual:.3e} after {iterations} iterations \
         ({target:.3e} was asked for); start closer to the solution, take load steps, or raise the tolerance"
    )]
    LineSearchFailed {
        /// The solver.
        solver: &'static str,
        /// Number of iterations.
        iterations: usize,
        /// The last residual norm.
        residual: f64,
        /// Requested norm.
        target: f64,
    },
    /// See [`Outcome::Cancelled`].
    #[error("{solver} was stopped after {iterations} iterations")]
    Cancelled {
        /// The solver.
        solver: &'static str,
        /// Number of iterations.
        iterations: usize,
    },
    /// The operator could not be applied.
    #[error(transparent)]
    Operator(#[from] OperatorError),
}

/// Progress of a running solve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Number of iterations.
    pub iteration: usize,
    /// The current residual norm.
    pub residual: f64,
    /// Requested norm.
    pub target: f64,
}

/// Answer of an observer: continue or stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continue {
    /// Continue.
    Yes,
    /// Stop.
    No,
}

/// Called after each iteration.
pub type Observer<'a> = &'a mut dyn FnMut(Progress) -> Continue;

/// Observes nothing and continues.
pub fn silent(_: Progress) -> Continue {
    Continue::Yes
}

/// Degrees of freedom of one field in a vector of several fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDofs {
    /// Their range.
    pub dofs: Range<usize>,
    /// Number of components per node; they are innermost.
    pub components: usize,
}

/// A system R(u) = 0 with its derivative.
pub trait NonlinearSystem {
    /// Returns the number of degrees of freedom.
    fn size(&self) -> usize;

    /// Computes r = R(u), with 0 in the rows of constrained degrees of freedom.
    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError>;

    /// Sets the state at which [`NonlinearSystem::jacobian`] is evaluated.
    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError>;

    /// Computes the dependent degrees of freedom of a state (means, constraints), which increments do not change.
    fn complete(&self, _u: &mut Vector) -> Result<(), OperatorError> {
        Ok(())
    }

    /// Returns the constants up to which fields are free: J maps them to 0, and residuals are orthogonal to them. A
    /// solve sets the means at its end, in [`NonlinearSystem::complete`].
    fn null_space(&self) -> Option<&NullSpace> {
        None
    }

    /// Returns J(u) at the last linearisation; rows and columns of constrained degrees of freedom are the identity.
    fn jacobian(&self) -> &dyn LinearOperator;

    /// Returns whether J is known to equal that of the last solve, so that factors and levels remain valid.
    fn same_jacobian(&self) -> bool {
        false
    }

    /// Computes the diagonal of J(u); 1 for constrained degrees of freedom.
    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError>;

    /// Builds an approximation of J⁻¹ at the last linearisation; the inner error gives the reason if there is none.
    fn precondition(&mut self) -> Result<Result<(), String>, OperatorError> {
        Ok(Err("the system has no levels".to_owned()))
    }

    /// Returns the approximation of J⁻¹ built by [`NonlinearSystem::precondition`].
    fn preconditioner(&self) -> Option<&dyn Approximation> {
        None
    }

    /// Drops the approximation, as it does not help.
    fn forget_preconditioner(&mut self) {}

    /// Returns whether J is symmetric, so that [`cg()`] may be tried.
    fn symmetric(&self) -> bool;

    /// Returns the degrees of freedom of each field. Fields may have different units; tolerances apply to each.
    fn fields(&self) -> Vec<FieldDofs> {
        vec![FieldDofs { dofs: 0..self.size(), components: 1 }]
    }

    /// Returns the degrees of freedom coupled inside cells only, which are eliminated before the linear solve.
    fn local(&self) -> Option<Arc<LocalDofs>> {
        None
    }

    /// Returns the sparsity pattern of J if its matrix can be assembled: see [`DirectSolver`].
    fn coupling(&self) -> Option<Coupling> {
        None
    }
}

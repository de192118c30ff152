//! Linear and nonlinear solvers.
//!
//! Solvers depend on [`LinearOperator`] and [`Vector`] only, not on meshes, kernels or backends. Constrained degrees of
//! freedom remain in the vectors with identity rows in operators, so that a zero residual leaves them unchanged.
//!
//! A numerical failure is not an error of the call but the [`Outcome`] in the [`Report`]. [`Report::converged`] turns
//! it into a [`SolveError`].

mod active_system;
mod approximation;
mod arc_length;
mod auxiliary_space;
mod bicgstab;
mod block_jacobi;
mod blocks;
mod bordered;
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
mod mixed;
mod multigrid;
mod newton;
mod null_space;
mod outcome;
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
pub(crate) use active_system::{ActiveApproximation, ActiveMask, ActiveSystem};
pub use approximation::{
    ApproximateInverse, Approximation, LevelFigures, MultigridStatistics, Smoother,
};
pub use arc_length::{ArcLengthOptions, ArcLengthReport, newton_by_arc_length};
pub use auxiliary_space::{
    AuxiliaryBlock, AuxiliarySpace, Potential, PotentialLevels, ShiftedLevels,
};
pub use bicgstab::bicgstab;
pub use block_jacobi::{BlockJacobi, MatrixCopy};
pub use blocks::{BlockPreconditioner, FieldBlock, FieldInverse, SchurMass};
pub use bordered::{Border, BorderedSettings, BorderedSystem, solve_bordered};
pub use cg::cg;
pub use direct::DirectSolver;
pub use gmres::{GmresSettings, fgmres, gmres};
pub use linear_solver::{DirectFallback, InnerSolver, LinearOptions, Preconditioning};
pub(crate) use load::join;
pub use load::{HALVINGS, LoadReport, LoadableSystem, newton_in_load_steps};
pub use lobpcg::{EigenModes, EigenSettings, lobpcg};
pub use local_dofs::LocalDofs;
pub use minres::minres;
pub use mixed::{DeviceCopies, DiscreteDivergence, MixedPreconditioner};
pub use multigrid::{CoarseGridSolver, GridTransfer, LevelOperator, Multigrid, MultigridLevel};
pub use newton::{AffineSolver, Forcing, Newton, NewtonOptions, NewtonStep, newton, solve_affine};
pub use null_space::{Constant, ConstantEntries, NullSpace, pinned, pinned_rows};
pub use outcome::{Outcome, SolveError};
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
        if self.outcome.is_success() {
            return Ok(self);
        }
        let (residual, field) = (self.residual(), None);
        let Self { solver, outcome, iterations, target, .. } = self;
        Err(SolveError { solver, outcome, iterations, residual, target, field })
    }
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

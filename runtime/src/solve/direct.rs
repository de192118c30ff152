//! Sparse direct solver with iterative refinement.
//!
//! The matrix is read off the operator ([`Coupling::matrix`]) and factorised on the host, even for operators on a
//! device. Each refinement x ← x + (LU)⁻¹ (b − A x) uses the residual of the operator itself. It removes the errors of
//! pivoting and of the factors' rounding.

use super::stopping::{self, StoppingCriterion};
use super::{
    CgSettings, Continue, GmresSettings, LinearOperator, Observer, OperatorError, Outcome,
    Preconditioner, Progress, Report, alike, gmres, pinned, residual,
};
use crate::algebra::coupling::Coupling;
use crate::algebra::factor::{AVAILABLE, FactorError, Factors, SymbolicAnalysis};
use crate::algebra::vector::{Vector, epsilon};
use crate::support::progress::doing;

/// Maximum number of refinements; usually one suffices.
const REFINEMENTS: usize = 3;
/// Maximum number of matrix entries: more would take gigabytes, and ten times as much for the factors.
const ENTRIES: usize = 200_000_000;
/// Iteration count up to which factors of another matrix are kept: a factorisation costs as much as a few tens of
/// iterations.
const KEPT: usize = 10;
/// Minimum residual reduction of such iterations, even if less is requested.
const CLOSE: f64 = 1e-3;
/// Residual relative to ‖b‖ above which the factors are useless.
const USELESS: f64 = 1e-4;

/// Direct solver for matrices with a common sparsity pattern.
pub struct DirectSolver {
    coupling: Coupling,
    analysis: SymbolicAnalysis,
    /// Factors of the last matrix.
    factors: Option<Factors>,
    /// One degree of freedom of each constant in the null space.
    pins: Vec<usize>,
}

impl DirectSolver {
    /// Creates a solver for operators with this pattern.
    pub fn new(coupling: Coupling) -> Self {
        Self { coupling, analysis: SymbolicAnalysis::default(), factors: None, pins: Vec::new() }
    }

    /// Adds pins for singular matrices: one degree of freedom of each null vector. Right-hand sides are orthogonal to
    /// the null space.
    #[must_use]
    pub fn pinned(self, pins: Vec<usize>) -> Self {
        Self { pins, ..self }
    }

    /// Drops the factors: the next matrix is different.
    pub fn forget(&mut self) {
        self.factors = None;
    }

    /// Solves A x = b; `symmetric` states that A is symmetric. Factors that were not [dropped](Self::forget) are reused
    /// as those of A. Refinement ends at the tolerance or at the rounding-error level.
    ///
    /// # Errors
    ///
    /// The operator cannot be applied; the matrix does not fit into memory.
    pub fn solve(
        &mut self,
        a: &dyn LinearOperator,
        b: &Vector,
        x: &mut Vector,
        symmetric: bool,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        alike(b, &[x])?;
        if b.len() != self.coupling.size() {
            let (n, size) = (b.len(), self.coupling.size());
            let message = format!("{n} numbers are no right-hand side of {size} coupled unknowns");
            return Err(OperatorError::new(message));
        }
        let factors = match self.factors.take() {
            Some(factors) => factors,
            None => match self.factorise(a, b, symmetric)? {
                Ok(factors) => factors,
                // Even for a zero right-hand side: the solution is not unique.
                Err(outcome) => return stopping::solve_none("direct", b, settings, outcome),
            },
        };
        let factors = self.factors.insert(factors);
        stopping::solve("direct", b, x, settings, observe, |b, x, criterion, observe, history| {
            x.fill(0.0);
            history.push(criterion.scale);
            refine(a, factors, b, x, criterion, observe, history)
        })
    }

    /// Solves A x = b by [`gmres()`], preconditioned by the factors of a nearby matrix; `None` if there are none, or
    /// they are not close enough.
    ///
    /// # Errors
    ///
    /// The operator cannot be applied.
    pub fn solve_near(
        &self,
        a: &dyn LinearOperator,
        b: &Vector,
        x: &mut Vector,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Option<Report>, OperatorError> {
        let Some(factors) = &self.factors else { return Ok(None) };
        x.fill(0.0);
        let settings = GmresSettings {
            rtol: settings.rtol.min(CLOSE),
            atol: settings.atol,
            max_iterations: settings.max_iterations.min(KEPT),
            restart: KEPT,
            strict: false,
        };
        let report = gmres(a, b, x, Preconditioner::Operator(factors), settings, observe)?;
        let ended = report.outcome.is_success() || report.outcome == Outcome::Cancelled;
        Ok(ended.then_some(Report { solver: "gmres by kept factors", ..report }))
    }

    /// Factorises A; the inner error is the outcome of a failed factorisation.
    fn factorise(
        &mut self,
        a: &dyn LinearOperator,
        like: &Vector,
        symmetric: bool,
    ) -> Result<Result<Factors, Outcome>, OperatorError> {
        if !AVAILABLE {
            // Fail before reading the matrix.
            return Err(OperatorError::new(FactorError::Absent.to_string()));
        }
        let _said = doing("factorising the matrix");
        let entries = self.coupling.entries();
        if entries > ENTRIES {
            return Err(OperatorError::new(format!(
                "the matrix of {} unknowns has {entries} entries, too many to be assembled\n\
                 help: use an iterative solver, a coarser mesh or a lower degree",
                like.len()
            )));
        }
        let matrix = match a.matrix()? {
            Some(known) => known,
            None => self.coupling.matrix(a, like)?,
        };
        Ok(match self.analysis.factorise(&pinned(matrix, &self.pins), symmetric) {
            Ok(factors) => Ok(factors),
            Err(FactorError::Singular { unknown, condition }) => {
                Err(Outcome::Singular { unknown, condition })
            }
            Err(FactorError::NotFinite) => Err(Outcome::NotFinite),
            Err(error @ FactorError::Absent) => return Err(OperatorError::new(error.to_string())),
            Err(error @ FactorError::Memory { .. }) => {
                return Err(OperatorError::new(format!(
                    "{error}\nhelp: use an iterative solver, a coarser mesh or a lower degree"
                )));
            }
        })
    }
}

/// Solves by factors with iterative refinement.
fn refine(
    a: &dyn LinearOperator,
    factors: &Factors,
    b: &Vector,
    x: &mut Vector,
    criterion: StoppingCriterion,
    observe: Observer<'_>,
    history: &mut Vec<f64>,
) -> Result<Outcome, OperatorError> {
    let scale = criterion.scale;
    let (mut r, mut step, mut refined) = (b.clone(), b.like(), b.like());
    let mut norm = scale;
    for iteration in 1..=REFINEMENTS + 1 {
        factors.apply(&r, &mut step)?;
        refined.copy_from(x);
        refined.axpy(1.0, &step);
        let next = residual(a, b, &refined, &mut r)?;
        if !next.is_finite() {
            return Ok(Outcome::NotFinite);
        }
        if next >= norm && iteration > 1 {
            break;
        }
        std::mem::swap(x, &mut refined);
        norm = next;
        history.push(norm);
        if observe(Progress { iteration, residual: norm, target: criterion.asked }) == Continue::No
        {
            return Ok(Outcome::Cancelled);
        }
        // At least one refinement, unless the residual is at the rounding-error level.
        if norm <= epsilon(b.precision()) * scale || (iteration > 1 && norm <= criterion.asked) {
            break;
        }
    }
    Ok(if norm <= criterion.asked {
        Outcome::Converged
    } else if norm <= USELESS * scale {
        criterion.met_rounding(norm)
    } else {
        Outcome::Stagnated
    })
}

//! A linear system by the factors of its assembled matrix, with iterative refinement.
//!
//! The matrix is read off the operator ([`Coupling::matrix`]) and factorised on the processor, wherever the operator
//! is. Each refinement x ← x + (LU)⁻¹ (b − A x) takes the residual of the operator itself; it takes away what pivoting
//! and the rounding of the factors have left.

use super::goal::{self, Goal};
use super::{
    CgSettings, Continue, GmresSettings, LinearOperator, Observer, OperatorError, Outcome,
    Preconditioner, Progress, Report, alike, gmres, pinned, residual,
};
use crate::algebra::coupling::Coupling;
use crate::algebra::factor::{AVAILABLE, Analysis, FactorError, Factors};
use crate::algebra::vector::{Vector, epsilon};
use crate::support::doing::doing;

/// Refinements; one is what is needed as a rule.
const REFINEMENTS: usize = 3;
/// Entries of a matrix that is still assembled: more would take some gigabytes, and their factors ten times that.
const ENTRIES: usize = 200_000_000;
/// Iterations up to which the factors of another matrix are worth keeping: those of a new one take as long as some tens.
const KEPT: usize = 10;
/// How far residuals fall by them at least, where less is asked for.
const CLOSE: f64 = 1e-3;
/// The part of ‖b‖ above which what is left of the residual says that the factors are no good.
const USELESS: f64 = 1e-4;

/// Solves systems whose unknowns are coupled in the same way.
pub struct Direct {
    coupling: Coupling,
    analysis: Analysis,
    /// Those of the last matrix.
    factors: Option<Factors>,
    /// An unknown of each constant that the matrix maps to 0.
    pins: Vec<usize>,
}

impl Direct {
    /// For operators with this coupling.
    pub fn new(coupling: Coupling) -> Self {
        Self { coupling, analysis: Analysis::default(), factors: None, pins: Vec::new() }
    }

    /// The same for singular matrices, with an unknown of each vector of their null space; right-hand sides are orthogonal to it.
    #[must_use]
    pub fn pinned(self, pins: Vec<usize>) -> Self {
        Self { pins, ..self }
    }

    /// Lets go of the factors of the last matrix: the next one is another.
    pub fn forget(&mut self) {
        self.factors = None;
    }

    /// Solves A x = b; `symmetric` says whether A is, and where factors were [kept](Self::forget) they are taken for A's. The residual that is left is that of rounding, and tolerances stop
    /// refinement early.
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
                // Whatever the load: that it is 0 makes no solution unique.
                Err(outcome) => return goal::solve_none("direct", b, settings, outcome),
            },
        };
        let factors = self.factors.insert(factors);
        goal::solve("direct", b, x, settings, observe, |b, x, goal, observe, history| {
            x.fill(0.0);
            history.push(goal.scale);
            refine(a, factors, b, x, goal, observe, history)
        })
    }

    /// Solves A x = b with the factors of another matrix that is near A, as what preconditions [`gmres()`]; nothing where there are
    /// none, or they are not near enough.
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

    /// The factors of A, or why there are none.
    fn factorise(
        &mut self,
        a: &dyn LinearOperator,
        like: &Vector,
        symmetric: bool,
    ) -> Result<Result<Factors, Outcome>, OperatorError> {
        if !AVAILABLE {
            // Before the matrix is read off the operator.
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

/// Solves by factors, and again for what rounding leaves.
fn refine(
    a: &dyn LinearOperator,
    factors: &Factors,
    b: &Vector,
    x: &mut Vector,
    goal: Goal,
    observe: Observer<'_>,
    history: &mut Vec<f64>,
) -> Result<Outcome, OperatorError> {
    let scale = goal.scale;
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
        if observe(Progress { iteration, residual: norm, target: goal.asked }) == Continue::No {
            return Ok(Outcome::Cancelled);
        }
        // At least one refinement, unless nothing is left of the residual.
        if norm <= epsilon(b.precision()) * scale || (iteration > 1 && norm <= goal.asked) {
            break;
        }
    }
    Ok(if norm <= goal.asked {
        Outcome::Converged
    } else if norm <= USELESS * scale {
        goal.met_rounding(norm)
    } else {
        Outcome::Stagnated
    })
}

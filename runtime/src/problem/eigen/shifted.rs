//! Factors of J + σ M for shift and invert, with a shift σ for which J + σ M is positive definite
//! ([`DefiniteInverse`]).
//!
//! ```text
//! J positive definite, and well above rounding       σ = 0
//! otherwise       the smallest trial σ with Cholesky factors, replaced by (λₙ − λ₁) − λ₁ if that is far from it
//!                 (n: number of wanted eigenvalues)
//! ```
//!
//! A shift far above the wanted eigenvalues makes all θ = 1/(λ + σ) nearly equal. With a shift far below them, the
//! factors lose all digits except those of rigid-body modes. Fields without mass are condensed: their modes have θ = 0.

use super::{ShiftedOperator, ratio, with_shifted};
use crate::algebra::coupling::Coupling;
use crate::algebra::factor::{FactorError, SymbolicAnalysis};
use crate::algebra::vector::{Vector, epsilon};
use crate::operator::Operator;
use crate::problem::solver::UNKNOWN_DATA;
use crate::problem::{Context, RunError};
use crate::solve::{
    EigenSettings, LinearOperator, NonlinearSystem, OperatorError, ShiftedPencil, estimate,
};
use fem_dsl::problem::EigenProblem;

/// Trial shifts, relative to the largest ratio of J's diagonal to M's.
const TRIED: [f64; 7] = [1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0, 1e2];
/// Smallest shift, in multiples of eps times that ratio: above the rounding error of J.
const LEAST: f64 = 1e2;
/// Ratio of shift and wanted eigenvalues beyond which the shift is replaced.
const FAR: f64 = 10.0;
/// Maximum number of replacements.
const ROUNDS: usize = 4;
/// Tolerance of the eigenvalue estimates for a replacement.
const ESTIMATE: f64 = 1e-3;

/// (J + σ M)⁻¹, positive definite.
pub(super) struct DefiniteInverse {
    pub(super) inverse: Box<dyn LinearOperator>,
    pub(super) shift: f64,
}

/// The matrix pencil to factorise.
pub(super) struct PencilOperators<'a> {
    pub(super) eigen: &'a EigenProblem,
    pub(super) operator: &'a Operator,
    pub(super) mass: &'a Operator,
    /// The mass as an operator on J's vectors.
    pub(super) b: &'a dyn LinearOperator,
    pub(super) context: &'a Context,
    pub(super) u: &'a Vector,
}

impl PencilOperators<'_> {
    /// Returns factors with a shift suited to the smallest eigenvalues, which are estimated from the vectors `start`.
    ///
    /// # Errors
    ///
    /// A matrix that is too large, or indefinite for all trial shifts.
    pub(super) fn definite(
        &self,
        start: &[Vector],
        settings: EigenSettings,
    ) -> Result<DefiniteInverse, RunError> {
        let mut factors = self.factors()?;
        if let Some(inverse) = factors.of(self, 0.0)? {
            return Ok(DefiniteInverse { inverse, shift: 0.0 });
        }
        let (like, largest) = (self.operator.zeros(), ratio(self.operator, self.mass)?);
        let mut found = None;
        for part in TRIED {
            let shift = part * largest;
            if let Some(inverse) = factors.of(self, shift)? {
                found = Some(DefiniteInverse { inverse, shift });
                break;
            }
        }
        let mut found = found.ok_or_else(|| self.never_definite())?;
        let least = LEAST * epsilon(like.precision()) * largest;
        for _ in 0..ROUNDS {
            let DefiniteInverse { inverse, shift } = &found;
            let of = ShiftedPencil {
                a: self.operator.jacobian(),
                b: self.b,
                inverse: &**inverse,
                shift: *shift,
            };
            let settings = EigenSettings { rtol: ESTIMATE, ..settings };
            let Some(([first, last], error)) = estimate(of, start.to_vec(), settings)? else {
                break;
            };
            let better = ((last - first).max(error) + error - first).max(least);
            if better * FAR > *shift && better < *shift * FAR {
                break;
            }
            match factors.of(self, better)? {
                Some(inverse) => found = DefiniteInverse { inverse, shift: better },
                None => break,
            }
        }
        Ok(found)
    }

    fn never_definite(&self) -> RunError {
        RunError::Setting(format!(
            "J + σ M of `{}` is positive definite for no shift σ that was tried\n\
             help: look whether a part of the body has no mass and is held by nothing, or whether a stiffness is negative",
            self.context.form().name
        ))
    }

    fn factors(&self) -> Result<FactorisationStrategy, RunError> {
        if self.context.on.mesh.cut().is_some() {
            return Ok(FactorisationStrategy::Redundant);
        }
        let missing = || OperatorError::new("the matrix is too dense for `direct`");
        let coupling = NonlinearSystem::coupling(self.operator).ok_or_else(missing)?;
        Ok(FactorisationStrategy::Serial(coupling.clone(), SymbolicAnalysis::default()))
    }
}

/// Factorisation strategy.
enum FactorisationStrategy {
    /// Serial.
    Serial(Coupling, SymbolicAnalysis),
    /// Redundant: each process factorises the whole matrix.
    Redundant,
}

impl FactorisationStrategy {
    /// Returns (J + σ M)⁻¹; `None` if the matrix is not positive definite to working precision.
    fn of(
        &mut self,
        pencil: &PencilOperators<'_>,
        shift: f64,
    ) -> Result<Option<Box<dyn LinearOperator>>, RunError> {
        match self {
            Self::Serial(coupling, analysis) => {
                let (a, b, like) = (pencil.operator.jacobian(), pencil.b, pencil.operator.zeros());
                let matrix = match shift {
                    0.0 => coupling.matrix(a, &like)?,
                    shift => coupling.matrix(&ShiftedOperator { a, b, shift }, &like)?,
                };
                match analysis.definite(&matrix) {
                    Ok(Some(factors)) => Ok(Some(Box::new(factors))),
                    Ok(None) | Err(FactorError::Singular { .. }) => Ok(None),
                    Err(error) => Err(OperatorError::new(error.to_string()).into()),
                }
            }
            Self::Redundant => {
                let made = match shift {
                    0.0 => pencil.context.at_each()?,
                    shift => with_shifted(shift, pencil.eigen, pencil.context, |of| of.at_each())?,
                };
                let mut made = made.ok_or_else(|| RunError::Setting(UNKNOWN_DATA.to_owned()))?;
                match made.take(pencil.u)? {
                    Ok(()) if made.is_definite() => Ok(Some(Box::new(made))),
                    Ok(()) | Err(FactorError::Singular { .. }) => Ok(None),
                    Err(error) => Err(OperatorError::new(error.to_string()).into()),
                }
            }
        }
    }
}

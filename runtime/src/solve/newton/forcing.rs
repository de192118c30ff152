//! Forcing terms of inexact Newton methods (Eisenstat and Walker, 1996).

use crate::solve::OperatorError;
use crate::solve::ranges::{part, require};

/// Relative tolerance η of the linear solve in each step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Forcing {
    /// The same relative tolerance in every step.
    Fixed(f64),
    /// Half of the required remaining reduction of ‖R‖, in every step: for affine systems, which the first step then
    /// solves.
    Target,
    /// Eisenstat and Walker's second choice: η = γ (‖R_k‖/‖R_{k−1}‖)^α, at most `largest`.
    EisenstatWalker {
        /// η of the first step.
        first: f64,
        /// Upper bound.
        largest: f64,
        /// γ.
        gamma: f64,
        /// α.
        alpha: f64,
    },
}

impl Default for Forcing {
    fn default() -> Self {
        Self::EisenstatWalker { first: 0.1, largest: 0.5, gamma: 0.9, alpha: 2.0 }
    }
}

impl Forcing {
    /// Returns η of the next step. The last step is never solved far beyond the tolerance.
    pub(super) fn next(self, previous: Option<(f64, f64)>, norm: f64, target: f64) -> f64 {
        match (self, previous) {
            (Self::Fixed(eta), _) => eta,
            (Self::Target, _) => 0.5 * target / norm,
            (Self::EisenstatWalker { first, largest, .. }, None) => {
                first.min(largest).max(0.5 * target / norm)
            }
            (Self::EisenstatWalker { largest, gamma, alpha, .. }, Some((eta, before))) => {
                let mut next = gamma * (norm / before).powf(alpha);
                let guard = gamma * eta.powf(alpha);
                if guard > 0.1 {
                    next = next.max(guard);
                }
                next.max(0.5 * target / norm).min(largest)
            }
        }
    }

    pub(super) fn check(self) -> Result<(), OperatorError> {
        match self {
            Self::Fixed(eta) => part("forcing", eta),
            Self::Target => Ok(()),
            Self::EisenstatWalker { first, largest, gamma, alpha } => {
                part("first", first)?;
                part("largest", largest)?;
                require(gamma > 0.0 && gamma <= 1.0, "gamma", gamma, "above 0 and at most 1")?;
                require(alpha > 1.0 && alpha <= 2.0, "alpha", alpha, "above 1 and at most 2")
            }
        }
    }
}

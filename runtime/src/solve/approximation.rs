//! Approximations of J⁻¹ that precondition Krylov methods: [`Approximation`].

use super::{LinearOperator, NonlinearSystem, OperatorError};
use crate::algebra::linear::lend_applied;
use crate::algebra::vector::Vector;
use crate::device::DeviceError;

/// Approximation of J⁻¹, updated when the state or parameters change.
pub trait Approximation: Send + Sync {
    /// Returns its name in notes.
    fn name(&self) -> &'static str;

    /// Sets the state, at which the system is linearised.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied; the inner error is the reason why it is unusable there.
    fn take_state(
        &mut self,
        system: &dyn NonlinearSystem,
        u: &Vector,
    ) -> Result<Result<(), String>, OperatorError>;

    /// Sets the parameters.
    ///
    /// # Errors
    ///
    /// A device failure.
    fn set_params(&mut self, _params: &[f64]) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Computes z ≈ J⁻¹ r; symmetric and positive definite if J is.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied.
    fn apply_inverse(
        &self,
        j: &dyn LinearOperator,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError>;

    /// The same for methods that allow an unsymmetric preconditioner.
    ///
    /// # Errors
    ///
    /// As [`Approximation::apply_inverse`].
    fn apply_unsymmetric_inverse(
        &self,
        j: &dyn LinearOperator,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.apply_inverse(j, r, z)
    }

    /// Computes z ≈ J⁻¹ r as [`LinearOperator::apply_lending`] does; symmetric and positive definite if J is.
    ///
    /// # Errors
    ///
    /// As [`Approximation::apply_inverse`].
    fn lend_inverse(
        &self,
        j: &dyn LinearOperator,
        (r, _norm): (&Vector, f64),
        work: &mut Option<Vector>,
        take: &mut dyn FnMut(f64, &Vector),
    ) -> Result<(), OperatorError> {
        lend_applied(r, work, take, |z| self.apply_inverse(j, r, z))
    }

    /// Computes an initial guess x ≈ J⁻¹ b from coarser levels; returns false, with x unchanged, if there are none.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied.
    fn start(&self, _b: &Vector, _x: &mut Vector) -> Result<bool, OperatorError> {
        Ok(false)
    }

    /// Returns statistics of multigrid hierarchies, one entry per field.
    fn figures(&self) -> Vec<MultigridStatistics> {
        Vec::new()
    }
}

/// An approximation with the Jacobian that it approximates.
pub struct ApproximateInverse<'a> {
    /// The approximation.
    pub approximation: &'a dyn Approximation,
    /// J.
    pub jacobian: &'a dyn LinearOperator,
    /// True if the method needs a symmetric preconditioner.
    pub symmetric: bool,
}

impl LinearOperator for ApproximateInverse<'_> {
    fn size(&self) -> usize {
        self.jacobian.size()
    }

    fn apply(&self, r: &Vector, z: &mut Vector) -> Result<(), OperatorError> {
        match self.symmetric {
            true => self.approximation.apply_inverse(self.jacobian, r, z),
            false => self.approximation.apply_unsymmetric_inverse(self.jacobian, r, z),
        }
    }

    fn apply_lending(
        &self,
        r: &Vector,
        norm: f64,
        work: &mut Option<Vector>,
        take: &mut dyn FnMut(f64, &Vector),
    ) -> Result<(), OperatorError> {
        if self.symmetric {
            return self.approximation.lend_inverse(self.jacobian, (r, norm), work, take);
        }
        lend_applied(r, work, take, |z| self.apply(r, z))
    }
}

/// Smoother of a hierarchy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Smoother {
    /// The Chebyshev iteration of the fourth kind.
    #[default]
    Chebyshev,
    /// Damped Jacobi, with factor 4/(3λ): for comparison.
    Jacobi,
}

impl Smoother {
    /// Returns its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Chebyshev => "chebyshev",
            Self::Jacobi => "jacobi",
        }
    }

    /// Returns the factors of the previous increment and of D⁻¹r in the k-th step, k ≥ 2.
    pub(super) fn factors(self, k: usize, largest: f64) -> (f64, f64) {
        match self {
            Self::Chebyshev => {
                let (k, next) = (k as f64, (2 * k + 1) as f64);
                ((2.0 * k - 3.0) / next, (8.0 * k - 4.0) / (next * largest))
            }
            Self::Jacobi => (0.0, 4.0 / (3.0 * largest)),
        }
    }
}

/// Statistics of a hierarchy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MultigridStatistics {
    /// Name of the field, if there are several.
    pub field: Option<String>,
    /// Levels, finest first.
    pub levels: Vec<LevelFigures>,
    /// Description of the coarse-grid solver.
    pub coarsest: String,
    /// Smoother.
    pub smoother: Smoother,
    /// Number of pre-smoothing steps, equal to that of post-smoothing steps.
    pub steps: usize,
    /// Number of applications of the finest operator in cycles and eigenvalue estimates.
    pub applications: usize,
    /// Seconds of set-up, and of all linearisations.
    pub seconds: f64,
}

/// Statistics of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelFigures {
    /// Number of degrees of freedom.
    pub unknowns: usize,
    /// λ; `None` for the coarsest level.
    pub largest: Option<f64>,
}

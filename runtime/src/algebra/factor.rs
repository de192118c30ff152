//! Factorisation of a sparse matrix: [`Csc`](crate::algebra::sparse::Csc) to [`Factors`]. It requires the
//! feature `direct`; builds without it return an error.

mod dense;
#[cfg(feature = "direct")]
mod sparse;
#[cfg(not(feature = "direct"))]
mod stub;

pub use dense::symmetric_eigen;
#[cfg(feature = "direct")]
pub use sparse::{Factors, SymbolicAnalysis};
#[cfg(not(feature = "direct"))]
pub use stub::{Factors, SymbolicAnalysis};

use crate::algebra::linear::{LinearOperator, OperatorError};
use crate::algebra::vector::Vector;

/// Applies A⁻¹.
impl LinearOperator for Factors {
    fn size(&self) -> usize {
        self.unknowns()
    }

    fn apply(&self, r: &Vector, z: &mut Vector) -> Result<(), OperatorError> {
        let mut entries = r.to_vec();
        self.solve(&mut entries);
        z.set(&entries);
        Ok(())
    }
}

/// True in builds with factorisations.
pub const AVAILABLE: bool = cfg!(feature = "direct");

/// Reason of a failed factorisation.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FactorError {
    /// The matrix is singular to working precision.
    #[error("the matrix is singular")]
    Singular {
        /// Degree of freedom in which the null vector is largest.
        unknown: usize,
        /// Estimate of ‖A‖₁ ‖A⁻¹‖₁ of the scaled matrix; infinite for a zero pivot.
        condition: f64,
    },
    /// An entry is not finite.
    #[error("the matrix has an entry that is not finite")]
    NotFinite,
    /// The build has no factorisations.
    #[error(
        "this build is without `direct`, and factorises no matrix\nhelp: turn on the feature `direct` of `weakform`"
    )]
    Absent,
    /// The factors do not fit into memory.
    #[error("the factors of a matrix with {unknowns} unknowns do not fit into memory")]
    Memory {
        /// Number of degrees of freedom.
        unknowns: usize,
    },
}

//! Factors of a sparse matrix: [`Columns`](crate::algebra::coupling::Columns) → [`Factors`], which solve. They come with the feature
//! `direct`; without it there are none, and whoever asks for them is told so.

#[cfg(not(feature = "direct"))]
mod absent;
mod dense;
#[cfg(feature = "direct")]
mod sparse;

#[cfg(not(feature = "direct"))]
pub use absent::{Analysis, Factors};
pub use dense::symmetric_eigen;
#[cfg(feature = "direct")]
pub use sparse::{Analysis, Factors};

use crate::algebra::linear::{LinearOperator, OperatorError};
use crate::algebra::vector::Vector;

/// A⁻¹.
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

/// Whether there are factors in this build.
pub const AVAILABLE: bool = cfg!(feature = "direct");

/// Why there are no factors.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FactorError {
    /// The matrix is singular to working precision; the unknown is where its null vector is largest.
    #[error("the matrix is singular")]
    Singular {
        /// The unknown.
        unknown: usize,
        /// About ‖A‖₁ ‖A⁻¹‖₁ of the scaled matrix; infinite where a pivot is 0.
        condition: f64,
    },
    /// An entry is not a number.
    #[error("the matrix has an entry that is not finite")]
    NotFinite,
    /// This build has none.
    #[error(
        "this build is without `direct`, and factorises no matrix\nhelp: turn on the feature `direct` of `weakform`"
    )]
    Absent,
    /// There is not enough memory.
    #[error("the factors of a matrix with {unknowns} unknowns do not fit into memory")]
    Memory {
        /// The number of unknowns.
        unknowns: usize,
    },
}

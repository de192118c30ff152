//! [`ElementError`]: elements that do not exist.

use super::Cell;
use fem_dsl::point::Space;

/// An unsupported element.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElementError {
    /// There is no element of this space on the cell.
    #[error("no element of {family} on {cell}: there are those of tri, quad, tet and hex")]
    Cell {
        /// The space.
        family: &'static str,
        /// The cell.
        cell: Cell,
    },
    /// The degree is out of range.
    #[error("no Lagrange element of degree {degree} on {cell}: degrees {min} to {max} are there")]
    Degree {
        /// The cell.
        cell: Cell,
        /// The requested degree.
        degree: i64,
        /// The smallest.
        min: usize,
        /// The largest.
        max: usize,
    },
    /// The functions of the space are no Lagrange functions.
    #[error("{0} has no Lagrange element")]
    Space(Space),
}

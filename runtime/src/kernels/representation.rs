//! Representation of the Jacobian, and assembly of its matrix: [`Representation`], [`Assembly`].
//!
//! ```text
//! matrix-free   y = Σ_c  the action of cell c
//! ebe-v1        y = Σ_c  A_c x_c           element matrices A_c stored at each linearisation
//! ebe-v2        y = Σ_c  A_c x_c           element matrices computed in each product, never stored
//! assembled     y = A x,  A = Σ_c A_c      in compressed rows
//! ```
//!
//! Element matrices are those of [`kernels_gen::plan::Task::Matrix`]: of all cells, fields and boundaries, at a state.
//! Constrained degrees of freedom have the rows and columns of the identity.
//!
//! There are four assembly algorithms (Markall and others 2013; "GPU finite element method computation strategy without
//! mesh coloring", A-FEM):
//!
//! ```text
//! pattern    cells add to the entries of a known pattern, atomically on GPUs, chunk after chunk on CPUs
//! coloured   like pattern, colour by colour without concurrent additions to an entry; bitwise reproducible
//! owner      cells store their contributions, and each entry adds them in a fixed order; bitwise reproducible
//! acoo       without a pattern: cells append (row, column, value) to row lists, which are sorted and merged
//! ```

use kernels_gen::plan::{Scatter, Task};
use std::fmt;
use std::str::FromStr;

/// Assembly algorithm of a sparse matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Assembly {
    /// Row lists, sorted and merged.
    Acoo,
    /// Cells add to known positions.
    Pattern,
    /// Matrix entries sum stored contributions of cells.
    Owner,
    /// Cells add to known positions, colour by colour.
    Coloured,
}

impl Assembly {
    /// All algorithms.
    pub const ALL: [Self; 4] = [Self::Acoo, Self::Pattern, Self::Owner, Self::Coloured];

    /// Returns the fastest bitwise reproducible algorithm: on a CPU, chunks add in a fixed order; threads of a device
    /// do not.
    pub fn fitting(on_a_device: bool) -> Self {
        if on_a_device { Self::Owner } else { Self::Pattern }
    }
}

impl fmt::Display for Assembly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Acoo => "acoo",
            Self::Pattern => "pattern",
            Self::Owner => "owner",
            Self::Coloured => "coloured",
        })
    }
}

impl FromStr for Assembly {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|way| way.to_string() == text);
        found.ok_or_else(|| {
            format!("unknown assembly `{text}`: it is acoo, pattern, owner or coloured")
        })
    }
}

/// Representation of the Jacobian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Representation {
    /// Evaluated from the form, cell by cell.
    #[default]
    MatrixFree,
    /// A sparse matrix.
    Assembled(Assembly),
    /// Stored element matrices: EbE-V1.
    Stored,
    /// Element matrices computed in each product: EbE-V2.
    Recomputed,
}

impl fmt::Display for Representation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MatrixFree => "matrix-free",
            Self::Assembled(_) => "assembled",
            Self::Stored => "ebe-v1",
            Self::Recomputed => "ebe-v2",
        })
    }
}

impl Representation {
    /// Returns the tasks needed in addition to residual and diagonal.
    pub fn tasks(self) -> &'static [Task] {
        match self {
            Self::MatrixFree => &[Task::Action],
            Self::Assembled(_) => &[Task::Matrix],
            Self::Stored => &[Task::Matrix, Task::StoredProduct],
            Self::Recomputed => &[Task::MatrixProduct],
        }
    }

    /// Returns the scatter of element matrices in its kernels: [`kernels_gen::choose::PlanOverrides::matrix`].
    pub fn scatter(self) -> Scatter {
        match self {
            Self::Assembled(Assembly::Pattern) => Scatter::Atomic,
            Self::Assembled(Assembly::Coloured) => Scatter::Coloured,
            _ => Scatter::Owner,
        }
    }
}

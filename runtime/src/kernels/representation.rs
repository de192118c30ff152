//! How the Jacobian of an operator is applied, and how its matrix is assembled: [`Representation`], [`Assembly`].
//!
//! ```text
//! matrix-free   y = Σ_c  the action of cell c
//! ebe-v1        y = Σ_c  A_c x_c           element matrices A_c stored at each linearisation
//! ebe-v2        y = Σ_c  A_c x_c           element matrices made in each product, never stored
//! assembled     y = A x,  A = Σ_c A_c      in compressed rows
//! ```
//!
//! The element matrices are those of [`kernels_gen::plan::Task::Matrix`]: of all cells, fields and boundaries, at a state. Unknowns with an
//! essential condition have the rows and columns of the identity in all of them.
//!
//! A matrix is assembled in one of four ways (Markall and others 2013; "GPU finite element method computation strategy without mesh coloring", A-FEM):
//!
//! ```text
//! pattern    its places are known beforehand: cells add to them, atomically on GPUs, chunk after chunk on processors
//! coloured   the same colour by colour, where no two cells add to one place at once: the same bits in every run
//! owner      cells store what they have; each place adds that up in an order of its own: the same bits in every run
//! acoo       without a pattern: all cells append (row, column, value) to lists of the rows, which are sorted and merged
//! ```

use kernels_gen::plan::{Scatter, Task};
use std::fmt;
use std::str::FromStr;

/// How a matrix is assembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Assembly {
    /// Lists of the rows, sorted and merged.
    Acoo,
    /// Cells add to places that are known.
    Pattern,
    /// Places add up what cells have stored.
    Owner,
    /// Cells add, colour by colour.
    Coloured,
}

impl Assembly {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Acoo, Self::Pattern, Self::Owner, Self::Coloured];

    /// The fastest whose results can be repeated to the bit: chunks of a processor add to places in one order, threads of a
    /// device do not.
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

/// How a Jacobian is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Representation {
    /// Cell by cell from the form.
    #[default]
    MatrixFree,
    /// As a sparse matrix.
    Assembled(Assembly),
    /// With element matrices that are stored: EbE-V1.
    Stored,
    /// With element matrices that are made in each product: EbE-V2.
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
    /// The tasks beside residual and diagonal whose kernels it needs.
    pub fn tasks(self) -> &'static [Task] {
        match self {
            Self::MatrixFree => &[Task::Action],
            Self::Assembled(_) => &[Task::Matrix],
            Self::Stored => &[Task::Matrix, Task::StoredProduct],
            Self::Recomputed => &[Task::MatrixProduct],
        }
    }

    /// How its kernels bring element matrices to their places: [`kernels_gen::choose::Wishes::matrix`].
    pub fn scatter(self) -> Scatter {
        match self {
            Self::Assembled(Assembly::Pattern) => Scatter::Atomic,
            Self::Assembled(Assembly::Coloured) => Scatter::Coloured,
            _ => Scatter::Owner,
        }
    }
}

//! What a kernel is for: its task, and the cells or facets over which it runs. Those who compile say it, operators read it.

use kernels_gen::plan::cell_matrix::CellMatrix;
use kernels_gen::plan::{Geometry, Target, Task};

/// Which cells a kernel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Cells of one of the form's integrals.
    Cells(Part, usize),
    /// The facets of one of the form's integrals, of whatever cells.
    Facets(usize),
}

/// Which of the cells of an integral.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Those without constrained unknowns.
    Free,
    /// Those with constrained unknowns, addressed unknown by unknown.
    Constrained,
    /// Those with hanging nodes, addressed unknown by unknown too.
    Hanging,
    /// All: such a kernel makes the first two of its task and integral needless, and there are no hanging nodes.
    All,
}

impl Class {
    /// Whether it is of facets.
    pub fn is_of_facets(self) -> bool {
        matches!(self, Self::Facets(_))
    }

    /// The integral that it is of.
    pub fn integral(self) -> usize {
        match self {
            Self::Cells(_, integral) | Self::Facets(integral) => integral,
        }
    }
}

impl Part {
    /// Whether a cell is of the part; `parts` says of which of the first three each is.
    pub(crate) fn has(self, cell: usize, parts: &[Part]) -> bool {
        self == Self::All || self == parts[cell]
    }
}

/// A kernel of the module and what it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct CellKernel {
    /// What it computes.
    pub task: Task,
    /// For which cells.
    pub class: Class,
    /// Its symbol.
    pub name: String,
    /// The geometry it takes.
    pub geometry: Geometry,
    /// What it is written for, which says how numbers at the points lie.
    pub target: Target,
    /// The entries of a cell, where it makes or takes element matrices.
    pub matrix: Option<CellMatrix>,
}

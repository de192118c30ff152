//! What a kernel is for: its task, and the cells or facets over which it runs. Those who compile say it, operators read it.

use kernels_gen::plan::{Geometry, Task};

/// Which cells a kernel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Cells without constrained unknowns.
    Free,
    /// Cells with constrained unknowns, addressed unknown by unknown.
    Constrained,
    /// All cells: such a kernel makes the other two of its task needless.
    All,
    /// The facets of one of the form's integrals, of whatever cells.
    Facets(usize),
}

impl Class {
    /// Whether it is of facets.
    pub fn is_of_facets(self) -> bool {
        matches!(self, Self::Facets(_))
    }

    /// Whether a cell is of the class; `constrained` says which have constrained unknowns.
    pub(crate) fn has(self, cell: usize, constrained: &[bool]) -> bool {
        match self {
            Self::Free => !constrained[cell],
            Self::Constrained => constrained[cell],
            Self::All => true,
            Self::Facets(_) => false,
        }
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
}

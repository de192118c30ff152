//! Purpose of a kernel: its task, and the cells or facets that it processes.

use kernels_gen::plan::cell_matrix::CellMatrix;
use kernels_gen::plan::{Geometry, Target, Task};

/// Cells or facets of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellClass {
    /// Cells of an integral of the form.
    Cells(CellSubset, usize),
    /// Facets of an integral of the form, for all cells.
    Facets(usize),
}

/// Subset of the cells of an integral.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellSubset {
    /// Cells without constrained degrees of freedom.
    Free,
    /// Cells with constrained degrees of freedom, with indirect addressing.
    Constrained,
    /// Cells with hanging nodes, also with indirect addressing.
    Hanging,
    /// All cells: the kernel replaces the first two of its task and integral; there are no hanging nodes.
    All,
}

impl CellClass {
    /// Returns whether the class is one of facets.
    pub fn is_of_facets(self) -> bool {
        matches!(self, Self::Facets(_))
    }

    /// Returns the index of the integral.
    pub fn integral(self) -> usize {
        match self {
            Self::Cells(_, integral) | Self::Facets(integral) => integral,
        }
    }
}

impl CellSubset {
    /// Returns whether a cell belongs to the subset; `parts` gives one of the first three for each cell.
    pub(crate) fn has(self, cell: usize, parts: &[CellSubset]) -> bool {
        self == Self::All || self == parts[cell]
    }
}

/// A kernel of the module and its purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct CellKernel {
    /// Its task.
    pub task: Task,
    /// Its cells or facets.
    pub class: CellClass,
    /// Its symbol.
    pub name: String,
    /// The geometry data that it uses.
    pub geometry: Geometry,
    /// The target, which determines the layout of point data.
    pub target: Target,
    /// The entries per cell, if it computes or uses element matrices.
    pub matrix: Option<CellMatrix>,
}

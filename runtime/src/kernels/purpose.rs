//! Purpose of a kernel: its task, and the cells or facets that it processes.

use fem_dsl::point::Side;
use kernels_gen::plan::cell_matrix::CellMatrix;
use kernels_gen::plan::{Geometry, Target, Task};

/// Cells or facets of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellClass {
    /// Cells of an integral of the form.
    Cells(CellSubset, usize),
    /// Facets of an integral of the form, for all cells; of those between two cells the ones that both have whole.
    Facets(usize),
    /// Facets of an integral that are one facet of their cell, or the same facets of both cells
    /// ([`kernels_gen::plan::Plan::facet`]).
    FacetsAt(u16, usize),
    /// Facets of an integral between two cells, of which the one on a side is larger.
    HangingFacets(Side, usize),
}

/// Subset of the cells of an integral.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CellSubset {
    /// Cells without hanging nodes.
    Regular,
    /// Cells with hanging nodes, whose degrees of freedom are addressed individually.
    Hanging,
}

impl CellClass {
    /// Returns whether the class is one of facets.
    pub fn is_of_facets(self) -> bool {
        matches!(self, Self::Facets(_) | Self::FacetsAt(..) | Self::HangingFacets(..))
    }

    /// Returns the larger side of its pairs of cells.
    pub(crate) fn larger(self) -> Option<Side> {
        match self {
            Self::HangingFacets(side, _) => Some(side),
            Self::Cells(..) | Self::Facets(_) | Self::FacetsAt(..) => None,
        }
    }

    /// Returns the index of the integral.
    pub fn integral(self) -> usize {
        match self {
            Self::Cells(_, integral)
            | Self::Facets(integral)
            | Self::FacetsAt(_, integral)
            | Self::HangingFacets(_, integral) => integral,
        }
    }
}

impl CellSubset {
    /// Returns whether a cell belongs to the subset; `words` are the hanging-node words of a mesh that has some.
    pub(crate) fn has(self, cell: usize, words: Option<&[u32]>) -> bool {
        let hangs = words.is_some_and(|words| words[cell] != 0);
        hangs == (self == Self::Hanging)
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

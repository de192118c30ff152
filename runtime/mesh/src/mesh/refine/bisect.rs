//! Bisection of triangles and tetrahedra: each cell of a mesh is the root of a binary tree; the leaves form a
//! conforming mesh.
//!
//! The input is any [`Mesh`] of simplices: straight or curved, with any numbering, with or without periodic sides.
//! Triangles are bisected by newest vertex, tetrahedra by marked edges ([`rule`]). The closure of a bisection is found
//! through edges ([`divide`]). Bisections are undone where the mesh stays conforming ([`coarsen`]).
//! [`BisectionTransfer`] locates the cells of one mesh of the trees in another.
//!
//! ```
//! use fem_mesh::mesh::refine::bisect::Bisection;
//! use fem_mesh::mesh::{Cell, CellOrdering, Mesh, MeshData};
//!
//! let parts = MeshData {
//!     points: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]],
//!     nodes: vec![0, 1, 2, 1, 3, 2],
//!     ..MeshData::default()
//! };
//! let mesh = Mesh::new(Cell::Triangle, 1, parts, CellOrdering::Original)?;
//! let mut bisection = Bisection::new(&mesh)?;
//! // Both triangles have the longest edge.
//! assert_eq!(bisection.refine(|leaf| leaf == 0)?, 2);
//! assert_eq!(bisection.mesh(&mesh)?.n_vertices(), 5);
//! assert_eq!(bisection.coarsen(|_| true), 2);
//! assert_eq!(bisection.n_leaves(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod coarsen;
mod divide;
mod leaves;
mod origins;
mod path;
mod pool;
mod rule;
mod transfer;
mod tree;

pub use crate::mesh::refine::forest::AffineMap;
pub use path::{CellPath, FINEST};
pub use rule::BisectionMaps;
pub use transfer::{BisectionTransfer, CellSource};

use crate::mesh::refine::forest::RefineError;
use crate::mesh::{Cell, Mesh};
use crate::support::memory::InsufficientMemory;
use tree::BisectionTree;

/// Error of bisection, or of the mesh of its leaves.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BisectError {
    /// Quadrilaterals or hexahedra, which use forests.
    #[error("tri and tet cells are bisected, not {cell}; `Forest` divides these")]
    Tensor {
        /// The kind of cell.
        cell: Cell,
    },
    /// More cells (bisected ones and edges included) than 32-bit indices can number.
    #[error(
        "the bisected mesh has {count} cells or more, for whose edges 32-bit indices have no numbers; refine less"
    )]
    TooMany {
        /// The resulting number of cells.
        count: usize,
    },
    /// A cell at the finest level.
    #[error(
        "cell {cell} of the mesh is bisected {FINEST} times, and paths cannot hold more; refine less there, or bound the \
         refinement"
    )]
    TooFine {
        /// The cell of the initial mesh.
        cell: usize,
    },
    /// Insufficient memory.
    #[error(transparent)]
    Memory(#[from] InsufficientMemory),
    /// A mesh other than the initial mesh.
    #[error(
        "the bisection is of another mesh, of {expected} cells; this one has {found}, or others"
    )]
    Another {
        /// The number of cells of the initial mesh.
        expected: usize,
        /// The number of cells of the given mesh.
        found: usize,
    },
    /// Meshes without a common bisection.
    #[error(
        "there is no transfer between these meshes: they were not made by bisecting one and the same mesh"
    )]
    Unrelated,
    /// Leaves that form no valid mesh.
    #[error(transparent)]
    Refine(#[from] RefineError),
}

impl From<crate::mesh::MeshError> for BisectError {
    fn from(error: crate::mesh::MeshError) -> Self {
        Self::Refine(RefineError::Mesh(error))
    }
}

/// The cells of a mesh of triangles or tetrahedra, with their bisections.
#[derive(Clone, Debug)]
pub struct Bisection {
    tree: BisectionTree,
    steps: BisectionMaps,
    /// The nodes that are leaves, in traversal order.
    leaves: Vec<u32>,
}

impl Bisection {
    /// Creates the trees of a mesh without bisections.
    ///
    /// # Errors
    ///
    /// The mesh has quadrilaterals or hexahedra.
    pub fn new(mesh: &Mesh) -> Result<Self, BisectError> {
        if mesh.cell().is_tensor() {
            return Err(BisectError::Tensor { cell: mesh.cell() });
        }
        let leaves = (0..mesh.n_cells() as u32).collect();
        Ok(Self { tree: BisectionTree::new(mesh), steps: BisectionMaps::new(mesh.cell()), leaves })
    }

    /// Returns the number of leaves: the cells of [`mesh`](Self::mesh), in the same order.
    pub fn n_leaves(&self) -> usize {
        self.leaves.len()
    }

    /// Returns the initial cell that contains a leaf, and the path to the leaf.
    pub fn leaf(&self, number: usize) -> (usize, CellPath) {
        self.tree.path(self.leaves[number])
    }

    /// Returns the initial cell that contains a leaf, and the leaf's map into its reference cell.
    pub fn place(&self, number: usize) -> (usize, AffineMap) {
        let (cell, path) = self.leaf(number);
        (cell, self.steps.place(path))
    }

    /// Bisects the leaves that satisfy `holds`, and others until the mesh conforms, also across periodic sides. Returns
    /// the number of bisections.
    ///
    /// # Errors
    ///
    /// Too many cells, or one that is too fine. The trees are then unchanged.
    pub fn refine(&mut self, holds: impl Fn(usize) -> bool) -> Result<usize, BisectError> {
        let numbers = (0..self.n_leaves()).filter(|&number| holds(number));
        let marked: Vec<u32> = numbers.map(|number| self.leaves[number]).collect();
        let visits = self.tree.refine(&marked)?;
        if visits.bisections > 0 {
            let mut leaves = Vec::with_capacity(self.tree.n_leaves);
            self.leaves.iter().for_each(|&leaf| self.tree.walk(leaf, |leaf| leaves.push(leaf)));
            self.leaves = leaves;
        }
        Ok(visits.bisections)
    }

    /// Undoes one level of bisections, where `holds` is true for all leaves at the vertex to be removed. Returns their
    /// number.
    pub fn coarsen(&mut self, holds: impl Fn(usize) -> bool) -> usize {
        let mut marked = vec![false; self.tree.nodes.numbers()];
        for (number, &leaf) in self.leaves.iter().enumerate() {
            marked[leaf as usize] = holds(number);
        }
        let taken = self.tree.coarsen(&self.leaves, &marked);
        if taken > 0 {
            let mut leaves = Vec::with_capacity(self.tree.n_leaves);
            (0..self.tree.n_roots as u32)
                .for_each(|root| self.tree.walk(root, |leaf| leaves.push(leaf)));
            self.leaves = leaves;
        }
        taken
    }
}

//! Triangles and tetrahedra refined by bisection: the cells of a mesh, each the root of a binary tree, and their leaves,
//! which meet in whole facets.
//!
//! From a [`Mesh`] of simplices, curved or not, with any numbering and with periodic sides or none, to trees, and to the
//! mesh of their leaves. The newest vertex decides how triangles are bisected, marked edges how tetrahedra are
//! ([`rule`]); what must be bisected with a leaf is found by its edges ([`divide`]). What was bisected is taken back where
//! that leaves whole facets ([`coarsen`]). [`Transfer`] tells where a cell of one mesh of such trees is in another one.
//!
//! ```
//! use runtime::mesh::refine::bisect::Bisection;
//! use runtime::mesh::{Arrange, Cell, Mesh, Parts};
//!
//! let parts = Parts {
//!     points: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]],
//!     nodes: vec![0, 1, 2, 1, 3, 2],
//!     ..Parts::default()
//! };
//! let mesh = Mesh::new(Cell::Triangle, 1, parts, Arrange::AsGiven)?;
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
mod parts;
mod path;
mod pool;
mod rule;
mod transfer;
mod tree;

pub use crate::mesh::refine::forest::Affine;
pub use path::{FINEST, Path};
pub(crate) use rule::Steps;
pub use transfer::{Source, Transfer};

use crate::mesh::refine::forest::RefineError;
use crate::mesh::{Cell, Mesh};
use crate::support::memory::TooMuch;
use tree::Tree;

/// Why a mesh cannot be bisected, or no mesh made of what was.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BisectError {
    /// Quadrilaterals and hexahedra have forests.
    #[error("tri and tet cells are bisected, not {cell}; `Forest` divides these")]
    Tensor {
        /// The kind of cell.
        cell: Cell,
    },
    /// More cells than 32-bit indices can number, those that were bisected and their edges among them.
    #[error(
        "the bisected mesh has {count} cells or more, for whose edges 32-bit indices have no numbers; refine less"
    )]
    TooMany {
        /// How many there would be.
        count: usize,
    },
    /// A cell that cannot be bisected any more.
    #[error(
        "cell {cell} of the mesh is bisected {FINEST} times, and paths cannot hold more; refine less there, or bound the \
         refinement"
    )]
    TooFine {
        /// The cell of the mesh.
        cell: usize,
    },
    /// More than there is memory for.
    #[error(transparent)]
    Memory(#[from] TooMuch),
    /// A mesh that is not the one that was bisected.
    #[error(
        "the bisection is of another mesh, of {expected} cells; this one has {found}, or others"
    )]
    Another {
        /// Cells of the mesh that was bisected.
        expected: usize,
        /// Those of the one that was given.
        found: usize,
    },
    /// Meshes that are not of one bisection.
    #[error(
        "there is no transfer between these meshes: they were not made by bisecting one and the same mesh"
    )]
    Unrelated,
    /// The mesh of the leaves cannot be made.
    #[error(transparent)]
    Refine(#[from] RefineError),
}

impl From<crate::mesh::MeshError> for BisectError {
    fn from(error: crate::mesh::MeshError) -> Self {
        Self::Refine(RefineError::Mesh(error))
    }
}

/// The cells of a mesh of triangles or tetrahedra, and what was bisected of them.
#[derive(Clone, Debug)]
pub struct Bisection {
    tree: Tree,
    steps: Steps,
    /// The nodes that are leaves, in the order of a walk.
    leaves: Vec<u32>,
}

impl Bisection {
    /// The cells of a mesh, none of them bisected.
    ///
    /// # Errors
    ///
    /// A mesh of quadrilaterals or hexahedra.
    pub fn new(mesh: &Mesh) -> Result<Self, BisectError> {
        if mesh.cell().is_tensor() {
            return Err(BisectError::Tensor { cell: mesh.cell() });
        }
        let leaves = (0..mesh.n_cells() as u32).collect();
        Ok(Self { tree: Tree::new(mesh), steps: Steps::new(mesh.cell()), leaves })
    }

    /// How many leaves there are: the cells of [`mesh`](Self::mesh), in the same order.
    pub fn n_leaves(&self) -> usize {
        self.leaves.len()
    }

    /// The cell of the mesh that a leaf is a part of, and the way from that to it.
    pub fn leaf(&self, number: usize) -> (usize, Path) {
        self.tree.path(self.leaves[number])
    }

    /// The cell of the mesh that a leaf is a part of, and where it lies in its reference cell.
    pub fn place(&self, number: usize) -> (usize, Affine) {
        let (cell, path) = self.leaf(number);
        (cell, self.steps.place(path))
    }

    /// Bisects the leaves that a test holds for, by their numbers, and others until all meet in whole facets, over periodic
    /// sides too; how many bisections that takes.
    ///
    /// # Errors
    ///
    /// Too many cells, or one that is too fine. Nothing is changed then.
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

    /// Takes bisections back, one level of them, where the test holds for all leaves at the vertex that goes; how many.
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

//! Forests of quadtrees or octrees: each cell of a mesh is a root; a sorted array of leaves defines the forest.
//!
//! The input is any [`Mesh`] of quadrilaterals or hexahedra, straight or curved, in any orientation. [`TreeAdjacency`]
//! is its connectivity, with periodic sides identified. Leaves are a sorted array of [`CellKey`]s without pointers.
//! Refinement, coarsening and balancing traverse the leaves in order. [`Mesh::refined`] refines the cells of any mesh
//! uniformly.
//!
//! ```
//! use fem_mesh::mesh::refine::forest::Forest;
//! use fem_mesh::mesh::{Cell, CellOrdering, Mesh, MeshData};
//!
//! let parts = MeshData {
//!     points: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]],
//!     nodes: vec![0, 1, 2, 3],
//!     ..MeshData::default()
//! };
//! let mesh = Mesh::new(Cell::Quadrilateral, 1, parts, CellOrdering::Sorted)?;
//! let mut forest = Forest::new(&mesh)?;
//! for _ in 0..3 {
//!     // The cell at the upper right corner is the last.
//!     let last = forest.n_leaves() - 1;
//!     forest.refine(|leaf| leaf == last)?;
//! }
//! forest.balance()?;
//! assert_eq!(forest.n_leaves(), 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adjacency;
mod balance;
mod children;
mod coarsening;
mod descent;
mod distributed;
mod entities;
mod families;
mod lattice;
mod leaf_mesh;
mod nodes;
mod red;
#[cfg(test)]
pub(crate) mod tests;
mod uniform;
mod visit;

pub use adjacency::{IncidentTree, TreeAdjacency};
pub use children::ChildMaps;
pub use distributed::DistributedForest;
pub use key::KeyLayout;
pub use key::UNITS;
pub use key::{CellKey, FINEST};
pub(crate) use nodes::placed;
pub use uniform::{RefineError, refined};

pub use crate::mesh::AffineMap;

use crate::mesh::{Cell, Mesh, MeshError, key};
use balance::RefinedCells;

/// Error of a forest.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ForestError {
    /// Leaves that form no valid mesh.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// A mesh other than that of the forest.
    #[error("the forest is of a mesh of {expected} {cell} cells, not of this one of {found}")]
    Another {
        /// The cell type of the trees.
        cell: Cell,
        /// The number of trees.
        expected: usize,
        /// The number of cells of the given mesh.
        found: usize,
    },
    /// Nonuniform refinement of a mesh part.
    #[error("a part of a mesh can be refined as a whole only, all cells as often")]
    Part,
    /// A mesh of simplices.
    #[error("a forest is of quad or hex cells, not of {cell}")]
    Simplices {
        /// The kind of cell.
        cell: Cell,
    },
    /// More leaves than 32-bit indices can number.
    #[error("the refined mesh has {count} cells, more than 32-bit indices can number")]
    TooMany {
        /// The resulting number of leaves.
        count: usize,
    },
    /// Adjacent leaves that differ by more than one level.
    #[error(
        "the forest is not balanced: neighbours in or beside cell {tree} of the mesh differ by more than one level\n\
         help: call `Forest::balance` behind `refine` and `coarsen`"
    )]
    Unbalanced {
        /// The tree of the first cell that balance would refine.
        tree: u32,
    },
    /// A cell at the finest level.
    #[error(
        "cell {tree} of the mesh is divided {FINEST} times, and keys cannot hold more; refine less there, or bound the \
         refinement"
    )]
    TooFine {
        /// The tree.
        tree: u32,
    },
}

/// Hanging faces and edges of a leaf.
///
/// Bits 0 to 2 are the child number of the leaf; bits 3 to 5 mark a hanging face with normal x, y, z. Bits 6 to 8 mark
/// a hanging edge along x, y, z that lies in no hanging face. A child has one face per direction and one edge of each
/// of its three on the boundary of its parent; nothing else can hang. Without hanging entities the mask is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HangingMask(pub u16);

impl HangingMask {
    /// Returns whether nothing hangs.
    pub fn is_free(self) -> bool {
        self.0 == 0
    }

    /// Returns the child number of the leaf, if something hangs.
    pub fn child(self) -> usize {
        usize::from(self.0 & 7)
    }

    /// Returns whether the face with this normal hangs.
    pub fn face(self, axis: usize) -> bool {
        self.0 >> (3 + axis) & 1 == 1
    }

    /// Returns whether the edge along this axis hangs and lies in no hanging face.
    pub fn edge(self, axis: usize) -> bool {
        self.0 >> (6 + axis) & 1 == 1
    }
}

/// A forest of quadtrees or octrees.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    coarse: TreeAdjacency,
    leaves: Vec<CellKey>,
}

impl Forest {
    /// Creates a forest with the cells of a mesh as unrefined trees.
    ///
    /// # Errors
    ///
    /// The mesh has simplices.
    pub fn new(mesh: &Mesh) -> Result<Self, ForestError> {
        if !mesh.cell().is_tensor() {
            return Err(ForestError::Simplices { cell: mesh.cell() });
        }
        let coarse = TreeAdjacency::new(mesh.connectivity());
        let leaves = (0..mesh.n_cells() as u32).map(CellKey::of_tree).collect();
        Ok(Self { coarse, leaves })
    }

    /// Returns the trees and their adjacency.
    pub fn coarse(&self) -> &TreeAdjacency {
        &self.coarse
    }

    /// Returns the leaves in Morton order, tree by tree.
    pub fn leaves(&self) -> &[CellKey] {
        &self.leaves
    }

    /// Returns the number of leaves.
    pub fn n_leaves(&self) -> usize {
        self.leaves.len()
    }

    /// Returns the lower corner of a cell in its tree, in units of 2⁻³⁰.
    pub fn corner(&self, key: CellKey) -> [u32; 3] {
        self.coarse.layout.corner(key)
    }

    /// Refines the leaves that satisfy `holds`; returns their number.
    ///
    /// # Errors
    ///
    /// Too many leaves, or one at the finest level. The forest is then unchanged.
    pub fn refine(&mut self, holds: impl Fn(usize) -> bool) -> Result<usize, ForestError> {
        let (layout, children) = (self.coarse.layout, self.coarse.layout.children());
        let mut marked = 0;
        for (number, leaf) in self.leaves.iter().enumerate() {
            if holds(number) {
                marked += 1;
                if leaf.level() == FINEST {
                    return Err(ForestError::TooFine { tree: leaf.tree() });
                }
            }
        }
        let count = numbered(self.leaves.len() + marked * (children - 1))?;
        let mut leaves = Vec::with_capacity(count);
        for (number, &leaf) in self.leaves.iter().enumerate() {
            match holds(number) {
                true => leaves.extend((0..children).map(|child| layout.child(leaf, child))),
                false => leaves.push(leaf),
            }
        }
        self.leaves = leaves;
        Ok(marked)
    }

    /// Replaces families of leaves that all satisfy `holds` by their parents; returns the number of families. Balancing
    /// may restore some.
    pub fn coarsen(&mut self, holds: impl Fn(usize) -> bool) -> usize {
        let (layout, children) = (self.coarse.layout, self.coarse.layout.children());
        let (mut leaves, mut families, mut number) = (Vec::new(), 0, 0);
        while number < self.leaves.len() {
            let leaf = self.leaves[number];
            let family = self.leaves.get(number..number + children).filter(|family| {
                let level = leaf.level();
                level > 0
                    && layout.child_number(leaf) == 0
                    && family.iter().all(|cell| cell.level() == level)
                    && (number..number + children).all(&holds)
            });
            leaves.push(if family.is_some() { layout.parent(leaf) } else { leaf });
            number += if family.is_some() { children } else { 1 };
            families += usize::from(family.is_some());
        }
        self.leaves = leaves;
        families
    }

    /// Refines leaves until those that share a face or an edge differ by at most one level, also across periodic sides.
    /// Returns whether any were refined.
    ///
    /// # Errors
    ///
    /// Too many leaves. The forest is then unchanged.
    pub fn balance(&mut self) -> Result<bool, ForestError> {
        let (layout, n_trees) = (self.coarse.layout, self.coarse.n_trees());
        let mut divided = balance::divided(layout, &self.leaves);
        if self.is_uniform(&divided) || !balance::balance(&self.coarse, &mut divided) {
            return Ok(false);
        }
        numbered(balance::count(layout, n_trees, &divided))?;
        self.leaves = balance::leaves(layout, n_trees, &divided);
        Ok(true)
    }

    /// Returns the hanging entities of each leaf of a balanced forest.
    pub fn masks(&self) -> Vec<HangingMask> {
        let divided = balance::divided(self.coarse.layout, &self.leaves);
        if self.is_uniform(&divided) {
            return vec![HangingMask::default(); self.leaves.len()];
        }
        balance::masks(&self.coarse, &divided, &self.leaves).into_iter().map(HangingMask).collect()
    }

    /// Checks that adjacent leaves differ by at most one level.
    ///
    /// # Errors
    ///
    /// [`ForestError::Unbalanced`].
    pub fn expect_balance(&self) -> Result<(), ForestError> {
        let divided = balance::divided(self.coarse.layout, &self.leaves);
        if self.is_uniform(&divided) {
            return Ok(());
        }
        let mut more = divided.clone();
        if !balance::balance(&self.coarse, &mut more) {
            return Ok(());
        }
        let levels = more.iter().zip(divided.iter().map(Vec::as_slice));
        let mut new = levels
            .flat_map(|(more, known)| more.iter().filter(|key| known.binary_search(key).is_err()));
        Err(ForestError::Unbalanced { tree: new.next().map_or(0, |key| key.tree()) })
    }

    /// Returns whether all leaves have one level.
    fn is_uniform(&self, divided: &RefinedCells) -> bool {
        let mut expected = self.coarse.n_trees();
        divided.iter().all(|cells| {
            let all = cells.len() == expected;
            expected = expected.saturating_mul(self.coarse.layout.children());
            all
        })
    }
}

/// Checks that 32-bit indices can number the leaves.
fn numbered(count: usize) -> Result<usize, ForestError> {
    if count < u32::MAX as usize { Ok(count) } else { Err(ForestError::TooMany { count }) }
}

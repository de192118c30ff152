//! Forests: the cells of a mesh, each the root of a quadtree or octree, and what their leaves are.
//!
//! From a [`Mesh`] of quadrilaterals or hexahedra, curved or not and in any orientation, to its [`Coarse`] connectivity,
//! in which periodic sides are the same, and leaves: a sorted array of [`Key`]s without pointers. Refining, coarsening
//! and balancing go through the leaves in order. [`Mesh::refined`] is the way of problems: all cells of a mesh, of any
//! kind, divided a number of times.
//!
//! ```
//! use runtime::mesh::refine::forest::Forest;
//! use runtime::mesh::{Arrange, Cell, Mesh, Parts};
//!
//! let parts = Parts {
//!     points: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]],
//!     nodes: vec![0, 1, 2, 3],
//!     ..Parts::default()
//! };
//! let mesh = Mesh::new(Cell::Quadrilateral, 1, parts, Arrange::Sorted)?;
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

mod adapted;
mod balance;
mod children;
mod coarse;
mod coarsened;
mod dealt;
mod descent;
mod entities;
mod families;
mod lattice;
mod nodes;
mod red;
mod refined;
#[cfg(test)]
mod tests;
mod visit;

pub(crate) use children::Children;
pub use coarse::{Around, Coarse};
pub(crate) use dealt::Dealt;
pub(crate) use key::Layout;
pub(crate) use key::UNITS;
pub use key::{FINEST, Key};
pub(crate) use nodes::placed;
pub use refined::{RefineError, refined};

pub use crate::mesh::Affine;

use crate::mesh::{Cell, Mesh, MeshError, key};
use balance::Divided;

/// Why a forest cannot be made, or not refined.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ForestError {
    /// The mesh of the leaves cannot be made.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// A mesh that is not the one that the forest is of.
    #[error("the forest is of a mesh of {expected} {cell} cells, not of this one of {found}")]
    Another {
        /// The kind of its trees.
        cell: Cell,
        /// How many trees there are.
        expected: usize,
        /// Cells of the mesh.
        found: usize,
    },
    /// Cells of a part of a mesh are divided alike.
    #[error("a part of a mesh can be refined as a whole only, all cells as often")]
    Part,
    /// Simplices have no octrees.
    #[error("a forest is of quad or hex cells, not of {cell}")]
    Simplices {
        /// The kind of cell.
        cell: Cell,
    },
    /// More leaves than a 32-bit index can number.
    #[error("the refined mesh has {count} cells, more than 32-bit indices can number")]
    TooMany {
        /// How many leaves there would be.
        count: usize,
    },
    /// Leaves that meet and differ by more than a level.
    #[error(
        "the forest is not balanced: neighbours in or beside cell {tree} of the mesh differ by more than one level\n\
         help: call `Forest::balance` behind `refine` and `coarsen`"
    )]
    Unbalanced {
        /// The tree of the first cell that would have to be divided.
        tree: u32,
    },
    /// A cell that cannot be divided any more.
    #[error(
        "cell {tree} of the mesh is divided {FINEST} times, and keys cannot hold more; refine less there, or bound the \
         refinement"
    )]
    TooFine {
        /// The tree.
        tree: u32,
    },
}

/// What hangs of a leaf.
///
/// Bits 0 to 2 say which child of its parent the leaf is; 3 to 5 that the face with normal x, y, z hangs; 6 to 8 that
/// the edge along x, y, z hangs and lies in no face that does. A child has one face a direction and one edge of each of
/// its three on the boundary of its parent, and nothing else can hang. Where nothing hangs the mask is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mask(pub u16);

impl Mask {
    /// Whether nothing hangs.
    pub fn is_free(self) -> bool {
        self.0 == 0
    }

    /// Which child of its parent the leaf is, where something hangs.
    pub fn child(self) -> usize {
        usize::from(self.0 & 7)
    }

    /// Whether the face with this normal hangs.
    pub fn face(self, axis: usize) -> bool {
        self.0 >> (3 + axis) & 1 == 1
    }

    /// Whether the edge along this axis hangs and lies in no face that does.
    pub fn edge(self, axis: usize) -> bool {
        self.0 >> (6 + axis) & 1 == 1
    }
}

/// A forest of quadtrees or octrees.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    coarse: Coarse,
    leaves: Vec<Key>,
}

impl Forest {
    /// The forest whose trees are the cells of a mesh, none of them divided.
    ///
    /// # Errors
    ///
    /// A mesh of simplices.
    pub fn new(mesh: &Mesh) -> Result<Self, ForestError> {
        if !mesh.cell().is_tensor() {
            return Err(ForestError::Simplices { cell: mesh.cell() });
        }
        let coarse = Coarse::new(mesh.connectivity());
        let leaves = (0..mesh.n_cells() as u32).map(Key::of_tree).collect();
        Ok(Self { coarse, leaves })
    }

    /// The trees and how they meet.
    pub fn coarse(&self) -> &Coarse {
        &self.coarse
    }

    /// The leaves along Morton's curve, tree by tree.
    pub fn leaves(&self) -> &[Key] {
        &self.leaves
    }

    /// How many leaves there are.
    pub fn n_leaves(&self) -> usize {
        self.leaves.len()
    }

    /// The lower corner of a cell in its tree, in units of 2⁻³⁰.
    pub fn corner(&self, key: Key) -> [u32; 3] {
        self.coarse.layout.corner(key)
    }

    /// Divides the leaves that a test holds for, by their numbers; how many these are.
    ///
    /// # Errors
    ///
    /// Too many leaves, or one of the finest level. Nothing is changed then.
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

    /// Replaces families, all of whose cells are leaves and pass a test, by their parents; how many these are. What
    /// balance does not allow comes back when the forest is balanced.
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

    /// Divides leaves until those that meet in a face or an edge differ by one level at most, over periodic sides too;
    /// whether there were any.
    ///
    /// # Errors
    ///
    /// Too many leaves. Nothing is changed then.
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

    /// What hangs of each leaf of a balanced forest.
    pub fn masks(&self) -> Vec<Mask> {
        let divided = balance::divided(self.coarse.layout, &self.leaves);
        if self.is_uniform(&divided) {
            return vec![Mask::default(); self.leaves.len()];
        }
        balance::masks(&self.coarse, &divided, &self.leaves).into_iter().map(Mask).collect()
    }

    /// Whether leaves that meet differ by one level at most.
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

    /// Whether all leaves have one level.
    fn is_uniform(&self, divided: &Divided) -> bool {
        let mut expected = self.coarse.n_trees();
        divided.iter().all(|cells| {
            let all = cells.len() == expected;
            expected = expected.saturating_mul(self.coarse.layout.children());
            all
        })
    }
}

/// A number of leaves that indices can hold.
fn numbered(count: usize) -> Result<usize, ForestError> {
    if count < u32::MAX as usize { Ok(count) } else { Err(ForestError::TooMany { count }) }
}

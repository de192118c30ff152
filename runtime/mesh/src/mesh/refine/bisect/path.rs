//! Paths: a descendant of a cell as one integer.
//!
//! ```text
//! bit 123 …  order of the cell's vertices for the first bisection
//! bit 120 …  kind of the cell
//! bit 119 …  one child digit per bisection, the first on top, and a final 1
//! ```
//!
//! A path alone determines the descendant's position in its cell. Paths of leaves ascend in traversal order, and an
//! ancestor's digits are a prefix.

use super::rule::{BisectionMaps, SimplexKind};
use crate::mesh::refine::forest::AffineMap;

/// The largest number of bisections of an initial cell.
pub const FINEST: u32 = 119;

const ORDER: u32 = 123;
const KIND: u32 = 120;

/// Path from an initial cell to one of its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellPath(u128);

impl CellPath {
    /// Creates the path to the cell itself.
    pub(super) fn new(order: usize, kind: SimplexKind) -> Self {
        Self((order as u128) << ORDER | (kind as u128) << KIND | 1 << FINEST)
    }

    /// Returns the path to an unbisected cell of unknown kind.
    pub(super) fn whole() -> Self {
        Self::new(0, SimplexKind::Triangle)
    }

    /// Returns the path with the bits of [`Self::bits`].
    pub fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Returns the bits of the path.
    pub fn bits(self) -> u128 {
        self.0
    }

    /// Returns the number of bisections.
    pub fn depth(self) -> u32 {
        FINEST - self.0.trailing_zeros()
    }

    /// Returns the path to the parent; `None` for an initial cell.
    pub fn parent(self) -> Option<Self> {
        let end = self.0 & self.0.wrapping_neg();
        (self.depth() > 0).then(|| Self((self.0 & !(3 * end)) | (2 * end)))
    }

    /// Returns the child number on the path after `depth` bisections.
    pub fn child_at(self, depth: u32) -> usize {
        (self.0 >> (FINEST - depth)) as usize & 1
    }

    /// Returns whether `other` is an ancestor of the same cell, or the same path.
    pub fn leads_through(self, other: Self) -> bool {
        other.depth() <= self.depth() && (self.0 ^ other.0) >> (FINEST - other.depth()) >> 1 == 0
    }

    /// Returns the path to a child; the depth must be below [`FINEST`].
    pub(super) fn child(self, number: usize) -> Self {
        let end = self.0 & self.0.wrapping_neg();
        Self(self.0 - end + number as u128 * end + end / 2)
    }

    /// Returns the path to the initial cell.
    pub(super) fn root(self) -> Self {
        Self::new(self.order(), self.kind())
    }

    /// Returns the vertex order of the initial cell, an index into [`super::rule`]'s orders.
    pub(super) fn order(self) -> usize {
        (self.0 >> ORDER) as usize
    }

    fn kind(self) -> SimplexKind {
        SimplexKind::ALL[(self.0 >> KIND) as usize & 7]
    }

    /// Returns the child types of [`super::rule`] on the path below an ancestor of some depth.
    pub(super) fn below(self, depth: u32) -> impl Iterator<Item = usize> {
        let mut kind = self.kind();
        let steps = (0..self.depth()).map(move |depth| {
            let (step, next) = kind.children()[self.child_at(depth)];
            kind = next;
            step
        });
        steps.skip(depth as usize)
    }
}

impl BisectionMaps {
    /// Returns all steps from the initial cell.
    pub(super) fn along(&self, path: CellPath) -> impl Iterator<Item = usize> {
        std::iter::once(self.to_order(path.order())).chain(path.below(0))
    }

    /// Returns the map of the descendant's reference cell into that of the initial cell.
    pub fn place(&self, path: CellPath) -> AffineMap {
        self.place_of(self.along(path))
    }
}

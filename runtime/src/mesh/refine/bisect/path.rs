//! Paths: a descendant of a cell as one number.
//!
//! ```text
//! bit 123 …  the order in which the cell's vertices stand when it is bisected
//! bit 120 …  its kind
//! bit 119 …  which child, from the first bisection on, and a 1 behind the last
//! ```
//!
//! So a path tells the place of a descendant in its cell by itself, those of leaves ascend in the order of a walk, and an
//! ancestor is known by its digits.

use super::rule::{Kind, Steps};
use crate::mesh::refine::forest::Affine;

/// As often a cell of the mesh can be bisected.
pub const FINEST: u32 = 119;

const ORDER: u32 = 123;
const KIND: u32 = 120;

/// The way from a cell of the mesh to one of its descendants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(u128);

impl Path {
    /// The cell itself.
    pub(super) fn new(order: usize, kind: Kind) -> Self {
        Self((order as u128) << ORDER | (kind as u128) << KIND | 1 << FINEST)
    }

    /// To a cell of which nothing is known.
    pub(super) fn whole() -> Self {
        Self::new(0, Kind::Triangle)
    }

    pub(crate) fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    pub(crate) fn bits(self) -> u128 {
        self.0
    }

    /// How often the cell was bisected.
    pub fn depth(self) -> u32 {
        FINEST - self.0.trailing_zeros()
    }

    /// The way to the parent; none to a cell of the mesh.
    pub fn parent(self) -> Option<Self> {
        let end = self.0 & self.0.wrapping_neg();
        (self.depth() > 0).then(|| Self((self.0 & !(3 * end)) | (2 * end)))
    }

    /// Which child of its parent a descendant of some depth on the way is, that of the first bisection being 0.
    pub fn child_at(self, depth: u32) -> usize {
        (self.0 >> (FINEST - depth)) as usize & 1
    }

    /// Whether it leads through another one of the same cell, or to it.
    pub fn leads_through(self, other: Self) -> bool {
        other.depth() <= self.depth() && (self.0 ^ other.0) >> (FINEST - other.depth()) >> 1 == 0
    }

    /// To a child; of a cell that is not of the greatest depth.
    pub(super) fn child(self, number: usize) -> Self {
        let end = self.0 & self.0.wrapping_neg();
        Self(self.0 - end + number as u128 * end + end / 2)
    }

    /// To the cell of the mesh itself.
    pub(super) fn root(self) -> Self {
        Self::new(self.order(), self.kind())
    }

    /// The order in which the vertices of the cell of the mesh stand.
    pub(super) fn order(self) -> usize {
        (self.0 >> ORDER) as usize
    }

    fn kind(self) -> Kind {
        Kind::ALL[(self.0 >> KIND) as usize & 7]
    }

    /// The children of [`super::rule`] on the way from an ancestor of some depth.
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

impl Steps {
    /// All steps from the cell of the mesh.
    pub(super) fn along(&self, path: Path) -> impl Iterator<Item = usize> {
        std::iter::once(self.to_order(path.order())).chain(path.below(0))
    }

    /// Where a path leads to in the cell of the mesh.
    pub(crate) fn place(&self, path: Path) -> Affine {
        self.place_of(self.along(path))
    }
}

//! Position of a child in its patch: its number and the orientation of its axes, in nine bits.
//!
//! ```text
//! x_A(a) = (j_A(a) + ξ_a) / 2, or with 1 − ξ_a where the axis is flipped
//! ```

use crate::mesh::AffineMap;

/// The patch axis of each axis of a child.
pub(super) type Axes = [u8; 3];

/// All permutations in lexicographic order.
const ORDERS: [Axes; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Bits 0 to 2: the child number; 3 to 5: flipped axes; 6 to 8: the permutation of the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ChildPosition(u16);

impl ChildPosition {
    /// Creates the position of child `child` with these axes; its corner `even` is a corner of the patch.
    pub(super) fn new(child: usize, axes: Axes, even: u8, dim: usize) -> Self {
        let flip = |axis: usize| (even >> axis ^ (child >> axes[axis]) as u8) & 1;
        let flips = (0..dim).fold(0, |flips, axis| flips | u16::from(flip(axis)) << axis);
        let order = 2 * axes[0] + u8::from(axes[1] > axes[2]);
        Self(child as u16 | flips << 3 | u16::from(order) << 6)
    }

    pub(super) fn of(key: u16) -> Self {
        Self(key)
    }

    pub(super) fn key(self) -> u16 {
        self.0
    }

    fn child(self) -> usize {
        usize::from(self.0 & 7)
    }

    fn is_flipped(self, axis: usize) -> bool {
        self.0 >> (3 + axis) & 1 == 1
    }

    fn axes(self) -> Axes {
        ORDERS[usize::from(self.0 >> 6)]
    }

    /// Returns the child's vertex at corner `corner` in the axes of the patch.
    pub(super) fn vertex(self, corner: usize, dim: usize) -> usize {
        let axes = self.axes();
        let bit = |axis: usize| (corner >> axes[axis] ^ usize::from(self.0) >> (3 + axis)) & 1;
        (0..dim).fold(0, |vertex, axis| vertex | bit(axis) << axis)
    }

    /// Returns the child's facet on a side of an axis of the patch.
    pub(super) fn facet(self, axis: usize, side: usize, dim: usize) -> usize {
        let axes = self.axes();
        let own = (0..dim).find(|&own| usize::from(axes[own]) == axis).unwrap_or(axis);
        2 * own + (side ^ usize::from(self.is_flipped(own)))
    }

    /// Maps a point of the patch to the child's reference cell.
    pub(super) fn inverse(self, x: [f64; 3], dim: usize) -> [f64; 3] {
        let (axes, mut xi) = (self.axes(), [0.0; 3]);
        for (own, xi) in xi.iter_mut().enumerate().take(dim) {
            let axis = usize::from(axes[own]);
            let along = 2.0 * x[axis] - (self.child() >> axis & 1) as f64;
            *xi = if self.is_flipped(own) { 1.0 - along } else { along };
        }
        xi
    }

    /// Returns the map of the child's reference cell to that of the patch.
    pub(super) fn map(self, dim: usize) -> AffineMap {
        let axes = self.axes();
        let at = |vertex: usize| {
            let mut x = [0.0; 3];
            for own in 0..dim {
                let axis = usize::from(axes[own]);
                let along = vertex >> own & 1 ^ usize::from(self.is_flipped(own));
                x[axis] = ((self.child() >> axis & 1) + along) as f64 / 2.0;
            }
            x
        };
        let cell = match dim {
            1 => crate::mesh::Cell::Interval,
            2 => crate::mesh::Cell::Quadrilateral,
            _ => crate::mesh::Cell::Hexahedron,
        };
        AffineMap::onto(cell, &(0..1 << dim).map(at).collect::<Vec<_>>())
    }
}

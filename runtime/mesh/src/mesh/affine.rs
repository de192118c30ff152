//! Affine maps between reference cells, from a child to its parent.
//!
//! ```text
//! ξ ↦ o + A ξ
//! ```

use super::Cell;

/// An affine map between reference cells: ξ ↦ o + A ξ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AffineMap {
    origin: [f64; 3],
    axes: [[f64; 3]; 3],
}

impl AffineMap {
    /// The map of a cell onto itself.
    pub const IDENTITY: Self =
        Self { origin: [0.0; 3], axes: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] };

    /// Returns the map of the reference cell onto the cell with these vertices. On tensor cells only the first vertex
    /// and its neighbours matter.
    pub(crate) fn onto(cell: Cell, vertices: &[[f64; 3]]) -> Self {
        let tip = |axis: usize| if cell.is_tensor() { 1 << axis } else { axis + 1 };
        let mut map = Self { origin: vertices[0], ..Self::IDENTITY };
        for axis in 0..cell.dim() {
            map.axes[axis] = [0, 1, 2].map(|c| vertices[tip(axis)][c] - vertices[0][c]);
        }
        map
    }

    /// Returns o, the image of the origin.
    pub fn origin(&self) -> [f64; 3] {
        self.origin
    }

    /// Returns the columns of A.
    pub fn axes(&self) -> [[f64; 3]; 3] {
        self.axes
    }

    /// Returns the image of a point.
    pub fn at(&self, point: &[f64; 3]) -> [f64; 3] {
        let along = |c: usize| (0..3).map(|axis| point[axis] * self.axes[axis][c]).sum::<f64>();
        [0, 1, 2].map(|c| self.origin[c] + along(c))
    }

    /// Returns the composition `self` ∘ `first`.
    pub(crate) fn of(&self, first: &Self) -> Self {
        let origin = self.at(&first.origin);
        let axis = |axis: [f64; 3]| {
            let moved = self.at(&axis);
            [0, 1, 2].map(|c| moved[c] - self.origin[c])
        };
        Self { origin, axes: first.axes.map(axis) }
    }

    /// Returns the map onto the same simplex with reordered vertices; tensor cells are unchanged.
    pub fn seen(&self, cell: Cell, order: [u8; 4]) -> Self {
        if cell.is_tensor() {
            return *self;
        }
        let vertex = |place: usize| self.at(&cell.vertex(usize::from(order[place])));
        Self::onto(cell, &(0..cell.vertex_count()).map(vertex).collect::<Vec<_>>())
    }

    /// Returns whether the determinant is negative.
    pub(crate) fn is_negative(&self) -> bool {
        let [x, y, z] = self.axes;
        x[0] * (y[1] * z[2] - y[2] * z[1])
            + x[1] * (y[2] * z[0] - y[0] * z[2])
            + x[2] * (y[0] * z[1] - y[1] * z[0])
            < 0.0
    }
}

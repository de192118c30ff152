//! Children of a reference cell, and the maps of descendants.
//!
//! A quadrilateral or hexahedron is bisected along each axis; bit a of child c is its side of axis a. Simplices use red
//! refinement into four triangles or eight tetrahedra. Their vertices are the vertices x_i of the parent and the
//! midpoints x_ij of its edges:
//!
//! ```text
//! (0, 01, 02) (01, 1, 12) (02, 12, 2) (01, 02, 12)
//! (0, 01, 02, 03) (01, 1, 12, 13) (02, 12, 2, 23) (03, 13, 23, 3)
//! (01, 02, 03, 13) (01, 02, 12, 13) (02, 03, 13, 23) (02, 12, 13, 23)
//! ```
//!
//! The inner octahedron of a tetrahedron is split along 02–13. With this lexicographic order of vertex pairs, repeated
//! refinement of a tetrahedron gives at most three similarity classes (Bey, "Tetrahedral grid refinement", Computing
//! 55, 1995).

use crate::mesh::{AffineMap, Cell};

type VertexPairs = &'static [&'static [[usize; 2]]];

const TRIANGLES: VertexPairs = &[
    &[[0, 0], [0, 1], [0, 2]],
    &[[0, 1], [1, 1], [1, 2]],
    &[[0, 2], [1, 2], [2, 2]],
    &[[0, 1], [0, 2], [1, 2]],
];

const TETRAHEDRA: VertexPairs = &[
    &[[0, 0], [0, 1], [0, 2], [0, 3]],
    &[[0, 1], [1, 1], [1, 2], [1, 3]],
    &[[0, 2], [1, 2], [2, 2], [2, 3]],
    &[[0, 3], [1, 3], [2, 3], [3, 3]],
    &[[0, 1], [0, 2], [0, 3], [1, 3]],
    &[[0, 1], [0, 2], [1, 2], [1, 3]],
    &[[0, 2], [0, 3], [1, 3], [2, 3]],
    &[[0, 2], [1, 2], [1, 3], [2, 3]],
];

/// Returns the vertex pairs whose midpoints are the vertices of each child of a simplex.
pub(super) fn pairs(cell: Cell) -> VertexPairs {
    if cell.dim() == 2 { TRIANGLES } else { TETRAHEDRA }
}

/// The maps of the children of a reference cell.
#[derive(Clone, Debug)]
pub struct ChildMaps(Vec<AffineMap>);

impl ChildMaps {
    /// Returns the maps from the children of a quadrilateral or hexahedron.
    pub fn new(cell: Cell) -> Self {
        let middle = |[a, b]: [usize; 2]| {
            let (a, b) = (cell.vertex(a), cell.vertex(b));
            [0, 1, 2].map(|c| (a[c] + b[c]) / 2.0)
        };
        if !cell.is_tensor() {
            let of = |child: &&[[usize; 2]]| child.iter().map(|&pair| middle(pair)).collect();
            return Self::with_vertices(cell, pairs(cell).iter().map(of));
        }
        let count = cell.vertex_count();
        let of = |child: usize| (0..count).map(|vertex| middle([child, vertex])).collect();
        Self::with_vertices(cell, (0..count).map(of))
    }

    /// Returns the children with these vertices.
    pub(crate) fn with_vertices(cell: Cell, vertices: impl Iterator<Item = Vec<[f64; 3]>>) -> Self {
        Self(vertices.map(|vertices| AffineMap::onto(cell, &vertices)).collect())
    }

    /// Returns the number of children.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the map of a child into its parent.
    pub(crate) fn child(&self, number: usize) -> &AffineMap {
        &self.0[number]
    }

    /// Returns the map of a descendant, by the child numbers on its path.
    pub fn descendant(&self, path: &[usize]) -> AffineMap {
        path.iter().rev().fold(AffineMap::IDENTITY, |map, &child| self.0[child].of(&map))
    }

    /// Returns the path to a descendant after `times` refinements, by its number among them.
    pub fn path(&self, times: usize, number: usize) -> Vec<usize> {
        let digit = |place: usize| number / self.count().pow(place as u32) % self.count();
        (0..times).rev().map(digit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn children_fill_their_parent() {
        for cell in Cell::ALL {
            let children = ChildMaps::new(cell);
            let volume = |map: &AffineMap| {
                let [x, y, z] = map.axes();
                (x[0] * (y[1] * z[2] - y[2] * z[1])
                    + x[1] * (y[2] * z[0] - y[0] * z[2])
                    + x[2] * (y[0] * z[1] - y[1] * z[0]))
                    .abs()
            };
            for times in 0..3 {
                let count = children.count().pow(times as u32);
                let part = |n: usize| children.descendant(&children.path(times, n));
                let sum: f64 = (0..count).map(|n| volume(&part(n))).sum();
                assert_eq!(sum, 1.0, "{cell} {times}");
            }
        }
    }

    /// Similarity classes of the descendants of a tetrahedron, by their sorted squared edge lengths.
    #[test]
    fn tetrahedra_keep_to_few_shapes() {
        let first = [[0.0, 0.0, 0.0], [1.1, 0.1, 0.0], [0.2, 0.9, 0.1], [0.3, 0.2, 1.3]];
        let children = ChildMaps::new(Cell::Tetrahedron);
        let mut shapes = BTreeSet::new();
        for times in 0..5 {
            for number in 0..8usize.pow(times) {
                let map = children.descendant(&children.path(times as usize, number));
                let at = |vertex: usize| {
                    let s = map.at(&Cell::Tetrahedron.vertex(vertex));
                    let weights = [1.0 - s[0] - s[1] - s[2], s[0], s[1], s[2]];
                    [0, 1, 2].map(|c| (0..4).map(|v| weights[v] * first[v][c]).sum::<f64>())
                };
                let scale = f64::from(1u32 << times);
                let mut squares: Vec<i64> = Cell::Tetrahedron
                    .entities(1)
                    .iter()
                    .map(|edge| {
                        let (a, b) = (at(edge[0]), at(edge[1]));
                        let square: f64 = (0..3).map(|c| (scale * (a[c] - b[c])).powi(2)).sum();
                        (square * 1e6).round() as i64
                    })
                    .collect();
                squares.sort_unstable();
                shapes.insert(squares);
            }
        }
        assert!(shapes.len() <= 3, "{}", shapes.len());
    }
}

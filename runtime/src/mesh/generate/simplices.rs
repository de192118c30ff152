//! Splitting quadrilaterals into two triangles and hexahedra into six tetrahedra.
//!
//! A cell splits along the paths from its first to its last vertex that go along one axis after the
//! other, one simplex for each order of the axes (Kuhn's triangulation of the cube). A face is so
//! split along the diagonal from its first to its last vertex, so that two cells that
//! agree on the direction of a shared face agree on its two triangles.

use crate::mesh::Cell;

/// The orders of the axes, even permutations first.
const PATHS_2D: [[usize; 2]; 2] = [[0, 1], [1, 0]];
const PATHS_3D: [[usize; 3]; 6] =
    [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [1, 0, 2], [2, 1, 0]];

/// The simplices of tensor cells given by their vertices, cell after cell. They are positively
/// oriented if the cells are.
pub(super) fn split(cell: Cell, nodes: &[u32]) -> Vec<u32> {
    let dim = cell.dim();
    let paths: Vec<&[usize]> = if dim == 2 {
        PATHS_2D.iter().map(|path| &path[..]).collect()
    } else {
        PATHS_3D.iter().map(|path| &path[..]).collect()
    };
    let mut simplices = Vec::with_capacity(nodes.len() / (1 << dim) * paths.len() * (dim + 1));
    for vertices in nodes.chunks_exact(1 << dim) {
        for (number, path) in paths.iter().enumerate() {
            let start = simplices.len();
            let mut at = 0;
            simplices.push(vertices[at]);
            for axis in *path {
                at |= 1 << axis;
                simplices.push(vertices[at]);
            }
            // Odd paths turn the other way: exchange two vertices for a positive determinant.
            if number >= paths.len() / 2 {
                simplices.swap(start + dim - 1, start + dim);
            }
        }
    }
    simplices
}

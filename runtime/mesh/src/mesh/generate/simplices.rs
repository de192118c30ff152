//! Splitting quadrilaterals into two triangles and hexahedra into six tetrahedra.
//!
//! Each order of the axes gives one simplex: the path from the first to the last vertex along one axis after the other
//! (Kuhn's triangulation of the cube). It splits a face along the diagonal from its first to its last vertex. Cells
//! that agree on the direction of a shared face therefore agree on its triangles.

use crate::mesh::Cell;

/// The orders of the axes, even permutations first.
const PATHS_2D: [[usize; 2]; 2] = [[0, 1], [1, 0]];
const PATHS_3D: [[usize; 3]; 6] =
    [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [1, 0, 2], [2, 1, 0]];

/// Splits tensor cells, given by their vertices, into simplices. These are positively oriented if the cells are.
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
            // Odd paths have negative orientation: exchange two vertices.
            if number >= paths.len() / 2 {
                simplices.swap(start + dim - 1, start + dim);
            }
        }
    }
    simplices
}

//! VTK Lagrange cells: types, and the order of their equispaced nodes, for reading and writing.
//!
//! Tensor cells: vertices in cyclic order, then edges, faces and interior, each lexicographic along the axes
//! (`vtkHigherOrderQuadrilateral`, `vtkHigherOrderHexahedron`, as of VTK 9). Simplices: [`recursive`] order
//! (`vtkHigherOrderTriangle`, `vtkHigherOrderTetra`).

use super::Cell;
use super::recursive::{self, Listing};

/// Returns the VTK cell type: linear and quadratic types, which more programs read, else Lagrange types. The node
/// orders agree.
pub fn cell_type(cell: Cell, degree: usize) -> u8 {
    let [linear, quadratic, any] = match cell {
        Cell::Interval => [3, 21, 68],
        Cell::Triangle => [5, 22, 69],
        Cell::Quadrilateral => [9, 28, 70],
        Cell::Tetrahedron => [10, 24, 71],
        Cell::Hexahedron => [12, 29, 72],
    };
    match degree {
        1 => linear,
        2 => quadratic,
        _ => any,
    }
}

const TETRAHEDRON: Listing = Listing {
    cell: Cell::Tetrahedron,
    vertices: &[0, 1, 2, 3],
    edges: &[[0, 1], [1, 2], [2, 0], [0, 3], [1, 3], [2, 3]],
    faces: &[[0, 1, 3], [2, 3, 1], [0, 3, 2], [0, 2, 1]],
    face: Some(&recursive::TRIANGLE),
};

/// Edges of the VTK hexahedron by reference vertices, each along its axis.
const HEXAHEDRON_EDGES: [[usize; 2]; 12] = [
    [0, 1],
    [1, 3],
    [2, 3],
    [0, 2],
    [4, 5],
    [5, 7],
    [6, 7],
    [4, 6],
    [0, 4],
    [1, 5],
    [3, 7],
    [2, 6],
];

/// Returns the integer coordinates of the nodes in VTK order, from 0 to the degree.
pub fn lattice(cell: Cell, degree: usize) -> Vec<[usize; 3]> {
    match cell {
        Cell::Interval => tensor(1, degree, &[0, 1], &[[0, 1]]),
        Cell::Triangle => recursive::lattice(&recursive::TRIANGLE, degree),
        Cell::Tetrahedron => recursive::lattice(&TETRAHEDRON, degree),
        Cell::Quadrilateral => tensor(2, degree, &[0, 1, 3, 2], &HEXAHEDRON_EDGES[..4]),
        Cell::Hexahedron => tensor(3, degree, &[0, 1, 3, 2, 4, 5, 7, 6], &HEXAHEDRON_EDGES),
    }
}

/// Returns the nodes in the order of files below version 2.1, from before VTK 9: the last two edges of Lagrange
/// hexahedra are exchanged (`vtkUpdateCellsV8toV9`). Cells of other types and of lower degree are the same.
pub fn lattice_before_9(cell: Cell, degree: usize) -> Vec<[usize; 3]> {
    let mut nodes = lattice(cell, degree);
    if (cell, cell_type(cell, degree)) == (Cell::Hexahedron, 72) {
        exchange_last_edges(&mut nodes, degree);
    }
    nodes
}

/// Exchanges the last two edges of a hexahedron.
pub fn exchange_last_edges(nodes: &mut [[usize; 3]], degree: usize) {
    let inside = degree - 1;
    let last = 8 + 10 * inside;
    let (third, fourth) = nodes[last..last + 2 * inside].split_at_mut(inside);
    third.swap_with_slice(fourth);
}

fn tensor(dim: usize, degree: usize, vertices: &[usize], edges: &[[usize; 2]]) -> Vec<[usize; 3]> {
    let corner = |v: usize| [0, 1, 2].map(|a| (v >> a & 1) * degree);
    let mut points: Vec<[usize; 3]> = vertices.iter().map(|&v| corner(v)).collect();
    for &[start, end] in edges {
        points.extend((1..degree).map(|i| {
            let mut point = corner(start);
            point[(start ^ end).trailing_zeros() as usize] = i;
            point
        }));
    }
    if dim == 3 {
        for normal in 0..3 {
            for side in [0, degree] {
                let (a, b) = [(1, 2), (0, 2), (0, 1)][normal];
                for j in 1..degree {
                    for i in 1..degree {
                        let mut point = [side; 3];
                        (point[a], point[b]) = (i, j);
                        points.push(point);
                    }
                }
            }
        }
    }
    if dim > 1 {
        for k in if dim == 3 { 1..degree } else { 0..1 } {
            for j in 1..degree {
                points.extend((1..degree).map(|i| [i, j, k]));
            }
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parametric coordinates of VTK 9.7's cells, times the degree.
    #[test]
    fn orders_are_those_of_vtk() {
        let text = |cell, degree| {
            let digits = |p: [usize; 3]| format!("{}{}{}", p[0], p[1], p[2]);
            lattice(cell, degree).into_iter().map(digits).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            text(Cell::Hexahedron, 3),
            "000 300 330 030 003 303 333 033 100 200 310 320 130 230 010 020 103 203 313 323 133 \
             233 013 023 001 002 301 302 331 332 031 032 011 021 012 022 311 321 312 322 101 201 \
             102 202 131 231 132 232 110 210 120 220 113 213 123 223 111 211 121 221 112 212 122 222"
        );
        assert_eq!(
            text(Cell::Tetrahedron, 5),
            "000 500 050 005 100 200 300 400 410 320 230 140 040 030 020 010 001 002 003 004 401 \
             302 203 104 041 032 023 014 101 301 103 201 202 102 131 113 311 122 212 221 011 013 \
             031 012 022 021 110 130 310 120 220 210 111 211 121 112"
        );
        assert_eq!(
            text(Cell::Triangle, 4),
            "000 400 040 100 200 300 310 220 130 030 020 010 110 210 120"
        );
        assert_eq!(
            text(Cell::Quadrilateral, 3),
            "000 300 330 030 100 200 310 320 130 230 010 020 110 210 120 220"
        );
    }
}

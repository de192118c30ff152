//! Gmsh's element types: their numbers, and the order of their nodes.
//!
//! Nodes are equispaced and listed recursively (Gmsh's reference manual, "Node ordering");
//! [`lattice`] gives their integer coordinates in our reference cell.

use crate::mesh::Cell;
use crate::mesh::recursive::{self, Listing};

/// What an element type is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Point,
    /// A line or a cell of a mesh, with the order of its geometry.
    Cell(Cell, usize),
}

impl Kind {
    /// The kind with a number, or what it is called if it is not supported.
    pub(super) fn of(number: i64) -> Result<Kind, &'static str> {
        Ok(match number {
            15 => Kind::Point,
            1 => Kind::Cell(Cell::Interval, 1),
            8 => Kind::Cell(Cell::Interval, 2),
            26 => Kind::Cell(Cell::Interval, 3),
            27 => Kind::Cell(Cell::Interval, 4),
            28 => Kind::Cell(Cell::Interval, 5),
            2 => Kind::Cell(Cell::Triangle, 1),
            9 => Kind::Cell(Cell::Triangle, 2),
            21 => Kind::Cell(Cell::Triangle, 3),
            23 => Kind::Cell(Cell::Triangle, 4),
            25 => Kind::Cell(Cell::Triangle, 5),
            3 => Kind::Cell(Cell::Quadrilateral, 1),
            10 => Kind::Cell(Cell::Quadrilateral, 2),
            36 => Kind::Cell(Cell::Quadrilateral, 3),
            37 => Kind::Cell(Cell::Quadrilateral, 4),
            38 => Kind::Cell(Cell::Quadrilateral, 5),
            4 => Kind::Cell(Cell::Tetrahedron, 1),
            11 => Kind::Cell(Cell::Tetrahedron, 2),
            29 => Kind::Cell(Cell::Tetrahedron, 3),
            30 => Kind::Cell(Cell::Tetrahedron, 4),
            31 => Kind::Cell(Cell::Tetrahedron, 5),
            5 => Kind::Cell(Cell::Hexahedron, 1),
            12 => Kind::Cell(Cell::Hexahedron, 2),
            92 => Kind::Cell(Cell::Hexahedron, 3),
            93 => Kind::Cell(Cell::Hexahedron, 4),
            94 => Kind::Cell(Cell::Hexahedron, 5),
            16 | 17 | 20 | 22 | 24 => {
                return Err("an incomplete element; set Mesh.SecondOrderIncomplete = 0 in Gmsh");
            }
            6 | 13 | 18 | 90 | 91 => return Err("a prism"),
            7 | 14 | 19 => return Err("a pyramid"),
            _ => return Err("unknown"),
        })
    }

    /// The dimension.
    pub(super) fn dim(self) -> usize {
        match self {
            Kind::Point => 0,
            Kind::Cell(cell, _) => cell.dim(),
        }
    }

    /// How many nodes an element has.
    pub(super) fn nodes(self) -> usize {
        match self {
            Kind::Point => 1,
            Kind::Cell(cell, order) => {
                let n = order + 1;
                match cell {
                    Cell::Interval => n,
                    Cell::Triangle => n * (n + 1) / 2,
                    Cell::Quadrilateral => n * n,
                    Cell::Tetrahedron => n * (n + 1) * (n + 2) / 6,
                    Cell::Hexahedron => n * n * n,
                }
            }
        }
    }

    /// How many of the nodes are vertices; they come first.
    pub(super) fn vertices(self) -> usize {
        match self {
            Kind::Point => 1,
            Kind::Cell(cell, _) => cell.vertex_count(),
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind::Point => f.write_str("point"),
            Kind::Cell(Cell::Interval, order) => write!(f, "line of order {order}"),
            Kind::Cell(cell, order) => write!(f, "{cell} of order {order}"),
        }
    }
}

/// Integer coordinates of the nodes in Gmsh's order.
pub(super) fn lattice(cell: Cell, order: usize) -> Vec<[usize; 3]> {
    recursive::lattice(listing(cell), order)
}

fn listing(cell: Cell) -> &'static Listing {
    match cell {
        Cell::Interval => &INTERVAL,
        Cell::Triangle => &recursive::TRIANGLE,
        Cell::Quadrilateral => &QUADRILATERAL,
        Cell::Tetrahedron => &TETRAHEDRON,
        Cell::Hexahedron => &HEXAHEDRON,
    }
}

const INTERVAL: Listing =
    Listing { cell: Cell::Interval, vertices: &[0, 1], edges: &[[0, 1]], faces: &[], face: None };

const QUADRILATERAL: Listing = Listing {
    cell: Cell::Quadrilateral,
    vertices: &[0, 1, 3, 2],
    edges: &[[0, 1], [1, 2], [2, 3], [3, 0]],
    faces: &[],
    face: None,
};

const TETRAHEDRON: Listing = Listing {
    cell: Cell::Tetrahedron,
    vertices: &[0, 1, 2, 3],
    edges: &[[0, 1], [1, 2], [2, 0], [3, 0], [3, 2], [3, 1]],
    faces: &[[0, 2, 1], [0, 1, 3], [0, 3, 2], [3, 1, 2]],
    face: Some(&recursive::TRIANGLE),
};

const HEXAHEDRON: Listing = Listing {
    cell: Cell::Hexahedron,
    vertices: &[0, 1, 3, 2, 4, 5, 7, 6],
    edges: &[
        [0, 1],
        [0, 3],
        [0, 4],
        [1, 2],
        [1, 5],
        [2, 3],
        [2, 6],
        [3, 7],
        [4, 5],
        [4, 7],
        [5, 6],
        [6, 7],
    ],
    // Of the four vertices of a face the first, and its neighbours on either side.
    faces: &[[0, 3, 1], [0, 1, 4], [0, 4, 3], [1, 2, 5], [2, 3, 6], [4, 5, 7]],
    face: Some(&QUADRILATERAL),
};

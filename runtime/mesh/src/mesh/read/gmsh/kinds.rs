//! Gmsh element types: numbers and node orders.
//!
//! Nodes are equispaced and listed recursively (Gmsh reference manual, "Node ordering"); [`lattice`] gives their
//! integer coordinates in the reference cell.

use crate::mesh::Cell;
use crate::mesh::read::contents::ElementKind;
use crate::mesh::recursive::{self, Listing};

/// An element type that is not supported.
pub(super) struct UnsupportedElement {
    pub(super) what: &'static str,
    pub(super) remedy: &'static str,
}

/// Advice for meshes with other cells. `Recombine;` in `Extrude` gives prisms over triangles; without it they are split
/// into tetrahedra. Recombination in three dimensions leaves prisms and pyramids between hexahedra.
const NO_PRISMS: &str = "; for tetrahedra alone, leave `Recombine;` out of `Extrude` and set Mesh.RecombineAll = 0 \
     and Mesh.Recombine3DAll = 0 in Gmsh; for hexahedra alone, mesh without these and set Mesh.SubdivisionAlgorithm = 2";

const ONE_KIND: &str = "; cells are triangles, quadrilaterals, tetrahedra and hexahedra of order 1 to 5, of order 2 \
     without nodes inside faces, too: mesh the part with one kind of these";

/// Returns the kind of a Gmsh element type.
pub(super) fn of(number: i64) -> Result<ElementKind, UnsupportedElement> {
    Ok(match number {
        15 => ElementKind::Point,
        1 => ElementKind::Cell(Cell::Interval, 1),
        8 => ElementKind::Cell(Cell::Interval, 2),
        26 => ElementKind::Cell(Cell::Interval, 3),
        27 => ElementKind::Cell(Cell::Interval, 4),
        28 => ElementKind::Cell(Cell::Interval, 5),
        2 => ElementKind::Cell(Cell::Triangle, 1),
        9 => ElementKind::Cell(Cell::Triangle, 2),
        21 => ElementKind::Cell(Cell::Triangle, 3),
        23 => ElementKind::Cell(Cell::Triangle, 4),
        25 => ElementKind::Cell(Cell::Triangle, 5),
        3 => ElementKind::Cell(Cell::Quadrilateral, 1),
        10 => ElementKind::Cell(Cell::Quadrilateral, 2),
        36 => ElementKind::Cell(Cell::Quadrilateral, 3),
        37 => ElementKind::Cell(Cell::Quadrilateral, 4),
        38 => ElementKind::Cell(Cell::Quadrilateral, 5),
        4 => ElementKind::Cell(Cell::Tetrahedron, 1),
        11 => ElementKind::Cell(Cell::Tetrahedron, 2),
        29 => ElementKind::Cell(Cell::Tetrahedron, 3),
        30 => ElementKind::Cell(Cell::Tetrahedron, 4),
        31 => ElementKind::Cell(Cell::Tetrahedron, 5),
        5 => ElementKind::Cell(Cell::Hexahedron, 1),
        12 => ElementKind::Cell(Cell::Hexahedron, 2),
        92 => ElementKind::Cell(Cell::Hexahedron, 3),
        93 => ElementKind::Cell(Cell::Hexahedron, 4),
        94 => ElementKind::Cell(Cell::Hexahedron, 5),
        16 => ElementKind::Serendipity(Cell::Quadrilateral),
        17 => ElementKind::Serendipity(Cell::Hexahedron),
        other => return Err(unsupported(other)),
    })
}

fn unsupported(number: i64) -> UnsupportedElement {
    let (what, remedy) = match number {
        20 | 22 | 24 | 32 | 33 | 39..=41 | 99..=101 => {
            ("an incomplete element", "; set Mesh.SecondOrderIncomplete = 0 in Gmsh")
        }
        6 | 13 | 18 | 90 | 91 => ("a prism", NO_PRISMS),
        7 | 14 | 19 | 118 | 119 => ("a pyramid", NO_PRISMS),
        34 => ("a polygon", ONE_KIND),
        35 => ("a polyhedron", ONE_KIND),
        _ => ("unknown", ONE_KIND),
    };
    UnsupportedElement { what, remedy }
}

/// Returns the integer coordinates of the nodes in Gmsh's order.
pub(super) fn lattice(kind: ElementKind) -> Vec<[usize; 3]> {
    match kind {
        ElementKind::Point => vec![[0; 3]],
        ElementKind::Cell(cell, order) => recursive::lattice(listing(cell), order),
        // Complete elements list vertices and edge midpoints first.
        ElementKind::Serendipity(cell) => {
            let mut nodes = recursive::lattice(listing(cell), 2);
            nodes.truncate(kind.nodes());
            nodes
        }
    }
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
    // The first vertex of each face, and its neighbours on either side.
    faces: &[[0, 3, 1], [0, 1, 4], [0, 4, 3], [1, 2, 5], [2, 3, 6], [4, 5, 7]],
    face: Some(&QUADRILATERAL),
};

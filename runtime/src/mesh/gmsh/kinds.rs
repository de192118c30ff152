//! Gmsh's element types: their numbers, and the order of their nodes.
//!
//! Nodes are equispaced, listed recursively: vertices, edges, faces (each again as a small cell of
//! its own), then the inside as a cell of lower order (Gmsh's reference manual, "Node ordering").
//! [`lattice`] gives their integer coordinates, 0 to the order, in our reference cell.

use crate::mesh::Cell;

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

/// Edges of Gmsh's cells, by its own vertex numbers.
const TRIANGLE_EDGES: [[usize; 2]; 3] = [[0, 1], [1, 2], [2, 0]];
const QUADRILATERAL_EDGES: [[usize; 2]; 4] = [[0, 1], [1, 2], [2, 3], [3, 0]];
const TETRAHEDRON_EDGES: [[usize; 2]; 6] = [[0, 1], [1, 2], [2, 0], [3, 0], [3, 2], [3, 1]];
const HEXAHEDRON_EDGES: [[usize; 2]; 12] = [
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
];

/// Faces of Gmsh's cells, by its own vertex numbers.
const TETRAHEDRON_FACES: [[usize; 3]; 4] = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [3, 1, 2]];
const HEXAHEDRON_FACES: [[usize; 4]; 6] =
    [[0, 3, 2, 1], [0, 1, 5, 4], [0, 4, 7, 3], [1, 2, 6, 5], [2, 3, 7, 6], [4, 5, 6, 7]];

type Point = [i64; 3];

/// Integer coordinates of the nodes in Gmsh's order.
pub(super) fn lattice(cell: Cell, order: usize) -> Vec<[usize; 3]> {
    inside(cell, order as i64, 0).into_iter().map(|p| p.map(|x| x as usize)).collect()
}

/// The nodes of a cell of some order whose first vertex is (offset, …), layer by layer.
fn inside(cell: Cell, order: i64, offset: i64) -> Vec<Point> {
    let mut points = Vec::new();
    let (mut p, mut at) = (order, offset);
    // From one layer of nodes to the next inside, this much of the order is used up.
    let step = match cell {
        Cell::Interval => order + 1,
        Cell::Quadrilateral | Cell::Hexahedron => 2,
        Cell::Triangle | Cell::Tetrahedron => cell.dim() as i64 + 1,
    };
    while p >= 0 {
        layer(cell, p, at, &mut points);
        p -= step;
        at += 1;
    }
    points
}

/// The nodes on the surface of a cell of order p.
fn layer(cell: Cell, p: i64, at: i64, points: &mut Vec<Point>) {
    let dim = cell.dim();
    let shift = |q: Point| [0, 1, 2].map(|c| if c < dim { q[c] + at } else { 0 });
    if p == 0 {
        points.push(shift([0; 3]));
        return;
    }
    let vertices = vertices(cell, p);
    points.extend(vertices.iter().map(|&v| shift(v)));
    let edges: &[[usize; 2]] = match cell {
        Cell::Interval => &[[0, 1]],
        Cell::Triangle => &TRIANGLE_EDGES,
        Cell::Quadrilateral => &QUADRILATERAL_EDGES,
        Cell::Tetrahedron => &TETRAHEDRON_EDGES,
        Cell::Hexahedron => &HEXAHEDRON_EDGES,
    };
    let between = |a: usize, b: usize| [0, 1, 2].map(|c| (vertices[b][c] - vertices[a][c]) / p);
    for &[a, b] in edges {
        let step = between(a, b);
        points.extend((1..p).map(|k| shift([0, 1, 2].map(|c| vertices[a][c] + k * step[c]))));
    }
    let mut face = |shape: Cell, corners: [usize; 3], order: i64| {
        let (s, t) = (between(corners[0], corners[1]), between(corners[0], corners[2]));
        for q in inside(shape, order, 1) {
            let along = |c: usize| vertices[corners[0]][c] + q[0] * s[c] + q[1] * t[c];
            points.push(shift([along(0), along(1), along(2)]));
        }
    };
    match cell {
        Cell::Tetrahedron => {
            TETRAHEDRON_FACES.iter().for_each(|&f| face(Cell::Triangle, f, p - 3));
        }
        Cell::Hexahedron => HEXAHEDRON_FACES
            .iter()
            .for_each(|f| face(Cell::Quadrilateral, [f[0], f[1], f[3]], p - 2)),
        _ => {}
    }
}

/// The vertices in Gmsh's order: quadrilaterals and hexahedra go around.
fn vertices(cell: Cell, p: i64) -> Vec<Point> {
    let around: &[usize] = match cell {
        Cell::Quadrilateral => &[0, 1, 3, 2],
        Cell::Hexahedron => &[0, 1, 3, 2, 4, 5, 7, 6],
        _ => &[0, 1, 2, 3],
    };
    around[..cell.vertex_count()].iter().map(|&v| cell.vertex(v).map(|x| x as i64 * p)).collect()
}

//! Equispaced nodes in recursive order, as in Gmsh (all cells) and VTK (simplices).
//!
//! Vertices come first, then the interiors of edges and of faces (each listed as a smaller cell), then the interior as
//! a cell of lower order. Coordinates are integers from 0 to the order.

use super::Cell;

/// Order of the entities of a cell, in terms of its listed vertices.
pub(crate) struct Listing {
    pub(crate) cell: Cell,
    /// The local numbers of the vertices, in listed order.
    pub(crate) vertices: &'static [usize],
    /// The start and the end of each edge.
    pub(crate) edges: &'static [[usize; 2]],
    /// The origin of each face and the ends of its two axes.
    pub(crate) faces: &'static [[usize; 3]],
    /// The order inside a face.
    pub(crate) face: Option<&'static Listing>,
}

/// Triangles, identical in both programs.
pub(crate) const TRIANGLE: Listing = Listing {
    cell: Cell::Triangle,
    vertices: &[0, 1, 2],
    edges: &[[0, 1], [1, 2], [2, 0]],
    faces: &[],
    face: None,
};

type LatticePoint = [i64; 3];

/// Returns the integer coordinates of the nodes of a cell.
pub(crate) fn lattice(listing: &Listing, order: usize) -> Vec<[usize; 3]> {
    inside(listing, order as i64, 0).into_iter().map(|p| p.map(|x| x as usize)).collect()
}

/// Returns the nodes of a cell whose first vertex is (offset, …), layer by layer.
fn inside(listing: &Listing, order: i64, offset: i64) -> Vec<LatticePoint> {
    // The order decreases by this from one layer to the next; an interval is one layer.
    let step = match listing.cell {
        Cell::Interval => order + 1,
        Cell::Quadrilateral | Cell::Hexahedron => 2,
        Cell::Triangle | Cell::Tetrahedron => listing.cell.dim() as i64 + 1,
    };
    let mut points = Vec::new();
    let (mut p, mut at) = (order, offset);
    while p >= 0 {
        layer(listing, p, at, &mut points);
        p -= step;
        at += 1;
    }
    points
}

/// Appends the nodes on the boundary of a cell of order p.
fn layer(listing: &Listing, p: i64, at: i64, points: &mut Vec<LatticePoint>) {
    let dim = listing.cell.dim();
    let shift = |q: LatticePoint| [0, 1, 2].map(|c| if c < dim { q[c] + at } else { 0 });
    if p == 0 {
        points.push(shift([0; 3]));
        return;
    }
    let vertices: Vec<LatticePoint> =
        listing.vertices.iter().map(|&v| listing.cell.vertex(v).map(|x| x as i64 * p)).collect();
    points.extend(vertices.iter().map(|&v| shift(v)));
    let between = |a: usize, b: usize| [0, 1, 2].map(|c| (vertices[b][c] - vertices[a][c]) / p);
    for &[a, b] in listing.edges {
        let step = between(a, b);
        points.extend((1..p).map(|k| shift([0, 1, 2].map(|c| vertices[a][c] + k * step[c]))));
    }
    let Some(face) = listing.face else { return };
    let order = if face.cell == Cell::Triangle { p - 3 } else { p - 2 };
    for &[origin, first, second] in listing.faces {
        let (s, t) = (between(origin, first), between(origin, second));
        for q in inside(face, order, 1) {
            let along = |c: usize| vertices[origin][c] + q[0] * s[c] + q[1] * t[c];
            points.push(shift([along(0), along(1), along(2)]));
        }
    }
}

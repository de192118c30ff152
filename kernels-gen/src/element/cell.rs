//! Reference cells: coordinates, sub-entities and normals.
//!
//! Reference coordinates lie in [0, 1]^d. Vertices of tensor cells are lexicographic, x fastest: vertex v has the
//! coordinates (v & 1, v >> 1 & 1, v >> 2 & 1). Vertices of simplices are the origin, e_x, e_y, e_z.
//!
//! ```text
//! quadrilateral   2───3     edges (facets): x = 0, x = 1, y = 0, y = 1
//!                 0───1
//! hexahedron      edges: the four along x, the four along y, the four along z, each group in
//!                 lexicographic order; faces: x = 0, x = 1, y = 0, y = 1, z = 0, z = 1
//! triangle        edge i lies opposite vertex i
//! tetrahedron     edges: pairs of vertices in lexicographic order; face i opposite vertex i
//! ```
//!
//! The vertices of a sub-entity are in ascending order, so that a face of a hexahedron is lexicographic in its two free
//! directions. An entity's own reference coordinates follow these vertices: for example, face x = 1 of a hexahedron has
//! the coordinates (y, z).

use std::fmt;
use std::str::FromStr;

/// A reference cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cell {
    /// [0, 1]: the cell of a line, an edge, and the facet of a two-dimensional cell.
    Interval,
    /// Vertices (0, 0), (1, 0), (0, 1).
    Triangle,
    /// [0, 1]².
    Quadrilateral,
    /// Vertices (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1).
    Tetrahedron,
    /// [0, 1]³.
    Hexahedron,
}

type TopologyTable = &'static [&'static [usize]];

const VERTICES: TopologyTable = &[&[0], &[1], &[2], &[3], &[4], &[5], &[6], &[7]];
const INTERVAL: TopologyTable = &[&[0, 1]];
const TRIANGLE: TopologyTable = &[&[0, 1, 2]];
const TRIANGLE_EDGES: TopologyTable = &[&[1, 2], &[0, 2], &[0, 1]];
const QUADRILATERAL: TopologyTable = &[&[0, 1, 2, 3]];
const QUADRILATERAL_EDGES: TopologyTable = &[&[0, 2], &[1, 3], &[0, 1], &[2, 3]];
const TETRAHEDRON: TopologyTable = &[&[0, 1, 2, 3]];
const TETRAHEDRON_EDGES: TopologyTable = &[&[0, 1], &[0, 2], &[0, 3], &[1, 2], &[1, 3], &[2, 3]];
const TETRAHEDRON_FACES: TopologyTable = &[&[1, 2, 3], &[0, 2, 3], &[0, 1, 3], &[0, 1, 2]];
const HEXAHEDRON: TopologyTable = &[&[0, 1, 2, 3, 4, 5, 6, 7]];
const HEXAHEDRON_EDGES: TopologyTable = &[
    &[0, 1],
    &[2, 3],
    &[4, 5],
    &[6, 7],
    &[0, 2],
    &[1, 3],
    &[4, 6],
    &[5, 7],
    &[0, 4],
    &[1, 5],
    &[2, 6],
    &[3, 7],
];
const HEXAHEDRON_FACES: TopologyTable =
    &[&[0, 2, 4, 6], &[1, 3, 5, 7], &[0, 1, 4, 5], &[2, 3, 6, 7], &[0, 1, 2, 3], &[4, 5, 6, 7]];

impl Cell {
    /// The cells that a mesh may consist of.
    pub const ALL: [Self; 5] =
        [Self::Interval, Self::Triangle, Self::Quadrilateral, Self::Tetrahedron, Self::Hexahedron];

    /// Returns the dimension of the cell.
    pub const fn dim(self) -> usize {
        match self {
            Self::Interval => 1,
            Self::Triangle | Self::Quadrilateral => 2,
            Self::Tetrahedron | Self::Hexahedron => 3,
        }
    }

    /// Returns whether the cell is a product of intervals.
    pub const fn is_tensor(self) -> bool {
        matches!(self, Self::Interval | Self::Quadrilateral | Self::Hexahedron)
    }

    /// Returns whether sums over nodes or points are factorised along the axes of the cell.
    pub const fn is_factorised(self) -> bool {
        matches!(self, Self::Quadrilateral | Self::Hexahedron)
    }

    /// Returns the number of vertices.
    pub const fn vertex_count(self) -> usize {
        match self {
            Self::Interval => 2,
            Self::Triangle => 3,
            Self::Quadrilateral | Self::Tetrahedron => 4,
            Self::Hexahedron => 8,
        }
    }

    /// Returns the reference coordinates of a vertex; coordinates beyond the dimension are 0.
    pub fn vertex(self, vertex: usize) -> [f64; 3] {
        assert!(vertex < self.vertex_count(), "vertex {vertex} should exist in a {self}");
        let mut point = [0.0; 3];
        if self.is_tensor() {
            for (axis, coordinate) in point.iter_mut().enumerate() {
                *coordinate = (vertex >> axis & 1) as f64;
            }
        } else if vertex > 0 {
            point[vertex - 1] = 1.0;
        }
        point
    }

    /// Returns the reference coordinates of all vertices.
    pub fn vertices(self) -> Vec<[f64; 3]> {
        (0..self.vertex_count()).map(|vertex| self.vertex(vertex)).collect()
    }

    /// Returns the vertex lists of the sub-entities of dimension `dim`: 0 vertices, 1 edges, 2 faces, and the cell
    /// itself.
    pub fn entities(self, dim: usize) -> &'static [&'static [usize]] {
        match (self, dim) {
            (_, 0) => &VERTICES[..self.vertex_count()],
            (Self::Interval, 1) => INTERVAL,
            (Self::Triangle, 1) => TRIANGLE_EDGES,
            (Self::Triangle, 2) => TRIANGLE,
            (Self::Quadrilateral, 1) => QUADRILATERAL_EDGES,
            (Self::Quadrilateral, 2) => QUADRILATERAL,
            (Self::Tetrahedron, 1) => TETRAHEDRON_EDGES,
            (Self::Tetrahedron, 2) => TETRAHEDRON_FACES,
            (Self::Tetrahedron, 3) => TETRAHEDRON,
            (Self::Hexahedron, 1) => HEXAHEDRON_EDGES,
            (Self::Hexahedron, 2) => HEXAHEDRON_FACES,
            (Self::Hexahedron, 3) => HEXAHEDRON,
            _ => &[],
        }
    }

    /// Returns the kind of the sub-entities of dimension `dim`; `None` for vertices.
    pub const fn entity_cell(self, dim: usize) -> Option<Self> {
        match (dim, self.is_tensor()) {
            (1, _) => Some(Self::Interval),
            (2, true) => Some(Self::Quadrilateral),
            (2, false) => Some(Self::Triangle),
            (3, true) => Some(Self::Hexahedron),
            (3, false) => Some(Self::Tetrahedron),
            _ => None,
        }
    }

    /// Returns the vertex lists of the facets, the sub-entities of one dimension less.
    pub fn facets(self) -> &'static [&'static [usize]] {
        self.entities(self.dim() - 1)
    }

    /// Returns the kind of the facets; `None` if they are points.
    pub const fn facet_cell(self) -> Option<Self> {
        self.entity_cell(self.dim() - 1)
    }

    /// Returns the number of orientations of a facet: of a point, an edge, a triangle or a square.
    pub fn facet_orientations(self) -> usize {
        match (self.dim(), self.is_tensor()) {
            (1, _) => 1,
            (2, _) => 2,
            (_, false) => 6,
            (_, true) => 8,
        }
    }

    /// Returns the facet coordinates of a point of a facet in an orientation. Those of edges are as they are, then
    /// reversed. Those of squares have bits: axes exchanged, and then the first and the second one reversed before. Those
    /// of triangles are the permutations of the vertices in lexicographic order. Orientation 0 is the identity.
    pub fn oriented(self, orientation: u8, [s, t]: [f64; 2]) -> [f64; 2] {
        let flip = |bit: u8, x: f64| if orientation >> bit & 1 == 1 { 1.0 - x } else { x };
        match (self.dim(), self.is_tensor()) {
            (1, _) => [s, t],
            (2, _) => [flip(0, s), 0.0],
            (_, true) => {
                let (s, t) = (flip(1, s), flip(2, t));
                if orientation & 1 == 1 { [t, s] } else { [s, t] }
            }
            (_, false) => {
                let own = [1.0 - s - t, s, t];
                let [_, q, r] = ranked(orientation);
                [own[q], own[r]]
            }
        }
    }

    /// Returns the outward unit normal of a facet in reference coordinates.
    pub fn facet_normal(self, facet: usize) -> [f64; 3] {
        let mut normal = [0.0; 3];
        match self {
            // Two facets per axis, the one at 0 first.
            Self::Interval | Self::Quadrilateral | Self::Hexahedron => {
                normal[facet / 2] = if facet.is_multiple_of(2) { -1.0 } else { 1.0 };
            }
            Self::Triangle | Self::Tetrahedron if facet == 0 => {
                let entry = 1.0 / (self.dim() as f64).sqrt();
                normal[..self.dim()].fill(entry);
            }
            Self::Triangle | Self::Tetrahedron => normal[facet - 1] = -1.0,
        }
        normal
    }

    /// Returns the point of the cell at the reference coordinates `point` of a sub-entity.
    pub fn entity_point(self, dim: usize, entity: usize, point: [f64; 3]) -> [f64; 3] {
        let vertices = self.entities(dim)[entity];
        let origin = self.vertex(vertices[0]);
        let mut result = origin;
        for axis in 0..dim {
            // Vertex 2^axis of a tensor entity and axis + 1 of a simplex span its axes.
            let tip = if self.is_tensor() { 1 << axis } else { axis + 1 };
            let end = self.vertex(vertices[tip]);
            for c in 0..3 {
                result[c] += point[axis] * (end[c] - origin[c]);
            }
        }
        result
    }

    /// Returns the centre of the cell: the mean of its vertices.
    pub fn centre(self) -> [f64; 3] {
        let coordinate = if self.is_tensor() { 0.5 } else { 1.0 / (self.dim() as f64 + 1.0) };
        let mut point = [0.0; 3];
        point[..self.dim()].fill(coordinate);
        point
    }

    /// Returns the measure of the reference cell: 1, or 1/d! for simplices.
    pub const fn volume(self) -> f64 {
        match self {
            Self::Interval | Self::Quadrilateral | Self::Hexahedron => 1.0,
            Self::Triangle => 1.0 / 2.0,
            Self::Tetrahedron => 1.0 / 6.0,
        }
    }

    /// Returns the short name used in the language: `interval`, `tri`, `quad`, `tet`, `hex`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interval => "interval",
            Self::Triangle => "tri",
            Self::Quadrilateral => "quad",
            Self::Tetrahedron => "tet",
            Self::Hexahedron => "hex",
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name of no cell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown cell `{0}`; the cells are interval, tri, quad, tet, hex")]
pub struct UnknownCell(pub String);

impl FromStr for Cell {
    type Err = UnknownCell;

    fn from_str(word: &str) -> Result<Self, UnknownCell> {
        match word {
            "interval" | "line" => Ok(Self::Interval),
            "tri" | "triangle" => Ok(Self::Triangle),
            "quad" | "quadrilateral" => Ok(Self::Quadrilateral),
            "tet" | "tetrahedron" => Ok(Self::Tetrahedron),
            "hex" | "hexahedron" => Ok(Self::Hexahedron),
            _ => Err(UnknownCell(word.to_owned())),
        }
    }
}

/// Returns the permutation of three elements with a lexicographic rank.
fn ranked(rank: u8) -> [usize; 3] {
    let first = usize::from(rank / 2);
    let mut rest = (0..3).filter(|&i| i != first);
    let [low, high] = [(); 2].map(|()| rest.next().unwrap_or(0));
    if rank.is_multiple_of(2) { [first, low, high] } else { [first, high, low] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn euler_characteristic_is_one() {
        for cell in Cell::ALL {
            let sum: i64 = (0..=cell.dim())
                .map(|dim| (1 - 2 * (dim as i64 % 2)) * cell.entities(dim).len() as i64)
                .sum();
            assert_eq!(sum, 1, "{cell}");
        }
    }

    #[test]
    fn normals_point_away_from_the_other_vertices() {
        for cell in Cell::ALL {
            for (facet, vertices) in cell.facets().iter().enumerate() {
                let normal = cell.facet_normal(facet);
                let height = |v: usize| -> f64 {
                    let (p, o) = (cell.vertex(v), cell.vertex(vertices[0]));
                    (0..3).map(|c| normal[c] * (p[c] - o[c])).sum()
                };
                for v in 0..cell.vertex_count() {
                    if vertices.contains(&v) {
                        assert_eq!(height(v), 0.0, "{cell} facet {facet} vertex {v}");
                    } else {
                        assert!(height(v) < -0.5, "{cell} facet {facet} vertex {v}");
                    }
                }
                let length: f64 = normal.iter().map(|x| x * x).sum();
                assert!((length - 1.0).abs() < 4.0 * f64::EPSILON);
            }
        }
    }

    #[test]
    fn entity_points_reach_the_entity_vertices() {
        for cell in Cell::ALL {
            for dim in 1..=cell.dim() {
                let shape = cell.entity_cell(dim).expect("an entity of dimension 1 or more");
                for (entity, vertices) in cell.entities(dim).iter().enumerate() {
                    assert_eq!(vertices.len(), shape.vertex_count());
                    assert!(vertices.is_sorted());
                    for (local, &vertex) in vertices.iter().enumerate() {
                        let point = cell.entity_point(dim, entity, shape.vertex(local));
                        assert_eq!(point, cell.vertex(vertex), "{cell} {dim} {entity} {local}");
                    }
                }
            }
        }
    }

    #[test]
    fn names_read_back() {
        for cell in Cell::ALL {
            assert_eq!(cell.name().parse(), Ok(cell));
        }
        assert!("prism".parse::<Cell>().is_err());
    }
}

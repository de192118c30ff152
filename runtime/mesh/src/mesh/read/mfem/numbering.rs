//! MFEM's order of the degrees of freedom of a continuous space: those of vertices, edges, faces and cells follow each
//! other. Edges and faces are numbered in the order in which elements first have them. An edge is directed from the
//! smaller vertex to the larger one; a face has the vertices that its first element lists.

use super::MfemElement;
use crate::mesh::Cell;
use std::collections::HashMap;

/// Numbers of the entities of all elements.
pub(super) struct H1Numbering {
    degree: usize,
    edges: HashMap<[u32; 2], usize>,
    /// First node and vertices of each face, by its sorted vertices.
    faces: HashMap<[u32; 4], (usize, Vec<u32>)>,
    first_edge: usize,
    /// First inner node of each element.
    inner: Vec<usize>,
    count: usize,
}

impl H1Numbering {
    pub(super) fn new(degree: usize, n_vertices: usize, elements: &[MfemElement]) -> Self {
        let (mut edges, mut faces) = (HashMap::new(), HashMap::new());
        if degree > 1 {
            for element in elements {
                // Those of an interval or of a plane cell are the cell itself.
                for edge in edges_of(element.cell).iter().filter(|_| dim(element) > 1) {
                    let next = edges.len();
                    edges.entry(sorted(edge.map(|v| element.vertices[v]))).or_insert(next);
                }
            }
        }
        let mut count = n_vertices + edges.len() * degree.saturating_sub(1);
        if degree > 1 {
            for element in elements {
                for face in faces_of(element.cell) {
                    let vertices: Vec<u32> = face.iter().map(|&v| element.vertices[v]).collect();
                    let inside = inner_nodes(face_cell(face), degree);
                    faces.entry(key(&vertices)).or_insert_with(|| {
                        count += inside;
                        (count - inside, vertices)
                    });
                }
            }
        }
        let mut inner = Vec::with_capacity(elements.len());
        for element in elements {
            inner.push(count);
            count += element.cell.map_or(0, |cell| inner_nodes(cell, degree));
        }
        Self { degree, edges, faces, first_edge: n_vertices, inner, count }
    }

    /// Returns the number of nodes of the mesh.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the nodes of an element, for the points of a lattice.
    pub(super) fn nodes(
        &self,
        number: usize,
        element: &MfemElement,
        lattice: &[[usize; 3]],
    ) -> Vec<u64> {
        let places: HashMap<[usize; 3], usize> =
            lattice.iter().enumerate().map(|(place, &at)| (at, place)).collect();
        let mut nodes = vec![0; lattice.len()];
        let mut set = |at: [usize; 3], node: usize| {
            if let Some(&place) = places.get(&at) {
                nodes[place] = node as u64;
            }
        };
        let Some(cell) = element.cell else { return nodes };
        let p = self.degree;
        let corner = |v: usize| corner(cell, v).map(|x| x * p);
        for (v, &vertex) in element.vertices.iter().enumerate() {
            set(corner(v), vertex as usize);
        }
        for &[a, b] in edges_of(element.cell).iter().filter(|_| cell.dim() > 1) {
            let Some(edge) = self.edges.get(&sorted([a, b].map(|v| element.vertices[v]))) else {
                continue;
            };
            let (a, b) = if element.vertices[a] < element.vertices[b] { (a, b) } else { (b, a) };
            for i in 1..p {
                let at = combine(p, &[(corner(a), p - i), (corner(b), i)]);
                set(at, self.first_edge + edge * (p - 1) + i - 1);
            }
        }
        for face in faces_of(element.cell) {
            let vertices: Vec<u32> = face.iter().map(|&v| element.vertices[v]).collect();
            let Some((first, base)) = self.faces.get(&key(&vertices)) else { continue };
            let local = |k: usize| {
                let found = element.vertices.iter().position(|v| *v == base[k]);
                corner(found.unwrap_or_default())
            };
            for (index, [i, j, _]) in inner_lattice(face_cell(face), p).into_iter().enumerate() {
                let at = match face.len() {
                    3 => combine(p, &[(local(0), p - i - j), (local(1), i), (local(2), j)]),
                    _ => {
                        // The corner opposite to the first one closes a parallelogram.
                        let along = combine(p, &[(local(0), p - i), (local(1), i)]);
                        let opposite = combine(p, &[(local(3), p - i), (local(2), i)]);
                        combine(p, &[(along, p - j), (opposite, j)])
                    }
                };
                set(at, first + index);
            }
        }
        for (index, at) in inner_lattice(cell, p).into_iter().enumerate() {
            set(at, self.inner[number] + index);
        }
        nodes
    }
}

fn dim(element: &MfemElement) -> usize {
    element.cell.map_or(0, Cell::dim)
}

/// Returns Σ w x / p over points x with weights w.
fn combine(p: usize, points: &[([usize; 3], usize)]) -> [usize; 3] {
    [0, 1, 2].map(|c| points.iter().map(|(point, weight)| point[c] * weight).sum::<usize>() / p)
}

fn sorted<const N: usize>(mut vertices: [u32; N]) -> [u32; N] {
    vertices.sort_unstable();
    vertices
}

/// Returns the sorted vertices of a face, filled up for triangles.
fn key(vertices: &[u32]) -> [u32; 4] {
    let mut key = [u32::MAX; 4];
    key[..vertices.len()].copy_from_slice(vertices);
    sorted(key)
}

fn face_cell(face: &[usize]) -> Cell {
    if face.len() == 3 { Cell::Triangle } else { Cell::Quadrilateral }
}

/// Returns the coordinates of a vertex, in the file's order.
fn corner(cell: Cell, v: usize) -> [usize; 3] {
    let round = [[0, 0], [1, 0], [1, 1], [0, 1]];
    match cell {
        Cell::Interval => [v, 0, 0],
        Cell::Triangle | Cell::Tetrahedron => [1, 2, 3].map(|axis| usize::from(v == axis)),
        Cell::Quadrilateral | Cell::Hexahedron => [round[v % 4][0], round[v % 4][1], v / 4],
    }
}

fn inner_nodes(cell: Cell, degree: usize) -> usize {
    inner_lattice(cell, degree).len()
}

/// Returns the inner points of a lattice, the first coordinate fastest.
fn inner_lattice(cell: Cell, p: usize) -> Vec<[usize; 3]> {
    let outside = |dim: usize| if cell.dim() > dim { 1..p } else { 0..1 };
    let mut points = Vec::new();
    for k in outside(2) {
        for j in outside(1) {
            points.extend(outside(0).map(|i| [i, j, k]));
        }
    }
    points.retain(|at| cell.is_tensor() || at.iter().sum::<usize>() < p);
    points
}

fn edges_of(cell: Option<Cell>) -> &'static [[usize; 2]] {
    match cell {
        None => &[],
        Some(Cell::Interval) => &[[0, 1]],
        Some(Cell::Triangle) => &[[0, 1], [1, 2], [2, 0]],
        Some(Cell::Quadrilateral) => &[[0, 1], [1, 2], [2, 3], [3, 0]],
        Some(Cell::Tetrahedron) => &[[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]],
        Some(Cell::Hexahedron) => &[
            [0, 1],
            [1, 2],
            [3, 2],
            [0, 3],
            [4, 5],
            [5, 6],
            [7, 6],
            [4, 7],
            [0, 4],
            [1, 5],
            [2, 6],
            [3, 7],
        ],
    }
}

fn faces_of(cell: Option<Cell>) -> &'static [&'static [usize]] {
    match cell {
        Some(Cell::Tetrahedron) => &[&[1, 2, 3], &[0, 3, 2], &[0, 1, 3], &[0, 2, 1]],
        Some(Cell::Hexahedron) => &[
            &[3, 2, 1, 0],
            &[0, 1, 5, 4],
            &[1, 2, 6, 5],
            &[2, 3, 7, 6],
            &[3, 0, 4, 7],
            &[4, 5, 6, 7],
        ],
        _ => &[],
    }
}

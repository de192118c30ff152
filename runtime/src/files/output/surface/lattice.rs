//! Uniform division of reference cells: points, and the triangles or tetrahedra between them.
//!
//! Cubes are divided along their main diagonal into one tetrahedron per order of the axes (H. Freudenthal,
//! "Simplizialzerlegungen von beschränkter Flachheit", Annals of Mathematics 43, 1942). The simplex ξ, η, ζ ≥ 0, ξ +
//! η + ζ ≤ 1 maps to the part 1 ≥ a ≥ b ≥ c ≥ 0 of the cube, with a = ξ + η + ζ, b = η + ζ, c = ζ. That part is a union
//! of such tetrahedra.

use crate::mesh::Cell;
use std::collections::HashMap;

/// Uniformly divided plane cell.
pub(super) struct PlaneLattice {
    /// Reference coordinates.
    pub(super) points: Vec<[f64; 3]>,
    /// The points of each triangle.
    pub(super) triangles: Vec<[u32; 3]>,
}

impl PlaneLattice {
    /// Divides a triangle or a quadrilateral into `parts` parts per direction.
    pub(super) fn new(shape: Cell, parts: usize) -> Self {
        let inside = |i: usize, j: usize| shape.is_tensor() || i + j <= parts;
        let mut number = HashMap::new();
        let mut points = Vec::new();
        for (i, j) in pairs(parts + 1).filter(|&(i, j)| inside(i, j)) {
            number.insert((i, j), points.len() as u32);
            points.push([i as f64 / parts as f64, j as f64 / parts as f64, 0.0]);
        }
        let mut triangles = Vec::new();
        for (i, j) in pairs(parts) {
            let halves =
                [[(i, j), (i + 1, j), (i, j + 1)], [(i + 1, j), (i + 1, j + 1), (i, j + 1)]];
            for half in halves.iter().filter(|half| half.iter().all(|&(i, j)| inside(i, j))) {
                triangles.push(half.map(|point| number[&point]));
            }
        }
        Self { points, triangles }
    }
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count * count).map(move |n| (n % count, n / count))
}

/// Returns the equispaced positions along an edge.
pub(super) fn edge_points(parts: usize) -> Vec<f64> {
    (0..=parts).map(|i| i as f64 / parts as f64).collect()
}

/// Uniformly divided solid cell.
pub(super) struct SolidLattice {
    /// Reference coordinates.
    pub(super) points: Vec<[f64; 3]>,
    /// The points of each tetrahedron.
    pub(super) tetrahedra: Vec<[u32; 4]>,
    /// For each point, a bit set of the facets that contain it.
    pub(super) facets: Vec<u8>,
}

/// All permutations of the axes.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

impl SolidLattice {
    /// Divides a tetrahedron or a hexahedron into `parts` parts per direction.
    pub(super) fn new(cell: Cell, parts: usize) -> Self {
        let inside = |[a, b, c]: [usize; 3]| cell.is_tensor() || (a >= b && b >= c);
        let mut solid = Self { points: Vec::new(), tetrahedra: Vec::new(), facets: Vec::new() };
        let n = parts + 1;
        let mut number = vec![u32::MAX; n * n * n];
        let index = |[a, b, c]: [usize; 3]| a + n * (b + n * c);
        for at in triples(n).filter(|&at| inside(at)) {
            number[index(at)] = solid.points.len() as u32;
            let lattice = match cell.is_tensor() {
                true => at,
                false => [at[0] - at[1], at[1] - at[2], at[2]],
            };
            solid.points.push(lattice.map(|i| i as f64 / parts as f64));
            solid.facets.push(facets_of(cell, parts, lattice));
        }
        for at in triples(parts) {
            for order in ORDERS {
                let mut corner = at;
                let mut corners = [corner; 4];
                for (step, axis) in order.into_iter().enumerate() {
                    corner[axis] += 1;
                    corners[step + 1] = corner;
                }
                if corners.into_iter().all(inside) {
                    solid.tetrahedra.push(corners.map(|corner| number[index(corner)]));
                }
            }
        }
        solid
    }
}

fn triples(count: usize) -> impl Iterator<Item = [usize; 3]> {
    (0..count.pow(3)).map(move |n| [n % count, n / count % count, n / count / count])
}

/// Returns the facets that contain a lattice point, as a bit set.
fn facets_of(cell: Cell, parts: usize, lattice: [usize; 3]) -> u8 {
    let mut bits = 0;
    for (axis, &at) in lattice.iter().enumerate() {
        if cell.is_tensor() {
            bits |= u8::from(at == 0) << (2 * axis) | u8::from(at == parts) << (2 * axis + 1);
        } else {
            bits |= u8::from(at == 0) << (axis + 1);
        }
    }
    let far = !cell.is_tensor() && lattice.iter().sum::<usize>() == parts;
    bits | u8::from(far)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_the_cell_and_their_facets_are_the_cells() {
        for (cell, most) in [(Cell::Tetrahedron, 1), (Cell::Hexahedron, 6)] {
            for parts in 1..4 {
                let solid = SolidLattice::new(cell, parts);
                assert_eq!(solid.tetrahedra.len(), most * parts.pow(3));
                for (facet, vertices) in cell.facets().iter().enumerate() {
                    let normal = cell.facet_normal(facet);
                    let origin = cell.vertex(vertices[0]);
                    for (point, bits) in solid.points.iter().zip(&solid.facets) {
                        let height =
                            (0..3).map(|c| normal[c] * (point[c] - origin[c])).sum::<f64>();
                        // Lattice points are far from facets that do not contain them.
                        let on = height.abs() < 0.1;
                        assert_eq!(bits >> facet & 1 == 1, on, "{cell} {parts} {facet} {point:?}");
                    }
                }
            }
        }
        assert_eq!(PlaneLattice::new(Cell::Triangle, 3).triangles.len(), 9);
        assert_eq!(PlaneLattice::new(Cell::Quadrilateral, 3).triangles.len(), 18);
    }
}

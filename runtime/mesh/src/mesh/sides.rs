//! Check for overlapping cells: two cells with a common facet must lie on opposite sides of it.
//!
//! A cell orients each of its facets by its outward normal. Given the sign of the cell's determinant, which
//! [`super::measure`] has checked, the orientation follows from the order of the facet's vertices in the cell, for any
//! deformation. Two cells on opposite sides of a facet give it opposite orientations. If the orientations agree, the
//! cells overlap and integrals count a part of the domain twice. Curved cells must also share all nodes of a common
//! facet; otherwise they gape or overlap.

use super::measure::{Gradients, rule};
use super::shape::{CellShape, vertex_function};
use super::{MeshData, MeshError, Topology};
use crate::support::parallel::*;
use kernels_gen::element::Cell;
use std::collections::HashMap;

/// Returns an error for the first two cells on the same side of a facet.
pub(super) fn check_sides(
    shape: &CellShape,
    parts: &MeshData,
    topology: &Topology,
) -> Result<(), MeshError> {
    let facets = topology.facets();
    let outward: Vec<bool> =
        (0..shape.cell.facets().len()).map(|facet| is_outward(shape.cell, facet)).collect();
    let mirrored = mirrored(shape, parts);
    let outside = |cell: usize, local: usize| outward[local] != mirrored[cell];
    let found = (0..topology.n_cells()).into_par_iter().first(|cell| {
        facets.of_cell(cell).iter().enumerate().find_map(|(local, &facet)| {
            let (first, number) = facets.first_cell(facet as usize);
            let another = first != cell && {
                let turned = is_odd(topology, cell, local);
                outside(first, number) == (outside(cell, local) != turned)
            };
            another.then_some((first, cell, facet as usize))
        })
    });
    let Some((first, second, facet)) = found else { return check_nodes(shape, parts, topology) };
    let at = middle(parts, facets.vertices(facet));
    let cells = [first, second].map(|cell| shape.name(parts, cell));
    Err(MeshError::Overlap { cells: Box::new(cells), at })
}

/// Returns the mean of some vertices.
fn middle(parts: &MeshData, vertices: &[u32]) -> [f64; 3] {
    let mean = |c: usize| {
        vertices.iter().map(|&v| parts.points[v as usize][c]).sum::<f64>() / vertices.len() as f64
    };
    [0, 1, 2].map(mean)
}

/// Returns an error for the first two curved cells that share a facet's vertices but not its other nodes.
fn check_nodes(shape: &CellShape, parts: &MeshData, topology: &Topology) -> Result<(), MeshError> {
    if shape.element.degree() == 1 {
        return Ok(());
    }
    let (facets, mut traces) = (topology.facets(), FacetNodeOrders::default());
    for cell in 0..topology.n_cells() {
        for (local, &facet) in facets.of_cell(cell).iter().enumerate() {
            let (first, number) = facets.first_cell(facet as usize);
            if first == cell {
                continue;
            }
            let own = traces.nodes(shape, parts, topology, (cell, local));
            if own != traces.nodes(shape, parts, topology, (first, number)) {
                let cells = [first, cell].map(|cell| shape.name(parts, cell));
                let at = middle(parts, facets.vertices(facet as usize));
                return Err(MeshError::Gap { cells: Box::new(cells), at });
            }
        }
    }
    Ok(())
}

/// The nodes of a local facet in an order that depends only on the ranks of its vertex numbers.
#[derive(Default)]
struct FacetNodeOrders(HashMap<(usize, [u8; 4]), Vec<usize>>);

impl FacetNodeOrders {
    fn nodes(
        &mut self,
        shape: &CellShape,
        parts: &MeshData,
        topology: &Topology,
        (cell, local): (usize, usize),
    ) -> Vec<u32> {
        let (facet, vertices) = (shape.cell.facets()[local], topology.vertices(cell));
        let mut order = [0, 1, 2, 3];
        order[..facet.len()].sort_unstable_by_key(|&i| vertices[facet[i as usize]]);
        let places = self.0.entry((local, order)).or_insert_with(|| {
            let mut places = shape.facet_nodes[local].clone();
            // The barycentric weights of a node, in the order of the vertices.
            places.sort_by_key(|&node| {
                order[..facet.len()].iter().map(|&i| facet[i as usize]).fold(0, |key, v| {
                    let share = vertex_function(shape.cell, v, shape.coordinates[node]);
                    key << 20 | (share * f64::from(1 << 18)).round() as u128
                })
            });
            places
        });
        let nodes = &parts.nodes[cell * shape.nodes..(cell + 1) * shape.nodes];
        places.iter().map(|&place| nodes[place]).collect()
    }
}

/// Returns whether the first vertices of a local facet turn counterclockwise about the reference cell's outward normal;
/// of a point, whether the normal points up the axis.
fn is_outward(cell: Cell, facet: usize) -> bool {
    let vertices = cell.facets()[facet];
    if cell.dim() == 1 {
        return cell.facet_normal(facet)[0] > 0.0;
    }
    let side = |to: usize| {
        let (from, to) = (cell.vertex(vertices[0]), cell.vertex(vertices[to]));
        [0, 1, 2].map(|c| to[c] - from[c])
    };
    let x = side(1);
    // In two dimensions the normal is to the right of the edge.
    let y = if cell.dim() == 3 { side(2) } else { [0.0, 0.0, 1.0] };
    let normal = cell.facet_normal(facet);
    let product: f64 = (0..3)
        .map(|c| {
            let (c1, c2) = ((c + 1) % 3, (c + 2) % 3);
            normal[c] * (x[c1] * y[c2] - x[c2] * y[c1])
        })
        .sum();
    product > 0.0
}

/// Returns whether a cell lists a facet's vertices in an odd permutation of the facet's own order.
fn is_odd(topology: &Topology, cell: usize, local: usize) -> bool {
    match topology.cell() {
        Cell::Hexahedron => topology.face_orientation(cell, local).count_ones() % 2 == 1,
        // The ranks of the transpositions of three elements.
        Cell::Tetrahedron => matches!(topology.face_orientation(cell, local), 1 | 2 | 5),
        Cell::Interval => false,
        _ => topology.edge_reversed(cell, local),
    }
}

/// Returns for each cell whether its determinant is negative; evaluated at one checked point.
fn mirrored(shape: &CellShape, parts: &MeshData) -> Vec<bool> {
    let points = rule(shape.cell, shape.element.degree()).points();
    let gradients = Gradients::new(shape, &points[..1]);
    let of = |nodes: &[u32]| {
        gradients.determinant(0, nodes.iter().map(|&node| parts.points[node as usize])) < 0.0
    };
    parts.nodes.par_chunks_exact(shape.nodes).with_min_len(1024).map(of).listed()
}

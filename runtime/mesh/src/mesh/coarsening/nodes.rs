//! Points and connectivity of the coarse cells, from the maps of their children.
//!
//! ```text
//! x_coarse(X) = x_child(ξ)   at each node X of the coarse cell, with ξ its position in the child that contains it
//! ```
//!
//! Up to order 2 the nodes of a patch are vertices of its children. For higher orders, nodes on edges and faces of
//! patches are numbered in the frames of these, and the first cell that contains them computes them.

use super::child_position::ChildPosition;
use super::patches::Patches;
use crate::mesh::shape::CellShape;
use crate::mesh::{Mesh, MeshData, MeshError, Topology};
use crate::support::parallel::*;
use kernels_gen::element::{Node, interpolation};
use std::collections::HashMap;

/// Smallest number of patches per thread.
const GRAIN: usize = 1 << 10;

/// Returns the points and the connectivity of the coarse mesh. Its points follow the vertices of the fine mesh.
pub(super) fn nodes(mesh: &Mesh, patches: &Patches) -> Result<MeshData, MeshError> {
    let shape = CellShape::new(mesh.cell(), mesh.order())?;
    let vertices = || copied(&mesh.points()[..mesh.n_vertices()]);
    match mesh.order() {
        order @ (1 | 2) => {
            let all: Vec<_> = shape.element.nodes().iter().map(|node| node.lattice).collect();
            let nodes = at_vertices(mesh, patches, &all, order);
            Ok(MeshData { points: vertices(), nodes, ..MeshData::default() })
        }
        _ => {
            let corners: Vec<_> = (0..mesh.cell().vertex_count())
                .map(|vertex| mesh.cell().vertex(vertex).map(|x| x as usize))
                .collect();
            let own = at_vertices(mesh, patches, &corners, 1);
            let topology = Topology::new(mesh.cell(), mesh.n_vertices(), own)?;
            above(mesh, patches, &shape, &topology, vertices())
        }
    }
}

/// Returns the fine vertices at some lattice points of each patch; the lattice has `order` steps, one or two.
fn at_vertices(mesh: &Mesh, patches: &Patches, places: &[[usize; 3]], order: usize) -> Vec<u32> {
    let dim = mesh.dim();
    // The child and its corner, in steps of half a patch.
    let split = |place: &[usize; 3]| {
        let half = place.map(|at| 2 * at / order);
        let child = (0..dim).fold(0, |child, axis| child | usize::from(half[axis] == 2) << axis);
        let corner = (0..dim).fold(0, |corner, axis| corner | usize::from(half[axis] > 0) << axis);
        (child, corner)
    };
    let split: Vec<(usize, usize)> = places.iter().map(split).collect();
    let count = patches.count(mesh.cell().vertex_count());
    let mut nodes = vec![0; count * split.len()];
    let all = nodes.par_chunks_mut(split.len()).enumerate().with_min_len(GRAIN);
    all.each(|(patch, nodes)| {
        for (node, &(child, corner)) in nodes.iter_mut().zip(&split) {
            *node = patches.vertex(mesh, patch, child, corner);
        }
    });
    nodes
}

/// Returns the nodes for orders above 2.
fn above(
    mesh: &Mesh,
    patches: &Patches,
    shape: &CellShape,
    topology: &Topology,
    mut points: Vec<[f64; 3]>,
) -> Result<MeshData, MeshError> {
    let (dim, each) = (mesh.dim(), mesh.cell().vertex_count());
    let own = shape.element.nodes();
    let child = |node: &Node| {
        (0..dim).fold(0, |child, axis| child | usize::from(node.point[axis] > 0.5) << axis)
    };
    let children: Vec<usize> = own.iter().map(child).collect();
    let (mut tables, mut starts) = (HashMap::new(), [points.len(); 4]);
    let count = [0, topology.edges().len(), topology.faces().len()];
    for entity in 1..dim {
        let all = count[entity] * shape.element.entity_count(entity);
        starts[entity + 1] = starts[entity] + all;
    }
    points.resize(starts[dim] + topology.n_cells() * shape.element.entity_count(dim), [0.0; 3]);
    crate::mesh::index(points.len(), "points")?;
    let mut nodes = Vec::with_capacity(topology.n_cells() * own.len());
    for patch in 0..topology.n_cells() {
        for (local, node) in own.iter().enumerate() {
            if node.dim == 0 {
                nodes.push(topology.vertices(patch)[node.entity]);
                continue;
            }
            let (entity, index) = numbered(topology, patch, node, shape.element.degree());
            let number = starts[node.dim] + entity * shape.element.entity_count(node.dim) + index;
            nodes.push(number as u32);
            if is_first(topology, patch, node) {
                let at = patch * each + children[local];
                let (cell, place) = (patches.children[at] as usize, patches.places[at]);
                let row = tables.entry((place.key(), local));
                let row = row.or_insert_with(|| row_of(shape, place, node, dim));
                points[number] = mesh.place_of(cell, row);
            }
        }
    }
    Ok(MeshData { points, nodes, ..MeshData::default() })
}

/// Returns the basis of a child at a node of its patch.
fn row_of(shape: &CellShape, place: ChildPosition, node: &Node, dim: usize) -> Vec<f64> {
    interpolation(shape.element, &[place.inverse(node.point, dim)])
}

/// Returns whether a cell is the first that contains a node.
fn is_first(topology: &Topology, cell: usize, node: &Node) -> bool {
    let entities = match node.dim {
        dim if dim == topology.cell().dim() => return true,
        1 => topology.edges(),
        _ => topology.faces(),
    };
    let entity = entities.of_cell(cell)[node.entity] as usize;
    entities.first_cell(entity) == (cell, node.entity)
}

/// Returns the number of the edge, face or cell that contains a node, and the node's index in its frame.
fn numbered(topology: &Topology, cell: usize, node: &Node, order: usize) -> (usize, usize) {
    let [a, b, _] = node.position;
    match node.dim {
        dim if dim == topology.cell().dim() => (cell, node.index),
        1 => {
            let reversed = topology.edge_reversed(cell, node.entity);
            let at = if reversed { order - a } else { a };
            (topology.edges().of_cell(cell)[node.entity] as usize, at - 1)
        }
        _ => {
            let seen = topology.face_orientation(cell, node.entity);
            let (s, t) = if seen & 1 == 1 { (b, a) } else { (a, b) };
            let s = if seen & 2 == 2 { order - s } else { s };
            let t = if seen & 4 == 4 { order - t } else { t };
            let index = (t - 1) * (order - 1) + s - 1;
            (topology.faces().of_cell(cell)[node.entity] as usize, index)
        }
    }
}

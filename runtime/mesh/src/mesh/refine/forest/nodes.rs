//! Points and connectivity of simplices that descend from the cells of a mesh.
//!
//! The vertex order of the cells in the [`Topology`] must give consistent directions of edges and faces. The path of
//! each cell ([`super::descent`]) determines its nodes. Points in [`Parts`](crate::mesh::MeshData) start with the
//! vertices, in their numbering.

use super::children::ChildMaps;
use super::descent::Descent;
use crate::mesh::{Mesh, MeshError, Topology};
use kernels_gen::element::Lagrange;

/// Returns the points, and the nodes of all cells. `path` writes the child numbers on the path to a cell, and returns
/// the initial cell.
pub(crate) fn placed(
    mesh: &Mesh,
    children: &ChildMaps,
    topology: &Topology,
    path: impl Fn(usize, &mut Vec<usize>) -> usize,
) -> Result<(Vec<[f64; 3]>, Vec<u32>), MeshError> {
    let (cell, element) = (mesh.cell(), geometry(mesh)?);
    let mut descent = Descent::new(mesh, element, children);
    let (local, starts) = (element.nodes(), starts(topology, &element));
    let mut points = vec![[0.0; 3]; starts[4]];
    let mut nodes = Vec::with_capacity(topology.n_cells() * local.len());
    let mut way = Vec::new();
    for number in 0..topology.n_cells() {
        way.clear();
        let tree = path(number, &mut way);
        let places = descent.nodes(tree as u32, &way);
        for (node, place) in local.iter().zip(places) {
            let entity = match node.dim {
                0 => topology.vertices(number)[node.entity] as usize,
                d if d == cell.dim() => number,
                1 => topology.edges().of_cell(number)[node.entity] as usize,
                _ => topology.faces().of_cell(number)[node.entity] as usize,
            };
            let point = starts[node.dim] + entity * element.entity_count(node.dim) + node.index;
            points[point] = *place;
            nodes.push(point as u32);
        }
    }
    Ok((points, nodes))
}

/// Returns the element of the mesh geometry.
pub(super) fn geometry(mesh: &Mesh) -> Result<Lagrange, MeshError> {
    let (cell, order) = (mesh.cell(), mesh.order());
    let expected = "orders are 1 to 12, on simplices 1 to 8";
    Lagrange::continuous(cell, order).map_err(|_| MeshError::Unsupported { cell, order, expected })
}

/// Returns the first node of each dimension's entities, and the number of nodes.
fn starts(topology: &Topology, element: &Lagrange) -> [usize; 5] {
    let dim = topology.cell().dim();
    let mut count = [topology.n_vertices(), topology.edges().len(), topology.faces().len(), 0];
    count[dim] = topology.n_cells();
    let mut starts = [0; 5];
    for d in 0..4 {
        let each = if d <= dim { element.entity_count(d) } else { 0 };
        starts[d + 1] = starts[d] + count[d] * each;
    }
    starts
}

//! Output points and the values of fields there.
//!
//! Points are the equispaced nodes of one degree on each cell. If all fields are continuous, cells share the points on
//! common vertices, edges and faces; otherwise each cell has its own.

use super::{MAX_DEGREE, Output};
use crate::mesh::{Cell, Mesh, vtk_order};
use kernels_gen::element::{Lagrange, entity_permutation, interpolation};
use std::collections::HashMap;

/// Points of an output file.
pub(super) struct SamplePoints {
    /// The degree of the output cells.
    pub(super) degree: usize,
    /// The number of points per cell.
    pub(super) per_cell: usize,
    /// The total number of points.
    pub(super) count: usize,
    /// `[cell][node in VTK order]`.
    of_cell: Vec<u64>,
    /// Reference coordinates in VTK order.
    reference: Vec<[f64; 3]>,
    /// For each node, in VTK order, its image after exchange of the first two axes.
    mirror: Vec<usize>,
}

impl SamplePoints {
    pub(super) fn new(output: &Output<'_>) -> SamplePoints {
        let mesh = output.mesh;
        let degrees = output.point_fields.iter().map(|field| field.element.degree());
        let degree = degrees.fold(mesh.order(), usize::max).clamp(1, MAX_DEGREE);
        let lattice = vtk_order::lattice_before_9(mesh.cell(), degree);
        let reference =
            lattice.iter().map(|p| p.map(|i| i as f64 / degree as f64)).collect::<Vec<_>>();
        let continuous = output.point_fields.iter().all(|field| field.element.is_continuous());
        let per_cell = lattice.len();
        let (count, of_cell) = if continuous {
            shared(mesh, degree, &lattice)
        } else {
            let count = mesh.n_cells() * per_cell;
            (count, (0..count as u64).collect())
        };
        let place: HashMap<[usize; 3], usize> =
            lattice.iter().enumerate().map(|(place, &at)| (at, place)).collect();
        let mirrored = |[i, j, k]: [usize; 3]| match mesh.dim() {
            1 => [degree - i, 0, 0],
            _ => [j, i, k],
        };
        let mirror = lattice.iter().map(|&at| place[&mirrored(at)]).collect();
        SamplePoints { degree, per_cell, count, of_cell, reference, mirror }
    }

    /// Returns the points of all cells, renumbered such that the Jacobian determinant is positive: VTK derives the
    /// orientation of a cell from its numbering.
    pub(super) fn connectivity(&self, mesh: &Mesh) -> Vec<u64> {
        let mut all = Vec::with_capacity(self.of_cell.len());
        for (points, mirrored) in self.of_cell.chunks_exact(self.per_cell).zip(mesh.mirrored()) {
            if mirrored {
                all.extend(self.mirror.iter().map(|&node| points[node]));
            } else {
                all.extend_from_slice(points);
            }
        }
        all
    }

    /// Returns the values of a field at the points, `components` each. `nodes` is its connectivity `[cell][local
    /// node]`, `values` are its nodal values.
    pub(super) fn values(
        &self,
        element: Lagrange,
        nodes: &[u32],
        values: &[f64],
        components: usize,
    ) -> Vec<f64> {
        let rows = InterpolationRows::new(element, &self.reference);
        let mut result = vec![0.0; self.count * components];
        let mut done = vec![false; self.count];
        let cells = nodes.chunks_exact(element.count());
        for (points, nodes) in self.of_cell.chunks_exact(self.per_cell).zip(cells) {
            for (row, &point) in points.iter().enumerate() {
                let point = point as usize;
                if std::mem::replace(&mut done[point], true) {
                    continue;
                }
                let out = &mut result[point * components..(point + 1) * components];
                for &(node, weight) in rows.of(row) {
                    let start = nodes[node] as usize * components;
                    for (sum, value) in out.iter_mut().zip(&values[start..start + components]) {
                        *sum += weight * value;
                    }
                }
            }
        }
        result
    }
}

/// A sparse interpolation matrix: a point that is a node has one entry.
pub(super) struct InterpolationRows {
    starts: Vec<usize>,
    entries: Vec<(usize, f64)>,
}

/// Smaller weights are rounding errors.
const NOTHING: f64 = 1e-14;

impl InterpolationRows {
    pub(super) fn new(element: Lagrange, points: &[[f64; 3]]) -> InterpolationRows {
        let dense = interpolation(element, points);
        let mut rows = InterpolationRows { starts: vec![0], entries: Vec::new() };
        for row in dense.chunks_exact(element.count()) {
            let entries = row.iter().copied().enumerate().filter(|(_, w)| w.abs() > NOTHING);
            rows.entries.extend(entries);
            rows.starts.push(rows.entries.len());
        }
        rows
    }

    /// Returns the weights of a point, by local node.
    pub(super) fn of(&self, row: usize) -> &[(usize, f64)] {
        &self.entries[self.starts[row]..self.starts[row + 1]]
    }
}

/// Numbers the points by vertices, edges, faces and cells.
fn shared(mesh: &Mesh, degree: usize, lattice: &[[usize; 3]]) -> (usize, Vec<u64>) {
    let (cell, topology) = (mesh.cell(), mesh.topology());
    // INVARIANT: `MAX_DEGREE` and the limits of meshes keep the degree within the element's.
    let Ok(element) = Lagrange::continuous(cell, degree) else { return (0, Vec::new()) };
    let by_lattice = element.lattice();
    let all = element.nodes();
    let nodes: Vec<_> = lattice.iter().map(|point| all[by_lattice[point]]).collect();
    let mut each = [1; 4];
    let mut starts = [0; 4];
    let mut counts = [topology.n_vertices(), topology.edges().len(), topology.faces().len(), 0];
    counts[cell.dim()] = topology.n_cells();
    let mut count = 0;
    for dim in 0..=cell.dim() {
        each[dim] = element.entity_count(dim);
        starts[dim] = count;
        count += counts[dim] * each[dim];
    }
    let mut agreed = NodeOrders::new(cell, degree);
    let mut of_cell = Vec::with_capacity(mesh.n_cells() * nodes.len());
    for c in 0..mesh.n_cells() {
        let vertices = topology.vertices(c);
        for node in &nodes {
            let entity = match node.dim {
                0 => vertices[node.entity],
                1 if cell.dim() > 1 => topology.edges().of_cell(c)[node.entity],
                2 if cell.dim() == 3 => topology.faces().of_cell(c)[node.entity],
                _ => c as u32,
            };
            let within = if node.dim == 0 || node.dim == cell.dim() || topology.is_oriented() {
                node.index
            } else {
                agreed.place(node.dim, node.entity, vertices, node.index)
            };
            of_cell.push((starts[node.dim] + entity as usize * each[node.dim] + within) as u64);
        }
    }
    (count, of_cell)
}

/// The order of nodes on entities whose cells disagree on directions, by the order of the entity's vertices.
struct NodeOrders {
    cell: Cell,
    degree: usize,
    known: HashMap<(usize, [u8; 4]), Vec<usize>>,
}

impl NodeOrders {
    fn new(cell: Cell, degree: usize) -> NodeOrders {
        NodeOrders { cell, degree, known: HashMap::new() }
    }

    fn place(&mut self, dim: usize, entity: usize, vertices: &[u32], index: usize) -> usize {
        let local = self.cell.entities(dim)[entity];
        let mut ranks = [u8::MAX; 4];
        for (rank, &v) in ranks.iter_mut().zip(local) {
            *rank = local.iter().filter(|&&w| vertices[w] < vertices[v]).count() as u8;
        }
        let (cell, degree) = (self.cell, self.degree);
        let permutation = self.known.entry((dim, ranks)).or_insert_with(|| {
            let ranks: Vec<usize> = ranks[..local.len()].iter().map(|&r| r as usize).collect();
            cell.entity_cell(dim)
                .map(|shape| entity_permutation(shape, degree, &ranks))
                .unwrap_or_default()
        });
        permutation[index]
    }
}

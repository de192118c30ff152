//! Data common to all cells of a mesh: the geometry's element, its nodes at vertices and on facets, and the permutation
//! of nodes under renumbering.

use super::orient::{IDENTITY, Renumbering};
use super::{Cell, CellName, MeshData, MeshError};
use crate::support::parallel::*;
use kernels_gen::element::Lagrange;
use std::collections::HashMap;

/// The highest supported order of the geometry.
const MAX_ORDER: usize = 12;

/// Smallest number of cells per thread.
const GRAIN: usize = 1 << 12;

/// Data common to all cells of a mesh.
pub(crate) struct CellShape {
    pub(crate) cell: Cell,
    pub(crate) element: Lagrange,
    /// The number of geometry nodes of a cell.
    pub(crate) nodes: usize,
    /// The geometry node of each vertex.
    pub(crate) vertex_nodes: Vec<usize>,
    /// The geometry nodes on each facet, including its edges and vertices.
    pub(crate) facet_nodes: Vec<Vec<usize>>,
    /// Reference coordinates of the geometry nodes.
    pub(crate) coordinates: Vec<[f64; 3]>,
}

impl CellShape {
    pub(crate) fn new(cell: Cell, order: usize) -> Result<CellShape, MeshError> {
        let unsupported = |expected| MeshError::Unsupported { cell, order, expected };
        if order == 0 || order > MAX_ORDER {
            return Err(unsupported("orders are 1 to 12, on simplices 1 to 8"));
        }
        let element = Lagrange::continuous(cell, order)
            .map_err(|_| unsupported("orders are 1 to 12, on simplices 1 to 8"))?;
        let coordinates = element.points();
        let vertex_nodes =
            (0..cell.vertex_count()).map(|v| nearest(&coordinates, cell.vertex(v))).collect();
        let facet_nodes = facet_nodes(cell, element);
        let nodes = coordinates.len();
        Ok(CellShape { cell, element, nodes, vertex_nodes, facet_nodes, coordinates })
    }

    /// Returns the points of a lattice with `steps` intervals per direction.
    pub(crate) fn lattice_points(&self, steps: usize) -> Vec<[f64; 3]> {
        let dim = self.cell.dim();
        let n = steps + 1;
        let mut points = Vec::new();
        for i in 0..n.pow(dim as u32) {
            let place = [i % n, i / n % n, i / n / n % n];
            if self.cell.is_tensor() || place.iter().sum::<usize>() <= steps {
                points.push(place.map(|p| p as f64 / steps as f64));
            }
        }
        points
    }

    /// Returns the vertices of a cell, given its nodes.
    pub(crate) fn vertices<'a>(&'a self, nodes: &'a [u32]) -> impl Iterator<Item = u32> + 'a {
        self.vertex_nodes.iter().map(|&i| nodes[i])
    }

    /// Returns a vertex of the first cell of a list of nodes.
    pub(crate) fn vertex(&self, nodes: &[u32], local: usize) -> u32 {
        nodes[self.vertex_nodes[local]]
    }

    pub(crate) fn all_vertices(&self, nodes: &[u32]) -> Vec<u32> {
        let each = self.vertex_nodes.len();
        let mut all = vec![0; nodes.len() / self.nodes * each];
        let cells = nodes.par_chunks_exact(self.nodes).with_min_len(GRAIN);
        all.par_chunks_mut(each).zip(cells).each(|(own, cell)| {
            own.iter_mut().zip(self.vertices(cell)).for_each(|(own, vertex)| *own = vertex);
        });
        all
    }

    /// Returns the mean of a cell's vertices.
    pub(crate) fn centre(&self, points: &[[f64; 3]], nodes: &[u32]) -> [f64; 3] {
        let mut centre = [0.0; 3];
        for vertex in self.vertices(nodes) {
            for (sum, x) in centre.iter_mut().zip(points[vertex as usize]) {
                *sum += x;
            }
        }
        centre.map(|sum| sum / self.vertex_nodes.len() as f64)
    }

    /// Returns the identification of a cell in messages.
    pub(crate) fn name(&self, parts: &MeshData, cell: usize) -> CellName {
        let holds = |cells: &[u32]| cells.contains(&(cell as u32));
        CellName {
            number: parts.labels.get(cell).copied().unwrap_or(cell as u64),
            labelled: !parts.labels.is_empty(),
            tags: parts.cells.iter().filter(|t| holds(t.1)).map(|t| t.0.clone()).collect(),
            centre: self
                .centre(&parts.points, &parts.nodes[cell * self.nodes..(cell + 1) * self.nodes]),
        }
    }

    /// Renumbers each cell by `of(cell number, its vertices)`.
    pub(crate) fn renumber(&self, nodes: &mut [u32], of: impl Fn(usize, &[u32]) -> Renumbering) {
        let mut known: HashMap<Renumbering, Vec<usize>> = HashMap::new();
        let (mut old, mut vertices) = (Vec::new(), Vec::new());
        for (cell, nodes) in nodes.chunks_exact_mut(self.nodes).enumerate() {
            vertices.clear();
            vertices.extend(self.vertices(nodes));
            let renumbering = of(cell, &vertices);
            if renumbering == IDENTITY {
                continue;
            }
            let map = known.entry(renumbering).or_insert_with_key(|key| self.renumbered_nodes(key));
            old.clear();
            old.extend_from_slice(nodes);
            for (new, &from) in nodes.iter_mut().zip(map.iter()) {
                *new = old[from];
            }
        }
    }

    /// Returns the permutation of nodes under a renumbering of vertices: new local node → old local node.
    ///
    /// A symmetry of the reference cell maps its node set onto itself; the new node at ξ is the
    /// old node at Σ_v λ_v(ξ) X_renumbering(v), with λ the (multi)linear functions of the vertices.
    pub(crate) fn renumbered_nodes(&self, renumbering: &Renumbering) -> Vec<usize> {
        let cell = self.cell;
        self.coordinates
            .iter()
            .map(|&at| {
                let mut image = [0.0; 3];
                for v in 0..cell.vertex_count() {
                    let (weight, vertex) =
                        (vertex_function(cell, v, at), cell.vertex(renumbering[v] as usize));
                    for c in 0..3 {
                        image[c] += weight * vertex[c];
                    }
                }
                nearest(&self.coordinates, image)
            })
            .collect()
    }
}

fn facet_nodes(cell: Cell, element: Lagrange) -> Vec<Vec<usize>> {
    let nodes = element.nodes();
    cell.facets()
        .iter()
        .map(|facet| {
            let inside = |&i: &usize| {
                cell.entities(nodes[i].dim)[nodes[i].entity].iter().all(|v| facet.contains(v))
            };
            (0..nodes.len()).filter(inside).collect()
        })
        .collect()
}

/// Returns the (multi)linear function that is 1 at a vertex and 0 at the others.
pub(crate) fn vertex_function(cell: Cell, vertex: usize, at: [f64; 3]) -> f64 {
    let corner = cell.vertex(vertex);
    if cell.is_tensor() {
        (0..cell.dim()).map(|a| if corner[a] > 0.5 { at[a] } else { 1.0 - at[a] }).product()
    } else if vertex == 0 {
        1.0 - at.iter().sum::<f64>()
    } else {
        at[vertex - 1]
    }
}

/// Returns the point nearest to `to`.
fn nearest(points: &[[f64; 3]], to: [f64; 3]) -> usize {
    let distance = |p: &[f64; 3]| -> f64 { (0..3).map(|c| (p[c] - to[c]).powi(2)).sum() };
    (0..points.len())
        .min_by(|&a, &b| distance(&points[a]).total_cmp(&distance(&points[b])))
        .unwrap_or(0)
}

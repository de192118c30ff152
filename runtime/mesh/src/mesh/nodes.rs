//! Node numbering of an element on a mesh: a number for each node of each vertex, edge, face and cell.

mod layout;

use super::Topology;
use super::partition::Partition;
use crate::support::parallel::*;
use kernels_gen::element::Lagrange;
pub use layout::NodeLayout;
use std::ops::Range;

/// Returns the nodes of all cells, vertices first, and their number.
pub(crate) fn nodes_of_cells(topology: &Topology, element: Lagrange) -> (Vec<u32>, usize) {
    let (layout, dim) = (NodeLayout::new(element), topology.cell().dim());
    let mut next = 0;
    let mut all = |count: usize, d: usize| {
        let each = layout.nodes_of(d);
        let first = next;
        next += (count * each) as u32;
        (0..if each > 0 { count as u32 } else { 0 }).map(|own| first + own * each as u32).collect()
    };
    let faces = if dim == 3 { topology.faces().len() } else { 0 };
    let starts = FirstNodes {
        vertices: all(topology.n_vertices(), 0),
        edges: all(topology.edges().len(), 1),
        faces: all(faces, 2),
        cells: all(topology.n_cells(), dim),
        new_nodes: Vec::new(),
    };
    (starts.nodes(topology, &layout), next as usize)
}

/// Returns the number of nodes of all entities.
pub fn count_nodes(topology: &Topology, layout: &NodeLayout) -> usize {
    let dim = topology.cell().dim();
    let mut count = layout.nodes_of(0) * topology.n_vertices()
        + layout.nodes_of(1) * topology.edges().len()
        + layout.nodes_of(dim) * topology.n_cells();
    if dim == 3 {
        count += layout.nodes_of(2) * topology.faces().len();
    }
    count
}

/// The first node of every entity of the mesh.
pub struct FirstNodes {
    vertices: Vec<u32>,
    edges: Vec<u32>,
    faces: Vec<u32>,
    cells: Vec<u32>,
    /// The nodes that each chunk of the partition is the first to touch.
    pub new_nodes: Vec<Range<usize>>,
}

impl FirstNodes {
    /// Numbers by first touch.
    pub fn new(
        topology: &Topology,
        partition: &Partition,
        layout: &NodeLayout,
        n_nodes: usize,
    ) -> Self {
        let dim = topology.cell().dim();
        let unset = |n: usize, d: usize| vec![u32::MAX; if layout.nodes_of(d) > 0 { n } else { 0 }];
        let mut starts = Self {
            vertices: unset(topology.n_vertices(), 0),
            edges: unset(topology.edges().len(), 1),
            faces: unset(if dim == 3 { topology.faces().len() } else { 0 }, 2),
            cells: unset(topology.n_cells(), dim),
            new_nodes: Vec::with_capacity(partition.chunks().len()),
        };
        let mut next = 0;
        let visit = |entities: &mut [u32], of_cell: &[u32], count: usize, next: &mut u32| {
            for &entity in of_cell {
                let start = &mut entities[entity as usize];
                if *start == u32::MAX {
                    *start = *next;
                    *next += count as u32;
                }
            }
        };
        for chunk in partition.chunks() {
            let begin = next as usize;
            for cell in chunk.cells.clone() {
                if layout.nodes_of(0) > 0 {
                    let of_cell = topology.vertices(cell);
                    visit(&mut starts.vertices, of_cell, layout.nodes_of(0), &mut next);
                }
                if layout.nodes_of(1) > 0 {
                    let of_cell = topology.edges().of_cell(cell);
                    visit(&mut starts.edges, of_cell, layout.nodes_of(1), &mut next);
                }
                if dim == 3 && layout.nodes_of(2) > 0 {
                    let of_cell = topology.faces().of_cell(cell);
                    visit(&mut starts.faces, of_cell, layout.nodes_of(2), &mut next);
                }
                if layout.nodes_of(dim) > 0 {
                    starts.cells[cell] = next;
                    next += layout.nodes_of(dim) as u32;
                }
            }
            starts.new_nodes.push(begin..next as usize);
        }
        assert_eq!(next as usize, n_nodes, "every entity should belong to a cell");
        starts
    }

    /// Returns the first node of a cell's local entity.
    fn of(&self, topology: &Topology, cell: usize, dim: usize, local: usize) -> u32 {
        if dim == topology.cell().dim() {
            return self.cells[cell];
        }
        match dim {
            0 => self.vertices[topology.vertices(cell)[local] as usize],
            1 => self.edges[topology.edges().of_cell(cell)[local] as usize],
            _ => self.faces[topology.faces().of_cell(cell)[local] as usize],
        }
    }

    /// Returns the cell-to-node connectivity.
    pub fn nodes(&self, topology: &Topology, layout: &NodeLayout) -> Vec<u32> {
        let n = layout.nodes_per_cell();
        let mut nodes = vec![0u32; topology.n_cells() * n];
        nodes.par_chunks_mut(n).enumerate().with_min_len(256).each(|(cell, nodes)| {
            for entity in layout.entities() {
                let start = self.of(topology, cell, entity.dim, entity.local);
                let orientation = orientation(topology, cell, entity.dim, entity.local);
                let order = layout.permutation(entity.dim, orientation);
                for (&local, &own) in entity.nodes.iter().zip(order) {
                    nodes[local as usize] = start + own;
                }
            }
        });
        nodes
    }

    /// Returns the first nodes of all entities of all cells, in lexicographic order.
    pub fn runs(&self, topology: &Topology, layout: &NodeLayout) -> Vec<u32> {
        let Some(entities) = layout.lexicographic_entities() else { return Vec::new() };
        let n = entities.len();
        let mut runs = vec![0u32; topology.n_cells() * n];
        runs.par_chunks_mut(n).enumerate().with_min_len(256).each(|(cell, runs)| {
            for (run, &(dim, local)) in runs.iter_mut().zip(entities) {
                if layout.nodes_of(dim) > 0 {
                    *run = self.of(topology, cell, dim, local);
                }
            }
        });
        runs
    }
}

/// Returns the orientation of an entity in a cell, relative to the entity's own frame.
fn orientation(topology: &Topology, cell: usize, dim: usize, local: usize) -> u8 {
    if dim == topology.cell().dim() || dim == 0 || topology.is_oriented() {
        return 0;
    }
    match dim {
        1 => u8::from(topology.edge_reversed(cell, local)),
        _ => topology.face_orientation(cell, local),
    }
}

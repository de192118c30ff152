//! Node numbering of an element on a mesh: a number for each node of each vertex, edge, face and cell.

mod layout;

use super::Topology;
use super::partition::{Chunk, Partition};
use crate::support::parallel::*;
use kernels_gen::element::Lagrange;
pub use layout::NodeLayout;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

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

/// First nodes of the entities of one dimension, while chunks number them.
struct EntityNumbering<'a> {
    topology: &'a Topology,
    dim: usize,
    /// Nodes of an entity.
    nodes: usize,
    /// First chunk of each entity, in execution order; reset once its number is final.
    chunk_of: Vec<AtomicU32>,
    starts: Vec<AtomicU32>,
}

impl<'a> EntityNumbering<'a> {
    fn new(topology: &'a Topology, dim: usize, nodes: usize) -> Self {
        let unset = || filled_atomics(if nodes > 0 { topology.count(dim) } else { 0 }, u32::MAX);
        Self { topology, dim, nodes, chunk_of: unset(), starts: unset() }
    }

    /// Returns the entities of a cell that have nodes.
    fn of_cell(&self, cell: usize) -> &[u32] {
        if self.nodes > 0 { self.topology.of_cell(self.dim, cell) } else { &[] }
    }

    /// Enters a chunk as the first of its entities.
    fn touch(&self, chunk: u32, cells: Range<usize>) {
        for &entity in cells.flat_map(|cell| self.of_cell(cell)) {
            let of = &self.chunk_of[entity as usize];
            // A load is cheaper, and most entities have their first chunk already.
            if of.load(Relaxed) > chunk {
                of.fetch_min(chunk, Relaxed);
            }
        }
    }

    /// Numbers the entities of a cell that its chunk touches first, relative to the chunk.
    fn number(&self, chunk: u32, cell: usize, next: &mut u32) {
        for &entity in self.of_cell(cell) {
            let start = &self.starts[entity as usize];
            if self.chunk_of[entity as usize].load(Relaxed) == chunk
                && start.load(Relaxed) == u32::MAX
            {
                start.store(*next, Relaxed);
                *next += self.nodes as u32;
            }
        }
    }

    /// Adds the first node of a chunk to its entities.
    fn shift(&self, chunk: u32, cells: Range<usize>, first: u32) {
        for &entity in cells.flat_map(|cell| self.of_cell(cell)) {
            let of = &self.chunk_of[entity as usize];
            if of.load(Relaxed) == chunk {
                of.store(u32::MAX, Relaxed);
                self.starts[entity as usize].fetch_add(first, Relaxed);
            }
        }
    }

    fn finish(self) -> Vec<u32> {
        plain_numbers(self.starts)
    }
}

impl FirstNodes {
    /// Numbers by first touch: chunks in execution order, their cells in order, vertices, edges, faces and inner nodes of
    /// a cell. Chunks are numbered in parallel: each entity gets its first chunk, then a number in it, then the chunk's
    /// first node.
    pub fn new(
        topology: &Topology,
        partition: &Partition,
        layout: &NodeLayout,
        n_nodes: usize,
    ) -> Self {
        let (dim, n_cells) = (topology.cell().dim(), topology.n_cells());
        let numbering = |dim| EntityNumbering::new(topology, dim, layout.nodes_of(dim));
        let all: Vec<EntityNumbering<'_>> = (0..dim).map(numbering).collect();
        let chunks = || partition.chunks().par_iter().zip(0..u32::MAX);
        chunks().each(|(chunk, number)| {
            all.iter().for_each(|own| own.touch(number, chunk.cells.clone()));
        });
        let inner = layout.nodes_of(dim) as u32;
        let cells = filled_atomics(if inner > 0 { n_cells } else { 0 }, u32::MAX);
        let number = |(chunk, number): (&Chunk, u32)| {
            let mut next = 0;
            for cell in chunk.cells.clone() {
                all.iter().for_each(|own| own.number(number, cell, &mut next));
                if inner > 0 {
                    cells[cell].store(next, Relaxed);
                    next += inner;
                }
            }
            next
        };
        let counts: Vec<u32> = chunks().map(number).listed();
        let mut next = 0;
        let range = |count: u32| {
            let first = next;
            next += count as usize;
            first..next
        };
        let new_nodes: Vec<Range<usize>> = counts.into_iter().map(range).collect();
        assert_eq!(next, n_nodes, "every entity should belong to a cell");
        chunks().each(|(chunk, number)| {
            let first = new_nodes[number as usize].start as u32;
            all.iter().for_each(|own| own.shift(number, chunk.cells.clone(), first));
            let inside = if inner > 0 { chunk.cells.clone() } else { 0..0 };
            inside.for_each(|cell| {
                cells[cell].fetch_add(first, Relaxed);
            });
        });
        let mut all = all.into_iter().map(EntityNumbering::finish);
        let mut own = || all.next().unwrap_or_default();
        let (vertices, edges, faces) = (own(), own(), own());
        let cells = plain_numbers(cells);
        Self { vertices, edges, faces, cells, new_nodes }
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
}

/// Returns whether the sign of each degree of freedom of each cell is reversed, `[cell][local node]`; `None` if no sign is.
pub fn reversed_signs(topology: &Topology, layout: &NodeLayout) -> Option<Vec<bool>> {
    let has_signs = (1..topology.cell().dim()).any(|dim| !layout.reversals(dim, 0).is_empty());
    if topology.is_oriented() || !has_signs {
        return None;
    }
    let n = layout.nodes_per_cell();
    let mut signs = vec![false; topology.n_cells() * n];
    signs.par_chunks_mut(n).enumerate().with_min_len(256).each(|(cell, signs)| {
        for entity in layout.entities() {
            let orientation = orientation(topology, cell, entity.dim, entity.local);
            let reversed = layout.reversals(entity.dim, orientation);
            for (&local, &reversed) in entity.nodes.iter().zip(reversed) {
                signs[local as usize] = reversed;
            }
        }
    });
    Some(signs)
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

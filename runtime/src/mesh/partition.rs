//! Chunks of cells and the order in which operators visit them.
//!
//! From a mesh to a [`Partition`]: consecutive cells (which lie along a space-filling curve) form
//! chunks of about [`UNKNOWNS`] unknowns, chunks that share a vertex get different colours, and the
//! chunks are executed colour by colour. All of this depends on the mesh and the degree alone, so
//! that sums at shared unknowns are formed in one order whatever the number of threads.
//!
//! Chunks with cells on the cut between processes come first, so that what these have to tell each other travels while the others
//! run.
//!
//! On a device chunks only say which cells come first: those of several are numbered together ([`Partition::parts`]).
//!
//! Threads need not wait for a whole colour: a chunk may run as soon as its neighbours of smaller
//! colours are done ([`Partition::before`]), and every order that respects this gives the same bits.

use crate::mesh::Mesh;
use std::collections::BTreeSet;
use std::ops::Range;

/// Unknowns that a chunk aims at: its share of two vectors stays in a core's second cache.
pub const UNKNOWNS: usize = 20_000;
/// Cells of a chunk are a multiple of this, so that full batches fill it whatever the lanes.
pub const MULTIPLE: usize = 16;
/// A mesh that is large enough to matter has at least about this many chunks.
pub const FEWEST: usize = 16;

/// Cells that are all treated as cells on the cut where one of them is, on a device.
const BLOCK: usize = 64;

/// Consecutive cells that one thread visits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its cells.
    pub cells: Range<usize>,
    /// Its colour: chunks of one colour share no unknown.
    pub colour: usize,
}

/// The chunks of a mesh in execution order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    chunks: Vec<Chunk>,
    colours: Vec<Range<usize>>,
    before: Vec<Vec<u32>>,
    after: Vec<Vec<u32>>,
    outer: usize,
    /// The chunks whose cells are numbered together, where these are not all alone; and how many of those are outer.
    parts: Option<(Vec<Range<usize>>, usize)>,
}

impl Partition {
    /// Cuts a mesh into chunks, where each cell brings about `unknowns_per_cell` unknowns (all
    /// fields together, shared ones counted by their share).
    pub fn new(mesh: &Mesh, unknowns_per_cell: f64) -> Self {
        Self::with_chunk_cells(mesh, chunk_cells(mesh.n_cells(), unknowns_per_cell))
    }

    /// Cuts a mesh into chunks of at most `cells` cells.
    pub fn with_chunk_cells(mesh: &Mesh, cells: usize) -> Self {
        let (n, cells) = (mesh.n_cells(), cells.max(1));
        let ranges: Vec<_> = (0..n).step_by(cells).map(|i| i..n.min(i + cells)).collect();
        let neighbours = neighbours(mesh, cells, ranges.len());
        let colours = colour(&neighbours);
        let mut order: Vec<usize> = (0..ranges.len()).collect();
        let outer = outer(mesh, cells, ranges.len());
        order.sort_by_key(|&chunk| (!outer[chunk], colours[chunk]));
        let mut place = vec![0u32; order.len()];
        for (position, &chunk) in order.iter().enumerate() {
            place[chunk] = position as u32;
        }
        let adjacent = |chunk: usize, keep: &dyn Fn(u32, u32) -> bool| -> Vec<u32> {
            let places = neighbours[chunk].iter().map(|&other| place[other as usize]);
            let mut kept: Vec<u32> = places.filter(|&other| keep(other, place[chunk])).collect();
            kept.sort_unstable();
            kept
        };
        Self {
            outer: outer.iter().filter(|outer| **outer).count(),
            parts: None,
            before: order.iter().map(|&chunk| adjacent(chunk, &|a, b| a < b)).collect(),
            after: order.iter().map(|&chunk| adjacent(chunk, &|a, b| a > b)).collect(),
            colours: colour_ranges(&order, &colours),
            chunks: order
                .iter()
                .map(|&chunk| Chunk { cells: ranges[chunk].clone(), colour: colours[chunk] })
                .collect(),
        }
    }

    /// Cuts a mesh for a device, which is given all cells of a part at once: parts of about `cells` cells, those with cells on the
    /// cut between processes first, and of these few others.
    pub fn for_device(mesh: &Mesh, cells: usize) -> Self {
        if mesh.cut().is_none() {
            return Self::with_chunk_cells(mesh, cells);
        }
        let n = mesh.n_cells();
        let blocks = outer(mesh, BLOCK, n.div_ceil(BLOCK));
        let (mut chunks, mut parts) = (Vec::new(), Vec::new());
        let mut counts = [0; 2];
        for (side, count) in [true, false].into_iter().zip(&mut counts) {
            let (mut from, mut held) = (chunks.len(), 0);
            let mut next = 0;
            for same in blocks.chunk_by(|a, b| a == b) {
                let range = next..(next + same.len() * BLOCK).min(n);
                next = range.end;
                for start in range.clone().step_by(cells.max(BLOCK)).filter(|_| same[0] == side) {
                    let cells_of = start..range.end.min(start + cells.max(BLOCK));
                    held += cells_of.len();
                    chunks.push(Chunk { cells: cells_of, colour: chunks.len() });
                    if held >= cells {
                        parts.push(from..chunks.len());
                        (from, held) = (chunks.len(), 0);
                    }
                }
            }
            if from < chunks.len() {
                parts.push(from..chunks.len());
            }
            *count = parts.len();
        }
        let outer = parts[..counts[0]].last().map_or(0, |part| part.end);
        let colours = (0..chunks.len()).map(|chunk| chunk..chunk + 1).collect();
        let (before, after) = (Vec::new(), Vec::new());
        Self { chunks, colours, before, after, outer, parts: Some((parts, counts[0])) }
    }

    /// The chunks whose cells are numbered together, in execution order.
    pub fn parts(&self) -> Vec<Range<usize>> {
        match &self.parts {
            Some((parts, _)) => parts.clone(),
            None => (0..self.chunks.len()).map(|chunk| chunk..chunk + 1).collect(),
        }
    }

    /// How many of these parts have cells that touch the cells of other processes: the first ones.
    pub fn outer_parts(&self) -> usize {
        self.parts.as_ref().map_or(self.outer, |(_, outer)| *outer)
    }

    /// The cells of a part.
    pub fn cells_of(&self, part: Range<usize>) -> impl Iterator<Item = usize> + Clone + '_ {
        self.chunks[part].iter().flat_map(|chunk| chunk.cells.clone())
    }

    /// The chunks in execution order.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// How many chunks have cells that touch the cells of other processes: the first ones.
    pub fn outer(&self) -> usize {
        self.outer
    }

    /// For each colour, its chunks.
    pub fn colours(&self) -> &[Range<usize>] {
        &self.colours
    }

    /// The neighbours of a chunk that are executed before it, ascending.
    pub fn before(&self, chunk: usize) -> &[u32] {
        &self.before[chunk]
    }

    /// The neighbours of a chunk that are executed after it, ascending.
    pub fn after(&self, chunk: usize) -> &[u32] {
        &self.after[chunk]
    }
}

/// Cells a chunk: even shares, multiples of [`MULTIPLE`].
fn chunk_cells(n_cells: usize, unknowns_per_cell: f64) -> usize {
    let wanted = (UNKNOWNS as f64 / unknowns_per_cell.max(1.0)) as usize;
    let most = (n_cells / FEWEST).max(MULTIPLE);
    let chunks = n_cells.div_ceil(wanted.clamp(MULTIPLE, most)).max(1);
    n_cells.div_ceil(chunks).next_multiple_of(MULTIPLE)
}

/// For each chunk whether it has a vertex in common with other processes.
fn outer(mesh: &Mesh, chunk_cells: usize, n_chunks: usize) -> Vec<bool> {
    let mut outer = vec![false; n_chunks];
    let Some(cut) = mesh.cut() else { return outer };
    let connectivity = mesh.connectivity();
    let mut shared = vec![false; connectivity.n_vertices()];
    cut.shared(0).iter().for_each(|vertex| shared[vertex.number as usize] = true);
    for cell in 0..mesh.n_cells() {
        let mut vertices = connectivity.vertices(cell).iter();
        outer[cell / chunk_cells] |= vertices.any(|&vertex| shared[vertex as usize]);
    }
    outer
}

/// For each chunk the other chunks that have a vertex in common with it.
fn neighbours(mesh: &Mesh, chunk_cells: usize, n_chunks: usize) -> Vec<BTreeSet<u32>> {
    let mut sets = vec![BTreeSet::new(); n_chunks];
    let connectivity = mesh.connectivity();
    let n_vertices = connectivity.n_vertices();
    // The chunks of a vertex are met in ascending order: the first, and further ones as pairs.
    let mut first = vec![u32::MAX; n_vertices];
    let mut last = vec![u32::MAX; n_vertices];
    let mut further: Vec<(u32, u32)> = Vec::new();
    for cell in 0..mesh.n_cells() {
        let chunk = (cell / chunk_cells) as u32;
        for &vertex in connectivity.vertices(cell) {
            let v = vertex as usize;
            if last[v] == chunk {
                continue;
            }
            if first[v] == u32::MAX {
                first[v] = chunk;
            } else {
                further.push((vertex, chunk));
            }
            last[v] = chunk;
        }
    }
    further.sort_unstable();
    for group in further.chunk_by(|a, b| a.0 == b.0) {
        let start = first[group[0].0 as usize];
        for (i, &(_, chunk)) in group.iter().enumerate() {
            for other in std::iter::once(start).chain(group[..i].iter().map(|pair| pair.1)) {
                sets[chunk as usize].insert(other);
                sets[other as usize].insert(chunk);
            }
        }
    }
    sets
}

/// Colours a graph greedily, always the node next whose neighbours have the most colours (Brélaz);
/// ties go to the node with more neighbours, then to the first.
fn colour(neighbours: &[BTreeSet<u32>]) -> Vec<usize> {
    let n = neighbours.len();
    let mut colours = vec![usize::MAX; n];
    let mut seen: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); n];
    let key = |seen: &BTreeSet<usize>, node: usize| {
        (usize::MAX - seen.len(), usize::MAX - neighbours[node].len(), node)
    };
    let mut queue: BTreeSet<_> = (0..n).map(|node| key(&seen[node], node)).collect();
    while let Some((_, _, node)) = queue.pop_first() {
        let own = (0..).find(|colour| !seen[node].contains(colour)).unwrap_or(0);
        colours[node] = own;
        for &other in &neighbours[node] {
            let other = other as usize;
            if colours[other] == usize::MAX && !seen[other].contains(&own) {
                queue.remove(&key(&seen[other], other));
                seen[other].insert(own);
                queue.insert(key(&seen[other], other));
            }
        }
    }
    colours
}

/// The ranges of equal colour in `order`.
fn colour_ranges(order: &[usize], colours: &[usize]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    for group in order.chunk_by(|&a, &b| colours[a] == colours[b]) {
        ranges.push(start..start + group.len());
        start += group.len();
    }
    ranges
}

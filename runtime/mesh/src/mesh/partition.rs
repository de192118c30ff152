//! Chunks of cells and their execution order in operators.
//!
//! A [`Partition`] splits a mesh into chunks of consecutive cells (along the space-filling curve) with about
//! [`UNKNOWNS`] degrees of freedom. Chunks that share a vertex get different colours and are executed colour by colour.
//! Chunks and colours depend on the mesh and the degree only. Sums at shared degrees of freedom therefore have one
//! order for any number of threads.
//!
//! Chunks with cells on the interface between processes come first, so that communication overlaps with the others.
//!
//! On a device, chunks only determine the cell order: several chunks form a part with a common numbering
//! ([`Partition::parts`]).
//!
//! Threads need not wait for a whole colour: a chunk may run as soon as its neighbours of smaller colours are done
//! ([`Partition::before`]). Every order that respects this gives the same bits.

use crate::mesh::Mesh;
use crate::support::parallel::*;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Range;

/// Target number of degrees of freedom of a chunk: its share of two vectors fits a core's L2 cache.
pub const UNKNOWNS: usize = 20_000;
/// Chunk sizes are multiples of this, so that batches are full for any SIMD width.
pub const MULTIPLE: usize = 16;
/// Minimal number of chunks of a mesh that is large enough.
pub const FEWEST: usize = 16;

/// On a device, cells per block; a block with an interface cell is treated as interface.
const BLOCK: usize = 64;

/// Consecutive cells that one thread processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The range of cells.
    pub cells: Range<usize>,
    /// The colour: chunks of one colour share no degrees of freedom.
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
    /// The chunks of each part with common numbering, unless each is alone; and the number of outer parts.
    parts: Option<(Vec<Range<usize>>, usize)>,
    /// The chunk that writes to each cell beyond a mesh part.
    beyond: Vec<usize>,
}

impl Partition {
    /// Splits a mesh into chunks. A cell has about `unknowns_per_cell` degrees of freedom (all fields, shared ones
    /// counted by their share).
    pub fn new(mesh: &Mesh, unknowns_per_cell: f64) -> Self {
        Self::with_chunk_cells(mesh, chunk_cells(mesh.n_cells(), unknowns_per_cell))
    }

    /// Splits a mesh into chunks of at most `cells` cells.
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
        let adjacent = |keep: &(dyn Fn(u32, u32) -> bool + Sync)| -> Vec<Vec<u32>> {
            let of_chunk = |&chunk: &usize| {
                let places = neighbours[chunk].iter().map(|&other| place[other as usize]);
                let kept = places.filter(|&other| keep(other, place[chunk]));
                let mut kept: Vec<u32> = kept.collect();
                kept.sort_unstable();
                kept
            };
            order.par_iter().map(of_chunk).listed()
        };
        Self {
            outer: outer.iter().filter(|outer| **outer).count(),
            parts: None,
            beyond: Vec::new(),
            before: adjacent(&|a, b| a < b),
            after: adjacent(&|a, b| a > b),
            colours: colour_ranges(&order, &colours),
            chunks: order
                .iter()
                .map(|&chunk| Chunk { cells: ranges[chunk].clone(), colour: colours[chunk] })
                .collect(),
        }
    }

    /// Splits a mesh for a device, which processes all cells of a part at once. Parts have about `cells` cells. Those
    /// with interface cells come first and contain few other cells.
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
        let (parts, beyond) = (Some((parts, counts[0])), Vec::new());
        Self { chunks, colours, before, after, outer, parts, beyond }
    }

    /// Returns the ranges of chunks with common numbering, in execution order.
    pub fn parts(&self) -> Vec<Range<usize>> {
        match &self.parts {
            Some((parts, _)) => parts.clone(),
            None => (0..self.chunks.len()).map(|chunk| chunk..chunk + 1).collect(),
        }
    }

    /// Returns the number of parts that touch cells of other processes; they come first.
    pub fn outer_parts(&self) -> usize {
        self.parts.as_ref().map_or(self.outer, |(_, outer)| *outer)
    }

    /// Sets the chunk that writes to each cell beyond a mesh part, and orders chunks that write to one place there;
    /// `groups` are chunks that do.
    pub fn reach(&mut self, beyond: Vec<usize>, groups: impl IntoIterator<Item = BTreeSet<usize>>) {
        self.beyond = beyond;
        for group in groups {
            for &chunk in &group {
                for &other in &group {
                    let (list, other) = match other.cmp(&chunk) {
                        Ordering::Less => (&mut self.before[chunk], other as u32),
                        Ordering::Greater => (&mut self.after[chunk], other as u32),
                        Ordering::Equal => continue,
                    };
                    if let Err(place) = list.binary_search(&other) {
                        list.insert(place, other);
                    }
                }
            }
        }
    }

    /// Returns the chunk that writes to each cell beyond a mesh part.
    pub fn chunks_beyond(&self) -> &[usize] {
        &self.beyond
    }

    /// Returns the cells of a part.
    pub fn cells_of(&self, part: Range<usize>) -> impl Iterator<Item = usize> + Clone + '_ {
        self.chunks[part].iter().flat_map(|chunk| chunk.cells.clone())
    }

    /// Returns the chunks in execution order.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// Returns the number of chunks that touch cells of other processes; they come first.
    pub fn outer(&self) -> usize {
        self.outer
    }

    /// Returns the range of chunks of each colour.
    pub fn colours(&self) -> &[Range<usize>] {
        &self.colours
    }

    /// Returns the neighbours of a chunk that are executed before it, ascending.
    pub fn before(&self, chunk: usize) -> &[u32] {
        &self.before[chunk]
    }

    /// Returns whether a chunk waits for an earlier one; on devices none does.
    pub fn is_before(&self, earlier: usize, later: usize) -> bool {
        let before = self.before.get(later);
        before.is_some_and(|before| before.binary_search(&(earlier as u32)).is_ok())
    }

    /// Returns the neighbours of a chunk that are executed after it, ascending.
    pub fn after(&self, chunk: usize) -> &[u32] {
        &self.after[chunk]
    }
}

/// Cells per chunk: even shares, multiples of [`MULTIPLE`].
fn chunk_cells(n_cells: usize, unknowns_per_cell: f64) -> usize {
    let wanted = (UNKNOWNS as f64 / unknowns_per_cell.max(1.0)) as usize;
    let most = (n_cells / FEWEST).max(MULTIPLE);
    let chunks = n_cells.div_ceil(wanted.clamp(MULTIPLE, most)).max(1);
    n_cells.div_ceil(chunks).next_multiple_of(MULTIPLE)
}

/// Returns for each chunk whether it shares a vertex with other processes.
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

/// Returns for each chunk the other chunks that share a vertex with it.
fn neighbours(mesh: &Mesh, chunk_cells: usize, n_chunks: usize) -> Vec<BTreeSet<u32>> {
    let mut sets = vec![BTreeSet::new(); n_chunks];
    let connectivity = mesh.connectivity();
    let n_vertices = connectivity.n_vertices();
    // Chunks of a vertex appear in ascending order: the first is stored, further ones as pairs.
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

/// Colours a graph greedily by saturation degree (Brélaz); ties go to the node with more neighbours, then to the first.
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

/// Returns the ranges of equal colour in `order`.
fn colour_ranges(order: &[usize], colours: &[usize]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    for group in order.chunk_by(|&a, &b| colours[a] == colours[b]) {
        ranges.push(start..start + group.len());
        start += group.len();
    }
    ranges
}

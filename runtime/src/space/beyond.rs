//! Nodes of cells beyond a part ([`CellsBeyond`]), which integrals over facets between cells reach.
//!
//! ```text
//! discontinuous   each cell has nodes of its own, shared with the process of the cell
//! continuous      a node is one of the part's, at the cut, or a new one, shared with all processes that have it
//! ```
//!
//! New nodes are the last ones of the space. A continuous node is identified by its owner and its number there. Its
//! processes are those with a cell at the node, and those that reach such a cell. The process of each cell knows who
//! reaches it, and the processes with a cell at the node exchange that.

use super::{SharedNodes, Space};
use crate::mesh::distributed::{PartInterface, SharedEntity};
use crate::mesh::pairs::CellsBeyond;
use crate::mesh::partition::Partition;
use crate::processes::Reduction;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Marks an absent rank in messages.
const ABSENT: f64 = -1.0;

/// The nodes of cells beyond a part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NodesBeyond {
    /// `[cell][local node]`.
    pub(super) nodes: Vec<u32>,
    /// The first new node.
    first: usize,
    /// The number of the first cell beyond.
    first_cell: usize,
    /// The hanging words of the cells; empty if no node of the space hangs.
    pub(super) words: Vec<u32>,
    /// True for each degree of freedom of a cell whose sign is reversed, `[cell][local node]`; empty if none is.
    signs: Vec<bool>,
}

/// The owner of a node, and its number there.
type GlobalNode = (u32, u32);

/// Nodes shared with other processes, by their identity: their numbers here, and the ranks, of which the owner is the
/// first.
type Holders = BTreeMap<GlobalNode, (u32, Vec<u32>)>;

impl Space {
    /// Appends the nodes of the cells beyond a part, each with nodes of its own. Those of a discontinuous field are then
    /// shared with the process of the cell.
    #[must_use]
    pub fn reaching(&self, beyond: &CellsBeyond) -> Self {
        let (each, mut new) = (self.nodes_per_cell, self.clone());
        new.n_nodes += each * beyond.len();
        new.beyond = Some(NodesBeyond {
            nodes: (self.n_nodes as u32..new.n_nodes as u32).collect(),
            first: self.n_nodes,
            first_cell: beyond.first(),
            words: Vec::new(),
            signs: Vec::new(),
        });
        if !self.element.is_continuous() {
            let nodes = |cell: &SharedEntity| {
                let first = new.cell_nodes(cell.number as usize)[0];
                SharedNodes { nodes: first..first + each as u32, ranks: cell.ranks.clone() }
            };
            new.shared = beyond.shared().iter().map(nodes).collect();
        }
        new
    }

    /// Appends the nodes of the cells beyond a part to a continuous field: those that no cell of the part has. All nodes
    /// of these cells are shared with all processes that have them. Collective.
    #[must_use]
    pub fn joining(&self, cut: &PartInterface, beyond: &CellsBeyond) -> Self {
        let mut holders = self.holders(cut, beyond);
        let (each, mut new) = (self.nodes_per_cell, self.clone());
        let most = longest(cut, holders.values().map(|(_, ranks)| ranks.len()));
        let identity: BTreeMap<u32, GlobalNode> =
            holders.iter().map(|(&global, &(node, _))| (node, global)).collect();
        // The number at the owner, the ranks, and of vector-valued functions the sign.
        let length = 1 + most + usize::from(self.element.whitney().is_some());
        let received = beyond.received(cut, each * length, |cell, values| {
            values.fill(ABSENT);
            let signs = self.cell_signs(cell);
            let nodes = values.chunks_exact_mut(length).zip(self.cell_nodes(cell)).enumerate();
            for (local, (values, node)) in nodes {
                let global = identity[node];
                values[0] = f64::from(global.1);
                let ranks = holders[&global].1.iter().map(|&rank| f64::from(rank));
                values[1..=most].iter_mut().zip(ranks).for_each(|(value, rank)| *value = rank);
                if let Some(sign) = values.get_mut(1 + most) {
                    *sign = f64::from(u8::from(signs.get(local).is_some_and(|&reversed| reversed)));
                }
            }
        });
        let global = |values: &[f64]| (values[1] as u32, values[0] as u32);
        let own: BTreeSet<GlobalNode> = holders.keys().copied().collect();
        for values in received.chunks_exact(length) {
            let ranks = values[1..=most].iter().take_while(|&&rank| rank != ABSENT);
            let ranks = ranks.map(|&rank| rank as u32);
            holders.entry(global(values)).or_insert_with(|| (u32::MAX, ranks.collect()));
        }
        // New nodes are numbered in the order of their identity.
        for (global, (node, _)) in &mut holders {
            if !own.contains(global) {
                *node = new.n_nodes as u32;
                new.n_nodes += 1;
            }
        }
        let nodes = received.chunks_exact(length).map(|values| holders[&global(values)].0);
        new.beyond = Some(NodesBeyond {
            nodes: nodes.collect(),
            first: self.n_nodes,
            first_cell: beyond.first(),
            words: self.hanging.as_ref().map_or_else(Vec::new, |_| beyond.hanging().to_vec()),
            signs: received
                .chunks_exact(length)
                .filter_map(|values| values.get(1 + most).map(|&sign| sign == 1.0))
                .collect(),
        });
        new.shared = in_ranges(holders);
        new
    }

    /// Returns the shared nodes of this process when the nodes of cells that other processes reach are shared with these.
    /// Collective.
    fn holders(&self, cut: &PartInterface, beyond: &CellsBeyond) -> Holders {
        let (rank, sharing) = (cut.group().rank() as u32, self.sharing(cut.group()));
        let mut reached_by: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for cell in beyond.shared().iter().filter(|cell| (cell.number as usize) < beyond.first()) {
            for &node in self.cell_nodes(cell.number as usize) {
                reached_by.entry(node).or_default().extend(cell.ranks.iter().copied());
            }
        }
        // All processes with a cell at a node learn who reaches it from any of them.
        let mut ranks_of: BTreeMap<u32, BTreeSet<u32>> = reached_by.clone();
        for place in 0..longest(cut, reached_by.values().map(BTreeSet::len)) {
            let mut ranks = vec![ABSENT; self.n_nodes];
            for (&node, by) in &reached_by {
                ranks[node as usize] = by.iter().nth(place).map_or(ABSENT, |&rank| f64::from(rank));
            }
            for (node, all) in sharing.all(&ranks) {
                let known = all.into_iter().filter(|&rank| rank != ABSENT);
                ranks_of.entry(node as u32).or_default().extend(known.map(|rank| rank as u32));
            }
        }
        let mut numbers: Vec<f64> = (0..self.n_nodes).map(|node| node as f64).collect();
        sharing.synchronise(&mut numbers);
        let mut owners: BTreeMap<u32, u32> = BTreeMap::new();
        for shared in &self.shared {
            for node in shared.nodes.clone() {
                owners.insert(node, shared.ranks[0]);
                ranks_of.entry(node).or_default().extend(shared.ranks.iter().copied());
            }
        }
        let holder = |(node, ranks): (u32, BTreeSet<u32>)| {
            let owner = owners.get(&node).copied().unwrap_or(rank);
            let others = ranks.into_iter().filter(|&rank| rank != owner);
            let ranks = std::iter::once(owner).chain(others).collect();
            ((owner, numbers[node as usize] as u32), (node, ranks))
        };
        ranks_of.into_iter().map(holder).collect()
    }

    /// Returns whether the sign of each degree of freedom of a cell beyond a part is reversed; `None` if it is no such cell.
    pub(super) fn signs_beyond(&self, cell: usize) -> Option<&[bool]> {
        let beyond = self.beyond.as_ref()?;
        let first = cell.checked_sub(beyond.first_cell)? * self.nodes_per_cell;
        Some(beyond.signs.get(first..first + self.nodes_per_cell).unwrap_or(&[]))
    }

    /// Returns whether the space has the nodes of cells beyond a part.
    pub fn reaches_beyond(&self) -> bool {
        self.beyond.is_some()
    }

    /// Returns whether a continuous field shares nodes of cells beyond a part.
    pub(crate) fn joins_beyond(&self) -> bool {
        self.element.is_continuous() && self.beyond.is_some()
    }

    /// Returns the nodes of cells beyond a part that no cell of the part has: the last ones of the space.
    pub fn new_beyond(&self) -> Range<usize> {
        self.beyond.as_ref().map_or(self.n_nodes, |beyond| beyond.first)..self.n_nodes
    }

    /// Returns the cells beyond a part, and their nodes.
    pub fn cells_beyond(&self) -> impl Iterator<Item = (usize, &[u32])> + '_ {
        let cells = self.beyond.iter();
        cells.flat_map(|beyond| {
            (beyond.first_cell..).zip(beyond.nodes.chunks_exact(self.nodes_per_cell))
        })
    }

    /// Returns the nodes of all cells, and of those beyond a part.
    pub fn all_nodes(&self) -> impl Iterator<Item = u32> + '_ {
        let beyond = self.cells_beyond().flat_map(|(_, nodes)| nodes);
        self.nodes.iter().chain(beyond).copied()
    }

    /// Returns the new unknowns of cells beyond a part that a chunk is the first to touch.
    pub fn dofs_beyond(&self, partition: &Partition, chunk: usize) -> Vec<Range<usize>> {
        let mut first = BTreeMap::<u32, usize>::new();
        let new = self.new_beyond();
        for ((_, nodes), &by) in self.cells_beyond().zip(partition.chunks_beyond()) {
            for &node in nodes.iter().filter(|node| new.contains(&(**node as usize))) {
                let first = first.entry(node).or_insert(by);
                *first = (*first).min(by);
            }
        }
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (node, _) in first.into_iter().filter(|(_, by)| *by == chunk) {
            let dofs = node as usize * self.components..(node as usize + 1) * self.components;
            match ranges.last_mut() {
                Some(last) if last.end == dofs.start => last.end = dofs.end,
                _ => ranges.push(dofs),
            }
        }
        ranges
    }

    /// Returns the chunks that write to each node of the cells beyond a part, which belong to `chunks`.
    fn writers(&self, partition: &Partition, chunks: &[usize]) -> Vec<BTreeSet<usize>> {
        let mut place = vec![usize::MAX; self.n_nodes];
        let mut writers: Vec<BTreeSet<usize>> = Vec::new();
        for ((_, nodes), &chunk) in self.cells_beyond().zip(chunks) {
            for &node in nodes {
                let place = &mut place[node as usize];
                if *place == usize::MAX {
                    *place = writers.len();
                    writers.push(BTreeSet::new());
                }
                writers[*place].insert(chunk);
            }
        }
        for (chunk, own) in partition.chunks().iter().enumerate() {
            for &node in own.cells.clone().flat_map(|cell| self.cell_nodes(cell)) {
                if let Some(writers) = writers.get_mut(place[node as usize]) {
                    writers.insert(chunk);
                }
            }
        }
        writers
    }

    /// Returns the chunk that touches a node of the part first.
    fn chunk_of(&self, node: u32) -> usize {
        self.new_nodes.partition_point(|new| new.end <= node as usize)
    }
}

/// Assigns the cells beyond a part to chunks, and orders chunks that write to one node of a continuous field there.
pub(super) fn with_writers(
    partition: &Partition,
    beyond: &CellsBeyond,
    spaces: &[&Space],
) -> Partition {
    let mut chunks = beyond.chunks(partition);
    let joined = || spaces.iter().filter(|space| space.joins_beyond());
    // A chunk clears the nodes that it is the first to touch: no chunk before it may write them.
    for space in joined() {
        for (chunk, (_, nodes)) in chunks.iter_mut().zip(space.cells_beyond()) {
            let own = nodes.iter().filter(|node| (**node as usize) < space.new_beyond().start);
            let first = own.map(|&node| space.chunk_of(node));
            *chunk = first.fold(*chunk, usize::max);
        }
    }
    let writers: BTreeSet<BTreeSet<usize>> =
        joined().flat_map(|space| space.writers(partition, &chunks)).collect();
    let mut partition = partition.clone();
    partition.reach(chunks, writers);
    partition
}

/// Returns the largest of some counts on all processes. Collective.
fn longest(cut: &PartInterface, counts: impl Iterator<Item = usize>) -> usize {
    let mut most = [counts.max().unwrap_or(0) as f64];
    cut.group().reduce(Reduction::Largest, &mut most);
    most[0] as usize
}

/// Joins consecutive nodes with equal ranks.
fn in_ranges(holders: Holders) -> Vec<SharedNodes> {
    let mut all: Vec<SharedNodes> = Vec::new();
    for (node, ranks) in holders.into_values() {
        match all.last_mut() {
            Some(last) if last.nodes.end == node && *last.ranks == ranks[..] => last.nodes.end += 1,
            _ => all.push(SharedNodes { nodes: node..node + 1, ranks: ranks.into() }),
        }
    }
    all
}

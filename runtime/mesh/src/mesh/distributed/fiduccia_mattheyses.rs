//! Refinement of a bisection of cells: reduces the number of facets between the halves. In a pass, cells change sides
//! one by one, each at most once, those with the largest gain first; the best state is kept (Fiduccia and Mattheyses,
//! "A linear-time heuristic for improving network partitions", 19th Design Automation Conference, 1982).

use crate::mesh::Topology;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Largest number of passes.
const PASSES: usize = 8;

/// Largest number of moves after the best state.
const PATIENCE: usize = 200;

/// Allowed imbalance if it was not larger before: 1/`UNEVEN` of the total weight, divided by the number of bisections.
const UNEVEN: u64 = 200;

/// Below this number of cells per process the balance must not become worse: one cell is 1 % of the work.
const FEW: u64 = 100;

/// Gain of a cell that is not computed yet; `MOVED` marks moved cells.
const UNKNOWN: i32 = i32::MIN;
const MOVED: i32 = i32::MAX;

/// The side of cells outside both halves.
pub(super) const APART: u8 = 2;

/// The graph of cells that share a facet.
pub(super) struct FacetGraph {
    starts: Vec<u32>,
    near: Vec<u32>,
}

impl FacetGraph {
    pub(super) fn new(topology: &Topology) -> Self {
        let facets = topology.facets();
        let mut first = vec![u32::MAX; facets.len()];
        let mut pairs = Vec::new();
        for cell in 0..topology.n_cells() as u32 {
            for &facet in facets.of_cell(cell as usize) {
                match &mut first[facet as usize] {
                    own if *own == u32::MAX => *own = cell,
                    own if *own != cell => pairs.push([*own, cell]),
                    _ => {}
                }
            }
        }
        let mut starts = vec![0u32; topology.n_cells() + 1];
        pairs.iter().flatten().for_each(|&cell| starts[cell as usize + 1] += 1);
        (0..topology.n_cells()).for_each(|cell| starts[cell + 1] += starts[cell]);
        let (mut next, mut near) = (starts.clone(), vec![0; 2 * pairs.len()]);
        for [a, b] in pairs {
            for (cell, other) in [(a, b), (b, a)] {
                near[next[cell as usize] as usize] = other;
                next[cell as usize] += 1;
            }
        }
        Self { starts, near }
    }

    fn of(&self, cell: u32) -> &[u32] {
        let cell = cell as usize;
        &self.near[self.starts[cell] as usize..self.starts[cell + 1] as usize]
    }

    /// Returns the number of facets between the halves.
    pub(super) fn between(&self, cells: &[u32], side: &[u8]) -> usize {
        let crosses = |cell: u32, other: u32| {
            let (own, other) = (side[cell as usize], side[other as usize]);
            other != APART && own != other
        };
        let of = |&cell: &u32| self.of(cell).iter().filter(|&&other| crosses(cell, other)).count();
        cells.iter().map(of).sum::<usize>() / 2
    }
}

/// A bisection under refinement.
pub(super) struct CellBisection<'a> {
    pub(super) graph: &'a FacetGraph,
    pub(super) weights: &'a [u32],
    /// The half of each cell: 0, 1, or [`APART`].
    pub(super) side: &'a mut [u8],
    /// The target weight of the first half, and the total weight.
    pub(super) wanted: u64,
    pub(super) all: u64,
    /// The smallest number of cells of each half.
    pub(super) least: [usize; 2],
    /// The number of recursive bisections.
    pub(super) times: u64,
    /// The number of processes of both halves.
    pub(super) processes: u64,
    /// The gain of each cell of the graph.
    pub(super) gains: &'a mut [i32],
}

impl CellBisection<'_> {
    /// Improves the bisection of some cells.
    pub(super) fn smooth(&mut self, cells: &[u32]) {
        for _ in 0..PASSES {
            if !self.pass(cells) {
                return;
            }
        }
    }

    /// Returns the decrease of facets between the halves if a cell changes sides.
    fn gain(&self, cell: u32) -> i32 {
        let own = self.side[cell as usize];
        let of = |&other: &u32| match self.side[other as usize] {
            APART => 0,
            other if other == own => -1,
            _ => 1,
        };
        self.graph.of(cell).iter().map(of).sum()
    }

    fn pass(&mut self, cells: &[u32]) -> bool {
        let (mut weight, mut counts, mut heaviest) = (0u64, [0usize; 2], 0u64);
        for &cell in cells {
            let own = u64::from(self.weights[cell as usize]);
            heaviest = heaviest.max(own);
            counts[usize::from(self.side[cell as usize])] += 1;
            weight += if self.side[cell as usize] == 0 { own } else { 0 };
        }
        let off = |weight: u64| weight.abs_diff(self.wanted);
        let are_few = cells.len() as u64 <= FEW * self.processes;
        let slack = if are_few { 0 } else { self.all / (UNEVEN * self.times) };
        let kept = off(weight).max(slack);
        let open = kept.max(heaviest);
        cells.iter().for_each(|&cell| self.gains[cell as usize] = UNKNOWN);
        let mut heaps: [BinaryHeap<(i32, Reverse<u32>)>; 2] = Default::default();
        for &cell in cells {
            let own = self.side[cell as usize];
            let mut near = self.graph.of(cell).iter();
            if near.any(|&other| self.side[other as usize] == 1 - own) {
                let gain = self.gain(cell);
                self.gains[cell as usize] = gain;
                heaps[usize::from(own)].push((gain, Reverse(cell)));
            }
        }
        let (mut moves, mut sum, mut best, mut length) = (Vec::new(), 0, 0, 0);
        while moves.len() < length + PATIENCE {
            let mut next: Option<(i32, u32)> = None;
            for from in 0..2 {
                let heap = &mut heaps[from];
                // Moved cells, and outdated gains.
                while heap.peek().is_some_and(|&(gain, Reverse(c))| self.gains[c as usize] != gain)
                {
                    heap.pop();
                }
                let Some(&(gain, Reverse(cell))) = heap.peek() else { continue };
                let own = u64::from(self.weights[cell as usize]);
                let then = if from == 0 { weight - own } else { weight + own };
                let fits = off(then) <= open || off(then) < off(weight);
                if counts[from] > self.least[from] && fits && next.is_none_or(|(g, _)| gain > g) {
                    next = Some((gain, cell));
                }
            }
            let Some((gain, cell)) = next else { break };
            let from = self.side[cell as usize];
            let own = u64::from(self.weights[cell as usize]);
            weight = if from == 0 { weight - own } else { weight + own };
            counts[usize::from(from)] -= 1;
            counts[usize::from(1 - from)] += 1;
            self.side[cell as usize] = 1 - from;
            self.gains[cell as usize] = MOVED;
            moves.push(cell);
            sum += gain;
            if sum > best && off(weight) <= kept {
                (best, length) = (sum, moves.len());
            }
            for &other in self.graph.of(cell) {
                let side = self.side[other as usize];
                if side != APART && self.gains[other as usize] != MOVED {
                    let gain = self.gain(other);
                    self.gains[other as usize] = gain;
                    heaps[usize::from(side)].push((gain, Reverse(other)));
                }
            }
        }
        for &cell in &moves[length..] {
            self.side[cell as usize] = 1 - self.side[cell as usize];
        }
        best > 0
    }
}

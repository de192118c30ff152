//! Two halves of some cells → halves with fewer facets between them: cells change sides one after another, each at most once, those first
//! that leave the fewest; what is kept is the best that was seen on the way (Fiduccia and Mattheyses, "A linear-time heuristic for
//! improving network partitions", 19th Design Automation Conference, 1982).

use crate::mesh::Topology;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Passes at most.
const PASSES: usize = 8;

/// Moves behind the best that was seen, at most.
const PATIENCE: usize = 200;

/// How far the weight of a half may be from what is wanted, if it was not farther before: a part of all, over how often all is halved.
const UNEVEN: u64 = 200;

/// Cells of a process below which a half is as even as it was: one more would be a per cent of the work.
const FEW: u64 = 100;

/// The gain of a cell that is not yet worth a move, or was moved.
const UNKNOWN: i32 = i32::MIN;
const MOVED: i32 = i32::MAX;

/// Of no half.
pub(super) const APART: u8 = 2;

/// Which cells meet in facets.
pub(super) struct Graph {
    starts: Vec<u32>,
    near: Vec<u32>,
}

impl Graph {
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

    /// Facets between the halves of some cells.
    pub(super) fn between(&self, cells: &[u32], side: &[u8]) -> usize {
        let crosses = |cell: u32, other: u32| {
            let (own, other) = (side[cell as usize], side[other as usize]);
            other != APART && own != other
        };
        let of = |&cell: &u32| self.of(cell).iter().filter(|&&other| crosses(cell, other)).count();
        cells.iter().map(of).sum::<usize>() / 2
    }
}

/// Halves that are made better.
pub(super) struct Halves<'a> {
    pub(super) graph: &'a Graph,
    pub(super) weights: &'a [u32],
    /// The half of each cell: 0, 1, or [`APART`].
    pub(super) side: &'a mut [u8],
    /// The weight of the first half that is wanted, and that of all.
    pub(super) wanted: u64,
    pub(super) all: u64,
    /// Cells that each half has at least.
    pub(super) least: [usize; 2],
    /// How often all cells are halved.
    pub(super) times: u64,
    /// For how many processes these are.
    pub(super) processes: u64,
    /// For each cell of the graph: what its next move gains.
    pub(super) gains: &'a mut [i32],
}

impl Halves<'_> {
    /// Makes the halves of some cells better.
    pub(super) fn smooth(&mut self, cells: &[u32]) {
        for _ in 0..PASSES {
            if !self.pass(cells) {
                return;
            }
        }
    }

    /// Facets that are no more between the halves when a cell changes sides.
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
                // What was moved, or has another gain by now.
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

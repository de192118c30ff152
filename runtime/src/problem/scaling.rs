//! What processes would have and send, on paper: a discretisation and a number of processes → the [`Share`] of each, and with the rates of
//! cores and of a [`Network`] how long a product, a sum and a cycle of multigrid would take them ([`Paper`]).
//!
//! ```text
//! product    max over processes of  launches + t (outer cells) + max(t (inner cells), L · neighbours + 8 · sent / B)
//!            + 48 · sent / reads
//! sum        2 L ⌈log₂ N⌉
//! cycle      Σ over levels of 2 k + 1 products in single precision, in half the seconds of cells; cells 2⁻ᵈ and what is sent 2¹⁻ᵈ
//!            a level;  + the coarsest level at each process, as often as it passes over its matrix
//! ```
//!
//! L is the latency of a message, B the bandwidth of a process to its neighbours. Inner cells hide messages, but not the copies from
//! and to them, which pass through memory before and after. Cells go to processes as
//! [`Mesh::part`](crate::mesh::Mesh::part) deals them out, so the counts are those that a run has. Nothing is added for processes that wait for one that
//! is late, nor for networks that are shared.

use crate::mesh::cut::LEAST;
use crate::problem::plan::STEPS;
use crate::space::discretisation::Discretisation;
use std::collections::HashSet;

/// Bytes of a number that is sent.
const NUMBER: f64 = 8.0;
/// Bytes of memory that each byte of a message takes at its process: gathered (an index, read, written) and added (an index, read
/// twice, written).
const COPIES: f64 = 6.0;
/// Products on a level: those of the smoother before a correction and behind it, and one for the residual.
const A_LEVEL: f64 = 2.0 * STEPS as f64 + 1.0;
/// Bytes of a row of the coarsest matrix, and passes over it for a cycle, both about.
const ROW: f64 = 27.0 * 12.0;
const PASSES: f64 = 10.0;

/// What one process has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Its cells.
    pub cells: usize,
    /// Of these, those with unknowns of others.
    pub outer: usize,
    /// Its unknowns.
    pub unknowns: usize,
    /// Of these, those that others have too.
    pub shared: usize,
    /// Numbers that it sends for a product, to all others together; as many come.
    pub sent: usize,
    /// The processes that it sends to.
    pub neighbours: usize,
}

/// The share of each of so many processes, where each cell's is given.
pub fn shares(on: &Discretisation, rank_of: &[u32], processes: usize) -> Vec<Share> {
    let mut shares = vec![Share::default(); processes];
    let (mut outer, mut pairs) = (vec![false; rank_of.len()], HashSet::new());
    for field in &on.fields {
        let (space, components) = (&field.space, field.space.components());
        // The first and the last process that has a node.
        let mut ends = vec![[u32::MAX, 0]; space.n_nodes()];
        for (cell, &rank) in rank_of.iter().enumerate() {
            for &node in space.cell_nodes(cell) {
                let [first, last] = &mut ends[node as usize];
                (*first, *last) = ((*first).min(rank), (*last).max(rank));
            }
        }
        let mut several: Vec<(u32, u32)> = Vec::new();
        for (cell, &rank) in rank_of.iter().enumerate() {
            for &node in space.cell_nodes(cell) {
                let [first, last] = ends[node as usize];
                if first != last {
                    outer[cell] = true;
                    several.push((node, rank));
                }
            }
        }
        for [first, _] in ends.into_iter().filter(|[first, last]| first == last) {
            shares[first as usize].unknowns += components;
        }
        several.sort_unstable();
        several.dedup();
        for of in several.chunk_by(|a, b| a.0 == b.0) {
            for &(_, own) in of {
                let share = &mut shares[own as usize];
                share.unknowns += components;
                share.shared += components;
                share.sent += components * (of.len() - 1);
                let others = of.iter().filter(|(_, other)| *other != own);
                pairs.extend(others.map(|&(_, other)| (own, other)));
            }
        }
    }
    for (&rank, outer) in rank_of.iter().zip(outer) {
        shares[rank as usize].cells += 1;
        shares[rank as usize].outer += usize::from(outer);
    }
    for (own, _) in pairs {
        shares[own as usize].neighbours += 1;
    }
    shares
}

/// A share of another number of unknowns than was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Grown {
    /// Cells.
    pub cells: f64,
    /// Of these, those with unknowns of others.
    pub outer: f64,
    /// Unknowns.
    pub unknowns: f64,
    /// Bytes that are sent for a product.
    pub sent: f64,
    /// The processes that these go to.
    pub neighbours: f64,
}

/// What a message takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Seconds until the first byte of a message is there.
    pub latency: f64,
    /// Bytes a second from one process to another.
    pub bandwidth: f64,
}

impl Network {
    /// A network of 2023: 200 Gbit/s.
    pub const USUAL: Self = Self { latency: 2e-6, bandwidth: 2.5e10 };

    /// Seconds of a message of so many bytes to each of so many neighbours.
    fn messages(&self, neighbours: f64, bytes: f64) -> f64 {
        self.latency * neighbours + bytes / self.bandwidth
    }

    /// Seconds of a sum over so many processes of so many bytes.
    fn sum(&self, processes: usize, bytes: f64) -> f64 {
        let rounds = (processes as f64).log2().ceil();
        2.0 * (self.latency * rounds + bytes / self.bandwidth * f64::from(u8::from(processes > 1)))
    }
}

/// Processes that compute a discretisation together.
#[derive(Clone, Debug)]
pub struct Paper<'a> {
    /// What each has.
    pub shares: &'a [Share],
    /// The dimension of the cells.
    pub dim: usize,
    /// All unknowns that were counted.
    pub unknowns: f64,
    /// Seconds of a product for each cell, at one process.
    pub a_cell: f64,
    /// Bytes a second that one process reads.
    pub reads: f64,
    /// Seconds until a kernel runs.
    pub launch: f64,
    /// Between them.
    pub network: Network,
    /// So many times the unknowns that were counted, with surfaces of parts that grow as those of solids.
    pub times: f64,
}

impl Paper<'_> {
    /// A share of so many times the cells.
    fn grown(&self, share: &Share, times: f64) -> Grown {
        let surface = times.powf((self.dim as f64 - 1.0) / self.dim as f64);
        let cells = share.cells as f64 * times;
        Grown {
            cells,
            outer: (share.outer as f64 * surface).min(cells),
            unknowns: share.unknowns as f64 * times,
            sent: NUMBER * share.sent as f64 * surface,
            neighbours: share.neighbours as f64,
        }
    }

    /// The most that any process has, of each.
    pub fn most(&self) -> Grown {
        let all = self.shares.iter().map(|share| self.grown(share, self.times));
        all.fold(Grown::default(), |most, own| Grown {
            cells: most.cells.max(own.cells),
            outer: most.outer.max(own.outer),
            unknowns: most.unknowns.max(own.unknowns),
            sent: most.sent.max(own.sent),
            neighbours: most.neighbours.max(own.neighbours),
        })
    }

    /// Seconds of a product with so many times the cells that were counted, of which each takes so long.
    fn of_cells(&self, times: f64, a_cell: f64) -> f64 {
        let of = |share: &Share| {
            let Grown { cells, outer, sent, neighbours, .. } = self.grown(share, times);
            let launches = if outer > 0.0 { 2.0 } else { 1.0 };
            let messages = self.network.messages(neighbours, sent);
            let copies = COPIES * sent / self.reads;
            let computed = a_cell * outer + (a_cell * (cells - outer)).max(messages);
            launches * self.launch + computed + copies
        };
        self.shares.iter().map(of).fold(0.0, f64::max)
    }

    /// Seconds of a product.
    pub fn product(&self) -> f64 {
        self.of_cells(self.times, self.a_cell)
    }

    /// Seconds of a product at one process, over those of all processes for theirs: 1 where nothing is lost, and never more.
    pub fn efficiency(&self) -> f64 {
        let cells: usize = self.shares.iter().map(|share| share.cells).sum();
        let alone = self.launch + self.a_cell * cells as f64 * self.times;
        // Sums in another order may differ by a rounding.
        (alone / (self.shares.len() as f64 * self.product())).min(1.0)
    }

    /// Seconds of a sum over all unknowns.
    pub fn sum(&self) -> f64 {
        self.network.sum(self.shares.len(), NUMBER)
    }

    /// Levels of meshes that are dealt out.
    pub fn levels(&self) -> i32 {
        let most = self.shares.iter().map(|share| share.cells).max().unwrap_or(0);
        let all = (most as f64 * self.times / LEAST as f64).log2() / self.dim as f64;
        (all.floor() as i32).max(0) + 1
    }

    /// Seconds of what is done of the coarsest level in a cycle: its right-hand side is summed over all, and each passes over its matrix.
    pub fn coarsest(&self) -> f64 {
        let unknowns =
            self.unknowns * self.times * 2f64.powi(-(self.dim as i32) * (self.levels() - 1));
        let sum = self.network.sum(self.shares.len(), NUMBER * unknowns);
        sum + PASSES * ROW * unknowns / self.reads
    }

    /// Seconds of a cycle of multigrid.
    pub fn cycle(&self) -> f64 {
        let on_level = |level: i32| {
            let times = self.times * 2f64.powi(-(self.dim as i32) * level);
            A_LEVEL * self.of_cells(times, 0.5 * self.a_cell)
        };
        let levels = (0..self.levels()).map(on_level);
        levels.sum::<f64>() + self.coarsest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paper(shares: &[Share], times: f64) -> Paper<'_> {
        let network = Network { latency: 1e-6, bandwidth: 1e10 };
        Paper {
            shares,
            dim: 3,
            unknowns: 1000.0,
            a_cell: 1e-8,
            reads: 1e10,
            launch: 0.0,
            network,
            times,
        }
    }

    #[test]
    fn one_process_loses_nothing() {
        let alone = [Share { cells: 1000, unknowns: 1000, ..Share::default() }];
        let paper = paper(&alone, 1.0);
        assert!((paper.product() - 1e-5).abs() < 1e-18);
        assert!((paper.efficiency() - 1.0).abs() < 1e-12);
        assert_eq!(paper.sum(), 0.0);
        // 1000, 125 and 15.6 cells.
        assert_eq!(paper.levels(), 3);
        let levels: f64 = [1.0, 0.125, 0.015625].iter().map(|part| 7.0 * 0.5e-5 * part).sum();
        let coarsest = 10.0 * 27.0 * 12.0 * 15.625 / 1e10;
        assert!((paper.cycle() - levels - coarsest).abs() < 1e-12, "{:e}", paper.cycle());
    }

    #[test]
    fn messages_hide_behind_inner_cells_while_these_take_longer() {
        let share = |cells, outer| Share {
            cells,
            outer,
            unknowns: cells,
            shared: 100,
            sent: 100,
            neighbours: 3,
        };
        // 3.08 µs of messages, behind 9 µs of inner cells or in the place of 0, and 0.48 µs of copies, which nothing hides.
        let copies = 0.48e-6;
        let two = [share(1000, 100), share(1000, 100)];
        assert!((paper(&two, 1.0).product() - (1e-5 + copies)).abs() < 1e-12);
        let small = [share(100, 100), share(100, 100)];
        assert!((paper(&small, 1.0).product() - (1e-6 + 3.08e-6 + copies)).abs() < 1e-12);
        // Eight times the cells have four times the surface.
        let larger = paper(&small, 8.0);
        let product = 4e-6 + 4e-6f64.max(3.32e-6) + 4.0 * copies;
        assert!((larger.product() - product).abs() < 1e-12);
        assert!((larger.efficiency() - 8e-6 / product).abs() < 1e-12);
    }

    #[test]
    fn the_efficiency_of_processes_that_send_stays_below_1() {
        for a_cell in [1e-9, 1e-8, 1.1e-7, 1e-3] {
            for (processes, sent) in [(3, 0), (7, 0), (8, 1), (8, 100)] {
                let cells = 449;
                let share = Share { cells, unknowns: cells, sent, ..Share::default() };
                let shares = vec![share; processes];
                let found = Paper { a_cell, ..paper(&shares, 1.0) }.efficiency();
                assert!(found <= 1.0, "{found}");
                assert!(sent == 0 || found < 1.0, "{a_cell}: {found}");
            }
        }
    }
}

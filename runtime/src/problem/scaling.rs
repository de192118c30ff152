//! Parallel performance model: the [`ProcessShare`] of each process in a partitioned discretisation. From the rates of
//! cores and of a [`Network`] it predicts the time of an operator application, a reduction and a multigrid cycle
//! ([`PerformanceModel`]).
//!
//! ```text
//! product    max over processes of  launches + t (outer cells) + max(t (inner cells), L · neighbours + 8 · sent / B)
//!            + 48 · sent / reads
//! reduction  2 L ⌈log₂ N⌉
//! cycle      Σ over levels of 2 k + 1 products in single precision, with half the seconds per cell;
//!            per level, cells scale by 2⁻ᵈ and messages by 2¹⁻ᵈ;
//!            + the redundant coarsest level, as often as it passes over its matrix
//! ```
//!
//! L is the message latency, B the bandwidth of a process to its neighbours. Inner cells hide messages, but not the
//! pack and unpack copies through memory. Cells are partitioned as by [`Mesh::part`](crate::mesh::Mesh::part), so the
//! counts are those of a run. Load imbalance in time and network contention are not modelled.

use crate::mesh::distributed::LEAST;
use crate::problem::plan::STEPS;
use crate::space::discretisation::Discretisation;
use std::collections::HashSet;

/// Bytes of a transmitted number.
const NUMBER: f64 = 8.0;
/// Memory traffic per message byte: packing (index, read, write) and unpacking (index, two reads, write).
const COPIES: f64 = 6.0;
/// Operator applications on a level: pre- and post-smoothing, and one for the residual.
const A_LEVEL: f64 = 2.0 * STEPS as f64 + 1.0;
/// Approximate bytes per row of the coarsest matrix, and passes over it per cycle.
const ROW: f64 = 27.0 * 12.0;
const PASSES: f64 = 10.0;

/// Share of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessShare {
    /// Number of cells.
    pub cells: usize,
    /// Number of these with interface degrees of freedom.
    pub outer: usize,
    /// Number of degrees of freedom.
    pub unknowns: usize,
    /// Number of these that are shared with other processes.
    pub shared: usize,
    /// Numbers sent in an operator application, summed over all neighbours; as many are received.
    pub sent: usize,
    /// Number of neighbours.
    pub neighbours: usize,
}

/// Computes the share of each process from the process of each cell.
pub fn shares(on: &Discretisation, rank_of: &[u32], processes: usize) -> Vec<ProcessShare> {
    let mut shares = vec![ProcessShare::default(); processes];
    let (mut outer, mut pairs) = (vec![false; rank_of.len()], HashSet::new());
    for field in &on.fields {
        let (space, components) = (&field.space, field.space.components());
        // Lowest and highest rank with each node.
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

/// A share scaled to another problem size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ScaledShare {
    /// Number of cells.
    pub cells: f64,
    /// Number of these with interface degrees of freedom.
    pub outer: f64,
    /// Number of degrees of freedom.
    pub unknowns: f64,
    /// Bytes sent in an operator application.
    pub sent: f64,
    /// Number of neighbours.
    pub neighbours: f64,
}

/// Network parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Message latency in seconds.
    pub latency: f64,
    /// Bandwidth between two processes in bytes per second.
    pub bandwidth: f64,
}

impl Network {
    /// A network of 2023: 200 Gbit/s.
    pub const USUAL: Self = Self { latency: 2e-6, bandwidth: 2.5e10 };

    /// Returns the seconds of messages to a number of neighbours, with a total number of bytes.
    fn messages(&self, neighbours: f64, bytes: f64) -> f64 {
        self.latency * neighbours + bytes / self.bandwidth
    }

    /// Returns the seconds of an all-reduce.
    fn sum(&self, processes: usize, bytes: f64) -> f64 {
        let rounds = (processes as f64).log2().ceil();
        2.0 * (self.latency * rounds + bytes / self.bandwidth * f64::from(u8::from(processes > 1)))
    }
}

/// Parameters of the performance model.
#[derive(Clone, Debug)]
pub struct PerformanceModel<'a> {
    /// Share of each process.
    pub shares: &'a [ProcessShare],
    /// Dimension of the cells.
    pub dim: usize,
    /// Total number of counted degrees of freedom.
    pub unknowns: f64,
    /// Seconds per cell of an operator application, on one process.
    pub a_cell: f64,
    /// Memory bandwidth of one process in bytes per second.
    pub reads: f64,
    /// Launch latency of a kernel in seconds.
    pub launch: f64,
    /// Network between the processes.
    pub network: Network,
    /// Ratio of modelled to counted degrees of freedom; subdomain surfaces scale accordingly.
    pub times: f64,
}

impl PerformanceModel<'_> {
    /// Scales a share by a number of cells.
    fn grown(&self, share: &ProcessShare, times: f64) -> ScaledShare {
        let surface = times.powf((self.dim as f64 - 1.0) / self.dim as f64);
        let cells = share.cells as f64 * times;
        ScaledShare {
            cells,
            outer: (share.outer as f64 * surface).min(cells),
            unknowns: share.unknowns as f64 * times,
            sent: NUMBER * share.sent as f64 * surface,
            neighbours: share.neighbours as f64,
        }
    }

    /// Returns the maximum of each quantity over the processes.
    pub fn most(&self) -> ScaledShare {
        let all = self.shares.iter().map(|share| self.grown(share, self.times));
        all.fold(ScaledShare::default(), |most, own| ScaledShare {
            cells: most.cells.max(own.cells),
            outer: most.outer.max(own.outer),
            unknowns: most.unknowns.max(own.unknowns),
            sent: most.sent.max(own.sent),
            neighbours: most.neighbours.max(own.neighbours),
        })
    }

    /// Returns the seconds of an operator application for a scaled number of cells and a time per cell.
    fn of_cells(&self, times: f64, a_cell: f64) -> f64 {
        let of = |share: &ProcessShare| {
            let ScaledShare { cells, outer, sent, neighbours, .. } = self.grown(share, times);
            let launches = if outer > 0.0 { 2.0 } else { 1.0 };
            let messages = self.network.messages(neighbours, sent);
            let copies = COPIES * sent / self.reads;
            let computed = a_cell * outer + (a_cell * (cells - outer)).max(messages);
            launches * self.launch + computed + copies
        };
        self.shares.iter().map(of).fold(0.0, f64::max)
    }

    /// Returns the seconds of an operator application.
    pub fn product(&self) -> f64 {
        self.of_cells(self.times, self.a_cell)
    }

    /// Returns the parallel efficiency of an operator application, at most 1.
    pub fn efficiency(&self) -> f64 {
        let cells: usize = self.shares.iter().map(|share| share.cells).sum();
        let alone = self.launch + self.a_cell * cells as f64 * self.times;
        // Rounding of the sums may exceed 1.
        (alone / (self.shares.len() as f64 * self.product())).min(1.0)
    }

    /// Returns the seconds of a reduction over all degrees of freedom.
    pub fn sum(&self) -> f64 {
        self.network.sum(self.shares.len(), NUMBER)
    }

    /// Returns the number of distributed mesh levels.
    pub fn levels(&self) -> i32 {
        let most = self.shares.iter().map(|share| share.cells).max().unwrap_or(0);
        let all = (most as f64 * self.times / LEAST as f64).log2() / self.dim as f64;
        (all.floor() as i32).max(0) + 1
    }

    /// Returns the seconds of the redundant coarsest level per cycle: a reduction of its right-hand side, and passes
    /// over its matrix.
    pub fn coarsest(&self) -> f64 {
        let unknowns =
            self.unknowns * self.times * 2f64.powi(-(self.dim as i32) * (self.levels() - 1));
        let sum = self.network.sum(self.shares.len(), NUMBER * unknowns);
        sum + PASSES * ROW * unknowns / self.reads
    }

    /// Returns the seconds of a multigrid cycle.
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

    fn paper(shares: &[ProcessShare], times: f64) -> PerformanceModel<'_> {
        let network = Network { latency: 1e-6, bandwidth: 1e10 };
        PerformanceModel {
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
        let alone = [ProcessShare { cells: 1000, unknowns: 1000, ..ProcessShare::default() }];
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
        let share = |cells, outer| ProcessShare {
            cells,
            outer,
            unknowns: cells,
            shared: 100,
            sent: 100,
            neighbours: 3,
        };
        // 3.08 µs of messages, hidden by 9 µs of inner cells or exposed without any, and 0.48 µs of exposed copies.
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
                let share =
                    ProcessShare { cells, unknowns: cells, sent, ..ProcessShare::default() };
                let shares = vec![share; processes];
                let found = PerformanceModel { a_cell, ..paper(&shares, 1.0) }.efficiency();
                assert!(found <= 1.0, "{found}");
                assert!(sent == 0 || found < 1.0, "{a_cell}: {found}");
            }
        }
    }
}

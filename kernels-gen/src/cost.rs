//! The cost of a kernel, counted in its text: arithmetic first, then bytes.
//!
//! ```text
//! time ≥ max(bytes / bandwidth, operations / rate)
//! ```
//!
//! Counts are of one cell. Bytes are those that must come from memory at least once: per-cell arrays,
//! and for each vector its share of the unknowns, of which a cell of degree p owns about p^d.

pub mod transposition;

use crate::abi::{KernelAbi, Role, coordinate_stride};
use crate::element::Lagrange;
use crate::kir::{Binary, Condition, Kernel, Op, Statement, Unary};
use crate::plan::Elements;

/// What one cell costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Floating-point operations; an fma is two.
    pub flops: f64,
    /// Time in units of one fma, over all lanes of a vector: divisions, roots and transcendental
    /// functions weigh more.
    pub operations: f64,
    /// Loads and stores of private and shared arrays.
    pub private_accesses: f64,
    /// Of these, the shared ones.
    pub shared_accesses: f64,
    /// Bytes streamed.
    pub bytes: f64,
}

/// What a machine can do, per core; of a GPU, all of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Bytes a second from memory.
    pub bandwidth: f64,
    /// Fused multiply-adds a second, all lanes together, in double precision.
    pub fma_rate: f64,
    /// Numbers a second to and from memory that threads share.
    pub shared_rate: f64,
}

impl Machine {
    /// An H200: what it copies, what its multipliers do, and 128 bytes of shared memory a clock and
    /// multiprocessor, of which bank conflicts leave about two thirds.
    pub const H200: Self = Self { bandwidth: 4.2e12, fma_rate: 16.6e12, shared_rate: 2.4e12 };

    /// A server core of 2023 with 512-bit vectors, fitted to 78 operators of the bake-off suite
    /// (root mean square error of the predicted time: 12.5 %).
    pub const SERVER_CORE: Self =
        Self { bandwidth: 13e9, fma_rate: 45e9, shared_rate: f64::INFINITY };
}

impl Cost {
    /// The predicted time of a cell, in seconds, on vectors of `lanes_share` of the widest: the
    /// longer of streaming and computing, and what of the shorter does not overlap.
    pub fn time(&self, machine: &Machine, lanes_share: f64) -> f64 {
        let stream = self.bytes / machine.bandwidth;
        let compute = self.operations / (machine.fma_rate * lanes_share);
        let compute = compute.max(self.shared_accesses / machine.shared_rate);
        stream.max(compute) + 0.6 * stream.min(compute)
    }

    /// The lower bound of a cell's time, in seconds.
    pub fn floor(&self, machine: &Machine, lanes_share: f64) -> f64 {
        (self.bytes / machine.bandwidth).max(self.operations / (machine.fma_rate * lanes_share))
    }
}

/// Counts a kernel.
pub fn count(kernel: &Kernel, abi: &KernelAbi, elements: &Elements) -> Cost {
    let mut cost = Cost { bytes: bytes(abi, elements), ..Cost::default() };
    // All threads of a cell together.
    let threads = match kernel.threads {
        0 => 1.0,
        threads => threads as f64 / (kernel.group * abi.lanes) as f64,
    };
    add(kernel, &kernel.body, threads, &mut cost);
    cost
}

/// Unknowns of a field inside of a cell whose results are stored and so not read; none where a kernel adds to all.
pub fn stored_inside(abi: &KernelAbi, elements: &Elements, field: usize) -> usize {
    let inside = elements.fields[field].entity_count(elements.cell.dim());
    if abi.stores_inside { inside * elements.components[field] } else { 0 }
}

fn bytes(abi: &KernelAbi, elements: &Elements) -> f64 {
    let dim = elements.cell.dim() as i32;
    let real = abi.precision.bytes() as f64;
    let unknowns = |element: Option<Lagrange>| {
        let own = element.filter(|element| !element.is_continuous());
        if let Some(element) = own {
            return element.count() as f64;
        }
        let all = (element.map_or(1, Lagrange::degree) as f64).powi(dim);
        if elements.cell.is_tensor() { all } else { all / f64::from([1, 1, 2, 6][dim as usize]) }
    };
    let share = |extent: usize| extent as f64 / abi.lanes as f64;
    abi.arguments
        .iter()
        .map(|argument| match argument.role {
            Role::Params | Role::Tables => 0.0,
            Role::State(f) | Role::Direction(f) => {
                real * unknowns(Some(elements.fields[f])) * elements.components[f] as f64
            }
            // Read and written, and inside of cells only written where that is stored.
            Role::Result(f) => {
                let all = unknowns(Some(elements.fields[f])) * elements.components[f] as f64;
                real * (2.0 * all - stored_inside(abi, elements, f) as f64)
            }
            // Only where the field's degree is 1: a node for each unknown.
            Role::Coordinates => {
                real * unknowns(None) * coordinate_stride(elements.cell.dim()) as f64
            }
            Role::Axis(_) => real * unknowns(None),
            Role::AuxNodes(i) => real * unknowns(elements.aux[i]),
            Role::Starts
            | Role::Places
            | Role::Map(..)
            | Role::Lines(..)
            | Role::Slots(..)
            | Role::Terms(_)
            | Role::Hanging
            | Role::Hang
            | Role::Entries
            | Role::Active => 4.0 * share(argument.extent),
            // About what a cell has for itself of a matrix in which neighbours share entries.
            Role::Matrix => 0.0,
            Role::CellResult(_)
            | Role::CellMatrix
            | Role::AuxCells(_)
            | Role::AuxPoints(_)
            | Role::Geometry
            | Role::Diameter
            | Role::Stored => real * share(argument.extent),
        })
        .sum()
}

fn add(kernel: &Kernel, body: &[Statement], times: f64, cost: &mut Cost) {
    for statement in body {
        match statement {
            Statement::Let(id) => {
                let value = &kernel.values[*id];
                match value.op {
                    Op::LoadLocal(..) => cost.private_accesses += times,
                    Op::LoadShared(..) => {
                        cost.private_accesses += times;
                        cost.shared_accesses += times;
                    }
                    Op::Gather { .. } | Op::LoadAt { .. } => cost.operations += times * GATHER,
                    _ => {}
                }
                if value.varying {
                    let (flops, operations) = weight(&value.op);
                    cost.flops += times * flops;
                    cost.operations += times * operations;
                }
            }
            Statement::StoreLocal(..) => cost.private_accesses += times,
            Statement::StoreShared(..) => {
                cost.private_accesses += times;
                cost.shared_accesses += times;
            }
            Statement::When { conditions, body } => {
                // The share of the threads that go in.
                let share = conditions.iter().fold(1.0, |share, condition| {
                    let Condition::Below(var, bound) = *condition else { return share };
                    let thread = kernel.thread_of(var);
                    let modulus = thread.map_or(1, |thread| kernel.thread_bound(thread));
                    share * (bound.min(modulus) as f64 / modulus as f64)
                });
                add(kernel, body, times * share, cost);
            }
            Statement::For { extent, body, .. } => {
                add(kernel, body, times * *extent as f64, cost);
            }
            Statement::Scatter { .. } | Statement::StoreAt { .. } => {
                cost.flops += times;
                cost.operations += times * SCATTER;
            }
            Statement::ScatterEdge { values, .. } => {
                cost.flops += 2.0 * times * values.len() as f64;
                cost.operations += 2.0 * times * SCATTER * values.len() as f64;
            }
            Statement::GatherRun { run, .. } => {
                cost.operations += times * GATHER_RUN * run.length as f64;
            }
            Statement::ScatterRun { run, .. } => {
                cost.flops += times * run.length as f64;
                cost.operations += times * SCATTER_RUN * run.length as f64;
            }
            Statement::StoreLanes(..)
            | Statement::Set(_)
            | Statement::StoreInteger(..)
            | Statement::Prefetch(..)
            | Statement::PrefetchIndexed { .. }
            | Statement::Stage
            | Statement::Barrier
            | Statement::Fence
            | Statement::Recompute(_)
            | Statement::Comment(_) => {}
        }
    }
}

/// What it costs to move one element a lane to or from an indexed place, in multiply-adds of whole
/// vectors: one by one, or in runs that are transposed in registers. Read off generated code: a
/// gather is a load and an insertion a lane, an addition to memory a load, an addition and a store;
/// a run takes about three shuffles an element.
const GATHER: f64 = 14.0;
const SCATTER: f64 = 18.0;
const GATHER_RUN: f64 = 6.0;
const SCATTER_RUN: f64 = 10.0;

/// (flops, fmas' worth of time).
fn weight(op: &Op) -> (f64, f64) {
    match op {
        Op::Fma(..) | Op::FmaNeg(..) => (2.0, 1.0),
        Op::Binary(Binary::Add | Binary::Sub | Binary::Mul, ..) => (1.0, 1.0),
        Op::Binary(Binary::Min | Binary::Max, ..) | Op::Compare(..) => (1.0, 2.0),
        // The divider works beside the multipliers.
        Op::Binary(Binary::Div, ..)
        | Op::Quotient(..)
        | Op::Unary(Unary::Sqrt, _)
        | Op::Reciprocal(_) => (1.0, 5.0),
        Op::Unary(Unary::Neg | Unary::Abs, _) | Op::Select(..) => (1.0, 1.0),
        Op::Unary(Unary::Sign, _) => (1.0, 3.0),
        // Lane by lane, through the mathematical library.
        Op::Unary(..) | Op::Binary(Binary::Pow | Binary::Atan2, ..) => (1.0, 300.0),
        Op::And(..) | Op::Or(..) | Op::Not(_) => (0.0, 1.0),
        Op::Constant(_)
        | Op::Broadcast(_)
        | Op::LoadLocal(..)
        | Op::LoadShared(..)
        | Op::LoadTable(..)
        | Op::LoadUniform(..)
        | Op::LoadLanes(..)
        | Op::Flag { .. }
        | Op::Gather { .. }
        | Op::LoadAt { .. } => (0.0, 0.0),
    }
}

//! The cost of a kernel, counted in its text: arithmetic first, then bytes.
//!
//! ```text
//! time ≥ max(bytes / bandwidth, operations / rate)
//! ```
//!
//! Counts are of one cell. Bytes are those that must come from memory at least once: per-cell arrays,
//! and for each vector its share of the unknowns, of which a cell of degree p owns about p^d.

use crate::abi::{KernelAbi, Role};
use crate::kir::{Binary, Kernel, Op, Statement, Unary};
use crate::plan::Elements;

/// What one cell costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Floating-point operations; an fma is two.
    pub flops: f64,
    /// Time in units of one fma, over all lanes of a vector: divisions, roots and transcendental
    /// functions weigh more.
    pub operations: f64,
    /// Loads and stores of private arrays.
    pub private_accesses: f64,
    /// Bytes streamed.
    pub bytes: f64,
}

/// What a machine can do, per core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Bytes a second from memory.
    pub bandwidth: f64,
    /// Fused multiply-adds a second, all lanes together, in double precision.
    pub fma_rate: f64,
}

impl Default for Machine {
    /// A server core of 2023 with 512-bit vectors; `wf bench` measures the real one.
    fn default() -> Self {
        Self { bandwidth: 4e9, fma_rate: 30e9 }
    }
}

impl Cost {
    /// The lower bound of a cell's time, in seconds.
    pub fn floor(&self, machine: &Machine, lanes_share: f64) -> f64 {
        (self.bytes / machine.bandwidth).max(self.operations / (machine.fma_rate * lanes_share))
    }
}

/// Counts a kernel.
pub fn count(kernel: &Kernel, abi: &KernelAbi, elements: &Elements, components: usize) -> Cost {
    let mut cost = Cost { bytes: bytes(abi, elements, components), ..Cost::default() };
    add(kernel, &kernel.body, 1.0, &mut cost);
    cost
}

fn bytes(abi: &KernelAbi, elements: &Elements, components: usize) -> f64 {
    let dim = elements.cell.dim() as i32;
    let real = abi.precision.bytes() as f64;
    let unknowns = |degree: usize| {
        let all = (degree as f64).powi(dim);
        if elements.cell.is_tensor() { all } else { all / f64::from([1, 1, 2, 6][dim as usize]) }
    };
    let share = |extent: usize| extent as f64 / abi.lanes as f64;
    abi.arguments
        .iter()
        .map(|argument| match argument.role {
            Role::Params => 0.0,
            Role::State(f) | Role::Direction(f) => {
                real * unknowns(elements.fields[f]) * components as f64
            }
            // Read and written.
            Role::Result(f) => 2.0 * real * unknowns(elements.fields[f]) * components as f64,
            Role::AuxNodes(i) => real * unknowns(elements.aux[i].unwrap_or(1)),
            Role::Map(..) | Role::Active => 4.0 * share(argument.extent),
            Role::AuxCells(_)
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
                if let Op::LoadLocal(..) = value.op {
                    cost.private_accesses += times;
                }
                if value.varying {
                    let (flops, operations) = weight(&value.op);
                    cost.flops += times * flops;
                    cost.operations += times * operations;
                }
            }
            Statement::StoreLocal(..) => cost.private_accesses += times,
            Statement::For { extent, body, .. } => {
                add(kernel, body, times * *extent as f64, cost);
            }
            Statement::Scatter { .. } => cost.flops += times,
            Statement::ScatterRun { length, .. } => cost.flops += times * *length as f64,
            Statement::StoreLanes(..)
            | Statement::GatherRun { .. }
            | Statement::Prefetch(..)
            | Statement::Comment(_) => {}
        }
    }
}

/// (flops, fmas' worth of time).
fn weight(op: &Op) -> (f64, f64) {
    match op {
        Op::Fma(..) | Op::FmaNeg(..) => (2.0, 1.0),
        Op::Binary(Binary::Add | Binary::Sub | Binary::Mul, ..) => (1.0, 1.0),
        Op::Binary(Binary::Min | Binary::Max, ..) | Op::Compare(..) => (1.0, 2.0),
        Op::Binary(Binary::Div, ..) | Op::Unary(Unary::Sqrt, _) => (1.0, 16.0),
        Op::Reciprocal(_) => (1.0, 6.0),
        Op::Unary(Unary::Neg | Unary::Abs, _) | Op::Select(..) => (1.0, 1.0),
        Op::Unary(Unary::Sign, _) => (1.0, 3.0),
        // Lane by lane, through the mathematical library.
        Op::Unary(..) | Op::Binary(Binary::Pow | Binary::Atan2, ..) => (1.0, 300.0),
        Op::And(..) | Op::Or(..) | Op::Not(_) => (0.0, 1.0),
        Op::Constant(_)
        | Op::Broadcast(_)
        | Op::LoadLocal(..)
        | Op::LoadTable(..)
        | Op::LoadUniform(..)
        | Op::LoadLanes(..)
        | Op::Gather { .. } => (0.0, 0.0),
    }
}

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
    /// Arithmetic, one number at a time.
    pub arithmetic: Arithmetic,
    /// Numbers that are moved to and from indexed places.
    pub indexed: Indexed,
    /// Loads and stores of private and shared arrays.
    pub private_accesses: f64,
    /// Of these, the shared ones.
    pub shared_accesses: f64,
    /// Bytes streamed.
    pub bytes: Bytes,
}

/// Operations on reals by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arithmetic {
    /// Fused multiply-adds, each of which is two floating-point operations.
    pub fused: f64,
    /// Additions, subtractions, multiplications, and changes of sign.
    pub plain: f64,
    /// Comparisons, choices and their like.
    pub chosen: f64,
    /// Divisions and square roots.
    pub divisions: f64,
    /// Powers, exponentials, sines and their like.
    pub functions: f64,
}

/// Numbers that go one by one, or in runs that several cells have side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Indexed {
    /// Read.
    pub gathered: f64,
    /// Read in runs.
    pub gathered_in_runs: f64,
    /// Added to what is there.
    pub added: f64,
    /// Added in runs.
    pub added_in_runs: f64,
}

/// Bytes by what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bytes {
    /// Vectors of unknowns, read and written.
    pub vectors: f64,
    /// Coordinates, or what is stored of the maps of cells.
    pub geometry: f64,
    /// What is stored at points of the Jacobian, or of a cell as its matrix.
    pub stored: f64,
    /// Data of the user.
    pub data: f64,
    /// Indices and masks.
    pub indices: f64,
}

impl Bytes {
    /// All of them.
    pub fn total(&self) -> f64 {
        self.vectors + self.geometry + self.stored + self.data + self.indices
    }
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
    /// What else there is to do, in multiply-adds.
    pub weights: Weights,
    /// The share of the shorter of streaming and computing that the longer does not hide.
    pub apart: f64,
    /// Seconds until a kernel runs.
    pub launch: f64,
}

/// Times in units of one fused multiply-add, over all lanes of a vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// A comparison or choice.
    pub chosen: f64,
    /// A division or square root; the divider works beside the multipliers.
    pub division: f64,
    /// A function of the mathematical library.
    pub function: f64,
    /// A number from an indexed place.
    pub gather: f64,
    /// One of a run.
    pub gather_in_run: f64,
    /// An addition to an indexed place.
    pub add: f64,
    /// One of a run.
    pub add_in_run: f64,
}

/// What bounds a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// Memory.
    Bandwidth,
    /// Multiply-adds, and what else the cores do.
    Arithmetic,
    /// Memory that threads share.
    Shared,
}

impl Limiter {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bandwidth => "bandwidth",
            Self::Arithmetic => "arithmetic",
            Self::Shared => "shared memory",
        }
    }
}

/// Seconds of a cell in each part of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Streaming.
    pub stream: f64,
    /// Computing.
    pub compute: f64,
    /// In shared memory.
    pub shared: f64,
}

impl Times {
    /// The part that takes longest.
    pub fn limiter(&self) -> Limiter {
        if self.stream >= self.compute.max(self.shared) {
            Limiter::Bandwidth
        } else if self.compute >= self.shared {
            Limiter::Arithmetic
        } else {
            Limiter::Shared
        }
    }
}

impl Machine {
    /// An H200: what it copies, what its multipliers do, and 128 bytes of shared memory a clock and
    /// multiprocessor, of which bank conflicts leave about two thirds.
    pub const H200: Self = Self {
        bandwidth: 4.2e12,
        fma_rate: 16.6e12,
        shared_rate: 2.4e12,
        weights: Weights::LANES,
        apart: 0.6,
        launch: 2e-6,
    };

    /// A server core of 2023 with 512-bit vectors, fitted to 78 operators of the bake-off suite
    /// (root mean square error of the predicted time: 12.5 %).
    pub const SERVER_CORE: Self = Self {
        bandwidth: 13e9,
        fma_rate: 45e9,
        shared_rate: f64::INFINITY,
        weights: Weights::LANES,
        apart: 0.6,
        launch: 0.0,
    };
}

impl Machine {
    /// So many of its cores, each with its own share of the bandwidth.
    #[must_use]
    pub fn of_cores(self, cores: usize) -> Self {
        let cores = cores as f64;
        Self { bandwidth: cores * self.bandwidth, fma_rate: cores * self.fma_rate, ..self }
    }
}

impl Weights {
    /// Of vectors whose lanes are cells. Read off generated code: a gather is a load and an insertion a lane, an addition to
    /// memory a load, an addition and a store; a run takes about three shuffles an element; functions go lane by lane through
    /// the mathematical library.
    pub const LANES: Self = Self {
        chosen: 1.0,
        division: 5.0,
        function: 300.0,
        gather: 14.0,
        gather_in_run: 6.0,
        add: 18.0,
        add_in_run: 10.0,
    };
}

impl Cost {
    /// Floating-point operations; an fma is two.
    pub fn flops(&self) -> f64 {
        let Arithmetic { fused, plain, divisions, functions, .. } = self.arithmetic;
        let Indexed { added, added_in_runs, .. } = self.indexed;
        2.0 * fused + plain + divisions + functions + added + added_in_runs
    }

    /// Time in units of one multiply-add.
    pub fn operations(&self, weights: &Weights) -> f64 {
        let Arithmetic { fused, plain, chosen, divisions, functions } = self.arithmetic;
        let Indexed { gathered, gathered_in_runs, added, added_in_runs } = self.indexed;
        fused
            + plain
            + weights.chosen * chosen
            + weights.division * divisions
            + weights.function * functions
            + weights.gather * gathered
            + weights.gather_in_run * gathered_in_runs
            + weights.add * added
            + weights.add_in_run * added_in_runs
    }

    /// The times of a cell, in seconds, on vectors of `lanes_share` of the widest.
    pub fn times(&self, machine: &Machine, lanes_share: f64) -> Times {
        Times {
            stream: self.bytes.total() / machine.bandwidth,
            compute: self.operations(&machine.weights) / (machine.fma_rate * lanes_share),
            shared: self.shared_accesses / machine.shared_rate,
        }
    }

    /// The predicted time of a cell, in seconds, on vectors of `lanes_share` of the widest: the
    /// longer of streaming and computing, and what of the shorter does not overlap.
    pub fn time(&self, machine: &Machine, lanes_share: f64) -> f64 {
        let Times { stream, compute, shared } = self.times(machine, lanes_share);
        let compute = compute.max(shared);
        stream.max(compute) + machine.apart * stream.min(compute)
    }

    /// The lower bound of a cell's time, in seconds.
    pub fn floor(&self, machine: &Machine, lanes_share: f64) -> f64 {
        let flops = self.flops() / (2.0 * machine.fma_rate * lanes_share);
        (self.bytes.total() / machine.bandwidth).max(flops)
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

fn bytes(abi: &KernelAbi, elements: &Elements) -> Bytes {
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
    let mut bytes = Bytes::default();
    for argument in &abi.arguments {
        match argument.role {
            // About what a cell has for itself of a matrix in which neighbours share entries is not counted.
            Role::Params | Role::Tables | Role::Matrix => {}
            Role::State(f) | Role::Direction(f) => {
                let all = unknowns(Some(elements.fields[f])) * elements.components[f] as f64;
                bytes.vectors += real * all;
            }
            // Read and written, and inside of cells only written where that is stored.
            Role::Result(f) => {
                let all = unknowns(Some(elements.fields[f])) * elements.components[f] as f64;
                bytes.vectors += real * (2.0 * all - stored_inside(abi, elements, f) as f64);
            }
            // Only where the field's degree is 1: a node for each unknown.
            Role::Coordinates => {
                let stride = coordinate_stride(elements.cell.dim()) as f64;
                bytes.geometry += real * unknowns(None) * stride;
            }
            Role::Axis(_) => bytes.geometry += real * unknowns(None),
            Role::Geometry | Role::Diameter => bytes.geometry += real * share(argument.extent),
            Role::AuxNodes(i) => bytes.data += real * unknowns(elements.aux[i]),
            Role::AuxCells(_) | Role::AuxPoints(_) => bytes.data += real * share(argument.extent),
            Role::Starts
            | Role::Places
            | Role::Map(..)
            | Role::Lines(..)
            | Role::Slots(..)
            | Role::Terms(_)
            | Role::Hanging
            | Role::Hang
            | Role::Entries
            | Role::Active => bytes.indices += 4.0 * share(argument.extent),
            Role::CellResult(_) | Role::CellMatrix | Role::Stored => {
                bytes.stored += real * share(argument.extent);
            }
        }
    }
    bytes
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
                    Op::Gather { .. } | Op::LoadAt { .. } => cost.indexed.gathered += times,
                    _ => {}
                }
                if value.varying {
                    *kind(&value.op, &mut cost.arithmetic, &mut 0.0) += times;
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
            Statement::Scatter { .. } | Statement::StoreAt { .. } => cost.indexed.added += times,
            Statement::ScatterEdge { values, .. } => {
                cost.indexed.added += 2.0 * times * values.len() as f64;
            }
            Statement::GatherRun { run, .. } => {
                cost.indexed.gathered_in_runs += times * run.length as f64;
            }
            Statement::ScatterRun { run, .. } => {
                cost.indexed.added_in_runs += times * run.length as f64;
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

/// Where an operation is counted; in `nowhere` if it is none.
fn kind<'c>(op: &Op, counts: &'c mut Arithmetic, nowhere: &'c mut f64) -> &'c mut f64 {
    match op {
        Op::Fma(..) | Op::FmaNeg(..) => &mut counts.fused,
        Op::Binary(Binary::Add | Binary::Sub | Binary::Mul, ..)
        | Op::Unary(Unary::Neg | Unary::Abs, _) => &mut counts.plain,
        Op::Binary(Binary::Min | Binary::Max, ..)
        | Op::Compare(..)
        | Op::Select(..)
        | Op::Unary(Unary::Sign, _)
        | Op::And(..)
        | Op::Or(..)
        | Op::Not(_) => &mut counts.chosen,
        Op::Binary(Binary::Div, ..)
        | Op::Quotient(..)
        | Op::Unary(Unary::Sqrt, _)
        | Op::Reciprocal(_) => &mut counts.divisions,
        Op::Unary(..) | Op::Binary(Binary::Pow | Binary::Atan2, ..) => &mut counts.functions,
        Op::Constant(_)
        | Op::Broadcast(_)
        | Op::LoadLocal(..)
        | Op::LoadShared(..)
        | Op::LoadTable(..)
        | Op::LoadUniform(..)
        | Op::LoadLanes(..)
        | Op::Flag { .. }
        | Op::Gather { .. }
        | Op::LoadAt { .. } => nowhere,
    }
}

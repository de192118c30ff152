//! The cost of a kernel, counted in its text: arithmetic first, then bytes.
//!
//! ```text
//! time ≥ max(bytes / bandwidth, operations / rate)
//! ```
//!
//! Counts are per cell. Bytes are compulsory memory traffic: per-cell arrays, and the cell's share of the DoFs of each
//! vector, about p^d for a cell of degree p.

pub mod transposition;

use crate::abi::{KernelAbi, Role, coordinate_stride};
use crate::element::Element;
use crate::kir::{Binary, Condition, Kernel, Op, Run, Statement, Unary};
use crate::plan::Elements;

/// The cost per cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Scalar arithmetic operations.
    pub arithmetic: Arithmetic,
    /// Values moved by indirect accesses.
    pub indexed: IndexedAccesses,
    /// Loads and stores of private and shared arrays.
    pub private_accesses: f64,
    /// The part in shared memory.
    pub shared_accesses: f64,
    /// Bytes streamed.
    pub bytes: Bytes,
    /// Work issued by warps.
    pub issued: IssuedWork,
    /// True if threads share a cell.
    pub in_groups: bool,
    /// Reals in a thread's private arrays.
    pub private_reals: f64,
    /// Quadrature points: compilers unroll loops over few points and keep their arrays in registers.
    pub points: f64,
}

/// Work issued by whole warps, counted once per thread: idle threads wait for the others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IssuedWork {
    /// Arithmetic, a division counted as one.
    pub arithmetic: f64,
    /// Loads and stores of shared memory.
    pub shared: f64,
    /// Values moved by indirect accesses.
    pub indexed: f64,
}

/// Operations on reals by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Arithmetic {
    /// Fused multiply-adds, each of which is two floating-point operations.
    pub fused: f64,
    /// Additions, subtractions, multiplications, and changes of sign.
    pub plain: f64,
    /// Comparisons, selections and similar.
    pub chosen: f64,
    /// Divisions and square roots.
    pub divisions: f64,
    /// Powers, exponentials, sines and similar.
    pub functions: f64,
}

/// Values that are accessed individually, or in runs contiguous in several cells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IndexedAccesses {
    /// Gathered individually.
    pub gathered: f64,
    /// Gathered in runs.
    pub gathered_in_runs: f64,
    /// Added individually.
    pub added: f64,
    /// Added in runs.
    pub added_in_runs: f64,
}

/// Bytes by kind of data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bytes {
    /// Solution vectors, read and written.
    pub vectors: f64,
    /// Coordinates, or the stored maps of cells.
    pub geometry: f64,
    /// Stored Jacobian coefficients at the points, or the stored element matrix.
    pub stored: f64,
    /// User data.
    pub data: f64,
    /// Indices and masks.
    pub indices: f64,
}

impl Bytes {
    /// Returns the sum of all kinds.
    pub fn total(&self) -> f64 {
        self.vectors + self.geometry + self.stored + self.data + self.indices
    }
}

/// The rates of a machine: of one CPU core, or of a whole GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Memory bandwidth in bytes per second: that of a copy on a GPU, that of reads on a core, which seldom writes.
    pub bandwidth: f64,
    /// Fused multiply-adds per second, all lanes together, in double precision.
    pub fma_rate: f64,
    /// Values per second to and from shared memory.
    pub shared_rate: f64,
    /// Values per second that threads add to memory; infinite if vector lanes add one after another.
    pub added_rate: f64,
    /// Weights of other operations, in multiply-adds.
    pub weights: Weights,
    /// Attained fractions for kernels with a cell per lane or thread.
    pub cells: AttainedFractions,
    /// Attained fractions for kernels whose threads share a cell.
    pub groups: AttainedFractions,
    /// Launch latency in seconds.
    pub launch: f64,
}

/// The fractions of a machine's rates that kernels attain, and the rule that combines concurrent parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttainedFractions {
    /// Fraction of the bandwidth.
    pub stream: f64,
    /// Fraction of the multiply-add rate.
    pub arithmetic: f64,
    /// Fraction of the shared-memory rate.
    pub shared: f64,
    /// Fraction of the addition rate, for each value in an indirect access.
    pub indexed: f64,
    /// The rule for overlapping parts.
    pub overlap: Overlap,
}

/// The total time of partly overlapping parts of a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Overlap {
    /// (Σ tⁿ)^(1/n): 1 without overlap, infinite for complete overlap.
    Norm(f64),
    /// The longer of streaming, and everything else plus this share of streaming.
    Beneath(f64),
}

/// Times in units of one fused multiply-add, over all lanes of a vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// A comparison or selection.
    pub chosen: f64,
    /// A division or square root; the divider runs concurrently with the multipliers.
    pub division: f64,
    /// A function of the mathematical library.
    pub function: f64,
    /// A value read by an indirect access.
    pub gather: f64,
    /// A value of a run.
    pub gather_in_run: f64,
    /// A value added by an indirect access.
    pub add: f64,
    /// A value added in a run.
    pub add_in_run: f64,
    /// An access to a private array, part of which is in registers.
    pub private: f64,
}

/// The bottleneck of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// Memory.
    Bandwidth,
    /// Multiply-adds and other operations.
    Arithmetic,
    /// Shared memory.
    Shared,
    /// Indirect accesses.
    Indexed,
    /// Values that exceed the registers.
    Registers,
}

impl Limiter {
    /// Returns the name for messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bandwidth => "bandwidth",
            Self::Arithmetic => "arithmetic",
            Self::Shared => "shared memory",
            Self::Indexed => "additions",
            Self::Registers => "registers",
        }
    }
}

/// Seconds per cell in each part of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// Streaming.
    pub stream: f64,
    /// Computing.
    pub compute: f64,
    /// Shared-memory accesses.
    pub shared: f64,
    /// Indirect accesses; part of computing on CPUs.
    pub indexed: f64,
    /// Register spills.
    pub spilt: f64,
    /// Like [`AttainedFractions::overlap`].
    pub overlap: Overlap,
}

impl Times {
    /// Returns the part that takes longest.
    pub fn limiter(&self) -> Limiter {
        let parts = [
            (self.stream, Limiter::Bandwidth),
            (self.compute, Limiter::Arithmetic),
            (self.shared, Limiter::Shared),
            (self.indexed, Limiter::Indexed),
            (self.spilt, Limiter::Registers),
        ];
        let longest = parts.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        longest.map_or(Limiter::Bandwidth, |(_, limiter)| limiter)
    }

    /// Returns the total time: the partly overlapping parts combined, plus the parts without overlap.
    pub fn total(&self) -> f64 {
        let others = [self.compute, self.shared, self.indexed];
        let overlapping = match self.overlap {
            Overlap::Norm(n) => {
                let sum = others.iter().fold(self.stream.powf(n), |sum, part| sum + part.powf(n));
                sum.powf(1.0 / n)
            }
            Overlap::Beneath(share) => {
                self.stream.max(others.iter().sum::<f64>() + share * self.stream)
            }
        };
        overlapping + self.spilt
    }
}

impl Machine {
    /// An H200. Its copy bandwidth was measured; the other rates are those of an H100, which differs only in its
    /// memory. The attained fractions were fitted to kernels of the bake-off suite of degrees 1 to 8, 84 with shared
    /// cells and 15 without. The predictions of 94 % of the planned kernels are within 15 % of their times.
    pub const H200: Self = Self {
        bandwidth: 4.2e12,
        fma_rate: 16.6e12,
        shared_rate: 3.45e12,
        added_rate: 2.68e11,
        weights: Weights { division: 13.0, function: 40.0, ..Weights::LANES },
        cells: AttainedFractions {
            stream: 0.97,
            arithmetic: 0.94,
            shared: 1.37,
            indexed: 1.34,
            overlap: Overlap::Norm(1.54),
        },
        groups: AttainedFractions {
            stream: 0.87,
            arithmetic: 0.735,
            shared: 1.37,
            indexed: 3.76,
            overlap: Overlap::Norm(1.61),
        },
        launch: 5e-6,
    };

    /// A server core of 2023 with 512-bit vectors. Its bandwidth lies between that of a single core, 18 GB/s, and that
    /// of one of 56 concurrently reading cores, 5.5 GB/s.
    pub const SERVER_CORE: Self = Self {
        bandwidth: 13e9,
        fma_rate: 47e9,
        shared_rate: f64::INFINITY,
        added_rate: f64::INFINITY,
        weights: Weights::LANES,
        cells: AttainedFractions::CORE,
        groups: AttainedFractions::CORE,
        launch: 0.0,
    };

    /// Returns whether its lanes are vector lanes rather than threads; additions then count as arithmetic.
    pub fn has_lanes(&self) -> bool {
        self.added_rate.is_infinite()
    }

    /// Returns a machine of this many cores, each with its own share of the bandwidth.
    #[must_use]
    pub fn of_cores(self, cores: usize) -> Self {
        let cores = cores as f64;
        Self { bandwidth: cores * self.bandwidth, fma_rate: cores * self.fma_rate, ..self }
    }
}

impl AttainedFractions {
    /// Fitted to 142 kernels of the bake-off suite on one core with 512-bit vectors and on two, with maps from vertices
    /// and with stored coefficients. For 94 % of the faster of each two, the prediction is within 15 % of the time.
    const CORE: Self = Self {
        stream: 0.69,
        arithmetic: 0.86,
        shared: 1.0,
        indexed: 1.0,
        overlap: Overlap::Beneath(0.41),
    };
}

impl Weights {
    /// Weights for vectors whose lanes are cells, fitted like [`AttainedFractions`]. A gather is a
    /// load and an insertion per lane. An addition to memory is a load, an addition and a store, partly concurrent with
    /// the multipliers, like the divider. A run takes about three shuffles per element; functions call the mathematical
    /// library lane by lane.
    pub const LANES: Self = Self {
        chosen: 1.0,
        division: 2.0,
        function: 300.0,
        gather: 5.0,
        gather_in_run: 6.0,
        add: 10.0,
        add_in_run: 10.0,
        private: 0.7,
    };
}

impl Cost {
    /// Returns the floating-point operations; a fused multiply-add counts as two.
    pub fn flops(&self) -> f64 {
        let Arithmetic { fused, plain, divisions, functions, .. } = self.arithmetic;
        let IndexedAccesses { added, added_in_runs, .. } = self.indexed;
        2.0 * fused + plain + divisions + functions + added + added_in_runs
    }

    /// Returns the time in units of one multiply-add.
    pub fn operations(&self, weights: &Weights) -> f64 {
        let Arithmetic { fused, plain, chosen, divisions, functions } = self.arithmetic;
        let IndexedAccesses { gathered, gathered_in_runs, added, added_in_runs } = self.indexed;
        fused
            + plain
            + weights.chosen * chosen
            + weights.division * divisions
            + weights.function * functions
            + weights.gather * gathered
            + weights.gather_in_run * gathered_in_runs
            + weights.add * added
            + weights.add_in_run * added_in_runs
            + weights.private * self.private_accesses
    }

    /// Returns the times per cell, in seconds, on vectors of `lanes_share` of the widest.
    pub fn times(&self, machine: &Machine, lanes_share: f64) -> Times {
        let reach = if self.in_groups { &machine.groups } else { &machine.cells };
        let stream = self.bytes.total() / (machine.bandwidth * reach.stream);
        let rate = machine.fma_rate * lanes_share * reach.arithmetic;
        if machine.has_lanes() {
            let compute = self.operations(&machine.weights) / rate;
            return Times {
                stream,
                compute,
                shared: 0.0,
                indexed: 0.0,
                spilt: 0.0,
                overlap: reach.overlap,
            };
        }
        // A thread with a cell reuses values that its neighbours have read.
        let indexed = if self.in_groups { self.issued.indexed } else { self.indexed.added };
        let further = (machine.weights.division - 1.0) * self.arithmetic.divisions
            + (machine.weights.function - 1.0) * self.arithmetic.functions;
        Times {
            stream,
            compute: (self.issued.arithmetic + further) / rate,
            shared: self.issued.shared / (machine.shared_rate * reach.shared),
            indexed: indexed / (machine.added_rate * reach.indexed),
            spilt: self.spilt() / machine.bandwidth,
            overlap: reach.overlap,
        }
    }

    /// Returns the bytes per cell that a thread spills: the more private values, the slower the memory. Times of the
    /// kernels used for the fit are within a factor of 2.3.
    fn spilt(&self) -> f64 {
        match self.private_reals {
            _ if self.in_groups => 0.0,
            private_reals if private_reals > REGISTERS && self.points > WRITTEN_OUT => {
                7.5e-3 * self.private_accesses * private_reals
            }
            private_reals if private_reals > 1.5 * REGISTERS => 0.45 * self.private_accesses,
            _ => 0.0,
        }
    }

    /// Returns the predicted time per cell, in seconds, on vectors of `lanes_share` of the widest.
    pub fn time(&self, machine: &Machine, lanes_share: f64) -> f64 {
        self.times(machine, lanes_share).total()
    }

    /// Returns the lower bound of the time per cell, in seconds.
    pub fn floor(&self, machine: &Machine, lanes_share: f64) -> f64 {
        let flops = self.flops() / (2.0 * machine.fma_rate * lanes_share);
        (self.bytes.total() / machine.bandwidth).max(flops)
    }
}

/// Counts the operations and bytes of a kernel.
pub fn count(kernel: &Kernel, abi: &KernelAbi, elements: &Elements) -> Cost {
    let private_reals: usize = kernel.locals.iter().map(|array| array.length).sum();
    let mut cost = Cost {
        bytes: bytes(abi, elements),
        in_groups: kernel.threads > 0,
        private_reals: private_reals as f64,
        points: elements.rule.count() as f64,
        ..Cost::default()
    };
    // All threads of a cell, and all threads that its warps have.
    let of_cells = |threads: usize| threads as f64 / (kernel.group * abi.lanes) as f64;
    let (threads, slots) = match kernel.threads {
        0 => (1.0, 1.0),
        threads => (of_cells(threads), of_cells(threads.next_multiple_of(WARP))),
    };
    add(kernel, &kernel.body, (threads, slots), &mut cost);
    cost
}

/// Returns the DoFs of a field inside of a cell whose results are stored and therefore not read; 0 if a kernel adds to
/// all.
pub fn stored_inside(abi: &KernelAbi, elements: &Elements, field: usize) -> usize {
    let inside = elements.fields[field].entity_count(elements.cell.dim());
    if abi.stores_inside { inside * elements.components[field] } else { 0 }
}

/// Returns the share of a cell's points whose DoFs only this cell refers to, if the points are the nodes of a finer
/// space.
fn fine(elements: &Elements) -> f64 {
    let line = elements.rule.line().map_or(2, |line| line.count().max(2)) as f64;
    ((line - 1.0) / line).powi(elements.cell.dim() as i32)
}

fn bytes(abi: &KernelAbi, elements: &Elements) -> Bytes {
    let dim = elements.cell.dim() as i32;
    let real = abi.precision.bytes() as f64;
    let unknowns = |element: Option<Element>| {
        let own = element.filter(|element| !element.is_continuous());
        if let Some(element) = own {
            return element.count() as f64;
        }
        let all = (element.map_or(1, Element::degree) as f64).powi(dim);
        if elements.cell.is_tensor() { all } else { all / f64::from([1, 1, 2, 6][dim as usize]) }
    };
    let share = |extent: usize| extent as f64 / abi.lanes as f64;
    let mut bytes = Bytes::default();
    let of_field = |field: usize| {
        let own = |at: &usize| elements.origins[*at].index == field;
        let numbers = |at| unknowns(Some(elements.fields[at])) * elements.components[at] as f64;
        (0..elements.fields.len()).filter(own).map(numbers).sum::<f64>()
    };
    for argument in &abi.arguments {
        match argument.role {
            // A matrix is not counted: neighbours share its entries.
            Role::Params | Role::Tables | Role::Matrix => {}
            Role::State(_) | Role::Direction(_) | Role::AuxNodes(_) if argument.extent > 0 => {
                bytes.vectors += real * share(argument.extent);
            }
            Role::State(f) | Role::Direction(f) => {
                let all = of_field(f);
                bytes.vectors += real * all;
            }
            // Read and written; inside of cells only written if results there are stored.
            Role::Result(f) => {
                let all = of_field(f);
                bytes.vectors += real * (2.0 * all - stored_inside(abi, elements, f) as f64);
            }
            // Only if the field's degree is 1: a node per DoF.
            Role::Fine => {
                let written = argument.written;
                let named = abi.arguments.iter().find(|own| own.role == Role::Targets);
                let all = named.map_or(0.0, |own| share(own.extent)) * fine(elements);
                bytes.vectors += real * all * if written { 2.0 } else { 1.0 };
            }
            Role::Coordinates => {
                let stride = coordinate_stride(elements.cell.dim()) as f64;
                bytes.geometry += real * unknowns(None) * stride;
            }
            Role::Axis(_) => bytes.geometry += real * unknowns(None),
            Role::Geometry | Role::Diameter => bytes.geometry += real * share(argument.extent),
            Role::Signs(_) => bytes.indices += real * share(argument.extent),
            Role::AuxNodes(i) => {
                let own = |at: &usize| elements.aux_origins[*at].index == i;
                let all = (0..elements.aux.len()).filter(own);
                bytes.data += all.map(|at| real * unknowns(elements.aux[at])).sum::<f64>();
            }
            Role::AuxCells(_) | Role::AuxPoints(_) => bytes.data += real * share(argument.extent),
            Role::Starts
            | Role::Places
            | Role::Map(..)
            | Role::Lines(..)
            | Role::Rows(..)
            | Role::FirstAxis(_)
            | Role::Turns(_)
            | Role::Slots(..)
            | Role::Terms(_)
            | Role::Hanging
            | Role::Hang
            | Role::Entries
            | Role::Targets
            | Role::Active => bytes.indices += 4.0 * share(argument.extent),
            Role::CellResult(_) | Role::CellMatrix | Role::Stored => {
                bytes.stored += real * share(argument.extent);
            }
        }
    }
    bytes
}

/// Values that a thread keeps in registers.
const REGISTERS: f64 = 155.0;
/// Largest number of points for which loops over them are unrolled.
const WRITTEN_OUT: f64 = 32.0;

/// Threads per warp.
const WARP: usize = 32;

/// Adds the cost of statements, given how often they are executed and issued.
fn add(kernel: &Kernel, body: &[Statement], (times, slots): (f64, f64), cost: &mut Cost) {
    for statement in body {
        match statement {
            Statement::Let(id) => {
                let value = &kernel.values[*id];
                match value.op {
                    Op::LoadLocal(..) => cost.private_accesses += times,
                    Op::LoadShared(..) => {
                        cost.private_accesses += times;
                        cost.shared_accesses += times;
                        cost.issued.shared += slots;
                    }
                    Op::Gather { .. } | Op::LoadAt { .. } => {
                        cost.indexed.gathered += times;
                        cost.issued.indexed += slots;
                    }
                    _ => {}
                }
                if value.varying
                    && let Some(count) = count_of(&value.op, &mut cost.arithmetic)
                {
                    *count += times;
                    cost.issued.arithmetic += slots;
                }
            }
            Statement::StoreLocal(..) => cost.private_accesses += times,
            Statement::StoreShared(..) => {
                cost.private_accesses += times;
                cost.shared_accesses += times;
                cost.issued.shared += slots;
            }
            Statement::When { conditions, body } => {
                // The share of the threads that enter.
                let share = conditions.iter().fold(1.0, |share, condition| {
                    let Condition::Below(var, bound) = *condition else { return share };
                    let thread = kernel.thread_of(var);
                    let modulus = thread.map_or(1, |thread| kernel.thread_bound(thread));
                    share * (bound.min(modulus) as f64 / modulus as f64)
                });
                add(kernel, body, (times * share, slots), cost);
            }
            Statement::For { extent, body, .. } => {
                let extent = *extent as f64;
                add(kernel, body, (times * extent, slots * extent), cost);
            }
            Statement::Scatter { .. } | Statement::StoreAt { .. } => {
                cost.indexed.added += times;
                cost.issued.indexed += slots;
            }
            Statement::ScatterEdge { values, .. } => {
                cost.indexed.added += 2.0 * times * values.len() as f64;
                cost.issued.indexed += 2.0 * slots * values.len() as f64;
            }
            Statement::GatherRun { run, .. } => {
                cost.indexed.gathered_in_runs += times * run.length as f64;
                cost.arithmetic.fused += times * summed(run);
            }
            Statement::ScatterRun { run, .. } => {
                cost.indexed.added_in_runs += times * run.length as f64;
                cost.arithmetic.fused += times * summed(run);
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

/// Returns the multiply-adds of the weights of a run.
fn summed(run: &Run) -> f64 {
    let arrays = run.lines.as_ref().map_or(0, |lines| 1 + lines.others.len());
    (run.length * arrays) as f64
}

/// Returns the counter of an arithmetic operation.
fn count_of<'c>(op: &Op, counts: &'c mut Arithmetic) -> Option<&'c mut f64> {
    Some(match op {
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
        | Op::LoadAt { .. } => return None,
    })
}

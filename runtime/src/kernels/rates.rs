//! Measured rates of this machine: copy bandwidth and fused multiply-adds, for lower bounds of run times.

pub mod device;
pub mod stored_rates;

use crate::device::cpu::{Argument, Buffer, LaunchError, Module};
use crate::device::jit::{HandWritten, Jit, JitError, JitOptions};
use crate::processes::{ProcessGroup, Reduction};
use kernels_gen::abi::Precision;
use kernels_gen::abi::{self, KernelAbi, Role};
use kernels_gen::cost::{Machine, Weights};
use std::time::Instant;

/// Measured rates of a device, or of all threads of the current pool together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Bytes per second of y = x; reads and writes count.
    pub copy: f64,
    /// Bytes per second of reading and summing; on devices equal to `copy`.
    pub read: f64,
    /// Double-precision floating-point operations per second of independent fused multiply-adds.
    pub flops: f64,
    /// Double-precision divisions per second.
    pub divisions: f64,
    /// Numbers per second read from shared memory of a thread group; infinite on CPUs.
    pub shared: f64,
    /// Numbers per second added to memory in a scatter; on devices with atomic operations.
    pub additions: f64,
    /// Seconds between two launches without work.
    pub launch: f64,
}

/// Returns the name of this processor.
pub fn named() -> String {
    crate::device::cpu::Machine::detect().model.clone()
}

impl Rates {
    /// Returns the rates of all processes together, each measured separately.
    pub fn of_all(&self, group: &dyn ProcessGroup) -> Self {
        let mut sums =
            [self.copy, self.read, self.flops, self.divisions, self.shared, self.additions];
        let mut longest = [self.launch];
        group.reduce(Reduction::Sum, &mut sums);
        group.reduce(Reduction::Largest, &mut longest);
        let ([copy, read, flops, divisions, shared, additions], [launch]) = (sums, longest);
        Self { copy, read, flops, divisions, shared, additions, launch }
    }

    /// Returns a cost model with the measured rates; kernels reach the same fraction of them as on `like`. On CPUs,
    /// additions and divisions have the weights of `like`.
    pub fn machine(&self, like: &Machine) -> Machine {
        let bandwidth = if like.has_lanes() { self.read } else { self.copy };
        let (fma_rate, launch) = (self.flops / 2.0, self.launch);
        let own = Machine { bandwidth, fma_rate, launch, ..*like };
        if like.has_lanes() {
            return own;
        }
        let weights = Weights { division: fma_rate / self.divisions, ..like.weights };
        Machine { shared_rate: self.shared, added_rate: self.additions, weights, ..own }
    }
}

/// Minimal number of entries per thread for copying and reading: far beyond the caches of a core.
const ENTRIES: usize = 1 << 23;
/// Minimal number of entries in total: beyond the shared cache.
const SHARED: usize = 1 << 25;
/// Length of the chain of multiply-adds.
const STEPS: usize = 1 << 22;
const REPETITIONS: usize = 5;
const LAUNCHES: usize = 20;

/// Measures the current thread pool.
pub fn measure() -> Result<Rates, JitError> {
    let source = HandWritten {
        rust: include_str!("rates/kernels.rs.txt"),
        c: include_str!("rates/kernels.c.txt"),
    };
    let library = Jit::global().compile_by_hand(&source, &JitOptions::new("rates"))?;
    let argument = |name: &str, written| abi::Argument {
        role: Role::Stored,
        name: name.into(),
        extent: 1,
        written,
    };
    let kernel = |name: &str| {
        let arguments = vec![argument("x", false), argument("y", true)];
        let hash = abi::hash(name);
        KernelAbi { hash, ..KernelAbi::by_hand(name, Precision::F64, 1, arguments) }
    };
    let module = Module::new(
        library,
        &["copy", "read", "fma", "divide", "add"].map(|what| kernel(&format!("rates_{what}"))),
    )
    .map_err(JitError::Load)?;
    let threads = rayon::current_num_threads();
    let entries = ENTRIES.max(SHARED / threads).next_multiple_of(32);
    let x = Buffer::<f64>::from_fn(entries * threads, |i| i as f64);
    let mut y = Buffer::<f64>::zeroed(entries * threads);
    let mut best = |name: &str, work: usize| -> Result<f64, LaunchError> {
        let mut least = f64::INFINITY;
        for _ in 0..REPETITIONS {
            let start = Instant::now();
            let arguments = [Argument::read(&x), Argument::write(&mut y)];
            let parts: Vec<_> = (0..threads).map(|t| t * work..(t + 1) * work).collect();
            let kernel = module.kernel(name);
            kernel.and_then(|kernel| kernel.bind(arguments)?.run_disjoint(&parts))?;
            least = least.min(start.elapsed().as_secs_f64());
        }
        Ok(least)
    };
    let copy = best("rates_copy", entries)?;
    let read = best("rates_read", entries)?;
    let fma = best("rates_fma", STEPS)?;
    let divide = best("rates_divide", STEPS >> 4)?;
    let add = best("rates_add", STEPS >> 2)?;
    let start = Instant::now();
    for _ in 0..LAUNCHES {
        best("rates_fma", 1)?;
    }
    let launch = start.elapsed().as_secs_f64() / (LAUNCHES * REPETITIONS) as f64;
    Ok(Rates {
        copy: (16 * entries * threads) as f64 / copy,
        read: (8 * entries * threads) as f64 / read,
        flops: (STEPS * threads * 16 * 8 * 2) as f64 / fma,
        divisions: ((STEPS >> 4) * threads * 8 * 8) as f64 / divide,
        shared: f64::INFINITY,
        additions: ((STEPS >> 2) * threads * 8) as f64 / add,
        launch,
    })
}

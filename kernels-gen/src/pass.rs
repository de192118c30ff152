//! Passes: kernels → kernels, each verified afterwards.
//!
//! [`PASSES`] is the list that runs: [`simplify`] runs those for all targets, [`for_vectors`] and
//! [`for_threads`] those for one. `docs/design/kir.md` shows the list; `pass/tests` has texts before and after each pass.
//!
//! All kernels take these passes, compiled or interpreted, ahead of time or just in time. A pass that breaks an invariant
//! of [`verify`] stops the compiler.

mod eliminate;
mod legalise;
mod place;

pub use place::{Constants, LARGE, SPREAD};

use crate::kir::Kernel;
use crate::kir::verify::{Phase, VerifyError, verify};
use std::fmt;

/// The kernels of one source file.
#[derive(Debug)]
pub struct Module<'k> {
    /// The kernels.
    pub kernels: &'k mut [Kernel],
    /// The language has another memory for tables of which threads read different entries.
    pub has_spread_memory: bool,
    /// The memory of the constants of each kernel; empty before [`place`](mod@place).
    pub constants: Vec<Constants>,
}

impl<'k> Module<'k> {
    /// Kernels before any pass.
    pub fn new(kernels: &'k mut [Kernel]) -> Self {
        Self { kernels, has_spread_memory: false, constants: Vec::new() }
    }
}

/// The kernels that a pass is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Targets {
    /// Those of all targets, before they are counted and hashed.
    All,
    /// Those for vectors of a CPU.
    Vectors,
    /// Those for threads of a GPU.
    Threads,
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "all",
            Self::Vectors => "vectors of a CPU",
            Self::Threads => "threads of a GPU",
        })
    }
}

/// A pass. Displays as a row of a Markdown table.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// The kernels that it is for.
    pub targets: Targets,
    /// The invariants of the kernels that it leaves.
    pub phase: Phase,
    /// The property that holds after it.
    pub guarantee: &'static str,
    rewrite: fn(&mut Module<'_>),
}

impl Pass {
    /// Rewrites kernels and verifies them.
    ///
    /// # Errors
    ///
    /// A kernel that breaks an invariant afterwards, with the name of the pass.
    pub fn run(&self, module: &mut Module<'_>) -> Result<(), VerifyError> {
        (self.rewrite)(module);
        verify_after(self.name, self.phase, module.kernels)
    }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, targets, guarantee, .. } = self;
        write!(f, "| `{name}` | {targets} | {guarantee} |")
    }
}

/// The name under which a kernel is verified before the first pass.
pub const LOWER: &str = "lower";

/// All passes, in the order in which a kernel meets those of its target.
pub const PASSES: [Pass; 4] = [
    Pass {
        name: "eliminate",
        targets: Targets::All,
        phase: Phase::Lowered,
        guarantee: "every value is used, and ids follow the text",
        rewrite: |module| module.kernels.iter_mut().for_each(eliminate::eliminate),
    },
    Pass {
        name: "legalise",
        targets: Targets::Vectors,
        phase: Phase::Legal,
        guarantee: "operands are as wide as their operation, by `Broadcast`",
        rewrite: |module| module.kernels.iter_mut().for_each(legalise::legalise),
    },
    Pass {
        name: "share",
        targets: Targets::Threads,
        phase: Phase::Lowered,
        guarantee: "lanes that share nodes add atomically; no prefetches, no stages",
        rewrite: |module| legalise::share(module.kernels),
    },
    Pass {
        name: "place",
        targets: Targets::Threads,
        phase: Phase::Lowered,
        guarantee: "constants are in a memory that has room for them",
        rewrite: |module| {
            module.constants = place::place(module.kernels, module.has_spread_memory);
        },
    },
];

/// Runs the passes for some kernels in the order of the list.
fn run(targets: Targets, module: &mut Module<'_>) -> Result<(), VerifyError> {
    let mut passes = PASSES.iter().filter(|pass| pass.targets == targets);
    passes.try_for_each(|pass| pass.run(module))
}

/// A kernel as a strategy wrote it → one that can be counted, hashed, interpreted and legalised.
///
/// # Errors
///
/// A kernel that breaks an invariant, before or after a pass.
pub fn simplify(mut kernel: Kernel) -> Result<Kernel, VerifyError> {
    verify_after(LOWER, Phase::Lowered, std::slice::from_mut(&mut kernel))?;
    run(Targets::All, &mut Module::new(std::slice::from_mut(&mut kernel)))?;
    Ok(kernel)
}

/// A kernel for a target whose varying values are vectors of lanes.
///
/// # Errors
///
/// A kernel that breaks an invariant after a pass.
pub fn for_vectors(mut kernel: Kernel) -> Result<Kernel, VerifyError> {
    run(Targets::Vectors, &mut Module::new(std::slice::from_mut(&mut kernel)))?;
    Ok(kernel)
}

/// The kernels of one file for a target whose lanes are threads (CUDA, OpenCL), and where the constants of each are;
/// `has_spread_memory` as in [`Module`].
///
/// # Errors
///
/// A kernel that breaks an invariant after a pass.
pub fn for_threads(
    kernels: &mut [Kernel],
    has_spread_memory: bool,
) -> Result<Vec<Constants>, VerifyError> {
    let mut module = Module { has_spread_memory, ..Module::new(kernels) };
    run(Targets::Threads, &mut module)?;
    Ok(module.constants)
}

/// Verifies the kernels that a pass has left.
fn verify_after(
    pass: &'static str,
    phase: Phase,
    kernels: &mut [Kernel],
) -> Result<(), VerifyError> {
    #[cfg(test)]
    tests::plant(pass, kernels);
    let named = |error: VerifyError| VerifyError {
        violation: format!("after the pass `{pass}`, {}", error.violation),
        ..error
    };
    kernels.iter().try_for_each(|kernel| verify(kernel, phase)).map_err(named)
}

#[cfg(test)]
mod tests;

//! Passes: kernels → kernels, each verified behind.
//!
//! | pass | behind it | for |
//! | --- | --- | --- |
//! | `lower` | what a [`strategy`](crate::strategy) wrote | all |
//! | [`eliminate`](mod@eliminate) | no value is unused | all |
//! | [`legalise`](mod@legalise) | operands are as wide as their operation | vectors of a CPU |
//! | `share` | lanes that share nodes add atomically, and nothing is prefetched | threads of a GPU |
//! | [`place`](mod@place) | constants are in a memory with room for them | threads of a GPU |
//!
//! Whoever wants a kernel, compiled or interpreted, ahead of time or just in time, comes through here: a pass that breaks
//! what [`verify`] knows of kernels stops the compiler, and no kernel is made.

mod eliminate;
mod legalise;
mod place;

pub use place::{Constants, LARGE, SPREAD};

use crate::kir::Kernel;
use crate::kir::verify::{Phase, VerifyError, verify};

/// The passes, in the order in which a kernel meets those of its target.
pub const PASSES: [&str; 5] = ["lower", "eliminate", "legalise", "share", "place"];

/// A kernel as a strategy wrote it → one that can be counted, hashed, interpreted and legalised.
pub fn simplify(mut kernel: Kernel) -> Result<Kernel, VerifyError> {
    behind("lower", Phase::Lowered, std::slice::from_mut(&mut kernel))?;
    let mut kernel = eliminate::eliminate(kernel);
    behind("eliminate", Phase::Lowered, std::slice::from_mut(&mut kernel))?;
    Ok(kernel)
}

/// A kernel for a target whose varying values are vectors of lanes.
pub fn for_vectors(kernel: Kernel) -> Result<Kernel, VerifyError> {
    let mut kernel = legalise::legalise(kernel);
    behind("legalise", Phase::Legal, std::slice::from_mut(&mut kernel))?;
    Ok(kernel)
}

/// The kernels of one file for a target whose lanes are threads (CUDA, OpenCL), and where the constants of each are;
/// `others` says whether the language has another memory for tables of which threads read different entries.
pub fn for_threads(kernels: &mut [Kernel], others: bool) -> Result<Vec<Constants>, VerifyError> {
    legalise::share(kernels);
    behind("share", Phase::Lowered, kernels)?;
    let constants = place::place(kernels, others);
    behind("place", Phase::Lowered, kernels)?;
    Ok(constants)
}

/// Verifies what a pass has made.
fn behind(pass: &str, phase: Phase, kernels: &mut [Kernel]) -> Result<(), VerifyError> {
    #[cfg(test)]
    tests::plant(pass, kernels);
    let named = |error: VerifyError| VerifyError {
        what: format!("behind the pass `{pass}`, {}", error.what),
        ..error
    };
    kernels.iter().try_for_each(|kernel| verify(kernel, phase)).map_err(named)
}

#[cfg(test)]
mod tests;

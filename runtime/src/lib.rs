//! Meshes, spaces, operators and solvers that drive the generated kernels.

// Tests beside the code share what tests outside of it use.
#[cfg(test)]
extern crate self as runtime;

pub mod adapt;
pub mod aggregation;
pub mod assemble;
pub mod assembly;
pub mod batch;
pub mod bench;
pub mod bisect;
pub mod compile;
pub mod constraint;
pub mod coupling;
pub mod csr;
pub mod device;
pub mod discretisation;
mod doing;
pub mod estimate;
pub mod expression;
pub mod factor;
mod fingerprint;
pub mod forest;
pub mod functional;
pub mod geometry;
pub mod input;
pub mod jit;
mod lanczos;
mod laps;
pub mod linear;
pub mod mark;
pub mod memory;
pub mod mesh;
pub mod operator;
pub mod output;
mod parallel;
pub mod parted;
pub mod partition;
pub mod processes;
pub mod purpose;
pub mod rates;
pub mod run;
pub mod scaling;
pub mod scratch;
pub mod sharing;
pub mod solve;
pub mod space;
pub mod stored;
pub mod time;
pub mod vector;
pub mod verify;

pub use fem_reference as reference;
pub use fem_reference::assert_close;

/// The target of `tracing`'s events that say what takes long: of level `info` while it begins, of level `warn` where it
/// takes longer than it should. Programs may show them.
pub const PROGRESS: &str = "weakform::progress";

//! Meshes, spaces, operators and solvers that drive the generated kernels.

// Tests beside the code share what tests outside of it use.
#[cfg(test)]
extern crate self as runtime;

pub mod algebra;
pub mod device;
pub mod estimate;
pub mod files;
pub mod kernels;
pub mod mesh;
pub mod operator;
pub mod problem;
pub mod processes;
pub mod solve;
pub mod space;
pub mod support;
pub mod verify;

pub use fem_reference as reference;
pub use fem_reference::assert_close;

/// The target of `tracing`'s events that say what takes long: of level `info` while it begins, of level `warn` where it
/// takes longer than it should. Programs may show them.
pub const PROGRESS: &str = "weakform::progress";

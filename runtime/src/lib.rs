//! Meshes, spaces, operators and solvers that drive the generated kernels.

// Tests beside the code share what tests outside of it use.
#[cfg(test)]
extern crate self as runtime;

pub mod algebra;
pub mod device;
pub mod estimate;
pub mod files;
pub mod kernels;
pub mod operator;
pub mod problem;
pub mod solve;
pub mod space;
pub mod verify;

pub use fem_mesh::support::progress::PROGRESS;
pub use fem_mesh::{mesh, processes, support};
pub use fem_reference as reference;
pub use fem_reference::assert_close;

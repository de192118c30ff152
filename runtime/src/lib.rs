//! Meshes, spaces, operators and solvers that drive the generated kernels.

pub mod device;
pub mod jit;
pub mod solve;
pub mod vector;

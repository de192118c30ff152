//! Meshes, spaces, operators and solvers that drive the generated kernels.

pub mod solve;
pub mod vector;

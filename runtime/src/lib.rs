//! Meshes, spaces, operators and solvers that drive the generated kernels.

pub mod device;
pub mod jit;
pub mod mesh;
pub mod reference;
pub mod solve;
pub mod vector;

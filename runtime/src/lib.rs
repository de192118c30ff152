//! Meshes, spaces, operators and solvers that drive the generated kernels.

//! Meshes, groups of processes, and the support that every part of the runtime uses.

// Tests beside the code share what tests outside of it use.
#[cfg(test)]
extern crate self as fem_mesh;

pub mod mesh;
pub mod processes;
pub mod support;

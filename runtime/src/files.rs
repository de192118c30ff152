//! Files: solutions, meshes and matrices in the formats of other programs.

pub mod input;
pub mod output;

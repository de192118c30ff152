//! Meshes, spaces, operators and solvers that drive the generated kernels.

pub mod assemble;
pub mod batch;
pub mod bench;
pub mod compile;
pub mod constraint;
pub mod coupling;
pub mod device;
pub mod discretisation;
pub mod expression;
pub mod factor;
pub mod functional;
pub mod geometry;
pub mod jit;
pub mod mesh;
pub mod operator;
pub mod output;
pub mod partition;
pub mod reference;
pub mod run;
pub mod solve;
pub mod space;
pub mod vector;
pub mod verify;

//! Linear algebra: vectors, linear operators, sparse matrices, factorisations and aggregation.

pub mod aggregation;
pub mod coupling;
pub mod factor;
pub(crate) mod lanczos;
pub mod linear;
pub mod sparse;
pub mod vector;

//! Linear algebra: vectors, linear operators, sparse matrices, factors and aggregation.

pub mod aggregation;
pub mod coupling;
pub mod csr;
pub mod factor;
pub(crate) mod lanczos;
pub mod linear;
pub mod vector;

//! Kernels: a plan becomes source text, and the source a loaded module; compilers, caches and measured rates.

pub mod compile;
pub mod purpose;
pub mod rates;
pub mod representation;

//! Support for all other modules: memory budget, parallel loops, scratch files, timers, hashes, pointwise expressions.

pub(crate) mod atomic_file;
pub mod expression;
pub(crate) mod fingerprint;
pub mod input;
pub mod memory;
pub(crate) mod parallel;
pub(crate) mod progress;
pub(crate) mod random;
pub mod scratch;
pub(crate) mod timers;

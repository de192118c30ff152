//! Support for all other modules: memory budget, parallel loops, scratch files, timers, hashes, pointwise expressions.

pub mod atomic_file;
pub mod expression;
pub mod fingerprint;
pub mod input;
pub mod memory;
pub mod parallel;
pub mod progress;
pub mod random;
pub mod scratch;
pub mod timers;

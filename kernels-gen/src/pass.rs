//! Rewrites of a kernel: kir → kir.

pub mod eliminate;
pub mod legalise;
pub mod place;

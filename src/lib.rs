//! The facade of weakform.

pub mod render;

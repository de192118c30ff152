//! The weak-form language: from text to [`point::PointForm`].

pub mod arena;
pub mod ast;
pub mod codes;
pub mod diagnostic;
pub mod point;
pub mod problem;
pub mod source;

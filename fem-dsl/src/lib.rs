//! The weak-form language: from text to [`point::PointForm`].

pub mod arena;
pub mod point;
pub mod problem;

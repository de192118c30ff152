//! The weak-form language: from text to [`point::PointForm`].

pub mod arena;
pub mod arithmetic;
pub mod ast;
pub mod check;
pub mod codes;
pub mod diagnostic;
pub mod differentiate;
pub mod eval;
pub mod form;
pub mod format;
pub mod interior;
pub mod manufacture;
pub mod measures;
pub mod names;
pub mod non_finite;
pub mod parse;
pub mod point;
pub mod problem;
pub mod program;
pub mod simplify;
pub mod source;
mod suggestions;
pub mod terms;
pub mod testing;
pub mod verify;
pub mod words;

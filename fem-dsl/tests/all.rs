//! All tests of the language as one program, which saves build time and lets them share the cores.

mod again;
mod check;
mod common;
mod complex;
mod counts;
mod errors;
mod exterior;
mod format;
mod formulas;
mod hand_counts;
mod interior;
mod manufacture;
mod parse;
mod program;
mod robust;
mod stages;

//! All tests of the language as one program, so that they share what it takes to build one and all processors.

mod check;
mod common;
mod counts;
mod errors;
mod format;
mod hand_counts;
mod manufacture;
mod parse;
mod program;
mod robust;
mod stages;

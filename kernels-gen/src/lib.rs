//! Code generator: from a `PointForm` to the source of a specialised finite-element kernel.

pub mod abi;
pub mod aot;
pub mod choose;
pub mod cost;
pub mod dialect;
pub mod element;
pub mod export;
pub mod generate;
pub mod interpreted;
pub mod kir;
mod limits;
mod lower;
pub mod pass;
pub mod plan;
pub mod strategy;

//! Devices: where compiled kernels live and run.
//!
//! This folder is the only place in weakform that may write `unsafe`; each use states the reason why it is sound.
//! A device takes what `kernels-gen` printed and the JIT compiled, and offers launches that check what can be
//! checked before control passes to generated code.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "opencl")]
pub mod opencl;

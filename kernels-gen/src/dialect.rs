//! `print`: kir → text. A dialect only prints: what its language lacks, `legalise` has rewritten.

pub mod c;
pub mod cuda;
pub mod opencl;
pub mod rust;

use crate::abi::KernelAbi;
use std::fmt;

/// The language of a [`SourceFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Rust with SIMD vectors.
    Rust,
    /// CUDA C++.
    Cuda,
    /// OpenCL C 1.2.
    OpenCl,
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rust => "Rust",
            Self::Cuda => "CUDA",
            Self::OpenCl => "OpenCL",
        })
    }
}

/// Generated source: self-contained, the same bytes for the same inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceFile {
    /// The text.
    pub text: String,
    /// Its language.
    pub language: Language,
    /// Its kernels.
    pub kernels: Vec<KernelAbi>,
}

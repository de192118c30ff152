//! `print`: kir → text. A dialect only prints: what its language lacks, `legalise` has rewritten.

pub mod rust;

use crate::abi::KernelAbi;

/// The language of a [`SourceFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Rust with SIMD vectors.
    Rust,
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

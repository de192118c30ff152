//! CUDA C++, for NVRTC: compiled without any header.

use super::Language;
use super::c::Vocabulary;

/// The vocabulary of CUDA.
pub const CUDA: Vocabulary = Vocabulary {
    language: Language::Cuda,
    kernel: "extern \"C\" __global__ void __launch_bounds__($THREADS, $GROUPS)",
    global: "",
    shared: "__shared__ __align__(16)",
    fence: "fence()",
    listed: None,
    tables_within: false,
    asked_for: Some("extern __shared__ __align__(16) T asked_for[];"),
    by_registers: None,
    barrier: "__syncthreads()",
    constant: "__constant__",
    spread: Some("__device__ const"),
    restrict: "__restrict__",
    thread: "(int)threadIdx.x",
    group: "blockIdx.x",
    size: "size_t",
    preamble: include_str!("preamble/cuda.cu"),
};

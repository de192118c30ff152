//! OpenCL C 1.2 with `cl_khr_fp64`.

use super::Language;
use super::c::Vocabulary;

/// The vocabulary of OpenCL.
pub const OPENCL: Vocabulary = Vocabulary {
    language: Language::OpenCl,
    kernel: "__kernel __attribute__((reqd_work_group_size($THREADS, 1, 1))) void",
    global: "__global ",
    shared: "__local __attribute__((aligned(16)))",
    fence: "fence()",
    listed: Some("listed"),
    tables_within: true,
    asked_for: None,
    by_registers: Some("__kernel group_of($THREADS) void"),
    barrier: "barrier(CLK_LOCAL_MEM_FENCE)",
    constant: "__constant",
    spread: None,
    restrict: "restrict",
    thread: "(int)get_local_id(0)",
    group: "get_group_id(0)",
    size: "ulong",
    preamble: include_str!("preamble/opencl.cl"),
};

//! `cargo xtask miri`: the parts of the CPU device without foreign calls, interpreted by Miri, which detects
//! out-of-bounds accesses, invalid pointers and data races.

use std::process::Command;

use crate::root;

/// Tests without foreign calls: of buffers, index arrays, shared vectors and schedules.
const TESTS: [&str; 4] = ["buffer", "indices", "shared", "schedule"];

/// Threads started by rayon outlive the tests; one of its dependencies converts integers to pointers.
const FLAGS: &str = "-Zmiri-ignore-leaks -Zmiri-permissive-provenance -Zmiri-disable-isolation";

/// Runs them, or reports missing components.
pub(crate) fn run() -> Result<(), String> {
    let cargo = |arguments: &[&str]| {
        // rustup's proxy: the toolchain's own `cargo`, which runs this program, does not support other toolchains.
        let mut command = Command::new("cargo");
        command.arg("+nightly").args(arguments).current_dir(root());
        command.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
        command
    };
    let found = cargo(&["miri", "--version"]).output();
    if !found.is_ok_and(|found| found.status.success()) {
        let help = "rustup +nightly component add miri rust-src";
        return Err(format!("Miri is not installed, and nothing was checked; `{help}`"));
    }
    let tests = TESTS.map(|module| format!("device::cpu::{module}::"));
    let mut test = cargo(&["miri", "test", "-p", "weakform-runtime", "--lib", "--"]);
    crate::execute(test.args(tests).env("MIRIFLAGS", FLAGS))
}

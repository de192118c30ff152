//! `cargo xtask miri`: the parts of the processor's device that call nothing foreign, interpreted by Miri, which sees
//! accesses outside of allocations, invalid pointers and data races.

use std::process::Command;

use crate::root;

/// Tests without foreign code: what is behind buffers, index arrays, shared vectors and schedules.
const TESTS: [&str; 4] = ["buffer", "indices", "shared", "schedule"];

/// Threads that rayon starts outlive the tests; one of its dependencies makes pointers of numbers.
const FLAGS: &str = "-Zmiri-ignore-leaks -Zmiri-permissive-provenance -Zmiri-disable-isolation";

/// Runs them, or says what is missing.
pub(crate) fn run() -> Result<(), String> {
    let cargo = |arguments: &[&str]| {
        // rustup's proxy: the toolchain's own `cargo`, which runs this program, knows no other toolchain.
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
    let mut test = cargo(&["miri", "test", "-p", "runtime", "--lib", "--"]);
    crate::execute(test.args(tests).env("MIRIFLAGS", FLAGS))
}

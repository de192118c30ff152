//! Stored measurements: the rates of a machine, in the folder of compiled kernels.

use super::Rates;
use crate::device::jit::Jit;
use std::fmt::Write as _;

/// The names of the fields of [`Rates`].
const NAMES: [&str; 7] = ["copy", "read", "flops", "divisions", "shared", "additions", "launch"];

fn numbers(rates: &Rates) -> [f64; 7] {
    let Rates { copy, read, flops, divisions, shared, additions, launch } = *rates;
    [copy, read, flops, divisions, shared, additions, launch]
}

/// Returns the key of a processor with a number of threads, or of a device.
fn key(machine: &str, threads: usize) -> String {
    format!("rates of {machine}, {threads} threads")
}

/// Returns the stored rates of a machine; `None` if not measured or without a cache.
pub fn rates(machine: &str, threads: usize) -> Option<Rates> {
    let text = Jit::global().cache().ok()?.recall(&key(machine, threads))?;
    let number = |name: &str| -> Option<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line?.parse().ok()
    };
    let [copy, read, flops, divisions, shared, additions, launch] = NAMES.map(number);
    Some(Rates {
        copy: copy?,
        read: read?,
        flops: flops?,
        divisions: divisions?,
        shared: shared?,
        additions: additions?,
        launch: launch?,
    })
}

/// Stores the rates of a machine; returns the folder.
///
/// # Errors
///
/// A message if there is no usable folder.
pub fn keep(machine: &str, threads: usize, of: &Rates) -> Result<String, String> {
    let cache = Jit::global().cache().map_err(ToString::to_string)?;
    let mut text = String::new();
    for (name, number) in NAMES.iter().zip(numbers(of)) {
        let _ = writeln!(text, "{name} {number:e}");
    }
    cache.remember(&key(machine, threads), &text);
    if rates(machine, threads).as_ref() != Some(of) {
        return Err(format!("nothing can be kept in {}", cache.folder().display()));
    }
    Ok(cache.folder().display().to_string())
}

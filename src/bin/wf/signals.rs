//! Signals that end `wf`: what was started ends first, and no temporary file is left behind.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag::register;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Waits for the signals that end programs. After cleaning up, one of them ends `wf` as if it had not been heard, so that
/// a shell sees which it was (128 and its number). Those that `wf` was started to ignore (`nohup`) stay ignored. That a
/// file may not grow is no signal's matter: it is an error where the file is written.
pub(crate) fn listen() -> io::Result<()> {
    register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let heard = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|&signal| !is_ignored(signal));
    let mut signals = Signals::new(heard.collect::<Vec<_>>())?;
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            runtime::support::scratch::end();
            let _ = emulate_default_handler(signal);
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait).map(drop)
}

/// Whether this process was started to ignore a signal, as far as the system says.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

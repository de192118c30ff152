//! Signals that end `wf`: child processes end first, and temporary files are removed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag::register;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Waits for the signals that end programs. After the clean-up, the signal ends `wf` with its default action, so that a
/// shell sees it (exit status 128 plus its number). Signals that were ignored at start (`nohup`) stay ignored.
/// Exceeding the file-size limit is no signal's matter: it is an error of the write.
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

/// Returns whether this process was started with a signal ignored, according to the system.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

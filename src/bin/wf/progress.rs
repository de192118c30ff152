//! Progress of long operations: on a terminal a bar, otherwise a line on standard error every ten seconds.
//!
//! A separate thread displays the last message, so that progress is visible during a long compilation without messages.
//! Without a thread, nothing is shown and the work continues.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use fem_dsl::source::seen;
use indicatif::{ProgressBar, ProgressStyle};

/// Interval between lines without a terminal.
pub(crate) const EVERY: Duration = Duration::from_secs(10);

/// Interval between updates of a bar.
const FRAME: Duration = Duration::from_millis(100);

/// Length of a bar.
const WHOLE: f64 = 1000.0;

/// The form of the display.
pub(crate) enum DisplayMode {
    /// None.
    None,
    /// A bar on a terminal.
    Bar,
    /// Lines at this interval.
    Lines(Box<dyn Write + Send>, Duration),
}

/// Progress display, from the first message to the end.
pub(crate) struct Progress {
    shared: Arc<SharedDisplay>,
}

struct SharedDisplay {
    state: Mutex<DisplayState>,
    ended: Condvar,
}

struct DisplayState {
    start: Instant,
    what: String,
    /// The last message without its details.
    said: String,
    /// The current detail.
    detail: String,
    /// The completed fraction, from 0 to 1, if known.
    part: Option<f64>,
    face: DisplayMode,
    bar: Option<ProgressBar>,
    thread: Option<JoinHandle<()>>,
    ended: bool,
}

impl Progress {
    pub(crate) fn new(face: DisplayMode) -> Self {
        let (start, what) = (Instant::now(), String::new());
        let (said, detail) = (String::new(), String::new());
        let (part, bar, thread, ended) = (None, None, None, false);
        let state = DisplayState { start, what, said, detail, part, face, bar, thread, ended };
        Self { shared: Arc::new(SharedDisplay { state: Mutex::new(state), ended: Condvar::new() }) }
    }

    /// Sets the current operation.
    pub(crate) fn say(&self, what: impl Into<String>) {
        self.word(seen(&what.into()).into_owned(), None);
    }

    /// Sets the current operation, and the completed fraction of all work, from 0 to 1.
    pub(crate) fn say_part(&self, what: impl Into<String>, part: f64) {
        self.word(what.into(), Some(part));
    }

    fn word(&self, what: String, part: Option<f64>) {
        let shown = {
            let mut state = self.shared.lock();
            state.said.clone_from(&what);
            if state.detail.is_empty() { what } else { format!("{what} ({})", state.detail) }
        };
        self.set(shown, part);
    }

    /// Sets the current detail; an empty one restores the message without details.
    pub(crate) fn detail(&self, detail: &str) {
        let (what, part) = {
            let mut state = self.shared.lock();
            detail.clone_into(&mut state.detail);
            let whole = state.said.split(": ").next().unwrap_or_default();
            let what = match whole {
                _ if detail.is_empty() => state.said.clone(),
                "" => detail.to_owned(),
                whole => format!("{whole}: {detail}"),
            };
            (what, state.part)
        };
        self.set(what, part);
    }

    fn set(&self, what: String, part: Option<f64>) {
        let mut state = self.shared.lock();
        if state.ended || matches!(state.face, DisplayMode::None) {
            return;
        }
        let moves = state.part.is_some() == part.is_some();
        (state.what, state.part) = (what, part);
        match (&state.face, moves) {
            (DisplayMode::Bar, false) => state.begin_bar(),
            (DisplayMode::Bar, true) if state.bar.is_none() => state.begin_bar(),
            _ => {}
        }
        state.move_bar();
        if state.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let thread = Builder::new().name("progress".into()).spawn(move || shared.watch());
            state.thread = thread.ok();
        }
    }

    /// Prints an intermediate result immediately, if progress is displayed at all.
    pub(crate) fn line(&self, text: &str) {
        let shown = !matches!(self.shared.lock().face, DisplayMode::None);
        if shown {
            self.aside(|| {
                let _ = writeln!(std::io::stderr().lock(), "{text}");
            });
        }
    }

    /// Writes to standard error without disturbing the bar.
    pub(crate) fn aside(&self, write: impl FnOnce()) {
        let state = self.shared.lock();
        match &state.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Ends the display.
    pub(crate) fn end(&self) {
        let thread = {
            let mut state = self.shared.lock();
            state.ended = true;
            if let Some(bar) = state.bar.take() {
                bar.finish_and_clear();
            }
            state.thread.take()
        };
        self.shared.ended.notify_all();
        // A panic of the display thread is no reason to stop.
        let _ = thread.map(JoinHandle::join);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

impl SharedDisplay {
    fn lock(&self) -> MutexGuard<'_, DisplayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the display at each interval until the end.
    fn watch(&self) {
        let mut state = self.lock();
        let every = match &state.face {
            DisplayMode::None => return,
            DisplayMode::Bar => FRAME,
            DisplayMode::Lines(_, every) => *every,
        };
        while !state.ended {
            let waited = self.ended.wait_timeout(state, every);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if timeout.timed_out() && !state.ended {
                state.show();
            }
        }
    }
}

impl DisplayState {
    /// Creates a bar if the fraction is known, else a spinner.
    fn begin_bar(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        let (bar, template) = match self.part {
            Some(_) => (ProgressBar::new(WHOLE as u64), "{bar:30} {msg} [{elapsed}]"),
            None => (ProgressBar::new_spinner(), "{spinner} {msg} [{elapsed}]"),
        };
        let bar = bar.with_elapsed(self.start.elapsed());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        self.bar = Some(bar);
    }

    fn move_bar(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message(self.what.clone());
            self.part.iter().for_each(|part| bar.set_position((part * WHOLE) as u64));
        }
    }

    fn show(&mut self) {
        let seconds = self.start.elapsed().as_secs();
        if let Some(bar) = &self.bar {
            bar.tick();
        }
        if let DisplayMode::Lines(out, _) = &mut self.face {
            let part =
                self.part.map_or_else(String::new, |part| format!(", {:.0} %", 100.0 * part));
            // An unwritable standard error is ignored.
            let _ = writeln!(out, "{}{part} [{} s]", self.what, seconds);
            let _ = out.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// Forwards each line.
    struct Lines(Sender<String>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn long_work_off_a_terminal_says_what_it_does_at_each_interval() {
        let (sender, lines) = channel();
        let face = DisplayMode::Lines(Box::new(Lines(sender)), Duration::from_millis(1));
        let progress = Progress::new(face);
        let wait = |words: &str| {
            let mut text = String::new();
            while !text.contains(words) {
                let line = lines.recv_timeout(Duration::from_secs(60));
                text.push_str(&line.expect("a line at each interval"));
            }
        };
        progress.say("ball: setting up");
        wait("ball: setting up [0 s]\n");
        progress.detail("compiling kernels");
        wait("ball: compiling kernels [");
        progress.detail("");
        wait("ball: setting up [");
        progress.say("ball: iteration 7");
        wait("ball: iteration 7 [");
        progress.detail("load step 2 of 5");
        wait("ball: load step 2 of 5 [");
        progress.say("ball: iteration 8");
        wait("ball: iteration 8 (load step 2 of 5) [");
        progress.detail("");
        wait("ball: iteration 8 [");
        progress.say_part("degree 2, errors", 0.25);
        wait("degree 2, errors, 25 % [");
        progress.end();
        lines.try_iter().for_each(drop);
        progress.say("after the end");
        assert!(lines.recv_timeout(Duration::from_millis(20)).is_err(), "a line after the end");
    }

    #[test]
    fn work_shorter_than_the_interval_says_nothing() {
        let (sender, lines) = channel();
        let progress = Progress::new(DisplayMode::Lines(Box::new(Lines(sender)), EVERY));
        progress.say("ball: compiling");
        drop(progress);
        assert!(lines.try_iter().next().is_none());
    }
}

//! What is being done while it takes long: on a terminal a bar, elsewhere a line on standard error every ten seconds.
//!
//! A thread of its own looks at the last word of the work, so that a compiler that says nothing for a minute is seen to
//! be at work. Where no thread can be had, nothing is shown and the work goes on.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use fem_dsl::source::seen;
use indicatif::{ProgressBar, ProgressStyle};

/// How often a line is written where there is no terminal.
pub(crate) const EVERY: Duration = Duration::from_secs(10);

/// How often a bar moves.
const FRAME: Duration = Duration::from_millis(100);

/// How far a bar goes.
const WHOLE: f64 = 1000.0;

/// How it is shown.
pub(crate) enum Face {
    /// Not at all.
    None,
    /// As a bar, on a terminal.
    Bar,
    /// As lines, at these intervals.
    Lines(Box<dyn Write + Send>, Duration),
}

/// Shows what is being done, from the first word to the end.
pub(crate) struct Progress {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

struct State {
    start: Instant,
    what: String,
    /// What was said last without its details.
    said: String,
    /// The detail that holds until the next one.
    detail: String,
    /// The part that is done, from 0 to 1, where that is known.
    part: Option<f64>,
    face: Face,
    bar: Option<ProgressBar>,
    thread: Option<JoinHandle<()>>,
    ended: bool,
}

impl Progress {
    pub(crate) fn new(face: Face) -> Self {
        let (start, what) = (Instant::now(), String::new());
        let (said, detail) = (String::new(), String::new());
        let (part, bar, thread, ended) = (None, None, None, false);
        let state = State { start, what, said, detail, part, face, bar, thread, ended };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), ended: Condvar::new() }) }
    }

    /// What is being done from now on.
    pub(crate) fn say(&self, what: impl Into<String>) {
        self.word(seen(&what.into()).into_owned(), None);
    }

    /// What is being done from now on, and the part of all work that is behind, from 0 to 1.
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

    /// What of it is being done, until the next detail; without one, what was said before.
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
        if state.ended || matches!(state.face, Face::None) {
            return;
        }
        let moves = state.part.is_some() == part.is_some();
        (state.what, state.part) = (what, part);
        match (&state.face, moves) {
            (Face::Bar, false) => state.begin_bar(),
            (Face::Bar, true) if state.bar.is_none() => state.begin_bar(),
            _ => {}
        }
        state.move_bar();
        if state.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let thread = Builder::new().name("progress".into()).spawn(move || shared.watch());
            state.thread = thread.ok();
        }
    }

    /// A result on the way, at once, where what is being done is shown at all.
    pub(crate) fn line(&self, text: &str) {
        let shown = !matches!(self.shared.lock().face, Face::None);
        if shown {
            self.aside(|| {
                let _ = writeln!(std::io::stderr().lock(), "{text}");
            });
        }
    }

    /// Writes something on standard error without disturbing the bar.
    pub(crate) fn aside(&self, write: impl FnOnce()) {
        let state = self.shared.lock();
        match &state.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Nothing is shown from now on.
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
        // A thread that has panicked has shown nothing since, which is no reason to stop.
        let _ = thread.map(JoinHandle::join);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the state at each interval until the end.
    fn watch(&self) {
        let mut state = self.lock();
        let every = match &state.face {
            Face::None => return,
            Face::Bar => FRAME,
            Face::Lines(_, every) => *every,
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

impl State {
    /// A bar where the part is known, something that turns elsewhere.
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
        if let Face::Lines(out, _) = &mut self.face {
            let part =
                self.part.map_or_else(String::new, |part| format!(", {:.0} %", 100.0 * part));
            // Where standard error takes nothing, nobody reads it.
            let _ = writeln!(out, "{}{part} [{} s]", self.what, seconds);
            let _ = out.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// Sends each line on.
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
        let face = Face::Lines(Box::new(Lines(sender)), Duration::from_millis(1));
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
        let progress = Progress::new(Face::Lines(Box::new(Lines(sender)), EVERY));
        progress.say("ball: compiling");
        drop(progress);
        assert!(lines.try_iter().next().is_none());
    }
}

//! Messages of a subcommand on standard error, separate from its result: warnings and progress.
//!
//! A warning is printed once, as soon as it is known; with `--json` it is also part of the result's `warnings`. This
//! includes warnings that the libraries emit through `tracing`.

use std::fmt::{self, Display};
use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::source::{Source, seen};
use serde_json::{Value, json};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;
use weakform::render::{Style, render};

use crate::progress::{DisplayMode, EVERY, Progress};

/// A warning, as text and as JSON.
#[derive(Clone, Debug)]
pub(crate) struct Warning {
    text: String,
    json: Value,
}

impl Warning {
    /// Creates a warning from a sentence; a line that begins with `help: ` contains the suggestion.
    pub(crate) fn new(text: impl Display) -> Self {
        let text = text.to_string();
        let text = seen(&text);
        let (message, help) = text.split_once("\nhelp: ").unwrap_or((&text, ""));
        let help: &[&str] = if help.is_empty() { &[] } else { &[help] };
        let none = Value::Null;
        let json = json!({
            "code": none, "severity": "warning", "message": message, "file": none, "line": none,
            "column": none, "labels": [], "notes": [], "help": help,
        });
        Self { text: format!("warning: {text}"), json }
    }

    /// Returns the warning about an option without effect.
    pub(crate) fn no_effect(option: &str, because: &str) -> Self {
        Self::new(format!("`{option}` has no effect: {because}\nhelp: leave it out"))
    }

    /// Creates a warning with its location.
    fn at(source: &Source, found: &Diagnostic) -> Self {
        let found = std::slice::from_ref(found);
        let text = render(source, found, style());
        let json = json!(weakform::render::json(source, found).first());
        Self { text: text.trim_end().to_owned(), json }
    }
}

/// Returns the style of diagnostics on standard error.
pub(crate) fn style() -> Style {
    if io::stderr().is_terminal() { Style::Coloured } else { Style::Plain }
}

/// The destination of a subcommand's messages other than its result.
pub(crate) struct Console {
    json: bool,
    one_terminal: bool,
    progress: Progress,
    said: Mutex<WarningLog>,
    /// True if another process prints the messages.
    silent: AtomicBool,
}

/// The warnings so far.
#[derive(Default)]
struct WarningLog {
    all: Vec<String>,
    /// The warnings that do not belong to a result yet.
    open: Vec<Value>,
}

impl Console {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let face = match (quiet, io::stderr().is_terminal()) {
            (true, _) => DisplayMode::None,
            (false, true) => DisplayMode::Bar,
            (false, false) => DisplayMode::Lines(Box::new(io::stderr()), EVERY),
        };
        let one_terminal = matches!(face, DisplayMode::Bar) && io::stdout().is_terminal();
        let silent = AtomicBool::new(false);
        Self { json, one_terminal, progress: Progress::new(face), said: Mutex::default(), silent }
    }

    /// Creates a silent console, because another process prints the messages.
    pub(crate) fn silent(json: bool) -> Self {
        Self { silent: AtomicBool::new(true), ..Self::new(json, true) }
    }

    /// Returns whether messages are printed.
    pub(crate) fn speaks(&self) -> bool {
        !self.silent.load(Relaxed)
    }

    /// Enables messages, regardless of other processes.
    pub(crate) fn speak_up(&self) {
        self.silent.store(false, Relaxed);
    }

    /// Returns whether messages and the result share one terminal.
    pub(crate) fn is_one_terminal(&self) -> bool {
        self.one_terminal
    }

    /// Returns whether the result is JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Returns the progress display, for long operations.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Prints a warning, unless it has been printed.
    pub(crate) fn warn(&self, warning: Warning) {
        let mut said = self.said();
        if said.all.contains(&warning.text) {
            return;
        }
        if self.speaks() {
            self.progress.aside(|| {
                // A closed standard error is ignored.
                let _ = writeln!(io::stderr().lock(), "{}", warning.text);
            });
        }
        said.all.push(warning.text);
        said.open.push(warning.json);
    }

    /// Prints the warnings among the diagnostics of a text, and returns the errors.
    pub(crate) fn warn_of(&self, source: &Source, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let (errors, warnings): (Vec<_>, Vec<_>) =
            found.into_iter().partition(Diagnostic::is_error);
        warnings.iter().for_each(|found| self.warn(Warning::at(source, found)));
        errors
    }

    /// Returns the warnings since the last call, for the result to which they belong.
    pub(crate) fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.said().open)
    }

    fn said(&self) -> MutexGuard<'_, WarningLog> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Subscribes to events of the libraries: progress of long operations, and warnings, unless `WF_LOG` sets another
/// level.
pub(crate) fn listen(console: &Arc<Console>) {
    let level = std::env::var("WF_LOG").ok().and_then(|level| level.parse().ok());
    let level = level.unwrap_or(Level::WARN);
    tracing_subscriber::fmt()
        .with_max_level(level.max(Level::INFO))
        .with_writer(EventReceiver { console: Arc::clone(console), level })
        // An unwritable standard error is ignored; the default would panic.
        .log_internal_errors(false)
        .event_format(Plain)
        .init();
}

/// Formats an event as its level and its message, a warning as its message only.
struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = *event.metadata().level();
        let progress = event.metadata().target() == runtime::PROGRESS;
        if level != Level::WARN && !progress {
            write!(out, "{}: ", level.as_str().to_ascii_lowercase())?;
        }
        context.field_format().format_fields(out.by_ref(), event)?;
        // An empty event, the end of an operation, is written too; writers trim the newline.
        writeln!(out)
    }
}

/// Receives the events of the libraries.
struct EventReceiver {
    console: Arc<Console>,
    /// The most detailed level received.
    level: Level,
}

impl<'a> MakeWriter<'a> for EventReceiver {
    type Writer = EventWriter<'a>;

    fn make_writer(&'a self) -> EventWriter<'a> {
        EventWriter { console: &self.console, kind: EventKind::Nothing }
    }

    fn make_writer_for(&'a self, about: &tracing::Metadata<'_>) -> EventWriter<'a> {
        let kind = match *about.level() {
            Level::WARN if about.target() == runtime::PROGRESS => EventKind::Waiting,
            _ if about.target() == runtime::PROGRESS => EventKind::Progress,
            level if level > self.level => EventKind::Nothing,
            Level::WARN => EventKind::Warning,
            _ => EventKind::Remark,
        };
        EventWriter { console: &self.console, kind }
    }
}

/// Visitor of the fields of one event.
struct EventWriter<'a> {
    console: &'a Console,
    kind: EventKind,
}

/// The kind of an event.
enum EventKind {
    Nothing,
    Progress,
    Waiting,
    Warning,
    Remark,
}

impl Write for EventWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end();
        match self.kind {
            EventKind::Nothing => {}
            EventKind::Progress => self.console.progress.detail(text),
            EventKind::Waiting => self.console.progress.line(text),
            EventKind::Warning => self.console.warn(Warning::new(text)),
            EventKind::Remark => self.console.progress.aside(|| {
                let _ = writeln!(io::stderr().lock(), "{text}");
            }),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

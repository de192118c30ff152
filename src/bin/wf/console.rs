//! What a subcommand says beside its result, on standard error: warnings, and what it is doing.
//!
//! A warning is said once, as soon as it is known; with `--json` it stands in the result's `warnings` too. So it is with
//! what the libraries warn of by `tracing`.

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

use crate::progress::{EVERY, Face, Progress};

/// Something that is not wrong but should be known, in both of its forms.
#[derive(Clone, Debug)]
pub(crate) struct Warning {
    text: String,
    json: Value,
}

impl Warning {
    /// A sentence; after a line that begins with `help: `, what to do.
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

    /// An option that changes nothing.
    pub(crate) fn no_effect(option: &str, because: &str) -> Self {
        Self::new(format!("`{option}` has no effect: {because}\nhelp: leave it out"))
    }

    /// A warning with its place.
    fn at(source: &Source, found: &Diagnostic) -> Self {
        let found = std::slice::from_ref(found);
        let text = render(source, found, style());
        let json = json!(weakform::render::json(source, found).first());
        Self { text: text.trim_end().to_owned(), json }
    }
}

/// How diagnostics are rendered for standard error.
pub(crate) fn style() -> Style {
    if io::stderr().is_terminal() { Style::Coloured } else { Style::Plain }
}

/// Where a subcommand says what is not its result.
pub(crate) struct Console {
    json: bool,
    one_terminal: bool,
    progress: Progress,
    said: Mutex<Said>,
    /// Whether nothing is to be said, since another process does.
    silent: AtomicBool,
}

/// The warnings so far.
#[derive(Default)]
struct Said {
    all: Vec<String>,
    /// Those that no result has yet.
    open: Vec<Value>,
}

impl Console {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let face = match (quiet, io::stderr().is_terminal()) {
            (true, _) => Face::None,
            (false, true) => Face::Bar,
            (false, false) => Face::Lines(Box::new(io::stderr()), EVERY),
        };
        let one_terminal = matches!(face, Face::Bar) && io::stdout().is_terminal();
        let silent = AtomicBool::new(false);
        Self { json, one_terminal, progress: Progress::new(face), said: Mutex::default(), silent }
    }

    /// One that says nothing, since another process does.
    pub(crate) fn silent(json: bool) -> Self {
        Self { silent: AtomicBool::new(true), ..Self::new(json, true) }
    }

    /// Whether anything is said here.
    pub(crate) fn speaks(&self) -> bool {
        !self.silent.load(Relaxed)
    }

    /// Says what there is to say from now on, whatever others do.
    pub(crate) fn speak_up(&self) {
        self.silent.store(false, Relaxed);
    }

    /// Whether what is said on the way and the result come to one terminal.
    pub(crate) fn is_one_terminal(&self) -> bool {
        self.one_terminal
    }

    /// Whether the result is to be JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// What is being done, shown where it takes long.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Says a warning, unless it has been said.
    pub(crate) fn warn(&self, warning: Warning) {
        let mut said = self.said();
        if said.all.contains(&warning.text) {
            return;
        }
        if self.speaks() {
            self.progress.aside(|| {
                // A closed standard error leaves nobody to tell.
                let _ = writeln!(io::stderr().lock(), "{}", warning.text);
            });
        }
        said.all.push(warning.text);
        said.open.push(warning.json);
    }

    /// Says the warnings among what was found in a text, and gives back the errors.
    pub(crate) fn warn_of(&self, source: &Source, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let (errors, warnings): (Vec<_>, Vec<_>) =
            found.into_iter().partition(Diagnostic::is_error);
        warnings.iter().for_each(|found| self.warn(Warning::at(source, found)));
        errors
    }

    /// The warnings since this was last asked, for the result to which they belong.
    pub(crate) fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.said().open)
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has the libraries heard: what takes long, and warnings, unless `WF_LOG` asks for more or less.
pub(crate) fn listen(console: &Arc<Console>) {
    let level = std::env::var("WF_LOG").ok().and_then(|level| level.parse().ok());
    let level = level.unwrap_or(Level::WARN);
    tracing_subscriber::fmt()
        .with_max_level(level.max(Level::INFO))
        .with_writer(Ears { console: Arc::clone(console), level })
        // Where standard error takes nothing, there is nobody to tell: the default would panic.
        .log_internal_errors(false)
        .event_format(Plain)
        .init();
}

/// An event as its level and its message, a warning as its message alone.
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
        context.field_format().format_fields(out.by_ref(), event)
    }
}

/// Takes the events of the libraries, each at once.
struct Ears {
    console: Arc<Console>,
    /// The last level that is heard.
    level: Level,
}

impl<'a> MakeWriter<'a> for Ears {
    type Writer = Ear<'a>;

    fn make_writer(&'a self) -> Ear<'a> {
        Ear { console: &self.console, hears: Hears::Nothing }
    }

    fn make_writer_for(&'a self, about: &tracing::Metadata<'_>) -> Ear<'a> {
        let hears = match *about.level() {
            Level::WARN if about.target() == runtime::PROGRESS => Hears::Waiting,
            _ if about.target() == runtime::PROGRESS => Hears::Progress,
            level if level > self.level => Hears::Nothing,
            Level::WARN => Hears::Warning,
            _ => Hears::Remark,
        };
        Ear { console: &self.console, hears }
    }
}

/// Takes one event.
struct Ear<'a> {
    console: &'a Console,
    hears: Hears,
}

/// What an event is taken for.
enum Hears {
    Nothing,
    Progress,
    Waiting,
    Warning,
    Remark,
}

impl Write for Ear<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end();
        match self.hears {
            Hears::Nothing => {}
            Hears::Progress => self.console.progress.detail(text),
            Hears::Waiting => self.console.progress.line(text),
            Hears::Warning => self.console.warn(Warning::new(text)),
            Hears::Remark => self.console.progress.aside(|| {
                let _ = writeln!(io::stderr().lock(), "{text}");
            }),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

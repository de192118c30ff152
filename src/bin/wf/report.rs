//! What a subcommand gives back, and how it is printed: [`Report`] or [`Failure`] → text or JSON, and an exit code.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::source::Source;
use serde_json::{Value, json};
use weakform::render::{Style, render};

/// The result of a subcommand, in both of its forms.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// What a person reads.
    pub(crate) text: String,
    /// What a program reads: each value is one line.
    pub(crate) json: Vec<Value>,
}

impl Report {
    /// A report with one JSON object.
    pub(crate) fn new(text: impl Into<String>, json: Value) -> Self {
        Self { text: text.into(), json: vec![json] }
    }
}

/// Why there is no result.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What a person reads: rendered diagnostics, or a sentence with its help.
    message: String,
    /// The same as data, where there is more to say than the message.
    diagnostics: Vec<Value>,
    /// What had been done before.
    done: Option<Report>,
    code: u8,
}

impl Failure {
    /// Bad input: a file, a form, a mesh, an expression.
    pub(crate) fn input(message: impl Display) -> Self {
        Self { message: message.to_string(), diagnostics: Vec::new(), done: None, code: 1 }
    }

    /// Bad input with the places in its text.
    pub(crate) fn diagnostics(source: &Source, found: &[Diagnostic]) -> Self {
        let style = if io::stderr().is_terminal() { Style::Coloured } else { Style::Plain };
        let message = render(source, found, style);
        let diagnostics = weakform::render::json(source, found);
        let diagnostics = diagnostics.iter().map(|found| json!(found)).collect();
        Self { message, diagnostics, done: None, code: 1 }
    }

    /// What the library refused, with its places where it has any.
    pub(crate) fn library(error: &weakform::Error) -> Self {
        match error {
            weakform::Error::Language { source_text, diagnostics } => {
                Self::diagnostics(source_text, diagnostics)
            }
            error => Self::input(error),
        }
    }

    /// The failure after some work had been done, which is reported too.
    pub(crate) fn after(mut self, done: Report) -> Self {
        self.done = Some(done);
        self
    }

    /// Adds another failure's messages.
    pub(crate) fn join(&mut self, other: Self) {
        if !self.message.ends_with('\n') {
            self.message.push('\n');
        }
        self.message.push_str(prefix(&other.message));
        self.message.push_str(&other.message);
        self.diagnostics.extend(other.diagnostics);
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::input(error)
    }
}

/// What a message needs before it: nothing where it is rendered already.
fn prefix(message: &str) -> &'static str {
    let rendered = message.starts_with("error") || message.starts_with('\u{1b}');
    if rendered { "" } else { "error: " }
}

/// Prints what a subcommand gave back.
pub(crate) fn finish(result: Result<Report, Failure>, json: bool) -> ExitCode {
    let shown = |report: &Report| if json { lines(&report.json) } else { report.text.clone() };
    let (text, code) = match &result {
        Ok(report) => (shown(report), 0),
        Err(failure) => {
            let mut text = failure.done.as_ref().map_or_else(String::new, shown);
            if json {
                let error = json!({ "error": failure.message, "diagnostics": failure.diagnostics });
                text.push_str(&lines(&[error]));
            }
            (text, failure.code)
        }
    };
    let printed = print(&text);
    if let (Err(failure), false) = (&result, json) {
        // A closed standard error leaves nobody to tell.
        let rendered = failure.message.trim_end();
        let _ = writeln!(io::stderr().lock(), "{}{rendered}", prefix(rendered));
    }
    match printed {
        Ok(()) => ExitCode::from(code),
        Err(error) => unprinted(&error),
    }
}

/// Prints what the command line's reader has to say: help and version go well, all else is bad usage.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let failed = error.use_stderr();
    if failed && std::env::args_os().any(|argument| argument == "--json") {
        let message = error.to_string();
        if let Err(error) =
            print(&lines(&[json!({ "error": message.trim_end(), "diagnostics": [] })]))
        {
            return unprinted(&error);
        }
    } else {
        let _ = error.print();
    }
    ExitCode::from(if failed { 2 } else { 0 })
}

fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// Writes to standard output. A reader that has gone (`wf … | head`) has read what it wanted.
fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    match write!(out, "{text}{end}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Says that standard output takes nothing: a full disk behind it, as a rule.
fn unprinted(error: &io::Error) -> ExitCode {
    let _ = writeln!(
        io::stderr().lock(),
        "error: cannot write the result to standard output: {error}\nhelp: make room where it goes"
    );
    ExitCode::FAILURE
}

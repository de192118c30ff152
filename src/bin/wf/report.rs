//! Results of subcommands and their output: [`Report`] or [`Failure`] → text or JSON, and an exit code.
//!
//! Each JSON object contains the `warnings` that concern it; that of a failure contains `error` and `diagnostics`.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::source::{Source, seen};
use serde_json::{Value, json};
use weakform::render::render;

use crate::console::{Console, style};

/// The result of a subcommand, as text and as JSON.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// The text.
    pub(crate) text: String,
    /// The JSON values, one per line.
    pub(crate) json: Vec<Value>,
    /// True if standard output is used for other data, so that the text goes to standard error.
    pub(crate) aside: bool,
    /// Failures that did not stop the remaining work, as text; their JSON is in [`Report::json`].
    failures: Vec<String>,
    /// The length of the text already printed.
    shown: usize,
}

impl Report {
    /// Creates a report with one JSON object.
    pub(crate) fn new(text: impl Into<String>, json: Value) -> Self {
        Self { text: text.into(), json: vec![json], ..Self::default() }
    }

    /// Adds the file of a picture of all results.
    pub(crate) fn drawn(&mut self, path: &Path) {
        let name = seen(&path.display().to_string()).into_owned();
        self.text.push_str(&format!("drawn in {name}\n"));
        for value in self.json.iter_mut().filter(|value| value.is_object()) {
            value["picture"] = json!(name);
        }
    }

    /// Adds a row to the text, and prints all unprinted text: measuring the next row may take minutes. With JSON
    /// output, which comes at the end, the row goes to the progress display. A process that does not print shows
    /// nothing.
    pub(crate) fn row(&mut self, text: &str, console: &Console) {
        self.text.push_str(text);
        if !console.speaks() {
            return;
        }
        if console.json() {
            return console.progress().line(text.trim_end());
        }
        console.progress().aside(|| {
            let mut out = io::stdout().lock();
            let rest = &self.text.as_bytes()[self.shown..];
            // An output error is ignored until the end, where it is reported.
            if out.write_all(rest).and_then(|()| out.flush()).is_ok() {
                self.shown = self.text.len();
            }
        });
    }

    /// Adds one of several results; `about` identifies it. A failure does not prevent the others.
    pub(crate) fn add(
        &mut self,
        about: (&str, &str),
        done: Result<Self, Failure>,
        warnings: Vec<Value>,
    ) {
        let done = done.unwrap_or_else(|mut failure| {
            let mut done = failure.done.take().map_or_else(Self::default, |done| *done);
            let mut value = failure.value();
            value[about.0] = json!(about.1);
            done.json.push(value);
            done.failures.push(failure.text());
            done
        });
        self.text.push_str(&done.text);
        self.failures.extend(done.failures);
        let values = done.json.into_iter().map(|value| warned(value, &warnings));
        self.json.extend(values);
    }
}

/// Returns a result with the warnings that concern it.
fn warned(mut value: Value, warnings: &[Value]) -> Value {
    if let Some(object) = value.as_object_mut() {
        object.entry("warnings").or_insert_with(|| json!(warnings));
    }
    value
}

/// The reason for a missing result.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The text: rendered diagnostics, or a sentence with its help.
    message: String,
    /// The diagnostics as JSON, if there are any.
    diagnostics: Vec<Value>,
    /// An invalid result that is nevertheless reported.
    found: Option<Value>,
    /// Completed results.
    done: Option<Box<Report>>,
    code: u8,
    /// True if it was received from another process, which has the details.
    heard: bool,
}

impl Failure {
    /// Creates a failure for bad input: a file, a form, a mesh, an expression.
    pub(crate) fn input(message: impl Display) -> Self {
        let message = seen(&message.to_string()).into_owned();
        Self { message, diagnostics: Vec::new(), found: None, done: None, code: 1, heard: false }
    }

    /// Creates a failure for bad usage: incompatible options.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self { code: 2, ..Self::input(message) }
    }

    /// Creates a failure for bad input with locations in its text.
    pub(crate) fn diagnostics(source: &Source, found: &[Diagnostic]) -> Self {
        let diagnostics = weakform::render::json(source, found);
        let diagnostics = diagnostics.iter().map(|found| json!(found)).collect();
        // Rendered, with the colours of a terminal.
        Self { diagnostics, message: render(source, found, style()), ..Self::input("") }
    }

    /// Creates a failure from an error of the library, with its locations if there are any.
    pub(crate) fn library(error: &weakform::Error) -> Self {
        match error {
            weakform::Error::Language { source_text, diagnostics } => {
                Self::diagnostics(source_text, diagnostics)
            }
            error => Self::input(error),
        }
    }

    /// Creates a failure that another process reported.
    pub(crate) fn heard(message: impl Display) -> Self {
        Self { heard: true, ..Self::input(message) }
    }

    /// Returns whether another process reported it.
    pub(crate) fn is_heard(&self) -> bool {
        self.heard
    }

    /// Serialises the failure for another process.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let all = json!([self.message, self.diagnostics, self.code, self.heard]);
        all.to_string().into_bytes()
    }

    /// Deserialises the failure of another process.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let all: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let message = all[0].as_str().unwrap_or("another process failed").to_owned();
        let diagnostics = all[1].as_array().cloned().unwrap_or_default();
        let code = if all[2] == json!(2) { 2 } else { 1 };
        let heard = all[3] == json!(true);
        Self { message, diagnostics, found: None, done: None, code, heard }
    }

    /// Takes the completed results.
    pub(crate) fn take_done(&mut self) -> Report {
        self.done.take().map_or_else(Report::default, |done| *done)
    }

    /// Adds completed results, which are reported, too.
    pub(crate) fn after(mut self, done: Report) -> Self {
        self.done = Some(Box::new(done));
        self
    }

    /// Changes the completed results.
    pub(crate) fn with_done(mut self, change: impl FnOnce(Report) -> Report) -> Self {
        self.done = self.done.map(|done| Box::new(change(*done)));
        self
    }

    /// Adds an invalid result for inspection.
    pub(crate) fn with(mut self, found: Value) -> Self {
        self.found = Some(found);
        self
    }

    /// Adds a fact.
    pub(crate) fn note(mut self, fact: &str) -> Self {
        self.message = format!("{}\nnote: {}", self.message.trim_end(), seen(fact));
        self
    }

    /// Returns the message.
    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the text for people.
    fn text(&self) -> String {
        let message = self.message.trim_end();
        let rendered = message.starts_with("error") || message.starts_with('\u{1b}');
        format!("{}{message}", if rendered { "" } else { "error: " })
    }

    /// Returns the JSON object for programs.
    fn value(&self) -> Value {
        let mut value = self.found.clone().unwrap_or_else(|| json!({}));
        value["error"] = json!(self.message);
        value["diagnostics"] = json!(self.diagnostics);
        value
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::input(error)
    }
}

/// Prints the result of a subcommand.
pub(crate) fn finish(result: Result<Report, Failure>, console: &Console) -> ExitCode {
    console.progress().end();
    let (mut report, mut code) = match result {
        Ok(report) => (report, 0),
        Err(mut failure) => {
            let mut report = failure.done.take().map_or_else(Report::default, |done| *done);
            report.json.push(failure.value());
            report.failures.push(failure.text());
            (report, failure.code)
        }
    };
    if code == 0 && !report.failures.is_empty() {
        code = 1;
    }
    if !console.speaks() {
        return ExitCode::from(code);
    }
    let warnings = console.take();
    let values = std::mem::take(&mut report.json).into_iter();
    let values: Vec<Value> = values.map(|value| warned(value, &warnings)).collect();
    let printed = match (console.json(), report.aside) {
        (true, _) => print(io::stdout().lock(), &lines(&values)),
        (false, false) => print(io::stdout().lock(), &report.text[report.shown..]),
        (false, true) => print(io::stderr().lock(), &report.text),
    };
    if !console.json() {
        // A closed standard error is ignored.
        let _ = print(io::stderr().lock(), &report.failures.join("\n\n"));
    }
    match printed {
        Ok(()) => ExitCode::from(code),
        Err(error) => unprinted(&error),
    }
}

/// Prints a message of the command-line parser: help and version succeed, everything else is bad usage.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let failed = error.use_stderr();
    if failed && std::env::args_os().any(|argument| argument == "--json") {
        let message = error.to_string();
        let value = json!({ "error": message.trim_end(), "diagnostics": [] });
        if let Err(error) = print(io::stdout().lock(), &lines(&[warned(value, &[])])) {
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

/// Writes a text as lines. A closed pipe (`wf … | head`) is no error.
fn print(mut out: impl Write, text: &str) -> io::Result<()> {
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    match write!(out, "{text}{end}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Reports that standard output is not writable, usually because of a full disk.
fn unprinted(error: &io::Error) -> ExitCode {
    let _ = writeln!(
        io::stderr().lock(),
        "error: cannot write the result to standard output: {error}\nhelp: make room where it goes"
    );
    ExitCode::FAILURE
}

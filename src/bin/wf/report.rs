//! What a subcommand gives back, and how it is printed: [`Report`] or [`Failure`] → text or JSON, and an exit code.
//!
//! Each object of JSON has the `warnings` that concern it; one of a failure has `error` and `diagnostics`.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::source::{Source, seen};
use serde_json::{Value, json};
use weakform::render::render;

use crate::console::{Console, style};

/// The result of a subcommand, in both of its forms.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// What a person reads.
    pub(crate) text: String,
    /// What a program reads: each value is one line.
    pub(crate) json: Vec<Value>,
    /// Whether standard output has something else already, so that the text goes to standard error.
    pub(crate) aside: bool,
    /// What failed while the rest went on, as a person reads it; programs find it among [`Report::json`].
    failures: Vec<String>,
    /// How much of the text stands on standard output already.
    shown: usize,
}

impl Report {
    /// A report with one JSON object.
    pub(crate) fn new(text: impl Into<String>, json: Value) -> Self {
        Self { text: text.into(), json: vec![json], ..Self::default() }
    }

    /// Adds the file of a picture of all of it.
    pub(crate) fn drawn(&mut self, path: &Path) {
        let name = seen(&path.display().to_string()).into_owned();
        self.text.push_str(&format!("drawn in {name}\n"));
        for value in self.json.iter_mut().filter(|value| value.is_object()) {
            value["picture"] = json!(name);
        }
    }

    /// Adds a row to the text, and shows all of it that is not shown yet: measuring the next one may take minutes. Where the
    /// result is JSON, which comes at the end, the row goes to where progress is shown. Nothing is shown where another process speaks.
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
            // What cannot be written now is written at the end, where a failure is said.
            if out.write_all(rest).and_then(|()| out.flush()).is_ok() {
                self.shown = self.text.len();
            }
        });
    }

    /// One of several things that are done one after another: `about` says which. What fails keeps none of the
    /// others from being done.
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

/// A result with the warnings that concern it.
fn warned(mut value: Value, warnings: &[Value]) -> Value {
    if let Some(object) = value.as_object_mut() {
        object.entry("warnings").or_insert_with(|| json!(warnings));
    }
    value
}

/// Why there is no result.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What a person reads: rendered diagnostics, or a sentence with its help.
    message: String,
    /// The same as data, where there is more to say than the message.
    diagnostics: Vec<Value>,
    /// What there is all the same: numbers that are not as they should be.
    found: Option<Value>,
    /// What had been done before.
    done: Option<Box<Report>>,
    code: u8,
    /// Whether it is what this process has heard of another, which knows more of it.
    heard: bool,
}

impl Failure {
    /// Bad input: a file, a form, a mesh, an expression.
    pub(crate) fn input(message: impl Display) -> Self {
        let message = seen(&message.to_string()).into_owned();
        Self { message, diagnostics: Vec::new(), found: None, done: None, code: 1, heard: false }
    }

    /// Bad usage: options that do not go together.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self { code: 2, ..Self::input(message) }
    }

    /// Bad input with the places in its text.
    pub(crate) fn diagnostics(source: &Source, found: &[Diagnostic]) -> Self {
        let diagnostics = weakform::render::json(source, found);
        let diagnostics = diagnostics.iter().map(|found| json!(found)).collect();
        // Rendered, with the colours of a terminal.
        Self { diagnostics, message: render(source, found, style()), ..Self::input("") }
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

    /// Bad input of another process, of which this one has heard.
    pub(crate) fn heard(message: impl Display) -> Self {
        Self { heard: true, ..Self::input(message) }
    }

    /// Whether it is that.
    pub(crate) fn is_heard(&self) -> bool {
        self.heard
    }

    /// What another process can make of it.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let all = json!([self.message, self.diagnostics, self.code, self.heard]);
        all.to_string().into_bytes()
    }

    /// The failure of another process.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let all: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let message = all[0].as_str().unwrap_or("another process failed").to_owned();
        let diagnostics = all[1].as_array().cloned().unwrap_or_default();
        let code = if all[2] == json!(2) { 2 } else { 1 };
        let heard = all[3] == json!(true);
        Self { message, diagnostics, found: None, done: None, code, heard }
    }

    /// What had been done before it.
    pub(crate) fn take_done(&mut self) -> Report {
        self.done.take().map_or_else(Report::default, |done| *done)
    }

    /// The failure after some work had been done, which is reported too.
    pub(crate) fn after(mut self, done: Report) -> Self {
        self.done = Some(Box::new(done));
        self
    }

    /// The failure, with what had been done before changed.
    pub(crate) fn with_done(mut self, change: impl FnOnce(Report) -> Report) -> Self {
        self.done = self.done.map(|done| Box::new(change(*done)));
        self
    }

    /// The failure, with a result that is none but may be looked at.
    pub(crate) fn with(mut self, found: Value) -> Self {
        self.found = Some(found);
        self
    }

    /// Adds a fact.
    pub(crate) fn note(mut self, fact: &str) -> Self {
        self.message = format!("{}\nnote: {}", self.message.trim_end(), seen(fact));
        self
    }

    /// What it says.
    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// As a person reads it.
    fn text(&self) -> String {
        let message = self.message.trim_end();
        let rendered = message.starts_with("error") || message.starts_with('\u{1b}');
        format!("{}{message}", if rendered { "" } else { "error: " })
    }

    /// As a program reads it.
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

/// Prints what a subcommand gave back.
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
        // A closed standard error leaves nobody to tell.
        let _ = print(io::stderr().lock(), &report.failures.join("\n\n"));
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

/// Writes a text as lines. A reader that has gone (`wf … | head`) has read what it wanted.
fn print(mut out: impl Write, text: &str) -> io::Result<()> {
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

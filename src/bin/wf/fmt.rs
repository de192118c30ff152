//! `wf fmt`: files in the one style of the language.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use fem_dsl::format::{format, same_pieces};
use fem_dsl::source::{MAX_BYTES, Source};
use runtime::output::write_text;
use serde_json::{Value, json};
use similar::TextDiff;

use crate::problem::read;
use crate::report::{Failure, Report};

/// Format files: one style, every comment kept. Files with errors of syntax are left alone.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf fmt examples/*.wf             rewrites what is not formatted
  wf fmt --check examples/*.wf     shows it instead, and ends with 1
  wf fmt - < a.wf                  from standard input to standard output")]
pub(crate) struct Arguments {
    /// The files; `-` is standard input, which is formatted to standard output.
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// Write nothing; show what would change, and end with 1 if anything would.
    #[arg(long)]
    check: bool,
}

/// What has been done so far.
#[derive(Default)]
struct Done {
    text: String,
    json: Vec<Value>,
    /// With `--check`, the files that are not formatted.
    unformatted: Vec<String>,
    failure: Option<Failure>,
}

impl Done {
    fn failed(&mut self, found: Failure) {
        match &mut self.failure {
            Some(failure) => failure.join(found),
            None => self.failure = Some(found),
        }
    }
}

pub(crate) fn execute(arguments: &Arguments) -> Result<Report, Failure> {
    let mut done = Done::default();
    for file in &arguments.files {
        if let Err(found) = one(file, arguments.check, &mut done) {
            done.failed(found);
        }
    }
    if !done.unformatted.is_empty() {
        let names = done.unformatted.join(" ");
        done.failed(Failure::input(format!(
            "not formatted: {names}\nhelp: `wf fmt` formats files"
        )));
    }
    let report = Report { text: done.text, json: done.json };
    match done.failure {
        Some(failure) => Err(failure.after(report)),
        None => Ok(report),
    }
}

/// Formats one file.
fn one(file: &Path, check: bool, done: &mut Done) -> Result<(), Failure> {
    let stream = file == Path::new("-");
    let source = if stream { standard_input()? } else { read(file)? };
    let formatted = format(&source).map_err(|found| Failure::diagnostics(&source, &found))?;
    if !same_pieces(source.text(), &formatted) {
        return Err(Failure::input(format!(
            "{} is left alone: formatting it would change more than white space\n\
             help: this is a defect of `wf fmt`; please report it together with the file",
            source.name()
        )));
    }
    let changed = formatted != source.text();
    let mut value = json!({ "file": source.name(), "changed": changed });
    if check && changed {
        let diff = difference(&source, &formatted);
        value["diff"] = json!(diff);
        done.text.push_str(&diff);
        done.unformatted.push(source.name().to_owned());
    } else if stream && !check {
        value["text"] = json!(formatted);
        done.text.push_str(&formatted);
    } else if changed {
        rewrite(file, &formatted)?;
        done.text.push_str(&format!("formatted {}\n", source.name()));
    }
    done.json.push(value);
    Ok(())
}

fn standard_input() -> Result<Source, Failure> {
    let mut bytes = Vec::new();
    // One byte more than a file may have is enough to say so.
    let limit = MAX_BYTES as u64 + 1;
    let read = std::io::stdin().lock().take(limit).read_to_end(&mut bytes);
    read.map_err(|error| Failure::input(format!("cannot read standard input: {error}")))?;
    Ok(Source::from_bytes("standard input", &bytes))
}

/// Replaces the text of a file, whole or not at all.
fn rewrite(file: &Path, text: &str) -> Result<(), Failure> {
    if std::fs::metadata(file)?.permissions().readonly() {
        return Err(Failure::input(format!(
            "cannot write {}: it may only be read\nhelp: `wf fmt - < FILE` prints the text",
            file.display()
        )));
    }
    Ok(write_text(file, text)?)
}

/// The lines that formatting changes, as `diff -u` shows them.
fn difference(source: &Source, formatted: &str) -> String {
    let diff =
        TextDiff::configure().timeout(Duration::from_secs(2)).diff_lines(source.text(), formatted);
    let names = (source.name(), format!("{}, formatted", source.name()));
    diff.unified_diff().context_radius(1).header(names.0, &names.1).to_string()
}

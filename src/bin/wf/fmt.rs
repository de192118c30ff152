//! `wf fmt`: files in the one style of the language.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use fem_dsl::format::{format, same_pieces};
use fem_dsl::source::{MAX_BYTES, Source};
use runtime::files::output::write_text;
use serde_json::json;
use similar::TextDiff;

use crate::problem::{called, read};
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

pub(crate) fn execute(arguments: &Arguments) -> Result<Report, Failure> {
    let mut report = Report::default();
    let mut unformatted: Vec<String> = Vec::new();
    for file in &arguments.files {
        let done = one(file, arguments.check, &mut unformatted);
        report.add(("file", &called(file)), done, Vec::new());
    }
    if unformatted.is_empty() {
        return Ok(report);
    }
    let names = unformatted.join(" ");
    let failure = Failure::input(format!("not formatted: {names}\nhelp: `wf fmt` formats files"));
    Err(failure.after(report))
}

/// Formats one file.
fn one(file: &Path, check: bool, unformatted: &mut Vec<String>) -> Result<Report, Failure> {
    let stream = file == Path::new("-");
    let source = read(file)?;
    let mut text = String::new();
    let formatted = format(&source).map_err(|found| Failure::diagnostics(&source, &found))?;
    if !same_pieces(source.text(), &formatted) {
        return Err(Failure::input(format!(
            "{} is left alone: formatting it would change more than white space\n\
             help: this is a defect of `wf fmt`; please report it together with the file",
            source.name()
        )));
    }
    if formatted.len() > MAX_BYTES {
        return Err(Failure::input(format!(
            "{} is left alone: formatted it has {} bytes, and a file may have {MAX_BYTES}\n\
             help: divide the file",
            source.name(),
            formatted.len()
        )));
    }
    let changed = formatted != source.text() || source.had_bare_returns();
    let mut value = json!({ "file": source.name(), "changed": changed });
    if check && changed {
        let diff = difference(&source, &formatted);
        value["diff"] = json!(diff);
        text = diff;
        unformatted.push(source.name().to_owned());
    } else if stream && !check {
        value["text"] = json!(formatted);
        text = formatted;
    } else if changed {
        write_text(file, &formatted)?;
        text = format!("formatted {}\n", source.name());
    }
    Ok(Report::new(text, value))
}

/// Returns the lines that formatting changes, in the format of `diff -u`.
fn difference(source: &Source, formatted: &str) -> String {
    let diff =
        TextDiff::configure().timeout(Duration::from_secs(2)).diff_lines(source.text(), formatted);
    let names = (source.name(), format!("{}, formatted", source.name()));
    diff.unified_diff().context_radius(1).header(names.0, &names.1).to_string()
}

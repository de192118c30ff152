//! `wf check`: all errors of files, without compiling anything.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::problem::read;
use crate::report::{Failure, Report};

/// Report all errors of files; say for which dimensions each form is good.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf check examples/poisson.wf
  wf check examples/*.wf --json")]
pub(crate) struct Arguments {
    /// The files.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<Report, Failure> {
    let mut text = String::new();
    let mut values = Vec::new();
    let mut failure: Option<Failure> = None;
    for file in &arguments.files {
        let mut failed = |found| match &mut failure {
            Some(failure) => Failure::join(failure, found),
            None => failure = Some(found),
        };
        let source = match read(file) {
            Ok(source) => source,
            Err(unreadable) => {
                failed(unreadable);
                continue;
            }
        };
        let (program, diagnostics) = fem_dsl::program::compile(&source);
        if !diagnostics.is_empty() {
            failed(Failure::diagnostics(&source, &diagnostics));
        }
        let Some(program) = program else { continue };
        let mut forms = Vec::new();
        for form in program.forms() {
            let good: Vec<usize> =
                [2, 3].into_iter().filter(|&dim| form.dimensions.form(dim).is_some()).collect();
            let words: Vec<String> = good.iter().map(ToString::to_string).collect();
            let line = format!("form {}: good in {} dimensions", form.name, words.join(" and "));
            text.push_str(&format!("{}: {line}\n", file.display()));
            forms.push(json!({ "name": form.name, "dimensions": good }));
        }
        let problems: Vec<_> = program.problems().map(|head| head.name.to_owned()).collect();
        values.push(json!({ "file": file, "forms": forms, "problems": problems }));
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(Report { text, json: values }),
    }
}

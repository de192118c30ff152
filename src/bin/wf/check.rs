//! `wf check`: all errors and warnings of files and of the meshes that they refer to, and missing tags, without
//! compilation.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use fem_dsl::check::problem::Overrides;
use fem_dsl::diagnostic::Severity;
use fem_dsl::interior::{component_name, conserved};
use fem_dsl::problem::MeshSource;
use fem_dsl::program::{CheckedForm, Program, compile_with};
use fem_dsl::source::{Source, seen};
use runtime::mesh::{LoadError, load};
use serde_json::json;

use crate::attribution::ErrorAttribution;
use crate::console::Console;
use crate::problem::{called, read};
use crate::report::{Failure, Report};

/// Report all errors and warnings of files; say for which dimensions each form is good.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf check examples/poisson.wf
  wf check examples/*.wf --json     one object a file
  wf check a.wf --deny warnings     warnings are errors
  wf check a.wf --problem beam      one problem, whatever is wrong with others
  wf check - < a.wf                 from standard input")]
pub(crate) struct Arguments {
    /// The files; `-` is standard input.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Only this problem, with the forms that it uses; all of a file without it.
    #[arg(long, value_name = "NAME")]
    problem: Option<String>,

    /// The findings that count as errors, too.
    #[arg(long, value_enum, value_name = "WHAT")]
    deny: Option<DenyArgument>,
}

/// Findings that count as errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DenyArgument {
    /// All warnings.
    Warnings,
}

pub(crate) fn execute(arguments: &Arguments, console: &Console) -> Result<Report, Failure> {
    let mut report = Report::default();
    for file in &arguments.files {
        let done = read(file).and_then(|source| check(&source, file, arguments, console));
        report.add(("file", &called(file)), done, console.take());
    }
    Ok(report)
}

/// Checks one file.
fn check(
    source: &Source,
    file: &Path,
    arguments: &Arguments,
    console: &Console,
) -> Result<Report, Failure> {
    let Arguments { problem: wanted, deny, .. } = arguments;
    let (program, mut diagnostics) = compile_with(source, wanted.as_deref(), &Overrides::default());
    if *deny == Some(DenyArgument::Warnings) {
        diagnostics.iter_mut().for_each(|found| found.severity = Severity::Error);
    }
    let errors = console.warn_of(source, diagnostics);
    let Some(program) = program.filter(|_| errors.is_empty()) else {
        return Err(Failure::diagnostics(source, &errors));
    };
    let (mut text, mut forms) = (String::new(), Vec::new());
    let used = program.forms_used(wanted.as_deref());
    for form in program.forms().iter().filter(|form| used.contains(&form.name.as_str())) {
        let good: Vec<usize> = (1..=3).filter(|&dim| form.dimensions.form(dim).is_some()).collect();
        let words = match good[..] {
            [1] => "one dimension".to_owned(),
            [1, 2, 3] => "1, 2 and 3 dimensions".to_owned(),
            [a, b] => format!("{a} and {b} dimensions"),
            _ => format!("{} dimensions", good[0]),
        };
        let line = format!("form {}: good in {words}", form.name);
        text.push_str(&format!("{}: {line}\n", seen(source.name())));
        let conserved = conserved_names(form);
        if !conserved.is_empty() {
            let names: Vec<String> = conserved.iter().map(|name| format!("`{name}`")).collect();
            let line =
                format!("form {}: conserves {} from cell to cell", form.name, names.join(", "));
            text.push_str(&format!("{}: {line}\n", seen(source.name())));
        }
        forms.push(json!({ "name": form.name, "dimensions": good, "conserved": conserved }));
    }
    let is_wanted = |name: &&str| wanted.as_ref().is_none_or(|wanted| wanted == name);
    let problems = program.problems().map(|head| head.name).filter(is_wanted);
    let problems: Vec<_> = problems.map(str::to_owned).collect();
    if let (Some(wanted), []) = (wanted, &problems[..]) {
        // The error for an unknown problem.
        let missing = program.mesh(wanted, &Overrides::default());
        return Err(Failure::diagnostics(source, &missing.err().unwrap_or_default()));
    }
    let mut notes = Vec::new();
    for problem in &problems {
        notes.extend(mesh_notes(&program, problem, file)?);
    }
    for note in &notes {
        text.push_str(&format!("{}: note: {}\n", seen(source.name()), seen(note)));
    }
    let value =
        json!({ "file": source.name(), "forms": forms, "problems": problems, "notes": notes });
    Ok(Report::new(text, value))
}

/// Returns the components that a form with terms between cells conserves, in the dimensions in which it is good.
fn conserved_names(form: &CheckedForm) -> Vec<String> {
    let mut names = Vec::new();
    for form in form.dimensions.forms() {
        let own = conserved(form).into_iter().map(|place| component_name(form, place));
        names.extend(own.filter(|name| !names.contains(name)).collect::<Vec<String>>());
    }
    names
}

/// Returns remarks on the mesh of a problem, if it is a file: generators are not run.
fn mesh_notes(program: &Program, problem: &str, file: &Path) -> Result<Vec<String>, Failure> {
    let overrides = Overrides::default();
    let Ok((source @ MeshSource::File(_), _)) = program.mesh(problem, &overrides) else {
        return Ok(Vec::new());
    };
    let about = |note: &dyn std::fmt::Display| format!("the mesh of `{problem}`: {note}");
    match load(&source, file.parent().unwrap_or(Path::new(""))) {
        Ok(mut mesh) => {
            // Remarks on sides that the problem identifies are obsolete; a run detects sides that do not match.
            if let Ok(problem) = program.problem(problem, mesh.dim(), &overrides) {
                let _ = mesh.make_periodic(&problem.periodic);
            }
            let below = mesh.curve_tags().chain(mesh.point_tags()).map(|(tag, _)| tag);
            let sides: Vec<String> = mesh.facet_tags().keys().chain(below).cloned().collect();
            let cells: Vec<String> = mesh.cell_tags().keys().cloned().collect();
            let mut unknown = program.unknown_tags(problem, &overrides, &sides);
            unknown.extend(program.unknown_cell_tags(problem, &overrides, &cells));
            match unknown.is_empty() {
                true => Ok(mesh.notes().iter().map(|note| about(note)).collect()),
                false => Err(Failure::diagnostics(program.source(), &unknown)),
            }
        }
        // It may exist on the machine that solves the problem.
        Err(LoadError::Open(error)) => Ok(vec![about(&error)]),
        Err(error) => {
            Err(ErrorAttribution { program, problem, overrides: &overrides }.mesh(&error))
        }
    }
}

//! `wf new`: a commented template → a new file.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use fem_dsl::diagnostic::nearest;
use serde_json::json;

use crate::report::{Failure, Report};

/// A name, and the text, whose first line is its description.
type Template = (&'static str, &'static str);

/// The templates, in order of typical use.
const TEMPLATES: [Template; 8] = [
    ("poisson", include_str!("new/poisson.wf")),
    ("heat", include_str!("new/heat.wf")),
    ("elasticity", include_str!("new/elasticity.wf")),
    ("hyperelastic", include_str!("new/hyperelastic.wf")),
    ("stokes", include_str!("new/stokes.wf")),
    ("navier-stokes", include_str!("new/navier-stokes.wf")),
    ("diffusion", include_str!("new/diffusion.wf")),
    ("manufactured", include_str!("new/manufactured.wf")),
];

/// Write a file to start from: a form and a problem that are solved as they are, with comments that say what each line is for.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf new --list                       the templates, each with what it is for
  wf new beam --from elasticity       writes beam.wf
  wf run beam.wf --picture beam.png   solves and draws it
  wf new - --from stokes              to standard output

A template says in its comments what forms, conditions, reports and solvers are, and what to try next. Change the mesh, the
conditions and the numbers first, then the form; `wf check` says what is wrong, `wf verify` whether the form is right.
A file that is there already is left alone.")]
pub(crate) struct Arguments {
    /// The file, beam for beam.wf; `-` is standard output.
    #[arg(required_unless_present = "list")]
    name: Option<PathBuf>,

    /// The template.
    #[arg(long, value_name = "TEMPLATE", default_value = "poisson")]
    from: String,

    /// List the templates, and write nothing.
    #[arg(long, conflicts_with_all = ["name", "from"])]
    list: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<Report, Failure> {
    let Some(name) = &arguments.name else { return Ok(list()) };
    let (from, text) = find(&arguments.from)?;
    if name == Path::new("-") {
        return Ok(Report::new(text, json!({ "template": from, "text": text })));
    }
    let path = with_ending(name)?;
    write(&path, text)?;
    let path = path.display().to_string();
    let said =
        format!("wrote {path}\n`wf run {path}` solves it; its comments say what to change\n");
    Ok(Report::new(said, json!({ "template": from, "file": path })))
}

/// Lists the templates with their descriptions.
fn list() -> Report {
    let mut text = String::new();
    for (name, template) in TEMPLATES {
        let _ = writeln!(text, "{name:<15}{}", about(template));
    }
    let names = TEMPLATES.map(|(name, text)| json!({ "template": name, "about": about(text) }));
    Report::new(text, json!({ "templates": names }))
}

/// Returns the description of a template: its first line.
fn about(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches(['/', ' '])
}

fn find(wanted: &str) -> Result<Template, Failure> {
    let lower = wanted.to_lowercase().replace('_', "-");
    TEMPLATES.into_iter().find(|(name, _)| *name == lower).ok_or_else(|| {
        let names = TEMPLATES.map(|(name, _)| name);
        let near = nearest(&lower, names);
        let near = near.map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
        Failure::input(format!(
            "there is no template `{wanted}`\nhelp: {near}there are {}; `wf new --list` says what they are for",
            names.join(", ")
        ))
    })
}

/// Returns the name with `.wf` appended, unless it has that ending.
fn with_ending(name: &Path) -> Result<PathBuf, Failure> {
    let Some(last) = name.file_name() else {
        let name = name.display();
        return Err(Failure::input(format!(
            "`{name}` names no file\nhelp: `wf new beam` writes beam.wf"
        )));
    };
    if name.extension().is_some_and(|ending| ending == "wf") {
        return Ok(name.to_owned());
    }
    let mut last = last.to_owned();
    last.push(".wf");
    Ok(name.with_file_name(last))
}

/// Writes a file that does not exist.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let path = path.display();
        if error.kind() == ErrorKind::AlreadyExists {
            return Failure::input(format!(
                "{path} is there already, and is left alone\nhelp: take another name, or move it away"
            ));
        }
        Failure::input(format!("cannot write {path}: {error}"))
    })
}

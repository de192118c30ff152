//! `wf explain`: the page of a diagnostic's code.

use std::fmt::Write as _;

use clap::Args;
use fem_dsl::codes::Code;
use fem_dsl::diagnostic::nearest;
use serde_json::json;

use crate::report::{Failure, Report};

/// Explain an error: a wrong example, why it is wrong, and the example put right.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf explain            all codes with their titles
  wf explain E0203      the page of one
  wf explain e0203 --json")]
pub(crate) struct Arguments {
    /// The code, as it stands in the message: E0203. All are listed without one.
    code: Option<String>,
}

/// Looks the code up.
pub(crate) fn execute(arguments: &Arguments) -> Result<Report, Failure> {
    let Some(wanted) = &arguments.code else { return Ok(list()) };
    let wanted = wanted.to_ascii_uppercase();
    let found = Code::ALL.iter().find(|code| code.id() == wanted);
    let code = found.ok_or_else(|| {
        let ids = Code::ALL.iter().map(|code| code.id());
        let near = nearest(&wanted, ids).map(|id| format!("did you mean `{id}`? "));
        Failure::input(format!(
            "there is no code `{wanted}`\nhelp: {}`wf explain` lists all codes",
            near.unwrap_or_default()
        ))
    })?;
    let json = json!({ "code": code.id(), "title": title(*code), "page": code.page() });
    Ok(Report::new(code.page(), json))
}

fn list() -> Report {
    let mut text = String::new();
    for code in Code::ALL {
        let _ = writeln!(text, "{}  {}", code.id(), title(*code));
    }
    let codes: Vec<_> =
        Code::ALL.iter().map(|code| json!({ "code": code.id(), "title": title(*code) })).collect();
    Report::new(text, json!({ "codes": codes }))
}

/// The page's first line, without the marks of a heading and without the code.
fn title(code: Code) -> &'static str {
    let heading = code.page().lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
    heading.strip_prefix(code.id()).unwrap_or(heading).trim_start_matches([':', ' '])
}

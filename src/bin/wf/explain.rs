//! `wf explain`: the page of a diagnostic's code, or of the language.

use std::fmt::Write as _;

use clap::Args;
use fem_dsl::codes::Code;
use fem_dsl::diagnostic::nearest;
use serde_json::json;
use weakform::language;

use crate::report::{Failure, Report};

/// The topic of the whole page on the language.
const LANGUAGE: &str = "language";

/// Explain an error, with a wrong example put right, or the language.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf explain            all codes with their titles, and the sections of the language's reference
  wf explain E0203      the page of one
  wf explain e0203 --json
  wf explain language   the reference of the language
  wf explain solver     one of its sections: all solvers with their settings
  wf explain periodic   the section of a word")]
pub(crate) struct Arguments {
    /// A code, as it stands in the message, E0203, or a topic: language, solvers. All are listed without one.
    topic: Option<String>,
}

/// Looks up the topic.
pub(crate) fn execute(arguments: &Arguments) -> Result<Report, Failure> {
    let Some(wanted) = &arguments.topic else { return Ok(list()) };
    if let Some(code) = Code::ALL.iter().find(|code| code.id().eq_ignore_ascii_case(wanted)) {
        let json = json!({ "code": code.id(), "title": title(*code), "page": code.page() });
        return Ok(Report::new(code.page(), json));
    }
    match topic(wanted) {
        Some((name, page)) => Ok(Report::new(page, json!({ "topic": name, "page": page }))),
        None => Err(unknown(wanted)),
    }
}

/// Returns the page or section of a name, singular or plural, of a heading or a word in it, or else the section that
/// defines the word or has it most often in its code.
fn topic(wanted: &str) -> Option<(String, &'static str)> {
    let wanted = wanted.to_ascii_lowercase();
    if wanted == LANGUAGE {
        return Some((wanted, language::PAGE));
    }
    let is = |name: &str| {
        name == wanted
            || name.strip_suffix("es").or(name.strip_suffix('s')) == Some(&wanted)
            || name.strip_suffix('s') == Some(&wanted)
    };
    let named = language::sections()
        .find(|(name, heading, _)| is(name) || heading.eq_ignore_ascii_case(&wanted));
    let begins = |word: &str| wanted.len() > 3 && word.starts_with(&wanted);
    let of_heading = |(_, heading, _): &(String, &str, &str)| {
        let mut words = heading.split(' ').map(str::to_ascii_lowercase);
        words.any(|word| is(&word) || begins(&word))
    };
    let found = named.or_else(|| language::sections().find(of_heading)).or_else(|| {
        // Rows of tables define words; else the share in the code counts.
        let share = |text: &str| {
            let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
            let defined: usize = rows.map(|row| uses(row, &wanted)).sum();
            defined as f64 + uses(text, &wanted) as f64 / text.len() as f64
        };
        let shares = language::sections().map(|own| (share(own.2), own));
        let most = shares.reduce(|most, own| if own.0 > most.0 { own } else { most });
        most.filter(|(share, _)| *share > 0.0).map(|(_, own)| own)
    });
    found.map(|(name, _, text)| (name, text))
}

/// Returns the number of times that the code in a text has a word.
fn uses(text: &str, word: &str) -> usize {
    let code = text.split('`').skip(1).step_by(2);
    let words = code.flat_map(|code| code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.filter(|own| *own == word && word.len() > 1).count()
}

fn unknown(wanted: &str) -> Failure {
    let topics: Vec<String> = language::sections().map(|(name, ..)| name).collect();
    let (upper, lower) = (wanted.to_ascii_uppercase(), wanted.to_ascii_lowercase());
    let of_code = || nearest(&upper, Code::ALL.iter().map(|code| code.id()));
    let names = topics.iter().map(String::as_str).chain([LANGUAGE]);
    let near = nearest(&lower, names).or_else(of_code);
    let near = near.map(|id| format!("did you mean `{id}`? ")).unwrap_or_default();
    let like_a_code =
        upper.starts_with(['E', 'W']) && upper.ends_with(|c: char| c.is_ascii_digit());
    let what = if like_a_code { format!("code `{upper}`") } else { format!("topic `{wanted}`") };
    Failure::input(format!(
        "there is no {what}\nhelp: {near}`wf explain` lists all codes and topics"
    ))
}

fn list() -> Report {
    let mut text = String::new();
    for code in Code::ALL {
        let _ = writeln!(text, "{}  {}", code.id(), title(*code));
    }
    let _ = writeln!(text, "\n{LANGUAGE:<12}  the reference of the language, whole; its sections:");
    for (name, heading, _) in language::sections() {
        let _ = writeln!(text, "{name:<12}  {heading}");
    }
    let codes: Vec<_> =
        Code::ALL.iter().map(|code| json!({ "code": code.id(), "title": title(*code) })).collect();
    let topics: Vec<_> = [LANGUAGE.to_owned()]
        .into_iter()
        .chain(language::sections().map(|(name, ..)| name))
        .collect();
    Report::new(text, json!({ "codes": codes, "topics": topics }))
}

/// Returns the page's first line, without the heading mark and the code.
fn title(code: Code) -> &'static str {
    let heading = code.page().lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
    heading.strip_prefix(code.id()).unwrap_or(heading).trim_start_matches([':', ' '])
}

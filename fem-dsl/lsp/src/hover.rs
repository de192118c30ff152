//! Hover: declared names with shape, value and documentation, forms with their derived rows, words of the language.

use crate::completion::sections_of;
use crate::context::{Block, Context};
use crate::document::Document;
use crate::reference::Reference;
use crate::shapes::{form_of, shape_of};
use fem_dsl::check::problem::{KeywordUsage, keywords};
use fem_dsl::differentiate::differentiate;
use fem_dsl::form::Form;
use fem_dsl::names::{Declaration, NameKind};
use fem_dsl::program::CheckedForm;
use fem_dsl::simplify::simplify;
use fem_dsl::source::Span;
use serde_json::{Value, json};

/// The largest number of characters of a shown item.
const LONGEST: usize = 300;
/// The largest number of lines of derived rows.
const MOST_LINES: usize = 60;

/// Returns the hover at an offset; null where there is nothing to say.
pub(crate) fn hover(document: &Document, reference: &Reference, offset: usize) -> Value {
    let found = match document.name_at(offset) {
        Some((span, _, own)) => Some((span, of_name(document, own))),
        None => of_word(document, reference, offset),
    };
    let Some((span, text)) = found else { return Value::Null };
    json!({
        "contents": { "kind": "markdown", "value": text },
        "range": document.range(span),
    })
}

/// Describes a declared name.
pub(crate) fn of_name(document: &Document, own: &Declaration) -> String {
    let mut text = code(&signature(document, own));
    let mut facts = Vec::new();
    match own.kind {
        // Their shapes are not in the text.
        NameKind::Param | NameKind::Let | NameKind::Test => {
            facts.extend(shape_of(document, own).map(|shape| format!("`{}`: {shape}", own.name)));
        }
        NameKind::Argument => facts.push(format!("an argument of {}", signature_of(document, own))),
        _ => {}
    }
    facts.extend(value_of(document, own).map(|value| format!("default: {value}")));
    if own.kind == NameKind::Form
        && let Some(form) = form_of(document, own)
    {
        facts.push(dimensions(form));
    }
    if !facts.is_empty() {
        text.push_str(&format!("\n{}", facts.join("  \n")));
    }
    if !own.doc.is_empty() {
        text.push_str(&format!("\n\n{}", own.doc.trim()));
    }
    if own.kind == NameKind::Form
        && let Some(rows) = form_of(document, own).and_then(|form| rows(document, own.item, form))
    {
        text.push_str(&format!("\n\n{}", code(&rows)));
    }
    text
}

fn code(text: &str) -> String {
    format!("```wf\n{text}\n```")
}

/// Returns the declaration on one line.
fn signature(document: &Document, own: &Declaration) -> String {
    let whole = match own.kind {
        NameKind::Form => return format!("form {}", own.name),
        NameKind::Problem => {
            let problems = &document.file().problems;
            let form = problems.iter().find(|problem| problem.name.span == own.span);
            let form = form.map_or("", |problem| problem.form.name.as_str());
            return format!("problem {} solves {form}", own.name);
        }
        NameKind::Argument => own.name.clone(),
        _ => document.slice(own.item).split_whitespace().collect::<Vec<_>>().join(" "),
    };
    match whole.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &whole[..end]),
        None => whole,
    }
}

/// Returns the name of the function of an argument.
fn signature_of(document: &Document, argument: &Declaration) -> String {
    let names = document.analysis.names().declarations().iter();
    let mut functions = names.filter(|own| own.kind == NameKind::Function);
    let function = functions.find(|own| own.item == argument.item);
    function.map_or_else(String::new, |own| format!("`{}({})`", own.name, own.arguments.join(", ")))
}

/// Returns the value of a parameter.
fn value_of(document: &Document, own: &Declaration) -> Option<String> {
    if own.kind != NameKind::Param {
        return None;
    }
    let form = form_of(document, own)?.dimensions.forms().next()?;
    let param = form.own_params().iter().find(|param| param.name == own.name)?;
    let value: Vec<String> = param.value.iter().map(f64::to_string).collect();
    Some(match &value[..] {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    })
}

fn dimensions(form: &CheckedForm) -> String {
    let good: Vec<String> = (1..=3)
        .filter(|dim| form.dimensions.form(*dim).is_some())
        .map(|dim| dim.to_string())
        .collect();
    match &good[..] {
        [] => "valid in no dimension".to_owned(),
        [one] => format!("valid in {one}D"),
        [init @ .., last] => format!("valid in {} and {last} dimensions", init.join(", ")),
    }
}

/// Returns the rows of a form without errors, and those of its Jacobian.
fn rows(document: &Document, span: Span, form: &CheckedForm) -> Option<String> {
    let broken = document.analysis.diagnostics.iter().any(|found| {
        found.is_error() && found.labels.iter().any(|label| span.contains(label.span))
    });
    // The plane is the first.
    let form: &Form = form.dimensions.forms().next().filter(|_| !broken)?;
    let derived = simplify(&differentiate(form));
    let mut lines = Vec::new();
    for own in derived.formulas() {
        lines.push(format!("// on {}", own.region.replace(['[', ']'], "")));
        lines.extend(own.rows);
        lines.extend(own.action);
        let shared = own.shared.into_iter().enumerate();
        lines.extend(shared.map(|(at, line)| match at {
            0 => format!("// where\n{line}"),
            _ => line,
        }));
    }
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        lines.push("// …".to_owned());
    }
    Some(lines.join("\n"))
}

/// Describes a word of the language.
fn of_word(document: &Document, reference: &Reference, offset: usize) -> Option<(Span, String)> {
    let lexemes = document.analysis.lexemes();
    let at = document.word_at(offset)?;
    let span = lexemes[at].span;
    let word = document.slice(span);
    let next = lexemes.get(at + 1).map_or("", |own| document.slice(own.span));
    let context = Context::of(document, span.range().start);
    let first = match context.first() {
        "" => word,
        first => first,
    };
    let argument = context.brackets.last().filter(|own| own.sign == "(" && next == ":");
    if let Some(call) = argument {
        let owner = if first == "adapt" { "adapt" } else { call.word };
        let usage = keywords(first).into_iter().find(|own| own.word == owner);
        let values = usage.as_ref().and_then(|usage| {
            let own = usage.arguments.iter().find(|own| own.name == word)?;
            Some(format!("`{word}`: {}", own.values))
        });
        let row = reference.about(word, sections_of(first));
        return row.or(values).map(|text| (span, text));
    }
    if let Some(usage) = keywords(first).into_iter().find(|own| own.word == word) {
        // The rows of generators are one for each argument.
        let row = reference.about(word, sections_of(first)).filter(|_| first != "mesh");
        let arguments = usage.arguments.iter();
        let arguments = arguments.map(|own| format!("- `{}`: {}", own.name, own.values));
        let parts = std::iter::once(code(&call_text(&usage))).chain(row);
        let text = parts.chain([arguments.collect::<Vec<_>>().join("\n")]).collect::<Vec<_>>();
        return Some((span, text.join("\n\n")));
    }
    let begins = context.item.is_empty();
    let sections: &[&str] = match context.block {
        Block::Problem if begins => &["Problems"],
        Block::Problem => &["Reports", "Known names", "Expressions", "Problems", "Complex"],
        _ if begins => &["Forms"],
        _ => &["Known names", "Expressions", "Spaces", "Facets", "Complex"],
    };
    reference.about(word, sections).map(|text| (span, text))
}

/// Returns a word with its arguments as one line.
pub(crate) fn call_text(usage: &KeywordUsage) -> String {
    if usage.arguments.is_empty() {
        return usage.word.to_owned();
    }
    let argument = |own: &fem_dsl::check::problem::ArgumentUsage| match own.required {
        true => format!("{}: …", own.name),
        false => format!("[{}: …]", own.name),
    };
    let arguments: Vec<String> = usage.arguments.iter().map(argument).collect();
    format!("{}({})", usage.word, arguments.join(", "))
}

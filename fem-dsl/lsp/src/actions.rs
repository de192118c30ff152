//! Quick fixes: for diagnostics whose help names the replacement.

use crate::diagnostics::{diagnostic, place};
use crate::document::Document;
use fem_dsl::codes::Code;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::source::Span;
use serde_json::{Value, json};

/// A replacement of text.
struct Fix {
    title: String,
    span: Span,
    text: String,
}

/// Returns the quick fixes of the diagnostics in a range.
pub(crate) fn actions(document: &Document, range: Span, pages: &str) -> Value {
    let found = document.analysis.diagnostics.iter().filter(|own| place(own).touches(range));
    let actions = found.flat_map(|own| {
        fixes(document, own).into_iter().map(move |fix| {
            let edit = json!({ "range": document.range(fix.span), "newText": fix.text });
            json!({
                "title": fix.title,
                "kind": "quickfix",
                "diagnostics": [diagnostic(document, own, pages)],
                "isPreferred": true,
                "edit": { "changes": { document.uri.as_str(): [edit] } },
            })
        })
    });
    Value::Array(actions.collect())
}

fn fixes(document: &Document, found: &Diagnostic) -> Vec<Fix> {
    let Some(label) = found.primary() else { return Vec::new() };
    let (span, old) = (label.span, document.slice(label.span));
    if let Some(missing) = found.help.iter().find_map(|help| missing(help)) {
        // After the last token, or before the one that should follow a bracket.
        let before = found.labels.iter().find(|own| own.text.ends_with("before this"));
        let at = match before {
            Some(label) => document.text[..label.span.range().start].trim_end().len(),
            None => span.range().end,
        };
        let (span, text) = (Span::new(at, at), missing.to_owned());
        return vec![Fix { title: format!("insert `{missing}`"), span, text }];
    }
    if found.code == Code::UnusedName {
        let names = document.analysis.names();
        let declared = names.declarations().iter().find(|own| own.span == span);
        let remove = declared.map(|own| Fix {
            title: format!("remove the {} `{old}`", own.kind.noun()),
            span: lines_of(document, own.item),
            text: String::new(),
        });
        return remove.into_iter().collect();
    }
    if !is_word(old) {
        return Vec::new();
    }
    let is_called = document.text[span.range().end..].starts_with('(');
    let names = found.help.iter().filter_map(|help| {
        let meant = help.strip_prefix("did you mean `").and_then(|rest| rest.strip_suffix("`?"));
        // `write `tr(A)``: a function of another name with the same arguments.
        let call = help.strip_prefix("write `").and_then(|rest| rest.strip_suffix(")`"));
        let function = call.and_then(|call| call.split_once('(')).filter(|(_, arguments)| {
            is_called && arguments.split(", ").all(|argument| argument.len() == 1)
        });
        meant.or(function.map(|(name, _)| name)).filter(|name| is_word(name))
    });
    names
        .map(|name| Fix {
            title: format!("replace `{old}` by `{name}`"),
            span,
            text: name.to_owned(),
        })
        .collect()
}

/// Returns the sign that a help adds.
fn missing(help: &str) -> Option<&str> {
    let sign = help.strip_prefix("add `")?.strip_suffix('`')?;
    matches!(sign, ";" | ")" | "]" | "}").then_some(sign)
}

/// Returns an item with its line, if nothing else stands on it.
fn lines_of(document: &Document, item: Span) -> Span {
    let (text, range) = (&document.text, item.range());
    let (Some(before), Some(after)) = (text.get(..range.start), text.get(range.end..)) else {
        return item;
    };
    let start = before.trim_end_matches([' ', '\t']).len();
    let blanks = after.len() - after.trim_start_matches([' ', '\t', '\r']).len();
    let alone = start == 0 || before[..start].ends_with('\n');
    match after[blanks..].starts_with('\n') {
        true if alone => Span::new(start, range.end + blanks + 1),
        _ => item,
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

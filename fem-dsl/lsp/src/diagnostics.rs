//! Diagnostics of a file in the protocol: with the link to the page of the code, related places, and help.

use crate::document::Document;
use fem_dsl::diagnostic::{Diagnostic, Severity};
use fem_dsl::source::Span;
use serde_json::{Value, json};

/// Returns the notification of the diagnostics of a file.
pub(crate) fn publish(document: &Document, pages: &str) -> Value {
    let found = document.analysis.diagnostics.iter();
    let found: Vec<Value> = found.map(|own| diagnostic(document, own, pages)).collect();
    notification(&json!({
        "uri": document.uri,
        "version": document.version,
        "diagnostics": found,
    }))
}

/// Returns the notification for a file that is closed.
pub(crate) fn cleared(uri: &str) -> Value {
    notification(&json!({ "uri": uri, "diagnostics": [] }))
}

fn notification(params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "textDocument/publishDiagnostics", "params": params })
}

/// Returns the location of a diagnostic; the beginning of the file without one.
pub(crate) fn place(found: &Diagnostic) -> Span {
    found.primary().map_or_else(Span::default, |label| label.span)
}

/// Returns one diagnostic in the protocol.
pub(crate) fn diagnostic(document: &Document, found: &Diagnostic, pages: &str) -> Value {
    let mut message = found.message.clone();
    let label = found.primary().map_or("", |label| label.text.as_str());
    if !label.is_empty() && !message.contains(label) {
        message.push_str(&format!(": {label}"));
    }
    let notes = found.notes.iter().map(|text| ("note", text));
    for (kind, text) in notes.chain(found.help.iter().map(|text| ("help", text))) {
        message.push_str(&format!("\n{kind}: {text}"));
    }
    let related = found.labels.iter().filter(|label| !label.primary).map(|label| {
        let location = json!({ "uri": document.uri, "range": document.range(label.span) });
        json!({ "location": location, "message": label.text })
    });
    let id = found.code.id();
    let mut value = json!({
        "range": document.range(place(found)),
        "severity": if found.severity == Severity::Error { 1 } else { 2 },
        "code": id,
        "codeDescription": { "href": format!("{pages}{id}") },
        "source": "wf",
        "message": message,
        "relatedInformation": related.collect::<Vec<Value>>(),
    });
    if found.message.ends_with("is never used") {
        // Unnecessary: editors fade it.
        value["tags"] = json!([1]);
    }
    value
}

//! Definition, references, highlights and renaming of declared names.

use crate::document::Document;
use fem_dsl::names::{Declaration, NameKind};
use fem_dsl::source::Span;
use fem_dsl::words;
use serde_json::{Value, json};

pub(crate) fn definition(document: &Document, offset: usize) -> Value {
    let Some((_, _, own)) = document.name_at(offset) else { return Value::Null };
    json!({ "uri": document.uri, "range": document.range(own.span) })
}

pub(crate) fn references(document: &Document, offset: usize, declared: bool) -> Value {
    let Some((_, at, own)) = document.name_at(offset) else { return Value::Null };
    let all = document.analysis.names().locations(at).into_iter();
    let kept = all.filter(|span| declared || *span != own.span);
    kept.map(|span| json!({ "uri": document.uri, "range": document.range(span) })).collect()
}

pub(crate) fn highlights(document: &Document, offset: usize) -> Value {
    let Some((_, at, own)) = document.name_at(offset) else { return Value::Null };
    let all = document.analysis.names().locations(at).into_iter();
    // Of the declaration a write access.
    let kind = |span: Span| if span == own.span { 3 } else { 2 };
    all.map(|span| json!({ "range": document.range(span), "kind": kind(span) })).collect()
}

pub(crate) fn prepare_rename(document: &Document, offset: usize) -> Value {
    let Some((span, _, own)) = document.name_at(offset) else { return Value::Null };
    json!({ "range": document.range(span), "placeholder": own.name })
}

/// Renames the name at an offset, or returns the reason why it cannot.
pub(crate) fn rename(document: &Document, offset: usize, name: &str) -> Result<Value, String> {
    let found = document.name_at(offset).ok_or("there is no declared name here")?;
    let (_, at, own) = found;
    let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !letters || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(format!("`{name}` is no name: a letter, and then letters, digits and `_`"));
    }
    let free = matches!(own.kind, NameKind::Problem | NameKind::Report | NameKind::Output);
    if let Some(meaning) = words::reserved(name).filter(|_| !free) {
        return Err(format!("`{name}` is reserved: {meaning}"));
    }
    if let Some(other) = document
        .analysis
        .names()
        .declarations()
        .iter()
        .find(|other| other.name == name && other.span != own.span && conflict(own, other))
    {
        return Err(format!("there is already a {} `{name}`", other.kind.noun()));
    }
    let edits = document.analysis.names().locations(at).into_iter();
    let edits = edits.map(|span| json!({ "range": document.range(span), "newText": name }));
    Ok(json!({ "changes": { document.uri.as_str(): edits.collect::<Vec<Value>>() } }))
}

/// Returns whether two declarations cannot have one name.
fn conflict(own: &Declaration, other: &Declaration) -> bool {
    let whole = |kind| matches!(kind, NameKind::Form | NameKind::Problem);
    if whole(own.kind) || whole(other.kind) {
        return own.kind == other.kind;
    }
    let arguments = own.kind == NameKind::Argument && other.kind == NameKind::Argument;
    own.form == other.form && (!arguments || own.item == other.item)
}

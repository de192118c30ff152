//! Symbols of a file, hints of the shapes of `let`s, and the commands next to problems.

use crate::document::Document;
use crate::shapes::{shape_of, space, written};
use fem_dsl::ast::{
    BlockRegion, FormItem, FormItemKind, Ident, Problem, ProblemItem, ProblemItemKind, RowKind,
};
use fem_dsl::names::NameKind;
use fem_dsl::source::Span;
use serde_json::{Value, json};

/// Kinds of symbols in the protocol.
mod kind {
    pub(super) const MODULE: u32 = 2;
    pub(super) const NAMESPACE: u32 = 3;
    pub(super) const CLASS: u32 = 5;
    pub(super) const PROPERTY: u32 = 7;
    pub(super) const FIELD: u32 = 8;
    pub(super) const FUNCTION: u32 = 12;
    pub(super) const VARIABLE: u32 = 13;
    pub(super) const CONSTANT: u32 = 14;
    pub(super) const NUMBER: u32 = 16;
    pub(super) const OPERATOR: u32 = 25;
}

/// A symbol before its conversion.
struct Symbol {
    name: String,
    detail: String,
    kind: u32,
    span: Span,
    name_span: Span,
    children: Vec<Symbol>,
}

impl Symbol {
    fn value(&self, document: &Document) -> Value {
        // The name lies inside of the item, also in broken text.
        let inside = self.span.contains(self.name_span);
        let selection = if inside { self.name_span } else { self.span };
        let name = if self.name.is_empty() { "?" } else { &self.name };
        let children = self.children.iter().map(|own| own.value(document));
        json!({
            "name": name,
            "detail": self.detail,
            "kind": self.kind,
            "range": document.range(self.span),
            "selectionRange": document.range(selection),
            "children": children.collect::<Vec<Value>>(),
        })
    }
}

/// Returns the symbols of a file: forms and problems with their items.
pub(crate) fn symbols(document: &Document) -> Value {
    let file = document.file();
    let forms = file.forms.iter().map(|form| Symbol {
        name: form.name.name.clone(),
        detail: "form".to_owned(),
        kind: kind::CLASS,
        span: form.span,
        name_span: form.name.span,
        children: form.items.iter().filter_map(|item| of_item(document, item)).collect(),
    });
    let problems = file.problems.iter().map(|problem| Symbol {
        name: problem.name.name.clone(),
        detail: format!("problem of {}", problem.form.name),
        kind: kind::MODULE,
        span: problem.span,
        name_span: problem.name.span,
        children: problem.items.iter().filter_map(|item| of_statement(document, item)).collect(),
    });
    let mut all: Vec<Symbol> = forms.chain(problems).collect();
    all.sort_by_key(|own| own.span);
    all.iter().map(|own| own.value(document)).collect()
}

fn of_item(document: &Document, item: &FormItem) -> Option<Symbol> {
    let symbol = |name: &Ident, detail: String, kind| Symbol {
        name: name.name.clone(),
        detail,
        kind,
        span: item.span,
        name_span: name.span,
        children: Vec::new(),
    };
    let shape = |shape: &Option<_>| shape.map(written).unwrap_or_default();
    Some(match &item.kind {
        FormItemKind::Field { name, shape: spec, space: own, .. } => {
            let own = own.map(|own| format!(" in {}", space(own))).unwrap_or_default();
            symbol(name, format!("{}{own}", shape(spec)), kind::FIELD)
        }
        FormItemKind::Aux { name, shape: spec, .. } => symbol(name, shape(spec), kind::PROPERTY),
        FormItemKind::Param { name, .. } => {
            symbol(name, declared_shape(document, name), kind::CONSTANT)
        }
        FormItemKind::Let { name, .. } => {
            symbol(name, declared_shape(document, name), kind::VARIABLE)
        }
        FormItemKind::Fn { name, parameters, .. } => {
            let names: Vec<&str> = parameters.iter().map(|own| own.name.as_str()).collect();
            symbol(name, format!("({})", names.join(", ")), kind::FUNCTION)
        }
        FormItemKind::Test { name, field } => {
            symbol(name, format!("test of {}", field.name), kind::VARIABLE)
        }
        FormItemKind::Row { row, row_span, side, field, .. } => {
            let row = if *row == RowKind::F0 { "f0" } else { "f1" };
            let tested = match side {
                Some((side, _)) => format!("{}({})", side.name(), field.name),
                None => field.name.clone(),
            };
            let name = Ident { name: format!("{row}[{tested}]"), span: *row_span };
            symbol(&name, String::new(), kind::OPERATOR)
        }
        FormItemKind::Update { name, .. } => {
            let shown = Ident { name: format!("update {}", name.name), span: name.span };
            symbol(&shown, String::new(), kind::OPERATOR)
        }
        FormItemKind::Residual { .. } | FormItemKind::Energy { .. } => {
            let word = match item.kind {
                FormItemKind::Residual { .. } => "residual",
                _ => "energy",
            };
            let end = item.span.start + word.len() as u32;
            let name = Ident { name: word.to_owned(), span: Span { end, ..item.span } };
            symbol(&name, String::new(), kind::OPERATOR)
        }
        FormItemKind::Block { region, tags, items } => {
            let region = match region {
                BlockRegion::Cells => "cells",
                BlockRegion::Boundary => "boundary",
                BlockRegion::Interior | BlockRegion::OrderedInterior => "interior",
            };
            let tags = tags.iter().map(|tag| format!(" \"{}\"", tag.text)).collect::<String>();
            let end = item.span.start + 2;
            let name =
                Ident { name: format!("on {region}{tags}"), span: Span { end, ..item.span } };
            let children = items.iter().filter_map(|item| of_item(document, item)).collect();
            Symbol { children, ..symbol(&name, String::new(), kind::NAMESPACE) }
        }
        FormItemKind::Broken | FormItemKind::Start { .. } => return None,
    })
}

fn declared_shape(document: &Document, name: &Ident) -> String {
    let declared = document.analysis.names().declarations().iter();
    let own = declared.into_iter().find(|own| own.span == name.span);
    own.and_then(|own| shape_of(document, own)).unwrap_or_default()
}

/// Returns the symbol of a statement: reports and outputs by name, others by their beginning.
fn of_statement(document: &Document, item: &ProblemItem) -> Option<Symbol> {
    let (name, detail, kind) = match &item.kind {
        ProblemItemKind::Broken => return None,
        ProblemItemKind::Report { name, .. } => (name.clone(), "report", kind::NUMBER),
        ProblemItemKind::Output { name, .. } => (name.clone(), "output", kind::PROPERTY),
        _ => {
            let text = document.slice(item.span);
            let end = text.find(['=', '(', '<', '>', ';']).unwrap_or(text.len());
            let text = text[..end].trim_end();
            let end = item.span.start + text.len() as u32;
            let words: Vec<&str> = text.split_whitespace().collect();
            let name = Ident { name: words.join(" "), span: Span { end, ..item.span } };
            (name, "", kind::PROPERTY)
        }
    };
    Some(Symbol {
        name: name.name,
        detail: detail.to_owned(),
        kind,
        span: item.span,
        name_span: name.span,
        children: Vec::new(),
    })
}

/// Returns hints of the shapes of the `let`s in a range.
pub(crate) fn hints(document: &Document, range: Span) -> Value {
    let names = document.analysis.names().declarations().iter();
    let lets = names.filter(|own| own.kind == NameKind::Let && own.span.touches(range));
    let hint = |own| {
        let shape = shape_of(document, own)?;
        let end = Span { start: own.span.end, ..own.span };
        let position = document.range(end).get("start").cloned();
        Some(json!({ "position": position, "label": format!(": {shape}"), "kind": 1 }))
    };
    lets.filter_map(hint).collect()
}

/// Returns the commands next to the problems of a file, which the editor maps to `wf run` and `wf verify`.
pub(crate) fn lenses(document: &Document) -> Value {
    let problems = document.file().problems.iter().filter(|own| !own.name.name.is_empty());
    let lens = |problem: &Problem, title: &str| {
        let head = Span { end: problem.name.span.end, ..problem.span };
        let command = format!("wf.{title}");
        let arguments = json!([document.uri, problem.name.name]);
        let command = json!({ "title": title, "command": command, "arguments": arguments });
        json!({ "range": document.range(head), "command": command })
    };
    problems.flat_map(|problem| [lens(problem, "run"), lens(problem, "verify")]).collect()
}

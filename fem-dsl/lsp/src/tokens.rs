//! Semantic tokens: every token of a file by its meaning.

use crate::document::Document;
use fem_dsl::names::NameKind;
use fem_dsl::parse::LexemeKind;
use fem_dsl::source::Span;
use fem_dsl::words;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The types, by index in the legend.
const TYPES: &[&str] = &[
    "comment",
    "keyword",
    "number",
    "string",
    "operator",
    "function",
    "variable",
    "parameter",
    "property",
    "type",
    "class",
    "namespace",
];
const COMMENT: u32 = 0;
const KEYWORD: u32 = 1;
const NUMBER: u32 = 2;
const STRING: u32 = 3;
const OPERATOR: u32 = 4;
const FUNCTION: u32 = 5;
const VARIABLE: u32 = 6;
const PARAMETER: u32 = 7;
const PROPERTY: u32 = 8;
const TYPE: u32 = 9;
const CLASS: u32 = 10;
const NAMESPACE: u32 = 11;

/// The modifiers, by bit.
const MODIFIERS: &[&str] = &["declaration", "readonly", "defaultLibrary", "documentation"];
const DECLARATION: u32 = 1;
const READONLY: u32 = 2;
const LIBRARY: u32 = 4;
const DOCUMENTATION: u32 = 8;

pub(crate) fn legend() -> Value {
    json!({ "tokenTypes": TYPES, "tokenModifiers": MODIFIERS })
}

/// Returns the tokens in the protocol's relative encoding.
pub(crate) fn tokens(document: &Document) -> Value {
    let names = document.analysis.names();
    let mut named: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for used in names.uses() {
        if let Some(own) = names.declarations().get(used.declaration) {
            named.insert(used.span.start, of_name(own.kind));
        }
    }
    for own in names.declarations() {
        let (kind, modifiers) = of_name(own.kind);
        named.insert(own.span.start, (kind, modifiers | DECLARATION));
    }
    let mut data: Vec<usize> = Vec::new();
    let mut last = (0, 0);
    let lexemes = document.analysis.lexemes();
    let mut starts = true;
    for (at, lexeme) in lexemes.iter().enumerate() {
        let text = document.slice(lexeme.span);
        let (kind, modifiers) = match lexeme.kind {
            LexemeKind::Comment => (COMMENT, 0),
            LexemeKind::Documentation => (COMMENT, DOCUMENTATION),
            LexemeKind::Number => (NUMBER, 0),
            LexemeKind::String => (STRING, 0),
            LexemeKind::Punctuation if is_operator(text) => (OPERATOR, 0),
            LexemeKind::Punctuation => {
                starts = matches!(text, ";" | "{" | "}");
                continue;
            }
            LexemeKind::Word => {
                let next = lexemes.get(at + 1).map_or("", |own| document.slice(own.span));
                let named = named.get(&lexeme.span.start).copied();
                named.unwrap_or_else(|| of_word(text, next, starts))
            }
        };
        if !matches!(lexeme.kind, LexemeKind::Comment | LexemeKind::Documentation) {
            starts = false;
        }
        for (line, column, length) in pieces(document, lexeme.span) {
            let column_after = if line == last.0 { column - last.1 } else { column };
            data.extend([line - last.0, column_after, length]);
            data.extend([kind as usize, modifiers as usize]);
            last = (line, column);
        }
    }
    json!({ "data": data })
}

fn is_operator(text: &str) -> bool {
    !matches!(text, "(" | ")" | "[" | "]" | "{" | "}" | "," | ";" | ":")
}

fn of_name(kind: NameKind) -> (u32, u32) {
    match kind {
        NameKind::Form => (CLASS, 0),
        NameKind::Problem => (NAMESPACE, 0),
        NameKind::Field | NameKind::Test => (VARIABLE, 0),
        NameKind::Param | NameKind::Let => (VARIABLE, READONLY),
        NameKind::Function => (FUNCTION, 0),
        NameKind::Argument => (PARAMETER, 0),
        NameKind::Data | NameKind::State | NameKind::Report | NameKind::Output => (PROPERTY, 0),
    }
}

/// Returns the meaning of a word that is not declared.
fn of_word(word: &str, next: &str, starts: bool) -> (u32, u32) {
    let is_item = words::FORM_ITEMS.contains(&word) || words::PROBLEM_ITEMS.contains(&word);
    if words::KEYWORDS.contains(&word) || starts && is_item {
        (KEYWORD, 0)
    } else if next == ":" {
        (PROPERTY, 0)
    } else if words::SHAPES.contains(&word) || words::SPACES.contains(&word) {
        (TYPE, LIBRARY)
    } else if next == "(" {
        (FUNCTION, LIBRARY)
    } else if words::KNOWN.contains(&word) || word == words::EXTENT {
        (VARIABLE, READONLY | LIBRARY)
    } else if words::CONNECTIVES.contains(&word) || is_item {
        (KEYWORD, 0)
    } else {
        (VARIABLE, 0)
    }
}

/// Returns line, column and length of each line of a token.
fn pieces(document: &Document, span: Span) -> Vec<(usize, usize, usize)> {
    let mut pieces = Vec::new();
    let mut start = span.range().start;
    for line in document.slice(span).split_inclusive(['\n', '\r']) {
        let content = line.trim_end_matches(['\n', '\r']);
        let length = document.encoding.length(content);
        if length > 0 {
            let (row, column) = document.lines.position(&document.text, document.encoding, start);
            pieces.push((row, column, length));
        }
        start += line.len();
    }
    pieces
}

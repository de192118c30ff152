//! Diagnostics → text for people, and JSON for programs.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use fem_dsl::diagnostic::{Diagnostic, Severity};
use fem_dsl::source::{Source, seen};
use std::borrow::Cow;

/// Style of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Text only.
    #[default]
    Plain,
    /// With terminal colours.
    Coloured,
}

/// Renders the diagnostics of `source` as text, each with the lines that it concerns.
pub fn render(source: &Source, diagnostics: &[Diagnostic], style: Style) -> String {
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Coloured => Renderer::styled(),
    };
    let mut text = String::new();
    for diagnostic in diagnostics {
        let source = diagnostic.source.as_deref().unwrap_or(source);
        text.push_str(&renderer.render(&[group(source, &readable(diagnostic))]));
        text.push_str("\n\n");
    }
    text
}

/// Returns a diagnostic whose text, parts of which may come from files, is safe for a terminal.
fn readable(diagnostic: &Diagnostic) -> Diagnostic {
    let mut shown = diagnostic.clone();
    let labels = shown.labels.iter_mut().map(|label| &mut label.text);
    let words = labels.chain(&mut shown.notes).chain(&mut shown.help);
    for text in words.chain([&mut shown.message]) {
        if let Cow::Owned(readable) = seen(text) {
            *text = readable;
        }
    }
    shown
}

fn group<'a>(source: &'a Source, diagnostic: &'a Diagnostic) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let title = level.primary_title(&diagnostic.message).id(diagnostic.code.id());
    let mut group = Group::with_title(title);
    if let Some(snippet) = snippet(source, diagnostic) {
        group = group.element(snippet);
    }
    let notes = diagnostic.notes.iter().map(|note| Level::NOTE.message(note));
    let help = diagnostic.help.iter().map(|help| Level::HELP.message(help));
    group.elements(notes).elements(help)
}

/// Returns the lines from the first label to the last.
fn snippet<'a>(
    source: &'a Source,
    diagnostic: &'a Diagnostic,
) -> Option<Snippet<'a, annotate_snippets::Annotation<'a>>> {
    let text = source.text();
    let first = diagnostic.labels.iter().map(|label| label.span.start).min()?;
    let last = diagnostic.labels.iter().map(|label| label.span.end).max()?;
    let boundary = |offset: u32| {
        let mut offset = (offset as usize).min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    };
    let start = text[..boundary(first)].rfind('\n').map_or(0, |newline| newline + 1);
    let end = boundary(last);
    let end = text[end..].find('\n').map_or(text.len(), |newline| end + newline);
    let mut snippet = Snippet::source(&text[start..end])
        .path(seen(source.name()))
        .line_start(source.line_column(first).0);
    for label in &diagnostic.labels {
        let kind = if label.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
        let range = boundary(label.span.start) - start..boundary(label.span.end) - start;
        let annotation = kind.span(range);
        snippet = snippet.annotation(if label.text.is_empty() {
            annotation
        } else {
            annotation.label(&label.text)
        });
    }
    Some(snippet)
}

/// A diagnostic for programs; lines and columns count from 1, columns in characters. Serialised by serde with the
/// feature `cli`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(serde::Serialize))]
pub struct JsonDiagnostic {
    /// The code, `E0203`.
    pub code: &'static str,
    /// `error` or `warning`.
    pub severity: &'static str,
    /// The message.
    pub message: String,
    /// The file's name.
    pub file: String,
    /// Line of the primary location.
    pub line: Option<usize>,
    /// Column of the primary location.
    pub column: Option<usize>,
    /// All locations.
    pub labels: Vec<JsonLabel>,
    /// Facts.
    pub notes: Vec<String>,
    /// Remedies.
    pub help: Vec<String>,
}

/// A location for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(serde::Serialize))]
pub struct JsonLabel {
    /// First line.
    pub line: usize,
    /// First column.
    pub column: usize,
    /// Last line.
    pub end_line: usize,
    /// One past the last column.
    pub end_column: usize,
    /// The remark.
    pub text: String,
    /// True for the primary location.
    pub primary: bool,
}

/// Returns the diagnostics of `source` for programs.
pub fn json(source: &Source, diagnostics: &[Diagnostic]) -> Vec<JsonDiagnostic> {
    diagnostics.iter().map(|diagnostic| json_diagnostic(source, diagnostic)).collect()
}

fn json_diagnostic(source: &Source, diagnostic: &Diagnostic) -> JsonDiagnostic {
    let source = diagnostic.source.as_deref().unwrap_or(source);
    let primary = diagnostic.primary().map(|label| source.line_column(label.span.start));
    let labels = diagnostic.labels.iter().map(|label| {
        let (line, column) = source.line_column(label.span.start);
        let (end_line, end_column) = source.line_column(label.span.end);
        let (text, primary) = (label.text.clone(), label.primary);
        JsonLabel { line, column, end_line, end_column, text, primary }
    });
    JsonDiagnostic {
        code: diagnostic.code.id(),
        severity: match diagnostic.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        },
        message: diagnostic.message.clone(),
        file: source.name().to_owned(),
        line: primary.map(|place| place.0),
        column: primary.map(|place| place.1),
        labels: labels.collect(),
        notes: diagnostic.notes.clone(),
        help: diagnostic.help.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fem_dsl::parse::parse;

    #[test]
    fn text_shows_file_line_and_place() {
        let source = Source::new("a.wf", "form a {\n    let b = 1 + ;\n}\n");
        let (_, diagnostics) = parse(&source);
        let text = render(&source, &diagnostics, Style::Plain);
        assert!(text.contains("error[E0101]: expected an expression, found `;`"), "{text}");
        assert!(text.contains("a.wf:2:17"), "{text}");
        assert!(text.contains("let b = 1 + ;"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(render(&source, &diagnostics, Style::Coloured).contains('\u{1b}'));
    }

    #[test]
    fn json_has_places() {
        let source = Source::new("a.wf", "form a {\n    let b = 1 + ;\n}\n");
        let (_, diagnostics) = parse(&source);
        let json = json(&source, &diagnostics);
        assert_eq!((json[0].code, json[0].line, json[0].column), ("E0101", Some(2), Some(17)));
        assert_eq!(json[0].labels[0].end_column, 18);
    }

    #[test]
    fn places_outside_the_text_are_harmless() {
        use fem_dsl::{codes::Code, source::Span};
        let source = Source::new("é.wf", "é");
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, "m")
            .label(Span::new(1, 900), "far")
            .secondary(Span::new(900, 901), "");
        assert!(render(&source, &[diagnostic], Style::Plain).contains("far"));
    }
}

//! An open file: its text, its edits, and the results of its check.

use crate::position::{Encoding, Lines};
use fem_dsl::ast;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::names::{Declaration, NameTable};
use fem_dsl::parse::{Lexeme, LexemeKind, lexemes};
use fem_dsl::program::{Program, inspect, inspect_after};
use fem_dsl::source::{Source, Span, TableFolder};
use serde_json::Value;
use std::cell::OnceCell;
use std::path::PathBuf;

/// The results of parsing and checking a text.
pub(crate) struct Analysis {
    pub(crate) program: Program,
    pub(crate) diagnostics: Vec<Diagnostic>,
    // Diagnostics need neither.
    names: OnceCell<NameTable>,
    lexemes: OnceCell<Vec<Lexeme>>,
}

impl Analysis {
    /// Returns the names of the file with their uses.
    pub(crate) fn names(&self) -> &NameTable {
        self.names.get_or_init(|| NameTable::of(self.program.written()))
    }

    /// Returns the tokens and comments of the file.
    pub(crate) fn lexemes(&self) -> &[Lexeme] {
        // The source ends lines in one way, with the same offsets.
        self.lexemes.get_or_init(|| lexemes(self.program.source().text()))
    }
}

/// An open file.
pub(crate) struct Document {
    pub(crate) uri: String,
    pub(crate) version: Value,
    pub(crate) text: String,
    pub(crate) lines: Lines,
    pub(crate) encoding: Encoding,
    pub(crate) analysis: Analysis,
    folder: Option<TableFolder>,
    /// True if the text is newer than the analysis.
    changed: bool,
    /// True if the diagnostics have not been published.
    pub(crate) unpublished: bool,
}

impl Document {
    pub(crate) fn new(
        uri: &str,
        version: Value,
        text: &str,
        encoding: Encoding,
        folder: Option<TableFolder>,
    ) -> Self {
        let (uri, text) = (uri.to_owned(), text.to_owned());
        let (lines, analysis) = (Lines::of(&text), analyse(&uri, &text, folder.as_ref(), None));
        let (changed, unpublished) = (false, true);
        Self { uri, version, text, lines, encoding, analysis, folder, changed, unpublished }
    }

    /// Applies one change: of a range, or of the whole text.
    pub(crate) fn change(&mut self, change: &Value) -> Option<()> {
        let text = change.get("text")?.as_str()?;
        match change.get("range") {
            None | Some(Value::Null) => text.clone_into(&mut self.text),
            Some(range) => {
                let start = self.offset(range.get("start")?)?;
                let end = self.offset(range.get("end")?)?;
                self.text.replace_range(start.min(end)..start.max(end), text);
            }
        }
        self.lines = Lines::of(&self.text);
        (self.changed, self.unpublished) = (true, true);
        Some(())
    }

    /// Checks the text, if it has changed.
    pub(crate) fn update(&mut self) {
        if std::mem::take(&mut self.changed) {
            let before = Some(&mut self.analysis.program);
            self.analysis = analyse(&self.uri, &self.text, self.folder.as_ref(), before);
        }
    }

    /// Returns the offset of a position of the protocol.
    pub(crate) fn offset(&self, position: &Value) -> Option<usize> {
        let part = |name: &str| position.get(name)?.as_u64().and_then(|n| usize::try_from(n).ok());
        Some(self.lines.offset(&self.text, self.encoding, (part("line")?, part("character")?)))
    }

    /// Returns the protocol's range of a span.
    pub(crate) fn range(&self, span: Span) -> Value {
        self.lines.range(&self.text, self.encoding, span)
    }

    /// Returns the span of the protocol's range.
    pub(crate) fn span(&self, range: &Value) -> Option<Span> {
        Some(Span::new(self.offset(range.get("start")?)?, self.offset(range.get("end")?)?))
    }

    /// Returns the text of a span; empty if it is out of range.
    pub(crate) fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }

    pub(crate) fn file(&self) -> &ast::File {
        self.analysis.program.written()
    }

    /// Returns the declared name at an offset, with its location and the index of its declaration.
    pub(crate) fn name_at(&self, offset: usize) -> Option<(Span, usize, &Declaration)> {
        let names = self.analysis.names();
        let (span, at) = names.at(Span::new(offset, offset).start)?;
        Some((span, at, names.declarations().get(at)?))
    }

    /// Returns the index of the word at an offset, which may be one past its end.
    pub(crate) fn word_at(&self, offset: usize) -> Option<usize> {
        let offset = Span::new(offset, offset).start;
        let touches = |own: &Lexeme| own.span.start <= offset && offset <= own.span.end;
        let words = self.analysis.lexemes().iter().enumerate();
        let mut words = words.filter(|(_, own)| own.kind == LexemeKind::Word && touches(own));
        words.next_back().map(|(at, _)| at)
    }
}

fn analyse(
    uri: &str,
    text: &str,
    folder: Option<&TableFolder>,
    before: Option<&mut Program>,
) -> Analysis {
    let name = uri.rsplit('/').next().unwrap_or(uri);
    let source = Source::new(name, text).in_folder(folder.cloned());
    let (program, diagnostics) = match before {
        Some(before) => inspect_after(&source, before),
        None => inspect(&source),
    };
    Analysis { program, diagnostics, names: OnceCell::new(), lexemes: OnceCell::new() }
}

/// Returns the path of a `file` URI.
pub(crate) fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.get(rest.find('/')?..)?;
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some(&byte) = path.as_bytes().get(at) {
        let code = path.get(at + 1..at + 3).and_then(|code| u8::from_str_radix(code, 16).ok());
        match (byte, code) {
            (b'%', Some(code)) => {
                bytes.push(code);
                at += 3;
            }
            _ => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
    let path = String::from_utf8(bytes).ok()?;
    // `/C:/a.wf`
    let drive = path.as_bytes().get(2) == Some(&b':');
    Some(PathBuf::from(if drive { &path[1..] } else { &path }))
}

#[cfg(test)]
mod tests {
    use super::path_of;
    use std::path::PathBuf;

    #[test]
    fn paths_of_files_are_decoded() {
        assert_eq!(path_of("file:///a%20b/%C3%A9.wf"), Some(PathBuf::from("/a b/é.wf")));
        assert_eq!(path_of("file://host/a.wf"), Some(PathBuf::from("/a.wf")));
        assert_eq!(path_of("file:///C%3A/a.wf"), Some(PathBuf::from("C:/a.wf")));
        assert_eq!(path_of("file:///100%"), Some(PathBuf::from("/100%")));
        assert_eq!(path_of("untitled:a"), None);
        assert_eq!(path_of("file://%"), None);
    }
}

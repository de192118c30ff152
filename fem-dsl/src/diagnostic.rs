//! What a stage has to say about its input: plain data, collected while the stage goes on, and
//! rendered only at the edge of the program.
//!
//! ```
//! use fem_dsl::codes::Code;
//! use fem_dsl::diagnostic::Diagnostic;
//! use fem_dsl::source::Span;
//!
//! let diagnostic = Diagnostic::new(Code::UnknownName, "unknown name `kapa`")
//!     .label(Span::new(4, 8), "not found in this form")
//!     .secondary(Span::new(0, 3), "in this row")
//!     .help("did you mean `kappa`?");
//! assert_eq!(diagnostic.code.id(), "E0201");
//! ```

use crate::codes::Code;
use crate::source::{Defect, MAX_BYTES, Source, Span, seen};
use std::sync::Arc;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Compilation goes on.
    Warning,
    /// There will be no result.
    Error,
}

/// A piece of the source with a remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The remark; may be empty.
    pub text: String,
    /// Whether this is the place that the diagnostic is about.
    pub primary: bool,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its code, with a page of explanation.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence without a full stop, beginning with a small letter.
    pub message: String,
    /// Places, the primary one first.
    pub labels: Vec<Label>,
    /// Facts that help to understand.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Vec<String>,
    /// The text that the labels refer to, where that is not the file being compiled: a piece of
    /// the command line, say.
    pub source: Option<Arc<Source>>,
}

impl Diagnostic {
    /// An error without a place.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            labels: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
            source: None,
        }
    }

    /// A warning without a place.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::new(code, message) }
    }

    /// What is wrong with the bytes of a source as such, if anything.
    pub fn of_defect(source: &Source) -> Option<Self> {
        Some(match source.defect()? {
            Defect::NotUtf8 { byte, at } => {
                Self::new(Code::NotUtf8, "this file is not valid UTF-8")
                    .label(at, format!("the byte 0x{byte:02X} cannot stand here"))
                    .help("save the file as UTF-8")
            }
            Defect::TooLong => {
                let message = format!("{} is longer than {MAX_BYTES} bytes", seen(source.name()));
                Self::new(Code::FileTooLarge, message)
                    .help("put data into a mesh or into `aux`, not into the form")
            }
        })
    }

    /// Adds the primary place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.insert(0, Label { span, text: text.into(), primary: true });
        self
    }

    /// Adds another place that explains the first.
    #[must_use]
    pub fn secondary(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into(), primary: false });
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds a remedy.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// Adds a remedy where there is one.
    #[must_use]
    pub fn help_if(self, text: Option<impl Into<String>>) -> Self {
        match text {
            Some(text) => self.help(text),
            None => self,
        }
    }

    /// Adds "did you mean …?" with the nearest of `candidates`, where one is near.
    #[must_use]
    pub fn suggest<'a>(self, found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Self {
        let nearest = nearest(found, candidates).map(|name| format!("did you mean `{name}`?"));
        self.help_if(nearest)
    }

    /// Adds what is `known` of `found`; without that, "did you mean …?" with the nearest of `candidates`.
    #[must_use]
    pub(crate) fn suggest_or<'a>(
        self,
        found: &str,
        candidates: impl IntoIterator<Item = &'a str>,
        known: Option<&str>,
    ) -> Self {
        match known {
            Some(known) => self.help(known),
            None => self.suggest(found, candidates),
        }
    }

    /// Says that the labels refer to `source`, not to the file being compiled.
    #[must_use]
    pub fn of_source(mut self, source: Arc<Source>) -> Self {
        self.source = Some(source);
        self
    }

    /// The place that the diagnostic is about, where it has one.
    pub fn primary(&self) -> Option<&Label> {
        self.labels.iter().find(|label| label.primary)
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The candidate that `found` was most likely meant to be: at most a third of its letters wrong,
/// a swap of neighbours counting once; the first of equals.
pub fn nearest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = found.to_ascii_lowercase();
    let limit = found.chars().count().max(3) / 3;
    candidates
        .into_iter()
        .filter(|candidate| *candidate != found)
        .map(|candidate| {
            // Case alone is the smallest of mistakes.
            let distance = if candidate.to_ascii_lowercase() == lower {
                0
            } else {
                strsim::osa_distance(found, candidate)
            };
            (distance, candidate)
        })
        .filter(|(distance, candidate)| {
            *distance == 0 || (*distance <= limit && *distance < candidate.len().min(found.len()))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_names_are_offered() {
        let names = ["kappa", "mu", "lambda", "u"];
        assert_eq!(nearest("kapa", names), Some("kappa"));
        assert_eq!(nearest("Lambda", names), Some("lambda"));
        assert_eq!(nearest("lamdba", names), Some("lambda"));
        assert_eq!(nearest("velocity", names), None);
        assert_eq!(nearest("U", names), Some("u"));
        assert_eq!(nearest("v", names), None);
    }
}

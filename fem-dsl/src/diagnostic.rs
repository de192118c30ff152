//! Diagnostics of a stage about its input: plain data, collected while the stage continues, and rendered only by the
//! program.
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

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Compilation continues.
    Warning,
    /// There will be no result.
    Error,
}

/// A location in the source with a remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The location.
    pub span: Span,
    /// The remark; may be empty.
    pub text: String,
    /// True for the location that the diagnostic is about.
    pub primary: bool,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its code, with a page of explanation.
    pub code: Code,
    /// Its severity.
    pub severity: Severity,
    /// One sentence without a full stop, beginning with a lower-case letter.
    pub message: String,
    /// Locations, the primary one first.
    pub labels: Vec<Label>,
    /// Facts that help to understand.
    pub notes: Vec<String>,
    /// Suggested corrections.
    pub help: Vec<String>,
    /// The text that the labels refer to, if that is not the compiled file: a text from the command line, for instance.
    pub source: Option<Arc<Source>>,
}

impl Diagnostic {
    /// Creates an error without a location.
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

    /// Creates a warning without a location.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::new(code, message) }
    }

    /// Returns the diagnostic for invalid bytes of a source, if any.
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

    /// Adds the primary location.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.insert(0, Label { span, text: text.into(), primary: true });
        self
    }

    /// Adds a secondary location that explains the primary one.
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

    /// Adds a remedy if there is one.
    #[must_use]
    pub fn help_if(self, text: Option<impl Into<String>>) -> Self {
        match text {
            Some(text) => self.help(text),
            None => self,
        }
    }

    /// Adds "did you mean …?" with the nearest of `candidates`, if one is near.
    #[must_use]
    pub fn suggest<'a>(self, found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Self {
        let nearest = nearest(found, candidates).map(|name| format!("did you mean `{name}`?"));
        self.help_if(nearest)
    }

    /// Adds the `known` remark about `found`; without one, "did you mean …?" with the nearest of `candidates`.
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

    /// Lets the labels refer to `source` instead of the compiled file.
    #[must_use]
    pub fn of_source(mut self, source: Arc<Source>) -> Self {
        self.source = Some(source);
        self
    }

    /// Returns the primary location, if there is one.
    pub fn primary(&self) -> Option<&Label> {
        self.labels.iter().find(|label| label.primary)
    }

    /// Returns whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Moves the locations of diagnostics; returns false if one has no new location.
pub(crate) fn relocate(found: &mut [Diagnostic], to: impl Fn(Span) -> Option<Span>) -> bool {
    let mut labels = found.iter_mut().flat_map(|found| &mut found.labels);
    labels.all(|label| to(label.span).map(|span| label.span = span).is_some())
}

/// Returns the most likely intended candidate for `found`: at most a third of its letters wrong, a swap of neighbours
/// counting once; the first of equals.
pub fn nearest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = found.to_ascii_lowercase();
    let limit = found.chars().count().max(3) / 3;
    candidates
        .into_iter()
        .filter(|candidate| *candidate != found)
        .map(|candidate| {
            // A difference in case is the smallest error.
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

//! The text of a form, line by line.

use std::fmt::Write;

/// A form whose items are appended.
pub(super) struct Lines(String);

impl Lines {
    /// Begins a form.
    pub(super) fn new(form: &str) -> Self {
        Self(format!("form {form} {{\n"))
    }

    /// Appends a line at a depth of blocks.
    pub(super) fn push(&mut self, depth: usize, content: &str) {
        writeln!(self.0, "{:1$}{content}", "", 4 * depth).expect("a string takes text");
    }

    /// Returns the length of the text, a number that differs from line to line.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Ends the form, and returns its text.
    pub(super) fn finish(mut self) -> String {
        self.push(0, "}");
        self.0
    }
}

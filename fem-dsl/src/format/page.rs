//! `page`: the lines of a file, its blank lines, and the comments between items and next to lines.

use super::item::Operation;
use super::layout::{Line, lay_out};
use super::pieces::{Piece, PieceKind};
use super::{INDENT, WIDTH};

/// A partly laid-out file.
#[derive(Default)]
pub(super) struct Page {
    lines: Vec<Line>,
    /// The number of open blocks.
    level: usize,
    /// True if a block has just begun.
    fresh: bool,
    /// True if a blank line must follow.
    separate: bool,
}

impl Page {
    pub(super) fn outermost(&self) -> bool {
        self.level == 0
    }

    /// Requests a blank line before the next item, unless there is one.
    pub(super) fn separate(&mut self, separate: bool) {
        self.separate = separate;
    }

    fn blank(&mut self, wanted: bool) {
        let wanted = wanted || std::mem::take(&mut self.separate);
        if wanted && !self.fresh && !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        self.fresh = false;
    }

    /// Adds an item, or the head of a block.
    pub(super) fn item(&mut self, blank: bool, operations: &[Operation<'_>]) {
        self.blank(blank);
        self.lines.extend(lay_out(operations, INDENT * self.level));
    }

    /// Begins the block whose head was the last item.
    pub(super) fn open(&mut self) {
        self.level += 1;
        self.fresh = true;
    }

    /// Adds the closing brace of a block.
    pub(super) fn close(&mut self) {
        self.level = self.level.saturating_sub(1);
        let empty = std::mem::take(&mut self.fresh);
        match self.lines.last_mut() {
            Some(line) if empty && line.comment.is_none() && line.text.ends_with('{') => {
                line.text.push('}');
            }
            _ => self.lines.push(Line { text: "}".into(), ..Line::new(INDENT * self.level) }),
        }
    }

    /// Adds a comment between items: next to the preceding line, or on its own line.
    pub(super) fn comment(&mut self, piece: &Piece<'_>) {
        let beside = !piece.first && piece.kind != PieceKind::Documentation;
        if let Some(line) = self.lines.last_mut().filter(|_| beside) {
            if piece.ends_line() {
                line.comment = Some(piece.text.to_owned());
            } else {
                line.text.push(' ');
                line.text.push_str(piece.text);
            }
            return;
        }
        self.blank(piece.blank_before);
        let mut line = Line::new(INDENT * self.level);
        if piece.ends_line() {
            line.comment = Some(piece.text.to_owned());
        } else {
            line.text = piece.text.to_owned();
        }
        self.lines.push(line);
    }

    /// Returns the text of the file.
    pub(super) fn finish(self) -> String {
        let mut text = String::new();
        let mut at = 0;
        while let Some(line) = self.lines.get(at) {
            // Comments next to neighbouring lines of one indentation are aligned.
            let beside = |other: &&Line| {
                !other.text.is_empty() && other.comment.is_some() && other.indent == line.indent
            };
            let run = self.lines[at..].iter().take_while(beside).count();
            let run = &self.lines[at..at + run.max(1)];
            let column = run.iter().map(Line::width).max().unwrap_or(0) + 1;
            let length = |line: &Line| line.comment.as_ref().map_or(0, |c| c.chars().count());
            let aligned = run.iter().all(|line| column + length(line) <= WIDTH);
            for line in run {
                write(&mut text, line, aligned.then_some(column));
            }
            at += run.len();
        }
        text
    }
}

/// Writes a line, with its comment in `column` if present.
fn write(text: &mut String, line: &Line, column: Option<usize>) {
    if !line.is_empty() {
        text.extend(std::iter::repeat_n(' ', line.indent));
        text.push_str(&line.text);
    }
    if let Some(comment) = &line.comment {
        if !line.text.is_empty() {
            let width = line.width();
            let gap = column.map_or(1, |column| column.saturating_sub(width));
            text.extend(std::iter::repeat_n(' ', gap));
        }
        text.push_str(comment);
    }
    text.push('\n');
}

//! `layout`: operations → lines. A group is broken if it does not fit on its line together with the text up to the next
//! possible break. All groups around a broken one are broken. The time is linear in the number of operations.

use super::item::{Group, Operation};
use super::{INDENT, WIDTH};

/// A line; its text may contain the lines of a block comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) indent: usize,
    pub(super) text: String,
    /// The comment at its end.
    pub(super) comment: Option<String>,
}

impl Line {
    pub(super) fn new(indent: usize) -> Self {
        Self { indent, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.comment.is_none()
    }

    /// Returns the column after its text.
    pub(super) fn width(&self) -> usize {
        match self.text.rsplit_once('\n') {
            Some((_, last)) => last.chars().count(),
            None => self.indent + self.text.chars().count(),
        }
    }
}

/// An open group.
struct Frame {
    group: Group,
    broken: bool,
    /// The indentation of its breaks.
    indent: usize,
    /// The indentation of its closing break.
    outer: usize,
}

struct Layout {
    lines: Vec<Line>,
    line: Line,
    column: usize,
    /// The indentation of a pending new line.
    due: Option<usize>,
    base: usize,
    frames: Vec<Frame>,
}

/// Returns the lines of an item that is indented by `base` columns.
pub(super) fn lay_out(operations: &[Operation<'_>], base: usize) -> Vec<Line> {
    let measures = Measures::new(operations);
    let mut layout = Layout {
        lines: Vec::new(),
        line: Line::new(base),
        column: base,
        due: None,
        base,
        frames: Vec::new(),
    };
    for (at, operation) in operations.iter().enumerate() {
        match *operation {
            Operation::Text(text) => layout.text(text),
            Operation::LineComment(text) => {
                layout.flush();
                layout.line.comment = Some(text.to_owned());
            }
            Operation::Space => layout.space(),
            Operation::Break { space, closing } => {
                let fits = layout.column + 1 + measures.tails[at + 1] <= WIDTH;
                layout.insert_break(space, closing, fits);
            }
            Operation::Newline => {
                let indent = layout.frames.last().map_or(base + INDENT, |frame| frame.indent);
                layout.due.get_or_insert(indent);
            }
            Operation::Open(group) => layout.open(group, measures.groups[at]),
            Operation::Close => {
                layout.frames.pop();
            }
        }
    }
    layout.lines.push(layout.line);
    layout.lines
}

impl Layout {
    /// Begins the pending line.
    fn flush(&mut self) {
        if let Some(indent) = self.due.take() {
            let line = std::mem::replace(&mut self.line, Line::new(indent));
            self.lines.push(line);
            self.column = indent;
        }
    }

    fn text(&mut self, text: &str) {
        self.flush();
        self.line.text.push_str(text);
        match text.rsplit_once('\n') {
            Some((_, last)) => self.column = last.chars().count(),
            None => self.column += text.chars().count(),
        }
    }

    fn space(&mut self) {
        if self.due.is_none() {
            self.line.text.push(' ');
            self.column += 1;
        }
    }

    fn insert_break(&mut self, space: bool, closing: bool, fits: bool) {
        let (broken, indent) = match self.frames.last() {
            Some(frame) => (frame.broken, if closing { frame.outer } else { frame.indent }),
            // Words and tags outside of any group fill their lines.
            None => (!fits || self.due.is_some(), self.base + INDENT),
        };
        if broken {
            self.due = Some(indent);
        } else if space {
            self.space();
        }
    }

    fn open(&mut self, group: Group, width: Option<usize>) {
        let line = self.due.unwrap_or(self.line.indent);
        let column = self.due.unwrap_or(self.column);
        let parent = self.frames.last();
        let inside = parent.is_none_or(|frame| frame.broken);
        let broken = inside && width.is_none_or(|width| column + width > WIDTH);
        let chain = |frame: &&Frame| frame.broken && frame.group != Group::List;
        let outer = match (group, parent.filter(chain)) {
            // A nested chain is indented further, also on the first line of the outer chain.
            (Group::Chain | Group::DeepChain, Some(parent)) => line.max(parent.indent),
            _ => line,
        };
        let depth = if group == Group::DeepChain { 2 * INDENT } else { INDENT };
        self.frames.push(Frame { group, broken, indent: outer + depth, outer });
    }
}

/// Widths computed before the layout.
struct Measures {
    /// For each opening, the columns of its group on one line, with the text up to the next break. `None` if it cannot
    /// be on one line.
    groups: Vec<Option<usize>>,
    /// The columns of the text before the next break, from each operation on.
    tails: Vec<usize>,
}

impl Measures {
    fn new(operations: &[Operation<'_>]) -> Self {
        let mut tails = vec![0; operations.len() + 1];
        for (at, operation) in operations.iter().enumerate().rev() {
            tails[at] = match operation {
                Operation::Text(text) => match text.split_once('\n') {
                    Some((first, _)) => first.chars().count(),
                    None => text.chars().count() + tails[at + 1],
                },
                Operation::Space => 1 + tails[at + 1],
                Operation::Open(_) | Operation::Close => tails[at + 1],
                Operation::Break { .. } | Operation::Newline | Operation::LineComment(_) => 0,
            };
        }
        let mut groups = vec![None; operations.len()];
        let mut open = Vec::new();
        let (mut width, mut lines) = (0, 0);
        for (at, operation) in operations.iter().enumerate() {
            match operation {
                Operation::Text(text) => {
                    width += text.chars().count();
                    lines += usize::from(text.contains('\n'));
                }
                Operation::Space | Operation::Break { space: true, .. } => width += 1,
                Operation::Break { space: false, .. } => {}
                Operation::Newline | Operation::LineComment(_) => lines += 1,
                Operation::Open(_) => open.push((at, width, lines)),
                Operation::Close => {
                    if let Some((opening, before, lines_before)) = open.pop()
                        && lines_before == lines
                    {
                        groups[opening] = Some(width - before + tails[at + 1]);
                    }
                }
            }
        }
        Self { groups, tails }
    }
}

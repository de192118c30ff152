//! `item`: the pieces of one item → the operations of its layout.
//!
//! There are two passes. `structure` determines for each token the space before it and the groups that open and close
//! around it, with one stack for the brackets. A chain of operators of one precedence is a group. `operations` emits
//! that, with the comments in between.

use super::pieces::{Piece, PieceKind};
use crate::parse::scan::TokenKind;

/// A step of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation<'a> {
    /// A token, or a block comment.
    Text(&'a str),
    /// A comment to the end of the line.
    LineComment(&'a str),
    /// A blank that is never broken.
    Space,
    /// A new line in a broken group, otherwise a blank or nothing.
    Break { space: bool, closing: bool },
    /// An unconditional new line.
    Newline,
    /// The beginning of a group: none or all of its own breaks are new lines.
    Open(Group),
    /// The end of a group.
    Close,
}

/// The kind of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Entries in brackets, with the closing one on its own line.
    List,
    /// Operands of one precedence, each on a line with the operator before it.
    Chain,
    /// The same in a condition, whose following branch is also indented.
    DeepChain,
}

/// The space before a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spacing {
    Nothing,
    Space,
    Break { space: bool, closing: bool },
}

const BREAK: Spacing = Spacing::Break { space: true, closing: false };

/// The layout of a token.
#[derive(Clone, Copy, Debug)]
struct Entry {
    before: Spacing,
    /// Number of chains that begin with it.
    chains: u32,
    /// True if these chains are in a condition.
    deep: bool,
    /// True if a list begins with it, inside these chains.
    list: bool,
    /// Number of groups that end after it.
    closes: u32,
}

/// The kind of an open bracket, or the item itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BracketKind {
    Item,
    /// Brackets that are not broken: around one expression, or indices.
    Tight,
    /// Brackets with a line per entry if they are too long.
    List,
    /// The range from `if` to `{`.
    Condition,
    /// The range from `{` to `}`.
    Block,
}

struct Context {
    kind: BracketKind,
    /// Precedence and first token of the open chains, the loosest first.
    chains: Vec<(u8, usize)>,
    /// The first token of the current operand.
    operand: Option<usize>,
}

impl Context {
    const fn new(kind: BracketKind) -> Self {
        Self { kind, chains: Vec::new(), operand: None }
    }
}

/// Returns the precedence of an infix operator before which a line may be broken.
fn precedence(text: &str) -> Option<u8> {
    Some(match text {
        "||" => 1,
        "&&" => 2,
        "<" | "<=" | ">" | ">=" | "==" | "!=" => 3,
        "+" | "-" => 4,
        "*" | "/" => 5,
        _ => return None,
    })
}

struct Structure<'p, 'a> {
    tokens: &'p [&'p Piece<'a>],
    entries: Vec<Entry>,
    contexts: Vec<Context>,
    /// The space that the previous token requires before the next one.
    next: Spacing,
}

fn structure<'a>(tokens: &[&Piece<'a>]) -> Vec<Entry> {
    let entry = Entry { before: Spacing::Nothing, chains: 0, deep: false, list: false, closes: 0 };
    let mut structure = Structure {
        tokens,
        entries: vec![entry; tokens.len()],
        contexts: vec![Context::new(BracketKind::Item)],
        next: Spacing::Nothing,
    };
    let lists = lists(tokens);
    for i in 0..tokens.len() {
        structure.token(i, lists[i]);
    }
    structure.entries
}

/// Returns for each opening bracket whether its entries are separated by commas.
fn lists(tokens: &[&Piece<'_>]) -> Vec<bool> {
    let mut lists = vec![false; tokens.len()];
    let mut open = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => open.push(i),
            ")" | "]" | "}" => {
                open.pop();
            }
            "," => {
                if let Some(&opening) = open.last() {
                    lists[opening] = true;
                }
            }
            _ => {}
        }
    }
    lists
}

impl Structure<'_, '_> {
    fn text(&self, i: usize) -> &str {
        self.tokens[i].text
    }

    /// Returns whether the token before `i` ends an operand, so that an operator is infix and a bracket belongs to the
    /// operand.
    fn behind_operand(&self, i: usize) -> bool {
        let Some(before) = i.checked_sub(1).map(|before| self.tokens[before]) else { return false };
        match before.kind {
            PieceKind::Token(TokenKind::Punctuation) => matches!(before.text, ")" | "]" | "}"),
            PieceKind::Token(TokenKind::Word) => before.text != "if" && !self.is_at(i - 1),
            _ => true,
        }
    }

    /// Returns whether the token before `i` ends an operand, so that a word is no operand.
    fn ends_operand(&self, i: usize) -> bool {
        !matches!(self.text(i - 1), "=" | "+" | "-" | "*" | "/" | "^" | "(" | "[" | "," | "!")
    }

    fn is_at(&self, i: usize) -> bool {
        self.text(i) == "at" && self.begins_place(i)
    }

    fn context(&mut self) -> &mut Context {
        if self.contexts.is_empty() {
            // More brackets closed than opened: impossible in a text without errors.
            self.contexts.push(Context::new(BracketKind::Item));
        }
        let last = self.contexts.len() - 1;
        &mut self.contexts[last]
    }

    /// Tests for the keyword `at` of a condition at position `i`; `at` may be a name elsewhere.
    fn begins_place(&self, i: usize) -> bool {
        let ends =
            |before: &str| !matches!(before, "=" | "+" | "-" | "*" | "/" | "^" | "(" | "[" | ",");
        self.text(i) == "on"
            || matches!(self.text(0), "dirichlet" | "source") && i > 1 && ends(self.text(i - 1))
    }

    /// Adds the token `i` to the current operand, or begins one.
    fn operand(&mut self, i: usize) {
        self.context().operand.get_or_insert(i);
    }

    /// Ends the current expression before the token `i`.
    fn end_expression(&mut self, i: usize) {
        let context = self.context();
        context.operand = None;
        let chains = std::mem::take(&mut context.chains).len();
        self.close(i, chains);
    }

    /// Closes groups after the token before `i`.
    fn close(&mut self, i: usize, groups: usize) {
        if let Some(before) = i.checked_sub(1) {
            self.entries[before].closes += u32::try_from(groups).unwrap_or(u32::MAX);
        }
    }

    fn token(&mut self, i: usize, list: bool) {
        let mut before = std::mem::replace(&mut self.next, Spacing::Space);
        let text = self.text(i).to_owned();
        match text.as_str() {
            _ if self.tokens[i].kind != PieceKind::Token(TokenKind::Punctuation) => {
                before = self.word(i, &text, before);
            }
            "(" | "[" => before = self.opening(i, list, before),
            ")" | "]" => {
                self.end_expression(i);
                before = Spacing::Nothing;
                if self.contexts.pop().is_some_and(|context| context.kind == BracketKind::List) {
                    before = Spacing::Break { space: false, closing: true };
                    self.entries[i].closes += 1;
                }
            }
            "{" => {
                self.end_expression(i);
                self.context().kind = BracketKind::Block;
                self.next = BREAK;
            }
            "}" => {
                self.end_expression(i);
                before = Spacing::Break { space: true, closing: true };
                if self.tokens.get(i + 1).is_none_or(|next| next.text != "else") {
                    self.contexts.pop();
                    self.entries[i].closes += 1;
                }
            }
            "," => {
                self.end_expression(i);
                before = Spacing::Nothing;
                let tight = self.context().kind == BracketKind::Tight;
                self.next = if tight { Spacing::Space } else { BREAK };
            }
            ";" | ":" => {
                self.end_expression(i);
                before = Spacing::Nothing;
            }
            "=" => self.end_expression(i),
            "^" => {
                before = Spacing::Nothing;
                self.next = Spacing::Nothing;
            }
            operator if self.behind_operand(i) && precedence(operator).is_some() => {
                self.operator(i, precedence(operator).unwrap_or(0));
                before = BREAK;
            }
            _ => {
                self.operand(i);
                self.next = Spacing::Nothing;
            }
        }
        self.entries[i].before = before;
    }

    /// Processes a word, a number or a string.
    fn word(&mut self, i: usize, text: &str, mut before: Spacing) -> Spacing {
        let after_else = i > 0 && self.text(i - 1) == "else";
        match text {
            "if" if after_else => self.context().kind = BracketKind::Condition,
            "if" => {
                self.operand(i);
                self.entries[i].list = true;
                self.contexts.push(Context::new(BracketKind::Condition));
            }
            "else" => {}
            "on" | "at" if i > 0 && self.begins_place(i) => {
                self.end_expression(i);
                before = BREAK;
            }
            "discontinuous" if self.text(0) == "output" && i > 1 && self.ends_operand(i) => {
                self.end_expression(i);
                before = BREAK;
            }
            _ => self.operand(i),
        }
        before
    }

    fn opening(&mut self, i: usize, list: bool, before: Spacing) -> Spacing {
        let call = self.behind_operand(i);
        if !call {
            self.operand(i);
        }
        let list = list && !(call && self.text(i) == "[");
        self.entries[i].list = list;
        self.contexts.push(Context::new(if list { BracketKind::List } else { BracketKind::Tight }));
        self.next =
            if list { Spacing::Break { space: false, closing: false } } else { Spacing::Nothing };
        if call { Spacing::Nothing } else { before }
    }

    /// Processes an infix operator: ends tighter chains, and continues or begins one of its precedence.
    fn operator(&mut self, i: usize, level: u8) {
        let context = self.context();
        let mut start = context.operand.take().unwrap_or(i);
        let mut closed = 0;
        while let Some(&(open, from)) = context.chains.last()
            && open > level
        {
            context.chains.pop();
            start = from;
            closed += 1;
        }
        let deep = context.kind == BracketKind::Condition;
        if context.chains.last().is_none_or(|&(open, _)| open < level) {
            context.chains.push((level, start));
            self.entries[start].chains += 1;
            self.entries[start].deep = deep;
        }
        self.close(i, closed);
    }
}

/// Returns the layout of an item. The pieces begin and end with a token.
pub(super) fn operations<'a>(pieces: &[Piece<'a>]) -> Vec<Operation<'a>> {
    let places: Vec<usize> = (0..pieces.len()).filter(|&at| !pieces[at].is_comment()).collect();
    let tokens: Vec<&Piece<'a>> = places.iter().map(|&at| &pieces[at]).collect();
    let entries = structure(&tokens);
    let mut operations = Vec::with_capacity(2 * pieces.len());
    let mut done = 0;
    let mut previous = "";
    for ((token, entry), &at) in tokens.iter().zip(&entries).zip(&places) {
        gap(&mut operations, previous, &pieces[done..at], token.text, entry.before);
        let chain = Operation::Open(if entry.deep { Group::DeepChain } else { Group::Chain });
        operations.extend((0..entry.chains).map(|_| chain));
        if entry.list {
            operations.push(Operation::Open(Group::List));
        }
        operations.push(Operation::Text(token.text));
        operations.extend((0..entry.closes).map(|_| Operation::Close));
        previous = token.text;
        done = at + 1;
    }
    operations
}

/// Emits the space between the token `previous` and the next: a break or a blank, and comments. Comments before an
/// entry on its line stay with the entry; others stay with the preceding token.
fn gap<'a>(
    operations: &mut Vec<Operation<'a>>,
    previous: &str,
    comments: &[Piece<'a>],
    token: &str,
    before: Spacing,
) {
    let entry = matches!(before, Spacing::Break { closing: false, .. })
        && matches!(previous, "," | "(" | "[" | "{");
    let moving = comments.iter().rev().take_while(|comment| entry && !comment.last).count();
    let (staying, moving) = comments.split_at(comments.len() - moving);
    for (i, comment) in staying.iter().enumerate() {
        if comment.first && comment.last {
            operations.push(Operation::Newline);
        } else if !comment.ends_line() && (i > 0 || !matches!(previous, "(" | "[")) {
            operations.push(Operation::Space);
        }
        if comment.ends_line() {
            operations.extend([Operation::LineComment(comment.text), Operation::Newline]);
        } else {
            operations.push(Operation::Text(comment.text));
            operations.extend((comment.first && comment.last).then_some(Operation::Newline));
        }
    }
    let after_comment = !staying.is_empty();
    match before {
        Spacing::Nothing if !after_comment || matches!(token, ")" | "]" | "," | ";" | ":") => {}
        Spacing::Nothing | Spacing::Space => operations.push(Operation::Space),
        Spacing::Break { space, closing } => {
            let space = space || (after_comment && !closing);
            operations.push(Operation::Break { space, closing });
        }
    }
    for comment in moving {
        operations.extend([Operation::Text(comment.text), Operation::Space]);
    }
}

//! Expressions: the parser's events → nodes of the arena, without recursion.
//!
//! An event is the begin or the end of a rule. Each `expr` opens a frame with a stack of operands and one of operators;
//! an operator first reduces those on the stack that bind tighter:
//!
//! ```text
//! ^ (right)   unary -   * /   + -   < <= > >= == != (one)   !   &&   ||
//! ```

use super::tables::{self, TableSettings};
use crate::arena::IndexVec;
use crate::ast::{
    Argument, BinaryOp, BlockRegion, Expr, ExprId, ExprKind, Ident, Span, Text, UnaryOp,
};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use fem_dsl_grammar::Rule;
use pest::Token;
use pest::iterators::{Pair, Pairs};

/// The begin or end of a rule.
#[derive(Clone, Copy)]
struct Event {
    rule: Rule,
    begins: bool,
    at: u32,
}

/// Expressions of a file under construction.
#[derive(Default)]
pub(super) struct Expressions {
    events: Vec<Event>,
    pub(super) arena: IndexVec<ExprId, Expr>,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) tables: TableSettings,
}

/// An operand with its location, including brackets around it.
type Operand = (ExprId, Span);

#[derive(Clone, Copy)]
enum Operator {
    Prefix(UnaryOp, Span),
    Infix(BinaryOp, Span),
}

impl Operator {
    fn precedence(self) -> u8 {
        match self {
            Self::Infix(op, _) => precedence(op),
            Self::Prefix(UnaryOp::Neg, _) => 7,
            Self::Prefix(UnaryOp::Not, _) => 3,
        }
    }
}

const fn precedence(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Or => 1,
        BinaryOp::And => 2,
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge | BinaryOp::Eq | BinaryOp::Ne => {
            4
        }
        BinaryOp::Add | BinaryOp::Sub => 5,
        BinaryOp::Mul | BinaryOp::Div => 6,
        BinaryOp::Pow => 8,
    }
}

const COMPARISON: u8 = 4;

fn infix(symbol: &str) -> BinaryOp {
    match symbol {
        "+" => BinaryOp::Add,
        "-" => BinaryOp::Sub,
        "*" => BinaryOp::Mul,
        "/" => BinaryOp::Div,
        "^" => BinaryOp::Pow,
        "<" => BinaryOp::Lt,
        "<=" => BinaryOp::Le,
        ">" => BinaryOp::Gt,
        ">=" => BinaryOp::Ge,
        "==" => BinaryOp::Eq,
        "!=" => BinaryOp::Ne,
        "&&" => BinaryOp::And,
        _ => BinaryOp::Or,
    }
}

/// An open `expr`.
#[derive(Default)]
struct Frame {
    operands: Vec<Operand>,
    operators: Vec<Operator>,
    /// A name that turns out to be a function when arguments follow.
    name: Option<Ident>,
}

/// An open rule with expressions.
#[derive(Default)]
struct List {
    items: Vec<Operand>,
    /// The positions of the `if`s of an `if_expr`.
    ifs: Vec<u32>,
    /// The names of arguments, each with the index of its item.
    labels: Vec<(usize, Ident)>,
}

impl Expressions {
    /// Stores the events of a file, once for all of its expressions.
    pub(super) fn listen(&mut self, pairs: &Pairs<'_, Rule>) {
        let event = |token| match token {
            Token::Start { rule, pos } => (rule, true, pos.pos()),
            Token::End { rule, pos } => (rule, false, pos.pos()),
        };
        let compact = |(rule, begins, at)| Event { rule, begins, at: Span::new(at, at).start };
        self.events = pairs.clone().tokens().map(|token| compact(event(token))).collect();
    }

    /// Returns the index of the event with which the expression at `start` begins; it is unique.
    fn first_event(&self, start: u32) -> usize {
        let near = self.events.partition_point(|event| event.at < start);
        let begins = |event: &Event| event.begins && event.rule == Rule::expr;
        near + self.events[near..].iter().take_while(|event| !begins(event)).count()
    }

    pub(super) fn push(&mut self, kind: ExprKind, span: Span) -> ExprId {
        self.arena.push(Expr { kind, span })
    }

    /// Builds the expression in a pair of the rule `expr`.
    pub(super) fn build(&mut self, pair: Pair<'_, Rule>) -> ExprId {
        let whole = Span::new(pair.as_span().start(), pair.as_span().end());
        let text = pair.get_input();
        let mut frames: Vec<Frame> = Vec::new();
        let mut lists: Vec<List> = vec![List::default()];
        let mut starts: Vec<u32> = Vec::new();
        for index in self.first_event(whole.start)..self.events.len() {
            let Event { rule, begins, at } = self.events[index];
            if begins {
                starts.push(at);
                match rule {
                    Rule::expr => frames.push(Frame::default()),
                    Rule::call_args => lists.push(List::default()),
                    Rule::index | Rule::array | Rule::paren | Rule::if_expr => {
                        self.flush(frames.last_mut());
                        lists.push(List::default());
                    }
                    _ => {}
                }
                continue;
            }
            let span = Span { start: starts.pop().unwrap_or_default(), end: at };
            if rule == Rule::expr {
                if let (Some(frame), Some(list)) = (frames.pop(), lists.last_mut()) {
                    list.items.push(self.finish(frame, span));
                }
                if frames.is_empty() {
                    break;
                }
            } else if let Some(frame) = frames.last_mut() {
                self.end(rule, span, &text[span.range()], frame, &mut lists);
            }
        }
        let result = lists.pop().and_then(|list| list.items.last().copied());
        result.map_or_else(|| self.push(ExprKind::Error, whole), |(id, _)| id)
    }

    /// Ends a rule inside an `expr`.
    fn end(
        &mut self,
        rule: Rule,
        span: Span,
        text: &str,
        frame: &mut Frame,
        lists: &mut Vec<List>,
    ) {
        match rule {
            Rule::number => {
                let value = text.parse().unwrap_or(f64::INFINITY);
                // An overflow was reported by the scanner.
                let kind =
                    if f64::is_finite(value) { ExprKind::Number(value) } else { ExprKind::Error };
                let id = self.push(kind, span);
                frame.operands.push((id, span));
            }
            Rule::word => frame.name = Some(Ident { name: text.to_owned(), span }),
            Rule::prefix => {
                let op = if text == "-" { UnaryOp::Neg } else { UnaryOp::Not };
                frame.operators.push(Operator::Prefix(op, span));
            }
            Rule::infix => {
                self.flush(Some(frame));
                self.operator(frame, infix(text), span);
            }
            Rule::kw_if => {
                if let Some(list) = lists.last_mut() {
                    list.ifs.push(span.start);
                }
            }
            Rule::string => {
                let id = self.push(ExprKind::Text(text[1..text.len() - 1].to_owned()), span);
                if let Some(list) = lists.last_mut() {
                    list.items.push((id, span));
                }
            }
            Rule::between => {
                let id = self.push(between(text, span), span);
                if let Some(list) = lists.last_mut() {
                    list.items.push((id, span));
                }
            }
            Rule::label => {
                if let Some(list) = lists.last_mut() {
                    let name = Ident { name: text.to_owned(), span };
                    list.labels.push((list.items.len(), name));
                }
            }
            Rule::call_args | Rule::index | Rule::array | Rule::paren | Rule::if_expr => {
                let list = lists.pop().unwrap_or_default();
                self.group(rule, span, &list, frame);
            }
            _ => {}
        }
    }

    /// Ends a rule with expressions.
    fn group(&mut self, rule: Rule, span: Span, list: &List, frame: &mut Frame) {
        let items = &list.items;
        let ids = || items.iter().map(|item| item.0).collect::<Vec<_>>();
        let operand = match rule {
            Rule::call_args => {
                let Some(function) = frame.name.take() else { return };
                let span = function.span.to(span);
                let (arguments, named) = self.arguments(list);
                let call = (&function, &arguments[..], &named[..]);
                let id = match tables::table(&mut self.arena, &self.tables, call, span) {
                    Some(Ok(table)) => table,
                    Some(Err(mistake)) => {
                        self.diagnostics.push(*mistake);
                        self.push(ExprKind::Error, span)
                    }
                    None => self.push(ExprKind::Call { function, arguments, named }, span),
                };
                (id, span)
            }
            Rule::index => {
                let Some((base, at)) = frame.operands.pop() else { return };
                let span = at.to(span);
                (self.push(ExprKind::Index { base, indices: ids() }, span), span)
            }
            Rule::array => (self.push(ExprKind::Array(ids()), span), span),
            Rule::if_expr => (self.branches(list, span), span),
            _ => {
                let Some(&(id, _)) = items.last() else { return };
                (id, span)
            }
        };
        frame.operands.push(operand);
    }

    /// Returns the arguments of a call: first the unnamed, then the named ones.
    fn arguments(&mut self, list: &List) -> (Vec<ExprId>, Vec<Argument>) {
        let (mut plain, mut named) = (Vec::new(), Vec::new());
        for (at, &(value, span)) in list.items.iter().enumerate() {
            match list.labels.iter().find(|(of, _)| *of == at) {
                Some((_, name)) => named.push(Argument { name: name.clone(), value }),
                None => plain.push((value, span)),
            }
        }
        let first = named.first().map(|argument: &Argument| argument.name.span);
        let late = plain.iter().find(|(_, span)| first.is_some_and(|first| first.end < span.start));
        if let (Some(&(_, span)), Some(first)) = (late, first) {
            self.diagnostics.push(
                Diagnostic::new(Code::UnexpectedToken, "arguments with a name stand last")
                    .label(span, "this has no name")
                    .secondary(first, "this has one")
                    .help("exchange them"),
            );
        }
        (plain.into_iter().map(|(value, _)| value).collect(), named)
    }

    /// Builds `if c0 { a0 } else if c1 { a1 } … else { b }` from its expressions in order.
    fn branches(&mut self, list: &List, span: Span) -> ExprId {
        let Some((&(mut otherwise, _), pairs)) = list.items.split_last() else {
            return self.push(ExprKind::Error, span);
        };
        for (pair, &start) in pairs.chunks_exact(2).zip(&list.ifs).rev() {
            let ((condition, _), (then, _)) = (pair[0], pair[1]);
            let kind = ExprKind::If { condition, then, otherwise };
            otherwise = self.push(kind, Span { start, end: span.end });
        }
        otherwise
    }

    /// Turns a pending name into an operand.
    fn flush(&mut self, frame: Option<&mut Frame>) {
        if let Some(frame) = frame
            && let Some(Ident { name, span }) = frame.name.take()
        {
            let id = self.push(ExprKind::Name(name), span);
            frame.operands.push((id, span));
        }
    }

    /// Processes an infix operator: reduces tighter ones, then waits for its right operand.
    fn operator(&mut self, frame: &mut Frame, op: BinaryOp, span: Span) {
        let own = precedence(op);
        while let Some(&top) = frame.operators.last() {
            let reduces =
                top.precedence() > own || (top.precedence() == own && op != BinaryOp::Pow);
            if !reduces {
                break;
            }
            if let Operator::Infix(first, first_span) = top
                && precedence(first) == COMPARISON
                && own == COMPARISON
            {
                self.chained(first, first_span, op, span);
                self.reduce(frame);
                self.spoil(frame);
                continue;
            }
            self.reduce(frame);
        }
        frame.operators.push(Operator::Infix(op, span));
    }

    /// Replaces the topmost operand, which has been reported, by an error.
    fn spoil(&mut self, frame: &mut Frame) {
        if let Some((_, span)) = frame.operands.pop() {
            let id = self.push(ExprKind::Error, span);
            frame.operands.push((id, span));
        }
    }

    fn chained(&mut self, first: BinaryOp, first_span: Span, op: BinaryOp, span: Span) {
        self.diagnostics.push(
            Diagnostic::new(Code::ChainedComparison, "comparisons cannot be chained")
                .label(span, "second comparison")
                .secondary(first_span, "first comparison")
                .help(format!("write `a {} b && b {} c`", first.symbol(), op.symbol())),
        );
    }

    /// Applies the topmost operator.
    fn reduce(&mut self, frame: &mut Frame) {
        match frame.operators.pop() {
            Some(Operator::Prefix(op, op_span)) => {
                let Some((operand, at)) = frame.operands.pop() else { return };
                let span = op_span.to(at);
                let id = self.push(ExprKind::Unary { op, op_span, operand }, span);
                frame.operands.push((id, span));
            }
            Some(Operator::Infix(op, op_span)) => {
                let (Some((right, to)), Some((left, from))) =
                    (frame.operands.pop(), frame.operands.pop())
                else {
                    return;
                };
                let span = from.to(to);
                let id = self.push(ExprKind::Binary { op, op_span, left, right }, span);
                frame.operands.push((id, span));
            }
            None => {}
        }
    }

    /// Ends an `expr`.
    fn finish(&mut self, mut frame: Frame, span: Span) -> Operand {
        self.flush(Some(&mut frame));
        while !frame.operators.is_empty() {
            self.reduce(&mut frame);
        }
        frame.operands.pop().unwrap_or_else(|| (self.push(ExprKind::Error, span), span))
    }
}

/// Reads `interior`, `interior "a"` or `interior from "a" to "b"`.
fn between(text: &str, span: Span) -> ExprKind {
    let (mut tags, mut at) = (Vec::new(), 0);
    for (number, part) in text.split('"').enumerate() {
        if number % 2 == 1 {
            let start = span.start + at as u32 - 1;
            let span = Span { start, end: start + part.len() as u32 + 2 };
            tags.push(Text { text: part.to_owned(), span });
        }
        at += part.len() + 1;
    }
    let is_ordered = tags.len() == 2;
    ExprKind::Interior(
        if is_ordered { BlockRegion::OrderedInterior } else { BlockRegion::Interior },
        tags,
    )
}

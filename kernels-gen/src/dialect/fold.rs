//! `fold`: which values stand in the expression that uses them, and which have a name and a line of their own.
//!
//! A value is written where it is used if
//!
//! - one operation or statement uses it, once, in the block in which it is evaluated;
//! - the form gives it no name;
//! - the expression stays shorter than [`WIDTH`];
//! - nothing between its place and its use may write what it reads, and no barrier or fence is there.
//!
//! The operations stay the same, each rounded as before; only places that nobody can tell apart change.

use crate::kir::{Binary, Kernel, LocalId, Op, SharedId, Statement, Unary, ValueId};
use fem_dsl::arena::IndexVec;
use std::ops::Deref;

/// Characters that an expression may have.
const WIDTH: usize = 100;

/// How an expression binds, from loosely to tightly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binding {
    /// A choice, which stands alone or in parentheses.
    Choice,
    /// `||`.
    Or,
    /// `&&`.
    And,
    /// A comparison.
    Compare,
    /// A sum or a difference.
    Sum,
    /// A product or a quotient.
    Product,
    /// A sign before an operand.
    Prefix,
    /// A name, a number, a call, an element.
    Primary,
}

/// The text of an expression, and how it binds.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    binding: Binding,
}

impl Expression {
    pub(super) fn new(binding: Binding, text: impl Into<String>) -> Self {
        Self { text: text.into(), binding }
    }

    /// A name, a number, a call or an element.
    pub(super) fn primary(text: impl Into<String>) -> Self {
        Self::new(Binding::Primary, text)
    }

    /// As an operand of what binds so, in parentheses where it binds more loosely.
    pub(super) fn within(&self, binding: Binding) -> String {
        if self.binding < binding { format!("({})", self.text) } else { self.text.clone() }
    }

    /// The same behind an operator that must not take the operand apart: a − (b − c), a · (b · c).
    pub(super) fn behind(&self, binding: Binding) -> String {
        if self.binding <= binding { format!("({})", self.text) } else { self.text.clone() }
    }
}

/// What a language writes in its own way.
#[derive(Clone, Copy)]
pub(super) struct Style {
    /// The function that reads a number from a table of constants.
    pub(super) listed: Option<&'static str>,
    /// Whether what is scattered may be an expression.
    pub(super) scatters: bool,
    /// How many statements behind its place a value may stand. NVIDIA's compiler heeds the order: without a bound vectors'
    /// Laplacians of degrees 6 and 8 became 7 and 3 % slower on an H200.
    pub(super) within: usize,
}

/// A kernel whose values are told apart by whether they have a line of their own.
pub(super) struct Folded {
    kernel: Kernel,
    pub(super) style: Style,
    folded: IndexVec<ValueId, bool>,
}

impl Deref for Folded {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        &self.kernel
    }
}

impl Folded {
    /// Finds the values that are folded; `length` is that of the expression of a value, if a line defines it.
    pub(super) fn new(
        kernel: Kernel,
        style: Style,
        length: impl Fn(&Self, ValueId) -> Option<usize>,
    ) -> Self {
        let defined = kernel.values.iter().map(|_| None).collect();
        let used = kernel.values.iter().map(|_| None).collect();
        let scatters = style.scatters;
        let mut uses = Uses { kernel: &kernel, scatters, blocks: 0, defined, used };
        uses.block(&kernel.body);
        let (defined, used) = (uses.defined, uses.used);
        let once = |id: ValueId| {
            let here = matches!(used[id], Some(Used::Once(block)) if Some(block) == defined[id]);
            here && kernel.values[id].name.is_none()
        };
        let folded = kernel.values.iter().map(|_| false).collect();
        let once: IndexVec<ValueId, bool> = kernel.values.ids().map(once).collect();
        let mut own = Self { kernel, style, folded };
        let body = std::mem::take(&mut own.kernel.body);
        own.fold(&body, &once, &length);
        own.kernel.body = body;
        own
    }

    /// Whether a value stands where it is used.
    pub(super) fn folds(&self, id: ValueId) -> bool {
        self.folded[id]
    }

    fn fold(
        &mut self,
        body: &[Statement],
        once: &IndexVec<ValueId, bool>,
        length: &impl Fn(&Self, ValueId) -> Option<usize>,
    ) {
        // What is folded and has not been used so far, and when it was evaluated.
        let mut waiting: Vec<(ValueId, Reads, usize)> = Vec::new();
        for (now, statement) in body.iter().enumerate() {
            let (used, own) = match statement {
                Statement::Comment(_) => continue,
                Statement::Let(id) => (self.kernel.values[*id].op.operands().collect(), Some(*id)),
                other => (operands(other), None),
            };
            let own_length = own.and_then(|id| length(self, id));
            if own.is_some() && own_length.is_none() {
                // A number stands where it is used.
                continue;
            }
            let mut reads = self.take(&mut waiting, &used, now);
            if let Some(id) = own.filter(|&id| once[id] && own_length <= Some(WIDTH)) {
                reads.of(&self.kernel.values[id].op);
                self.folded[id] = true;
                waiting.push((id, reads, now));
                continue;
            }
            if own.is_none() {
                let stays = |(_, reads, _): &(_, Reads, _)| reads.pass(statement);
                waiting
                    .extract_if(.., |own| !stays(own))
                    .for_each(|(id, ..)| self.folded[id] = false);
            }
            if let Statement::For { body, .. } | Statement::When { body, .. } = statement {
                self.fold(body, once, length);
            }
        }
    }

    /// Takes what is used from what waits, and gives what it reads; what waited for too long has a line of its own.
    fn take(
        &mut self,
        waiting: &mut Vec<(ValueId, Reads, usize)>,
        used: &[ValueId],
        now: usize,
    ) -> Reads {
        let mut joined = Reads::default();
        for (id, reads, then) in waiting.extract_if(.., |(id, ..)| used.contains(id)) {
            if now - then <= self.style.within {
                joined.join(&reads);
            } else {
                self.folded[id] = false;
            }
        }
        joined
    }
}

/// What an expression reads of memory that somebody writes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Reads {
    locals: Vec<LocalId>,
    shared: Vec<SharedId>,
    global: bool,
}

impl Reads {
    fn join(&mut self, other: &Self) {
        self.locals.extend(&other.locals);
        self.shared.extend(&other.shared);
        self.global |= other.global;
    }

    fn of(&mut self, op: &Op) {
        match op {
            Op::LoadLocal(local, _) => self.locals.push(*local),
            Op::LoadShared(shared, _) => self.shared.push(*shared),
            Op::LoadUniform(..)
            | Op::LoadLanes(..)
            | Op::Flag { .. }
            | Op::Gather { .. }
            | Op::LoadAt { .. } => {
                self.global = true;
            }
            _ => {}
        }
    }

    /// Whether what was read may be read behind a statement just as well.
    fn pass(&self, statement: &Statement) -> bool {
        match statement {
            Statement::StoreLocal(local, ..) => !self.locals.contains(local),
            Statement::StoreShared(shared, ..) => !self.shared.contains(shared),
            Statement::StoreLanes(..) | Statement::Scatter { .. } | Statement::StoreAt { .. } => {
                !self.global
            }
            Statement::Prefetch(..)
            | Statement::PrefetchIndexed { .. }
            | Statement::Set(_)
            | Statement::StoreInteger(..) => true,
            _ => false,
        }
    }
}

/// How often a value is used.
#[derive(Clone, Copy)]
enum Used {
    /// Once, in this block.
    Once(usize),
    /// More than once.
    Often,
}

struct Uses<'k> {
    kernel: &'k Kernel,
    scatters: bool,
    blocks: usize,
    /// The block in which each value is evaluated.
    defined: IndexVec<ValueId, Option<usize>>,
    used: IndexVec<ValueId, Option<Used>>,
}

impl Uses<'_> {
    fn block(&mut self, body: &[Statement]) {
        let block = self.blocks;
        self.blocks += 1;
        for statement in body {
            match statement {
                Statement::Let(id) => {
                    self.defined[*id] = Some(block);
                    let op = &self.kernel.values[*id].op;
                    let times = if repeats(op) { 2 } else { 1 };
                    (0..times).flat_map(|_| op.operands()).for_each(|id| self.used(id, block));
                }
                // Loops nest a fixed few levels deep, whatever the user wrote.
                Statement::For { body, .. } | Statement::When { body, .. } => self.block(body),
                other => {
                    let alone = matches!(other, Statement::Scatter { .. }) && !self.scatters;
                    let times = if alone { 2 } else { 1 };
                    (0..times).flat_map(|_| operands(other)).for_each(|id| self.used(id, block));
                }
            }
        }
    }

    fn used(&mut self, id: ValueId, block: usize) {
        let before = self.used[id];
        self.used[id] = Some(if before.is_some() { Used::Often } else { Used::Once(block) });
    }
}

/// Whether an operand stands twice in the text of an operation.
fn repeats(op: &Op) -> bool {
    matches!(op, Op::Unary(Unary::Sign, _) | Op::Binary(Binary::Min | Binary::Max, ..))
}

/// The values that a statement writes.
fn operands(statement: &Statement) -> Vec<ValueId> {
    match statement {
        Statement::StoreLocal(_, _, value)
        | Statement::StoreShared(_, _, value)
        | Statement::StoreLanes(_, _, value)
        | Statement::StoreAt { value, .. }
        | Statement::Scatter { value, .. } => vec![*value],
        Statement::ScatterEdge { values, .. } => {
            values.iter().flat_map(|(_, ends)| ends).copied().collect()
        }
        _ => Vec::new(),
    }
}

//! `fold`: the choice between values folded into the expression that uses them and values with a name and a line.
//!
//! A value is folded if
//!
//! - one operation or statement uses it, once, in the block in which it is evaluated;
//! - the form gives it no name;
//! - the expression stays shorter than [`WIDTH`];
//! - no statement between its position and its use may write memory that it reads, and there is no barrier or fence.
//!
//! The operations and their rounding stay the same; the change of evaluation order is unobservable.

use crate::kir::{Binary, Kernel, Label, LocalId, Op, SharedId, Statement, Unary, ValueId};
use fem_dsl::arena::IndexVec;
use std::ops::Deref;

/// Maximal length of an expression in characters.
const WIDTH: usize = 100;

/// Binding strength of an expression, from loose to tight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    /// A conditional expression.
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

/// The text of an expression and its binding strength.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) text: String,
    binding: Precedence,
}

impl Expression {
    pub(super) fn new(binding: Precedence, text: impl Into<String>) -> Self {
        Self { text: text.into(), binding }
    }

    /// Returns a name, a number, a call or an element.
    pub(super) fn primary(text: impl Into<String>) -> Self {
        Self::new(Precedence::Primary, text)
    }

    /// Returns the expression as an operand of an operator with this binding; in parentheses if its own is looser.
    pub(super) fn within(&self, binding: Precedence) -> String {
        if self.binding < binding { format!("({})", self.text) } else { self.text.clone() }
    }

    /// Returns the expression as the right operand of a non-associative operator: a − (b − c), a · (b · c).
    pub(super) fn behind(&self, binding: Precedence) -> String {
        if self.binding <= binding { format!("({})", self.text) } else { self.text.clone() }
    }
}

/// Printing style of a language.
#[derive(Clone, Copy)]
pub(super) struct Style {
    /// The function that reads an entry of a constant table.
    pub(super) listed: Option<&'static str>,
    /// True if a scattered value may be an expression.
    pub(super) scatters: bool,
    /// Maximal number of statements between a value's position and its use. NVIDIA's compiler depends on the order:
    /// without a bound, vector Laplacians of degrees 6 and 8 became 7 and 3 % slower on an H200.
    pub(super) within: usize,
}

/// A kernel with the classification of its values: folded or with their own line.
pub(super) struct FoldedKernel {
    kernel: Kernel,
    pub(super) style: Style,
    folded: IndexVec<ValueId, bool>,
    /// The labels of values; empty until the folded values are known.
    labels: IndexVec<ValueId, Option<Label>>,
}

impl Deref for FoldedKernel {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        &self.kernel
    }
}

impl FoldedKernel {
    /// Determines the folded values; `length` is that of a value's expression, if a line defines it.
    pub(super) fn new(
        kernel: Kernel,
        style: Style,
        length: impl Fn(&Self, ValueId) -> Option<usize>,
    ) -> Self {
        let defined = kernel.values.iter().map(|_| None).collect();
        let used = kernel.values.iter().map(|_| None).collect();
        let scatters = style.scatters;
        let mut uses = UseCounter { kernel: &kernel, scatters, blocks: 0, defined, used };
        uses.block(&kernel.body);
        let (defined, used) = (uses.defined, uses.used);
        let once = |id: ValueId| {
            let here =
                matches!(used[id], Some(UseCount::Once(block)) if Some(block) == defined[id]);
            here && kernel.values[id].name.is_none()
        };
        let folded = kernel.values.iter().map(|_| false).collect();
        let once: IndexVec<ValueId, bool> = kernel.values.ids().map(once).collect();
        let labels = IndexVec::new();
        let mut own = Self { kernel, style, folded, labels };
        let body = std::mem::take(&mut own.kernel.body);
        own.fold(&body, &once, &length);
        own.kernel.body = body;
        own.labels = own.kernel.labels();
        own
    }

    /// Returns the name of a value: its own, or its label as in `v3_7`. While the folded values are determined, all
    /// labels have the same length: which values are folded does not depend on their numbers.
    pub(super) fn value_name(&self, id: ValueId) -> String {
        let typical = Label { section: 10, number: 0 };
        let Label { section, number } = self.labels.get(id).copied().flatten().unwrap_or(typical);
        self.kernel.values[id].name.clone().unwrap_or_else(|| format!("v{section}_{number}"))
    }

    /// Returns whether a value is folded into its use.
    pub(super) fn folds(&self, id: ValueId) -> bool {
        self.folded[id]
    }

    fn fold(
        &mut self,
        body: &[Statement],
        once: &IndexVec<ValueId, bool>,
        length: &impl Fn(&Self, ValueId) -> Option<usize>,
    ) {
        // Foldable values that have not been used so far, and the position of their evaluation.
        let mut waiting: Vec<(ValueId, ReadSet, usize)> = Vec::new();
        let printed = body.iter().filter(|statement| !matches!(statement, Statement::Comment(_)));
        for (now, statement) in printed.enumerate() {
            let (used, own): (Vec<ValueId>, _) = match statement {
                Statement::Let(id) => (self.kernel.values[*id].op.operands().collect(), Some(*id)),
                other => (other.stored().collect(), None),
            };
            let own_length = own.and_then(|id| length(self, id));
            if own.is_some() && own_length.is_none() {
                // A number is printed at its use.
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
                let stays = |(_, reads, _): &(_, ReadSet, _)| reads.pass(statement);
                waiting
                    .extract_if(.., |own| !stays(own))
                    .for_each(|(id, ..)| self.folded[id] = false);
            }
            if let Statement::For { body, .. } | Statement::When { body, .. } = statement {
                self.fold(body, once, length);
            }
        }
    }

    /// Moves the used values from `waiting` into the expression and returns the memory it reads. A value that has
    /// waited for too long gets its own line.
    fn take(
        &mut self,
        waiting: &mut Vec<(ValueId, ReadSet, usize)>,
        used: &[ValueId],
        now: usize,
    ) -> ReadSet {
        let mut joined = ReadSet::default();
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

/// Writable memory that an expression reads.
#[derive(Clone, Debug, Default, PartialEq)]
struct ReadSet {
    locals: Vec<LocalId>,
    shared: Vec<SharedId>,
    global: bool,
}

impl ReadSet {
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

    /// Returns whether the read commutes with a statement.
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

/// The number of uses of a value.
#[derive(Clone, Copy)]
enum UseCount {
    /// Once, in this block.
    Once(usize),
    /// More than once.
    Often,
}

struct UseCounter<'k> {
    kernel: &'k Kernel,
    scatters: bool,
    blocks: usize,
    /// The block in which each value is evaluated.
    defined: IndexVec<ValueId, Option<usize>>,
    used: IndexVec<ValueId, Option<UseCount>>,
}

impl UseCounter<'_> {
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
                // The depth of loop nests is bounded by the strategies, for any input.
                Statement::For { body, .. } | Statement::When { body, .. } => self.block(body),
                other => {
                    let alone = matches!(other, Statement::Scatter { .. }) && !self.scatters;
                    let times = if alone { 2 } else { 1 };
                    (0..times).flat_map(|_| other.stored()).for_each(|id| self.used(id, block));
                }
            }
        }
    }

    fn used(&mut self, id: ValueId, block: usize) {
        let before = self.used[id];
        self.used[id] =
            Some(if before.is_some() { UseCount::Often } else { UseCount::Once(block) });
    }
}

/// Returns whether an operand occurs twice in the text of an operation.
fn repeats(op: &Op) -> bool {
    matches!(op, Op::Unary(Unary::Sign, _) | Op::Binary(Binary::Min | Binary::Max, ..))
}

//! The numbers of values: ids in the order of the text, and labels by section.
//!
//! A *section* is a maximal sequence of [`Statement::Let`]s of a block. A [`Label`] counts sections through the kernel and
//! values through their section. An operation that is added to a section moves the labels behind it in that section, and
//! no others.

use super::{Kernel, Op, Statement, Value, ValueId};
use fem_dsl::arena::{Id, IndexVec};
use std::collections::BTreeMap;
use std::fmt;

/// The label of a value; prints as `3.7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// The number of its section in the kernel.
    pub section: usize,
    /// Its number in the section.
    pub number: usize,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.section, self.number)
    }
}

/// Assigns labels in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Labeller {
    sections: usize,
    /// The values so far of the section.
    values: usize,
}

impl Labeller {
    /// Returns the label of the next `Let`.
    pub(super) fn next(&mut self) -> Label {
        self.values += 1;
        Label { section: self.sections, number: self.values - 1 }
    }

    /// Ends the section at another statement, or where a block begins or ends.
    pub(super) fn end_section(&mut self) {
        self.sections += usize::from(self.values > 0);
        self.values = 0;
    }

    fn block(&mut self, body: &[Statement], labels: &mut IndexVec<ValueId, Option<Label>>) {
        for statement in body {
            match statement {
                Statement::Let(id) => {
                    let label = self.next();
                    if id.index() < labels.len() {
                        labels[*id] = Some(label);
                    }
                }
                // The depth of loop nests is bounded by the strategies, for any input.
                other => {
                    self.end_section();
                    self.block(other.body(), labels);
                    self.end_section();
                }
            }
        }
    }
}

impl Kernel {
    /// Returns the labels of all values that have a `Let`.
    pub fn labels(&self) -> IndexVec<ValueId, Option<Label>> {
        let mut labels = self.values.iter().map(|_| None).collect();
        Labeller::default().block(&self.body, &mut labels);
        labels
    }

    /// Returns how the text calls a value: its label, or the id of one without a `Let`.
    pub(super) fn label(&self, id: ValueId) -> String {
        let label = self.labels().get(id).copied().flatten();
        label.map_or_else(|| id.to_string(), |label| format!("%{label}"))
    }

    /// Numbers the values in the order of the text: constants at their first use, others at their `Let`. Drops unused
    /// constants and values without a `Let`.
    pub(crate) fn renumber(&mut self) {
        let old = std::mem::take(&mut self.values);
        let new = old.iter().map(|_| None).collect();
        let (values, constants) = (IndexVec::new(), BTreeMap::new());
        let mut numbering = Numbering { old, new, values, constants };
        numbering.block(&mut self.body);
        self.values = numbering.values;
    }
}

struct Numbering {
    old: IndexVec<ValueId, Value>,
    /// Old to new.
    new: IndexVec<ValueId, Option<ValueId>>,
    values: IndexVec<ValueId, Value>,
    /// The constant of each number, by the number's bits.
    constants: BTreeMap<u64, ValueId>,
}

impl Numbering {
    fn block(&mut self, body: &mut [Statement]) {
        for statement in body {
            if let Statement::Let(id) = statement {
                let mut value = self.old[*id].clone();
                value.op.operands_mut().for_each(|operand| *operand = self.operand(*operand));
                let new = self.values.push(value);
                self.new[*id] = Some(new);
                *id = new;
            } else {
                statement.stored_mut().for_each(|value| *value = self.operand(*value));
                if let Some(body) = statement.body_mut() {
                    self.block(body);
                }
            }
        }
    }

    /// The new id of a value; one without a `Let` is a constant, and gets its id here.
    fn operand(&mut self, old: ValueId) -> ValueId {
        if let Some(new) = self.new[old] {
            return new;
        }
        let (value, values) = (&self.old[old], &mut self.values);
        let mut push = || values.push(value.clone());
        let new = match value.op {
            Op::Constant(number) => *self.constants.entry(number.to_bits()).or_insert_with(push),
            _ => push(),
        };
        self.new[old] = Some(new);
        new
    }
}

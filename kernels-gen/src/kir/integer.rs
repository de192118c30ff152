//! Integers that a kernel computes, and what depends on them: masks, slots, whatever a mesh knows of a cell.
//!
//! [`Statement::Set`](super::Statement::Set) gives a variable the value of an [`Integer`], one for each lane or thread;
//! the variable can then stand in an [`Index`] like any other, in a [`Condition`], and say where
//! [`Op::LoadAt`](super::Op::LoadAt) reads. The arrays that a launch brings along decide what is loaded, so nothing is
//! known of it here but that it is not negative: arrays of the kernel's own are not accessed by it, and those of a group
//! and of the launch are as long as whoever launches has compared with what the arrays hold.

use super::{ArgumentId, Index, IntegersId, Kernel, Rule, Thread, VarId};

/// How an integer comes about.
#[derive(Clone, Debug, PartialEq)]
pub enum Integer {
    /// An element of a global array of `u32`, whatever the lane.
    Element(ArgumentId, Index),
    /// An entry of a private array of integers.
    Entry(IntegersId, Index),
    /// What is left of a variable when it is divided by a number.
    Rest(VarId, usize),
}

/// What has to hold in a lane or thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A variable is below a bound.
    Below(VarId, usize),
    /// A variable is not `u32::MAX`, which stands for nothing.
    Something(VarId),
    /// A variable is this number.
    Equals(VarId, u32),
    /// A variable, as a mask, has this bit.
    Bit(VarId, u32),
    /// A variable, as a mask, has not got this bit.
    NoBit(VarId, u32),
    /// Two variables, as masks, have a bit in common.
    Meet(VarId, VarId),
    /// The lane writes, or the thread has a batch of its own.
    Active,
    /// This cell of the batch is below the number of those that write, [`Kernel::active`].
    ActiveCell(Index),
}

impl Condition {
    /// The variables that it is about.
    pub fn vars(&self) -> impl Iterator<Item = VarId> {
        let (one, other) = match *self {
            Self::Below(var, _)
            | Self::Something(var)
            | Self::Equals(var, _)
            | Self::Bit(var, _)
            | Self::NoBit(var, _) => (Some(var), None),
            Self::Meet(one, other) => (Some(one), Some(other)),
            Self::Active | Self::ActiveCell(_) => (None, None),
        };
        [one, other].into_iter().flatten()
    }

    /// Whether the numbers of its variables satisfy it; what is about no variable does.
    pub fn holds(&self, of: impl Fn(VarId) -> i64) -> bool {
        let number = self.vars().next().map_or(0, &of);
        match *self {
            Self::Below(_, bound) => number < bound as i64,
            Self::Something(_) => number != i64::from(u32::MAX),
            Self::Equals(_, wanted) => number == i64::from(wanted),
            Self::Bit(_, bit) => number >> bit & 1 == 1,
            Self::NoBit(_, bit) => number >> bit & 1 == 0,
            Self::Meet(_, other) => number & of(other) != 0,
            Self::Active | Self::ActiveCell(_) => true,
        }
    }
}

impl Kernel {
    /// The integer that a variable is, where a statement computes it.
    pub fn integer(&self, var: VarId) -> Option<&Integer> {
        match &self.vars.get(var)?.rule {
            Rule::Integer(integer) => Some(integer),
            Rule::Counted | Rule::Thread(_) => None,
        }
    }

    /// Whether what a variable is was loaded, so that nothing bounds it. Recursive in how often a rest was taken.
    pub fn is_loaded(&self, var: VarId) -> bool {
        match self.integer(var) {
            Some(Integer::Element(..) | Integer::Entry(..)) => true,
            Some(&Integer::Rest(of, _)) => of < var && self.is_loaded(of),
            None => false,
        }
    }

    /// Whether a variable differs from lane to lane of a kernel that has several. Recursive in how often indices were
    /// loaded by what was loaded.
    pub fn differs(&self, var: VarId) -> bool {
        if self.lanes == 1 {
            return false;
        }
        match self.integer(var) {
            Some(Integer::Element(_, at)) => {
                at.terms.iter().any(|&(by, _)| by < var && self.differs(by))
            }
            Some(Integer::Entry(..)) => true,
            Some(&Integer::Rest(of, _)) => of < var && self.differs(of),
            None => self.vars.get(var).is_some_and(|var| var.thread() == Some(Thread::Member)),
        }
    }

    /// The smallest and the largest value of an index, and the factor of the batch in it: `top` has the largest value of
    /// each variable, whose smallest is 0.
    pub fn range(&self, index: &Index, top: impl Fn(VarId) -> i64) -> (i64, i64, i64) {
        let (mut low, mut high, mut batch) = (index.constant, index.constant, 0);
        for &(var, factor) in &index.terms {
            if var == self.batch() || matches!(self.thread_of(var), Some(Thread::Batch { .. })) {
                batch += factor;
            } else {
                low += (factor * top(var)).min(0);
                high += (factor * top(var)).max(0);
            }
        }
        (low, high, batch)
    }

    /// The largest value of a variable that is computed, where the largest of others is known; 0 where nothing bounds it.
    pub fn top_of(&self, integer: &Integer, top: impl Fn(VarId) -> i64) -> i64 {
        match *integer {
            Integer::Rest(of, by) if !self.is_loaded(of) => top(of).min(by as i64 - 1),
            _ => 0,
        }
    }
}

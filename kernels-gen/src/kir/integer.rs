//! Integers that a kernel computes, and conditions on them: masks, slots and other mesh data of a cell.
//!
//! [`Statement::Set`](super::Statement::Set) sets a variable to the value of an [`Integer`], one per lane or thread.
//! The variable can then be part of an [`Index`], of a [`Condition`], and address [`Op::LoadAt`](super::Op::LoadAt).
//! Loaded integers depend on the arrays of a launch, so that only their non-negativity is known at compile time. They
//! do not index the kernel's own arrays. For arrays of a group or the launch, the caller checks the bounds against the
//! contents of the index arrays.

use super::{ArgumentId, Index, IntegersId, Kernel, Rule, Thread, VarId};

/// The definition of an integer.
#[derive(Clone, Debug, PartialEq)]
pub enum Integer {
    /// An element of a global array of `u32`, independent of the lane.
    Element(ArgumentId, Index),
    /// An entry of a private array of integers.
    Entry(IntegersId, Index),
    /// The remainder of a variable modulo a number.
    Rest(VarId, usize),
}

/// A condition on a lane or thread.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A variable is below a bound.
    Below(VarId, usize),
    /// A variable is not `u32::MAX`, the null index.
    Something(VarId),
    /// A variable is this number.
    Equals(VarId, u32),
    /// A variable, as a mask, has this bit.
    Bit(VarId, u32),
    /// A variable, as a mask, does not have this bit.
    NoBit(VarId, u32),
    /// Two variables, as masks, have a bit in common.
    Meet(VarId, VarId),
    /// The lane writes, or the thread has a batch of its own.
    Active,
    /// This cell of the batch is one that writes, that is below [`Kernel::active`].
    ActiveCell(Index),
}

impl Condition {
    /// Returns the variables that it depends on.
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

    /// Returns whether values of its variables satisfy it; conditions without variables are satisfied by any.
    pub fn is_true(&self, of: impl Fn(VarId) -> i64) -> bool {
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
    /// Returns the integer that a statement computes for a variable.
    pub fn integer(&self, var: VarId) -> Option<&Integer> {
        match &self.vars.get(var)?.rule {
            Rule::Integer(integer) => Some(integer),
            Rule::Counted | Rule::Thread(_) => None,
        }
    }

    /// Returns whether a variable depends on loaded data, so that it has no bound. Recursive in the depth of
    /// remainders.
    pub fn is_loaded(&self, var: VarId) -> bool {
        match self.integer(var) {
            Some(Integer::Element(..) | Integer::Entry(..)) => true,
            Some(&Integer::Rest(of, _)) => of < var && self.is_loaded(of),
            None => false,
        }
    }

    /// Returns whether a variable differs between the lanes of a kernel with several lanes. Recursive in the depth of
    /// index loads.
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

    /// Returns the smallest and the largest value of an index, and the factor of the batch in it. `top` is the largest
    /// value of each variable; the smallest is 0.
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

    /// Returns the largest value of a computed variable, given those of others; 0 if it is unbounded.
    pub fn top_of(&self, integer: &Integer, top: impl Fn(VarId) -> i64) -> i64 {
        match *integer {
            Integer::Rest(of, by) if !self.is_loaded(of) => top(of).min(by as i64 - 1),
            _ => 0,
        }
    }
}

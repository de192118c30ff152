//! The values that operations take and statements write, shared and mutable.

use super::{Op, Statement, ValueId};

/// The operands of an operation, by reference.
macro_rules! operands {
    ($op:expr) => {
        match $op {
            Op::Unary(_, a) | Op::Reciprocal(a) | Op::Not(a) | Op::Broadcast(a) => {
                [Some(a), None, None]
            }
            Op::Binary(_, a, b)
            | Op::Quotient(a, b)
            | Op::Compare(_, a, b)
            | Op::And(a, b)
            | Op::Or(a, b) => [Some(a), Some(b), None],
            Op::Fma(a, b, c) | Op::FmaNeg(a, b, c) | Op::Select(a, b, c) => {
                [Some(a), Some(b), Some(c)]
            }
            Op::Constant(_)
            | Op::LoadLocal(..)
            | Op::LoadShared(..)
            | Op::LoadTable(..)
            | Op::LoadUniform(..)
            | Op::LoadLanes(..)
            | Op::Flag { .. }
            | Op::Gather { .. }
            | Op::LoadAt { .. } => [None, None, None],
        }
        .into_iter()
        .flatten()
    };
}

/// The value that a statement writes, and those at the ends of an edge.
macro_rules! stored {
    ($statement:expr, $none:expr) => {
        match $statement {
            Statement::StoreLocal(_, _, value)
            | Statement::StoreShared(_, _, value)
            | Statement::StoreLanes(_, _, value)
            | Statement::StoreAt { value, .. }
            | Statement::Scatter { value, .. } => (Some(value), $none),
            Statement::ScatterEdge { values, .. } => (None, values),
            _ => (None, $none),
        }
    };
}

impl Op {
    /// Returns the value operands.
    pub fn operands(&self) -> impl Iterator<Item = ValueId> {
        operands!(self).copied()
    }

    /// Returns the value operands, mutably.
    pub fn operands_mut(&mut self) -> impl Iterator<Item = &mut ValueId> {
        operands!(self)
    }
}

impl Statement {
    /// Returns the values that it writes to memory.
    pub fn stored(&self) -> impl Iterator<Item = ValueId> {
        let (one, edge): (_, &[(usize, [ValueId; 2])]) = stored!(self, &[]);
        one.into_iter().chain(edge.iter().flat_map(|(_, ends)| ends)).copied()
    }

    /// Returns the values that it writes to memory, mutably.
    pub fn stored_mut(&mut self) -> impl Iterator<Item = &mut ValueId> {
        let (one, edge): (_, &mut [(usize, [ValueId; 2])]) = stored!(self, &mut []);
        one.into_iter().chain(edge.iter_mut().flat_map(|(_, ends)| ends))
    }
}

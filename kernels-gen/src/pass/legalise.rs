//! `legalise`: rewrites operations that a target lacks.
//!
//! For targets whose varying values are vectors of lanes (Rust), a uniform operand of a varying operation becomes an
//! explicit [`Op::Broadcast`].

use crate::kir::{ArgumentId, Index, IndirectIndex, Kernel, Op, Statement, Value, ValueId, Write};
use fem_dsl::arena::IndexVec;

/// Makes every operand of a varying operation varying.
pub(super) fn legalise(kernel: &mut Kernel) {
    let mut pass = Pass {
        old: std::mem::take(&mut kernel.values),
        values: IndexVec::new(),
        new: IndexVec::new(),
        wide: IndexVec::new(),
    };
    pass.new = pass.old.iter().map(|_| None).collect();
    pass.wide = pass.old.iter().map(|_| None).collect();
    kernel.body = pass.block(&kernel.body);
    kernel.values = pass.values;
}

struct Pass {
    old: IndexVec<ValueId, Value>,
    values: IndexVec<ValueId, Value>,
    /// Old to new.
    new: IndexVec<ValueId, Option<ValueId>>,
    /// Old uniform value to its broadcast of this block.
    wide: IndexVec<ValueId, Option<ValueId>>,
}

impl Pass {
    fn scalar(&mut self, id: ValueId) -> ValueId {
        if let Some(new) = self.new[id] {
            return new;
        }
        // Constants have no `Let`.
        let new = self.values.push(self.old[id].clone());
        self.new[id] = Some(new);
        new
    }

    fn varying(&mut self, id: ValueId, out: &mut Vec<Statement>) -> ValueId {
        let new = self.scalar(id);
        if self.values[new].varying {
            return new;
        }
        if let Some(wide) = self.wide[id] {
            return wide;
        }
        let wide = self.values.push(Value { op: Op::Broadcast(new), varying: true, name: None });
        out.push(Statement::Let(wide));
        self.wide[id] = Some(wide);
        wide
    }

    fn block(&mut self, body: &[Statement]) -> Vec<Statement> {
        let outer = self.wide.clone();
        let mut out = Vec::with_capacity(body.len());
        for statement in body {
            if matches!(statement, Statement::Stage) {
                self.wide = self.wide.iter().map(|_| None).collect();
            }
            if let Statement::ScatterEdge { target, map, at, scale, values } = statement {
                self.both_ends((*target, *map), at, *scale, values, &mut out);
                continue;
            }
            let statement = self.statement(statement, &mut out);
            out.push(statement);
        }
        self.wide = outer;
        out
    }

    /// Lanes of one vector do not pass on sums to each other: the ends of an edge are written separately.
    fn both_ends(
        &mut self,
        (target, map): (ArgumentId, ArgumentId),
        at: &[Index; 2],
        scale: usize,
        values: &[(usize, [ValueId; 2])],
        out: &mut Vec<Statement>,
    ) {
        let (masked, write) = (false, Write::LaneSerial);
        for &(offset, ends) in values {
            for (at, value) in at.iter().cloned().zip(ends) {
                let (to, value) =
                    (IndirectIndex { map, at, scale, offset, masked }, self.varying(value, out));
                out.push(Statement::Scatter { target, to, value, write });
            }
        }
    }

    fn statement(&mut self, statement: &Statement, out: &mut Vec<Statement>) -> Statement {
        match statement.clone() {
            Statement::Let(id) => {
                let Value { mut op, varying, name } = self.old[id].clone();
                let wide = varying && !matches!(op, Op::Broadcast(_));
                for operand in op.operands_mut() {
                    *operand =
                        if wide { self.varying(*operand, out) } else { self.scalar(*operand) };
                }
                let new = self.values.push(Value { op, varying, name });
                self.new[id] = Some(new);
                Statement::Let(new)
            }
            Statement::StoreLocal(local, index, value) => {
                Statement::StoreLocal(local, index, self.varying(value, out))
            }
            Statement::StoreLanes(argument, index, value) => {
                Statement::StoreLanes(argument, index, self.varying(value, out))
            }
            Statement::Scatter { target, to, value, write } => {
                Statement::Scatter { target, to, value: self.varying(value, out), write }
            }
            Statement::For { var, extent, body } => {
                Statement::For { var, extent, body: self.block(&body) }
            }
            Statement::When { conditions, body } => {
                Statement::When { conditions, body: self.block(&body) }
            }
            other => other,
        }
    }
}

/// Rewrites for targets whose lanes are threads: lanes that share nodes add atomically, and hints for the cache of a
/// single core are removed.
pub(super) fn share(kernels: &mut [Kernel]) {
    for kernel in kernels.iter_mut() {
        for_threads(&mut kernel.body);
        kernel.block = 1;
    }
}

fn for_threads(body: &mut Vec<Statement>) {
    body.retain_mut(|statement| {
        match statement {
            Statement::Scatter { write, .. }
            | Statement::ScatterRun { write, .. }
            | Statement::StoreAt { write, .. }
                if *write == Write::LaneSerial =>
            {
                *write = Write::Atomic;
            }
            _ => {}
        }
        if let Some(body) = statement.body_mut() {
            for_threads(body);
        }
        !matches!(
            statement,
            Statement::Prefetch(..) | Statement::PrefetchIndexed { .. } | Statement::Stage
        )
    });
}

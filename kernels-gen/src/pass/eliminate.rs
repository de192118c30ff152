//! `eliminate`: drops values that nothing uses.

use crate::kir::{Kernel, Statement, ValueId};
use fem_dsl::arena::IndexVec;

/// The kernel without unused values.
pub(super) fn eliminate(mut kernel: Kernel) -> Kernel {
    let mut used: IndexVec<ValueId, bool> = kernel.values.iter().map(|_| false).collect();
    mark(&kernel.body, &mut used);
    for id in kernel.values.ids().rev() {
        if used[id] {
            for operand in kernel.values[id].op.operands() {
                used[operand] = true;
            }
        }
    }
    kernel.body = keep(std::mem::take(&mut kernel.body), &used);
    kernel
}

fn mark(body: &[Statement], used: &mut IndexVec<ValueId, bool>) {
    for statement in body {
        match statement {
            Statement::StoreLocal(_, _, value)
            | Statement::StoreShared(_, _, value)
            | Statement::StoreLanes(_, _, value)
            | Statement::StoreAt { value, .. }
            | Statement::Scatter { value, .. } => used[*value] = true,
            Statement::ScatterEdge { values, .. } => {
                values.iter().flat_map(|(_, ends)| ends).for_each(|&value| used[value] = true);
            }
            // Loops nest a fixed few levels deep, whatever the user wrote.
            Statement::For { body, .. } | Statement::When { body, .. } => mark(body, used),
            Statement::Let(_)
            | Statement::GatherRun { .. }
            | Statement::Set(_)
            | Statement::StoreInteger(..)
            | Statement::ScatterRun { .. }
            | Statement::Prefetch(..)
            | Statement::PrefetchIndexed { .. }
            | Statement::Stage
            | Statement::Barrier
            | Statement::Fence
            | Statement::Recompute(_)
            | Statement::Comment(_) => {}
        }
    }
}

fn keep(body: Vec<Statement>, used: &IndexVec<ValueId, bool>) -> Vec<Statement> {
    body.into_iter()
        .filter_map(|statement| match statement {
            Statement::Let(value) => used[value].then_some(Statement::Let(value)),
            Statement::For { var, extent, body } => {
                Some(Statement::For { var, extent, body: keep(body, used) })
            }
            Statement::When { conditions, body } => {
                Some(Statement::When { conditions, body: keep(body, used) })
            }
            other => Some(other),
        })
        .collect()
}

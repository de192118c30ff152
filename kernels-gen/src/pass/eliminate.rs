//! `eliminate`: removes unused values.

use crate::kir::{Kernel, Statement, ValueId};
use fem_dsl::arena::IndexVec;

/// Drops unused values from a kernel.
pub(super) fn eliminate(kernel: &mut Kernel) {
    let mut used: IndexVec<ValueId, bool> = kernel.values.iter().map(|_| false).collect();
    let mut mark = |statement: &Statement| match statement {
        Statement::StoreLocal(_, _, value)
        | Statement::StoreShared(_, _, value)
        | Statement::StoreLanes(_, _, value)
        | Statement::StoreAt { value, .. }
        | Statement::Scatter { value, .. } => used[*value] = true,
        Statement::ScatterEdge { values, .. } => {
            values.iter().flat_map(|(_, ends)| ends).for_each(|&value| used[value] = true);
        }
        _ => {}
    };
    kernel.body.iter().for_each(|statement| statement.for_each(&mut mark));
    for id in kernel.values.ids().rev() {
        if used[id] {
            for operand in kernel.values[id].op.operands() {
                used[operand] = true;
            }
        }
    }
    keep(&mut kernel.body, &used);
}

fn keep(body: &mut Vec<Statement>, used: &IndexVec<ValueId, bool>) {
    body.retain_mut(|statement| {
        if let Some(body) = statement.body_mut() {
            keep(body, used);
        }
        !matches!(statement, Statement::Let(value) if !used[*value])
    });
}

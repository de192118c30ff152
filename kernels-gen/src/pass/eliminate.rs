//! `eliminate`: removes unused values, and numbers the others.

use crate::kir::{Kernel, Statement, ValueId};
use fem_dsl::arena::IndexVec;

/// Drops unused values from a kernel.
pub(super) fn eliminate(kernel: &mut Kernel) {
    let mut used: IndexVec<ValueId, bool> = kernel.values.iter().map(|_| false).collect();
    let mut mark = |statement: &Statement| statement.stored().for_each(|value| used[value] = true);
    kernel.body.iter().for_each(|statement| statement.for_each(&mut mark));
    for id in kernel.values.ids().rev() {
        if used[id] {
            kernel.values[id].op.operands().for_each(|operand| used[operand] = true);
        }
    }
    keep(&mut kernel.body, &used);
    kernel.renumber();
}

fn keep(body: &mut Vec<Statement>, used: &IndexVec<ValueId, bool>) {
    body.retain_mut(|statement| {
        if let Some(body) = statement.body_mut() {
            keep(body, used);
        }
        !matches!(statement, Statement::Let(value) if !used[*value])
    });
}

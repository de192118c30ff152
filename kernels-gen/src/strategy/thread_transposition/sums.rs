//! Sums over nodes and points.

use crate::kir::{Index, LocalId, ValueId};
use crate::lower::lowering::Lowering;

/// Sums that a loop accumulates: values if it is unrolled, else entries of a private array.
pub(super) struct Sums {
    local: Option<LocalId>,
    values: Vec<ValueId>,
}

impl Sums {
    pub(super) fn new(s: &mut Lowering<'_>, name: &str, count: usize, written_out: bool) -> Self {
        let zero = s.b.constant(0.0);
        let local = (!written_out).then(|| s.b.local(&format!("{name}_sums"), count));
        if let Some(local) = local {
            (0..count).for_each(|i| s.b.store(local, Index::from(i), zero));
        }
        Self { local, values: vec![zero; count] }
    }

    pub(super) fn add(
        &mut self,
        s: &mut Lowering<'_>,
        slot: usize,
        factor: ValueId,
        value: ValueId,
    ) {
        let Some(local) = self.local else {
            self.values[slot] = s.b.fma(factor, value, self.values[slot]);
            return;
        };
        let sum = s.b.load(local, Index::from(slot));
        let sum = s.b.fma(factor, value, sum);
        s.b.store(local, Index::from(slot), sum);
    }

    pub(super) fn take(self, s: &mut Lowering<'_>) -> Vec<ValueId> {
        match self.local {
            None => self.values,
            Some(local) => {
                (0..self.values.len()).map(|i| s.b.load(local, Index::from(i))).collect()
            }
        }
    }
}

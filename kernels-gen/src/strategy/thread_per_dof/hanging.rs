//! Hanging nodes with a thread per node: interpolation along one axis after another.
//!
//! ```text
//! Σ_j A[i][j] u[j, y, z]      where the line through the node hangs, else its own
//! ```
//!
//! from one shared array to the other, with a barrier between, and with Aᵀ in reverse at the end.

use super::{Dofs, ElementVector, SharedQuantity};
use crate::abi::Role;
use crate::abi::hanging::others;
use crate::element::LinePoints;
use crate::kir::{Entries, Index, SharedId, TableId, VarId};
use crate::lower::hanging::lines::{mask_of, matrices, where_hangs};
use crate::lower::lowering::Lowering;

/// The lines through a thread's node.
#[derive(Clone, Debug)]
pub(super) struct HangingNodes {
    /// The bit of each in a cell's word.
    masks: Vec<VarId>,
    /// A⁻ and A⁺, or their transposes, entry (i, j) at `j · n + i`.
    tables: [TableId; 2],
}

impl HangingNodes {
    /// Declares the data for the nodes of a line on `q` points per direction.
    pub(super) fn new(s: &mut Lowering<'_>, nodes: LinePoints, q: usize, back: bool) -> Self {
        let (dim, cells, n) = (s.facts.form.dim, s.facts.plan.lanes, nodes.count());
        let mask = |thread: usize, axis: usize| {
            let place = |other: usize| thread / cells / q.pow(other as u32) % q;
            let places: Vec<usize> = others(axis, dim).map(place).collect();
            mask_of(axis, n, &places)
        };
        let threads = cells * q.pow(dim as u32);
        let masks = (0..dim).map(|axis| {
            let of = (0..threads).map(|thread| mask(thread, axis)).collect();
            s.b.listed_var("mask", of)
        });
        let masks = masks.collect();
        let mut matrices = matrices(nodes, back).into_iter();
        let tables = ["lower", "upper"].map(|word| {
            let entries = matrices.next().map_or_else(Vec::new, |a| a.transposed().entries);
            let back = if back { "_t" } else { "" };
            s.b.spread_table(&format!("hanging_{word}_{n}{back}"), Entries::Real(entries))
        });
        Self { masks, tables }
    }
}

impl Dofs {
    /// Interpolates hanging nodes along one axis, from an array to the other.
    fn pass(
        &self,
        s: &mut Lowering<'_>,
        (shared, hanging): (&SharedQuantity, &HangingNodes),
        [from, to]: [SharedId; 2],
        axis: usize,
    ) {
        for c in 0..shared.components {
            let own = s.b.load_shared(from, self.place(c, None));
            self.store(s, to, c, own);
        }
        let (words, batch) = (s.arguments[&Role::Hanging], Index::from(s.b.batch()));
        let word = s.b.load_index("word", words, &batch);
        where_hangs(s, (word, hanging.masks[axis]), axis, &mut |s, up| {
            let table = (hanging.tables[usize::from(up)], shared.n, shared.n);
            for c in 0..shared.components {
                let zero = s.b.constant(0.0);
                let sum = self.contract(s, table, (from, c), axis, zero);
                self.store(s, to, c, sum);
            }
        });
    }

    /// Interpolates the hanging nodes of loaded quantities.
    pub(super) fn resolve(&self, s: &mut Lowering<'_>) {
        if self.inputs.iter().all(|shared| shared.hanging.is_none()) {
            return;
        }
        for axis in 0..self.dim {
            s.b.comment(&format!("what hangs, in {}", ["x", "y", "z"][axis]));
            for shared in &self.inputs {
                let Some(hanging) = &shared.hanging else { continue };
                self.when(s, &vec![shared.n; self.dim], &mut |s| {
                    self.pass(s, (shared, hanging), shared.turn(axis), axis);
                });
            }
            s.b.barrier();
        }
    }

    /// Applies the transpose, from the nodes' results in shared memory to the vector.
    pub(super) fn scatter_hanging(&self, s: &mut Lowering<'_>, results: &[ElementVector]) {
        if results.iter().all(|result| result.shared.hanging.is_none()) {
            return;
        }
        for axis in 0..self.dim {
            s.b.barrier();
            s.b.comment(&format!("what hangs, back in {}", ["x", "y", "z"][axis]));
            for ElementVector { field, shared, .. } in results {
                let Some(hanging) = &shared.hanging else { continue };
                let turn = shared.turn(self.steps(shared) + axis);
                self.when(s, &vec![shared.n; self.dim], &mut |s| {
                    self.pass(s, (shared, hanging), turn, axis);
                    if axis + 1 < self.dim {
                        return;
                    }
                    let own = |c| s.b.load_shared(turn[1], self.place(c, None));
                    let sums: Vec<_> = (0..shared.components).map(own).collect();
                    self.scatter(s, (*field, shared.n), &sums);
                });
            }
        }
    }

    /// Returns the number of directions in which a quantity is interpolated, or a result integrated.
    pub(super) fn steps(&self, shared: &SharedQuantity) -> usize {
        if shared.interpolate.is_some() { self.dim } else { 0 }
    }
}

//! The steps of hanging nodes: interpolation before the evaluation, its transpose after the integration.

use super::hanging::HangingNodes;
use super::phases::{ElementVector, Transposition};
use crate::abi::Role;
use crate::kir::{Index, SharedId};
use crate::lower::hanging::lines::where_hangs;
use crate::lower::lowering::Lowering;
use crate::lower::restrict::NodalLocation;

impl Transposition {
    /// Interpolates along one axis, from an array to the other.
    fn pass(
        &self,
        s: &mut Lowering<'_>,
        hanging: &HangingNodes,
        [from, to]: [SharedId; 2],
        axis: usize,
    ) {
        let HangingNodes { components, nodes, n, digits, lines, tables, .. } = hanging;
        let (line, stride) = (&lines[axis], n.pow(axis as u32));
        digits.each_cell(s, &mut |s, cell| {
            let own = digits.item();
            for c in 0..*components {
                let value = s.b.load_shared(from, self.place(&own.plus(c * nodes), cell));
                s.b.store_shared(to, self.place(&own.plus(c * nodes), cell), value);
            }
            let (words, batch) = (s.arguments[&Role::Hanging], Index::from(s.b.batch()));
            let word = s.b.load_index("word", words, &batch);
            where_hangs(s, (word, line.mask), axis, &mut |s, up| {
                for c in 0..*components {
                    let mut sum = s.b.constant(0.0);
                    for j in 0..*n {
                        let at = Index::from(line.place).plus(j * n);
                        let factor = s.b.load_table(tables[usize::from(up)], at);
                        let node = Index::from(line.start).plus(c * nodes + j * stride);
                        let value = s.b.load_shared(from, self.place(&node, cell));
                        sum = s.b.fma(factor, value, sum);
                    }
                    s.b.store_shared(to, self.place(&own.plus(c * nodes), cell), sum);
                }
            });
        });
    }

    /// Interpolates loaded quantities axis by axis, each followed by a barrier.
    pub(super) fn resolve(&self, s: &mut Lowering<'_>, all: &[&HangingNodes]) {
        for axis in (0..s.facts.form.dim).filter(|_| !all.is_empty()) {
            s.b.comment(&format!("what hangs, in {}", ["x", "y", "z"][axis]));
            for hanging in all {
                self.pass(s, hanging, hanging.turn(axis), axis);
            }
            s.b.barrier();
        }
    }

    /// Applies the transpose, from the nodes' results to the vector.
    pub(super) fn scatter_hanging(&self, s: &mut Lowering<'_>, results: &[ElementVector]) {
        let dim = s.facts.form.dim;
        if results.iter().all(|result| result.hanging.is_none()) {
            return;
        }
        for axis in 0..dim {
            s.b.barrier();
            s.b.comment(&format!("what hangs, back in {}", ["x", "y", "z"][axis]));
            for result in results {
                let Some(hanging) = &result.hanging else { continue };
                let turn = hanging.turn(axis);
                self.pass(s, hanging, turn, axis);
                if axis + 1 == dim {
                    self.scatter_nodes(s, (result.field, hanging), turn[1]);
                }
            }
        }
    }

    /// Adds the values of an array at the threads' nodes to the result.
    fn scatter_nodes(
        &self,
        s: &mut Lowering<'_>,
        (field, hanging): (usize, &HangingNodes),
        array: SharedId,
    ) {
        let HangingNodes { components, nodes, digits, .. } = hanging;
        let nodal = NodalLocation::result(s, field);
        digits.each_cell(s, &mut |s, cell| {
            let node = digits.item();
            let entry = &Index::from(s.b.batch()).times(*nodes) + &node;
            let sum = |c| s.b.load_shared(array, self.place(&node.plus(c * nodes), cell));
            let sums: Vec<_> = (0..*components).map(sum).collect();
            s.b.open_when();
            for (c, sum) in sums.into_iter().enumerate() {
                nodal.scatter(&mut s.b, &entry, c, sum);
            }
            s.b.close_when_written();
        });
    }
}

//! Hanging nodes of thread transposition: threads that own nodes interpolate along one axis after another.
//!
//! ```text
//! Σ_j A[i][j] u[j, y, z]      where the line through the node hangs, else its own
//! ```
//!
//! from one shared array to another, with a barrier between, and with Aᵀ after the integration.

use super::layout::{Digits, Layout};
use super::phases::{ElementVector, Transposition};
use crate::abi::Role;
use crate::abi::hanging::others;
use crate::element::Lagrange;
use crate::kir::{Entries, Index, SharedId, TableId, VarId};
use crate::lower::factors::nodes_of;
use crate::lower::hanging::lines::{mask_of, matrices, where_hangs};
use crate::lower::lowering::Lowering;
use crate::lower::restrict::NodalLocation;

/// The line along an axis through a thread's node: its bit, its first node, and the node's position on it.
struct Line {
    mask: VarId,
    start: VarId,
    place: VarId,
}

/// Nodes that may hang.
pub(super) struct HangingNodes {
    components: usize,
    /// Nodes per cell, and per line.
    nodes: usize,
    n: usize,
    /// `[component][node][cell]`, read and written alternately.
    arrays: [SharedId; 2],
    digits: Digits,
    lines: Vec<Line>,
    /// A⁻ and A⁺, or their transposes, entry (i, j) at `j · n + i`.
    tables: [TableId; 2],
}

impl HangingNodes {
    /// Declares the nodes of an element, with `arrays` for each.
    pub(super) fn new(
        s: &mut Lowering<'_>,
        layout: &Layout,
        (name, components, element): (&str, usize, Lagrange),
        arrays: [SharedId; 2],
        back: bool,
    ) -> Self {
        let (dim, points, nodes) = (s.facts.form.dim, nodes_of(element), element.count());
        let n = points.count();
        let digits = Digits::new(&mut s.b, name, layout, nodes);
        let threads = layout.threads;
        let lines = (0..dim).map(|axis| {
            let stride = n.pow(axis as u32);
            let digit = |node: usize, axis: usize| node / n.pow(axis as u32) % n;
            let mask = |node: usize| {
                let places: Vec<usize> =
                    others(axis, dim).map(|other| digit(node, other)).collect();
                mask_of(axis, n, &places)
            };
            let mut listed = |name: &str, of: &dyn Fn(usize) -> u32| {
                let all = (0..threads).map(|thread| of(digits.item_of(thread))).collect();
                s.b.listed_var(name, all)
            };
            let start = |node: usize| node - digit(node, axis) * stride;
            Line {
                mask: listed("mask", &mask),
                start: listed("start", &|node| start(node) as u32),
                place: listed("place", &|node| digit(node, axis) as u32),
            }
        });
        let lines = lines.collect();
        let [lower, upper] = matrices(points, back).map(|matrix| matrix.transposed().entries);
        let back = if back { "_t" } else { "" };
        let tables = [("lower", lower), ("upper", upper)].map(|(word, entries)| {
            s.b.spread_table(&format!("hanging_{word}_{n}{back}"), Entries::Real(entries))
        });
        Self { components, nodes, n, arrays, digits, lines, tables }
    }

    /// Returns the array that a step reads, and the one that it writes.
    fn turn(&self, step: usize) -> [SharedId; 2] {
        [self.arrays[step % 2], self.arrays[(step + 1) % 2]]
    }

    /// Returns the array with the nodal values before any axis.
    pub(super) fn given(&self) -> SharedId {
        self.turn(0)[0]
    }

    /// Returns the array after all axes.
    pub(super) fn resolved(&self) -> SharedId {
        self.turn(self.lines.len())[0]
    }
}

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

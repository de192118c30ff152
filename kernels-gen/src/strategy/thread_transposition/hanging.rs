//! Hanging nodes of thread transposition: threads that own nodes interpolate along one axis after another.
//!
//! ```text
//! Σ_j A[i][j] u[j, y, z]      where the line through the node hangs, else its own
//! ```
//!
//! from one shared array to another, with a barrier between, and with Aᵀ after the integration.

use super::layout::{Digits, Layout};
use crate::abi::hanging::others;
use crate::element::Element;
use crate::kir::{Entries, SharedId, TableId, VarId};
use crate::lower::factors::nodes_of;
use crate::lower::hanging::lines::{mask_of, matrices};
use crate::lower::lowering::Lowering;

/// The line along an axis through a thread's node: its bit, its first node, and the node's position on it.
pub(super) struct Line {
    pub(super) mask: VarId,
    pub(super) start: VarId,
    pub(super) place: VarId,
}

/// Nodes that may hang.
pub(super) struct HangingNodes {
    pub(super) components: usize,
    /// Nodes per cell, and per line.
    pub(super) nodes: usize,
    pub(super) n: usize,
    /// `[component][node][cell]`, read and written alternately.
    arrays: [SharedId; 2],
    pub(super) digits: Digits,
    pub(super) lines: Vec<Line>,
    /// A⁻ and A⁺, or their transposes, entry (i, j) at `j · n + i`.
    pub(super) tables: [TableId; 2],
}

impl HangingNodes {
    /// Declares the nodes of an element, with `arrays` for each.
    pub(super) fn new(
        s: &mut Lowering<'_>,
        layout: &Layout,
        (name, components, element): (&str, usize, Element),
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
    pub(super) fn turn(&self, step: usize) -> [SharedId; 2] {
        [self.arrays[step % 2], self.arrays[(step + 1) % 2]]
    }

    /// Returns the array with the nodal values before any axis.
    pub(super) fn nodal(&self) -> SharedId {
        self.turn(0)[0]
    }

    /// Returns the array after all axes.
    pub(super) fn resolved(&self) -> SharedId {
        self.turn(self.lines.len())[0]
    }
}

//! Hanging nodes with a thread per line: a cell's nodes are gathered along one axis, interpolated in shared memory
//! along each axis, and then processed by the lines of the last.
//!
//! ```text
//! lines along the first axis    gather, A          ── barrier
//! in three dimensions: along x  A                  ── barrier
//! lines along the last axis     A, and what is done with nodes where nothing hangs
//! ```
//!
//! and in reverse with Aᵀ. A thread has whole lines, so that a line is interpolated in registers; lines that do not
//! hang are unchanged.

use super::rows::NodalLine;
use super::{ElementVector, Group, SharedQuantity};
use crate::lower::contract::contract;
use crate::lower::hanging::lines::{mask_of, matrices, where_hangs, word_of};
use crate::lower::lowering::Lowering;

impl Group {
    /// Returns the axes in the order of interpolation: along the first, neighbours in a group are neighbours in memory;
    /// along the last, nodes are processed.
    fn axes_of(&self, shared: &SharedQuantity) -> Vec<usize> {
        let last = self.nodal_axis(shared);
        match self.dim {
            3 => vec![3 - last, 0, last],
            _ => vec![1 - last, last],
        }
    }

    /// Returns the lines of nodes along an axis.
    fn lines_along(&self, shared: &SharedQuantity, axis: usize) -> &NodalLine {
        &self.nodal[&(self.across(shared, axis), axis)]
    }

    /// Returns the masks of the lines along an axis, in the order of the threads of a group.
    pub(super) fn masks(&self, axis: usize, n: usize) -> Vec<u32> {
        let threads = self.layout.cells * self.members;
        let digit = |thread: usize, number: u32| thread / n.pow(number) % n;
        let places = |thread: usize| (0..self.dim as u32 - 1).map(move |at| digit(thread, at));
        let mask = |thread: usize| mask_of(axis, n, &places(thread).collect::<Vec<_>>());
        (0..threads).map(mask).collect()
    }

    /// Applies A, or its transpose, in place along the lines of an axis that hang.
    fn pass(&self, s: &mut Lowering<'_>, shared: &SharedQuantity, axis: usize, back: bool) {
        let (nodes, n) = (self.lines_along(shared, axis), shared.factors.n(0));
        let mask = nodes.mask.expect("lines that may hang should have masks");
        let (matrices, even_odd) = (matrices(shared.factors.nodes(), back), s.facts.plan.even_odd);
        self.in_row(s, &nodes.row, |s, row| {
            let word = word_of(s, nodes.batch);
            where_hangs(s, (word, mask), axis, &mut |s, up| {
                shared.each_component(s, |s, c| {
                    let line = self.load(&mut s.b, shared.value(), row, c, n);
                    let matrix = &matrices[usize::from(up)];
                    let line = contract(&mut s.b, matrix, &line, None, even_odd);
                    self.store(&mut s.b, shared.value(), row, c, &line);
                });
            });
        });
    }

    /// Gathers quantities with hanging nodes, and interpolates along all axes except the last.
    pub(super) fn gather_hanging(&self, s: &mut Lowering<'_>) {
        let quantities = s.facts.quantities.iter().zip(&self.inputs);
        let hanging: Vec<_> = quantities.filter(|(_, shared)| shared.hangs).collect();
        if hanging.is_empty() {
            return;
        }
        for &(quantity, shared) in &hanging {
            s.b.comment(&format!("gather {}", quantity.name));
            let axis = self.axes_of(shared)[0];
            let nodes = self.lines_along(shared, axis);
            self.in_row(s, &nodes.row, |s, row| {
                for c in 0..quantity.components {
                    let line = self.gather_line(s, (quantity, shared), (nodes, axis), c);
                    self.store(&mut s.b, shared.value(), row, &c.into(), &line);
                }
            });
            self.pass(s, shared, axis, false);
        }
        s.b.barrier();
        if self.dim == 3 {
            s.b.comment("what hangs, in x");
            hanging.iter().for_each(|&(_, shared)| self.pass(s, shared, 0, false));
            s.b.barrier();
        }
    }

    /// Interpolates along the last axis.
    pub(super) fn resolve_last(&self, s: &mut Lowering<'_>, shared: &SharedQuantity) {
        if shared.hangs {
            self.pass(s, shared, self.nodal_axis(shared), false);
        }
    }

    /// Applies the transpose, from the lines along the last axis, which are in shared memory, to the vector.
    pub(super) fn scatter_hanging(&self, s: &mut Lowering<'_>) {
        let hanging: Vec<&ElementVector> =
            self.results.iter().filter(|outcome| outcome.shared.hangs).collect();
        if hanging.is_empty() {
            return;
        }
        for outcome in &hanging {
            self.pass(s, &outcome.shared, self.nodal_axis(&outcome.shared), true);
        }
        s.b.barrier();
        if self.dim == 3 {
            s.b.comment("what hangs, back in x");
            hanging.iter().for_each(|outcome| self.pass(s, &outcome.shared, 0, true));
            s.b.barrier();
        }
        for outcome in hanging {
            let ElementVector { field, shared, .. } = outcome;
            s.comment_on("scatter", *field);
            let axis = self.axes_of(shared)[0];
            self.pass(s, shared, axis, true);
            let nodes = self.lines_along(shared, axis);
            self.in_row(s, &nodes.row, |s, row| {
                for c in 0..shared.components {
                    let line =
                        self.load(&mut s.b, shared.value(), row, &c.into(), shared.factors.n(0));
                    self.scatter_line(s, outcome, nodes, (axis, c), &line);
                }
            });
        }
    }
}

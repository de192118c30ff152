//! Numbers of threads and cells of a group, and the assignment of cells to threads.

use crate::kir::build::Builder;
use crate::kir::{Condition, Index, VarId};
use crate::lower::lowering::Lowering;
use crate::plan::{Elements, lcm};
use fem_dsl::point::PointForm;

/// Maximal number of threads per block: beyond it, components are left out of the count, and then the least common
/// multiple.
const BLOCK: usize = 512;

/// The threads and the cells of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// N_b: basis functions of a component on a cell.
    pub nodes: usize,
    /// N_q: points.
    pub points: usize,
    /// N_t: threads.
    pub threads: usize,
    /// Cells per batch.
    pub cells: usize,
}

impl Layout {
    /// Returns the layout of `blocks` blocks of threads for `cells` cells.
    pub fn new(form: &PointForm, elements: &Elements, blocks: usize, cells: usize) -> Self {
        let (nodes, points) = counts(elements);
        Self { nodes, points, threads: blocks * Self::block(form, elements), cells }
    }

    /// Returns the threads of one block: LCM(N_b, N_q) · N_comp.
    pub fn block(form: &PointForm, elements: &Elements) -> usize {
        let (nodes, points) = counts(elements);
        let components: usize = form.fields.iter().map(|field| field.shape.components()).sum();
        let multiple = lcm(nodes, points);
        let larger = nodes.max(points);
        let candidates = [multiple * components, multiple];
        let fits = candidates.into_iter().find(|&threads| threads <= BLOCK);
        fits.unwrap_or_else(|| larger * (64usize.div_ceil(larger)))
    }

    /// Returns the cells that a thread processes in series if threads are distributed over the items of cells.
    fn serial(&self, items: usize, cells: usize) -> usize {
        cells.div_ceil((self.threads / items).clamp(1, cells))
    }

    /// Returns N_sqc: cells of which a thread evaluates a point.
    pub fn serial_points(&self) -> usize {
        self.serial(self.points, self.cells)
    }

    /// Returns N_sbc: cells of which a thread integrates a basis function.
    pub fn serial_nodes(&self) -> usize {
        self.serial(self.nodes, self.cells)
    }

    /// Returns the number of cells per batch, at most `most`, with the least time per cell; the smallest of several
    /// such numbers.
    pub fn best_cells(&self, most: usize) -> usize {
        let by_points = (self.threads / self.points).max(1);
        let by_nodes = (self.threads / self.nodes).max(1);
        let all = lcm(by_points, by_nodes);
        let rounds =
            |cells: usize| self.serial(self.points, cells) + self.serial(self.nodes, cells);
        let mut best = 1;
        for cells in 1..=all.min(most) {
            if rounds(cells) * best < rounds(best) * cells {
                best = cells;
            }
        }
        best
    }
}

/// Returns N_b and N_q.
fn counts(elements: &Elements) -> (usize, usize) {
    let nodes = elements.fields.iter().map(|element| element.count()).max();
    (nodes.unwrap_or(1), elements.rule.count())
}

/// The digits of a thread's index in one phase: its first cell, and its item of the cell.
pub(super) struct Digits {
    /// Cells that the threads process at once.
    slots: usize,
    slot: VarId,
    /// The item.
    item: VarId,
    /// Items that the threads process at once.
    items: usize,
    /// 0 in the threads that have work; `None` if all have.
    spare: Option<VarId>,
    cells: usize,
}

impl Digits {
    /// Declares the digits for cells of `items` items each.
    pub(super) fn new(b: &mut Builder, name: &str, layout: &Layout, items: usize) -> Self {
        let Layout { threads, cells, .. } = *layout;
        let items = items.min(threads);
        let slots = (threads / items).min(cells);
        let slot = b.thread_var(&format!("{name}_cell"), 1, slots);
        let item = b.thread_var(name, slots, items);
        let busy = slots * items;
        let spare = (busy < threads).then(|| b.thread_var("spare", busy, threads.div_ceil(busy)));
        Self { slots, slot, item, items, spare, cells }
    }

    /// Returns the item of the thread.
    pub(super) fn item(&self) -> Index {
        Index::from(self.item)
    }

    /// Returns the item of a thread with this index.
    pub(super) fn item_of(&self, thread: usize) -> usize {
        thread / self.slots % self.items
    }

    /// Returns the cell of the thread, if it has one only.
    pub(super) fn one_cell(&self) -> Option<Index> {
        (self.cells == self.slots).then(|| Index::from(self.slot))
    }

    /// Runs `body` for each cell of the thread, to which accesses then refer.
    pub(super) fn each_cell(
        &self,
        s: &mut Lowering<'_>,
        body: &mut dyn FnMut(&mut Lowering<'_>, &Index),
    ) {
        let (full, rest) = (self.cells / self.slots, self.cells % self.slots);
        let slot = Index::from(self.slot);
        if self.spare.is_some() {
            s.b.open_when();
        }
        let mut one = |s: &mut Lowering<'_>, cell: Index| {
            s.b.at_cell(cell.clone());
            s.forget();
            body(s, &cell);
        };
        match full {
            0 => {}
            1 => one(s, slot.clone()),
            _ => {
                let turn = s.b.open_loop("c");
                let cell = &slot + &Index::from(turn).times(self.slots);
                one(s, cell);
                s.b.close_loop(turn, full);
            }
        }
        if rest > 0 {
            s.b.open_when();
            one(s, slot.plus(full * self.slots));
            s.b.close_when(vec![Condition::Below(self.slot, rest)]);
        }
        if let Some(spare) = self.spare {
            s.b.close_when(vec![Condition::Below(spare, 1)]);
        }
    }

    /// Runs `body` for each of `items` items of the thread.
    pub(super) fn each_item(
        &self,
        s: &mut Lowering<'_>,
        items: usize,
        body: &mut dyn FnMut(&mut Lowering<'_>, Index),
    ) {
        let (full, rest) = (items / self.items, items % self.items);
        for turn in 0..full {
            body(s, self.item().plus(turn * self.items));
        }
        if rest > 0 {
            s.b.open_when();
            body(s, self.item().plus(full * self.items));
            s.b.close_when(vec![Condition::Below(self.item, rest)]);
        }
    }
}

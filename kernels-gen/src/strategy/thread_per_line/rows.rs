//! The rows of points that threads process in each phase, and the lines of nodes that they gather and scatter.

use super::Group;
use super::layout;
use super::shared_quantity::SharedQuantity;
use crate::kir::build::Builder;
use crate::kir::{Condition, Index, SharedId, Statement, ValueId, VarId};
use crate::lower::lowering::Lowering;
use std::collections::BTreeSet;

/// A row of points that a thread processes in a phase.
#[derive(Clone)]
pub(super) struct PointRow {
    /// Its first point.
    pub(super) start: Index,
    /// The stride between points.
    pub(super) stride: usize,
    /// The index of the thread, if only the threads below a bound have a row.
    below: Option<(VarId, usize)>,
}

/// A line of nodes that a thread gathers or scatters.
#[derive(Clone)]
pub(super) struct NodalLine {
    pub(super) row: PointRow,
    /// The variable of its cell's batch.
    pub(super) batch: VarId,
    /// Its coordinates along the other axes.
    pub(super) digits: Vec<VarId>,
    /// Its bit in a cell's word, if nodes may hang.
    pub(super) mask: Option<VarId>,
}

/// The lines of nodes of a phase: their number along each other axis, and their axis.
pub(super) type NodalKey = (Vec<usize>, usize);

/// The rows of a phase: their axis, their number along the bounded axis, and true if that is the last axis rather than
/// the one before.
pub(super) type RowKey = (usize, usize, bool);

impl Group {
    /// Returns the axis along which DoFs are gathered if they are not interpolated, and derivatives follow the
    /// interpolation directly: the one before the last.
    pub(super) fn turn(&self) -> usize {
        self.dim - 2
    }

    /// Returns all quantities and results in shared memory.
    fn shared(&self) -> impl Iterator<Item = &SharedQuantity> {
        let results = self.results.iter().map(|outcome| &outcome.shared);
        self.inputs.iter().chain(results).filter(|shared| !shared.in_column())
    }

    /// Declares the rows of all phases.
    pub(super) fn distribute(&mut self, b: &mut Builder) {
        let (q, cube) = (self.layout.q, self.dim == 3);
        let mut wanted = BTreeSet::new();
        for shared in self.shared() {
            if !shared.identity() {
                wanted.extend(cube.then_some(self.rows_at_nodes(shared)));
                wanted.extend((!shared.flat).then_some(self.rows_at_points(self.turn())));
            }
            wanted.extend((cube && shared.derives(0)).then_some(self.rows_at_points(0)));
        }
        for (axis, bound, last) in wanted {
            let mut extents = vec![q; self.dim - 1];
            extents[usize::from(last)] = bound;
            let lines = self.layout.distribute(axis, &extents);
            let row = self.row_of(b, axis, &extents, &lines);
            self.rows.insert((axis, bound, last), row);
        }
        // The first threads of the group process the lines of nodes of all its cells.
        let all = |shared: &SharedQuantity| if shared.hangs { 0..self.dim } else { 0..0 };
        let key = |shared: &SharedQuantity, axis: usize| (self.across(shared, axis), axis);
        let hanging: BTreeSet<NodalKey> = self
            .shared()
            .flat_map(|shared| all(shared).map(move |axis| key(shared, axis)))
            .collect();
        let mut lines: BTreeSet<NodalKey> =
            self.shared().map(|shared| key(shared, self.nodal_axis(shared))).collect();
        lines.extend(hanging.iter().cloned());
        for (extents, axis) in lines {
            let mut line = self.nodal_line(b, axis, &extents);
            // Only nodes of elements that are alike along all axes hang.
            let masks = hanging.contains(&(extents.clone(), axis));
            let masks = masks.then(|| self.masks(axis, extents[0]));
            line.mask = masks.map(|masks| b.listed_var("mask", masks));
            self.nodal.insert((extents, axis), line);
        }
    }

    /// Returns the rows along the first axis that are interpolated: of the axes y and z, the one not yet interpolated
    /// is bounded.
    pub(super) fn rows_at_nodes(&self, shared: &SharedQuantity) -> RowKey {
        let n = shared.factors.n(if shared.flat { 2 } else { 1 });
        (0, n, shared.flat && n < self.layout.q)
    }

    /// Returns the nodes per line along each axis except one.
    pub(super) fn across(&self, shared: &SharedQuantity, axis: usize) -> Vec<usize> {
        (0..self.dim).filter(|&other| other != axis).map(|other| shared.factors.n(other)).collect()
    }

    /// Returns the rows of all points along an axis.
    pub(super) fn rows_at_points(&self, axis: usize) -> RowKey {
        (axis, self.layout.q, false)
    }

    /// Returns the axis of the lines of nodes of a quantity, or of a result, that the first threads of a group process.
    pub(super) fn nodal_axis(&self, shared: &SharedQuantity) -> usize {
        if shared.flat || shared.identity() { self.turn() } else { self.dim - 1 }
    }

    /// Returns the lines of nodes of a quantity, or of a result.
    pub(super) fn nodal_lines(&self, shared: &SharedQuantity) -> &NodalLine {
        let axis = self.nodal_axis(shared);
        &self.nodal[&(self.across(shared, axis), axis)]
    }

    /// Returns the nodes of the thread's own column, if they are points.
    pub(super) fn own_nodes(&self, b: &Builder) -> NodalLine {
        let (batch, digits) = (b.batch(), self.digits.clone());
        NodalLine { row: self.own_row(self.dim - 1), batch, digits, mask: None }
    }

    fn nodal_line(&self, b: &mut Builder, axis: usize, extents: &[usize]) -> NodalLine {
        let lines = extents.iter().product();
        let single = self.layout.cells == 1;
        let (start, digits) = if lines == self.members && self.in_order {
            (self.own(axis), self.digits.clone())
        } else {
            self.digits_of(b, axis, extents)
        };
        let count = self.layout.cells * lines;
        let below = (lines < self.members).then_some((self.thread, count));
        let whole = single || lines == self.members;
        let batch = if whole { b.batch() } else { b.batch_var("batch_of", lines) };
        let row = PointRow { start, stride: self.layout.strides[axis], below };
        NodalLine { row, batch, digits, mask: None }
    }

    pub(super) fn row_of(
        &self,
        b: &mut Builder,
        axis: usize,
        extents: &[usize],
        lines: &layout::Lines,
    ) -> PointRow {
        let threads = self.layout.cells * self.members;
        let (stride, count) = (self.layout.strides[axis], lines.starts.len());
        let below = (count < threads).then_some((self.thread, count));
        if lines.in_order {
            // Permuted columns are in another order than these lines.
            let own = count == threads && self.in_order;
            let start = if own { self.own(axis) } else { self.digits_of(b, axis, extents).0 };
            return PointRow { start, stride, below };
        }
        let mut starts: Vec<u32> = lines.starts.iter().map(|&start| start as u32).collect();
        starts.resize(threads, starts.last().copied().unwrap_or(0));
        let start = b.listed_var("row", starts);
        PointRow { start: Index::from(start), stride, below }
    }

    /// Returns the first point of the thread's own line along an axis.
    pub(super) fn own(&self, axis: usize) -> Index {
        &Index::from(self.cell).times(self.layout.cell) + &self.through(axis, &self.digits)
    }

    /// Returns the first point of the line along an axis that has these coordinates on the others, in its cell.
    pub(super) fn through(&self, axis: usize, digits: &[VarId]) -> Index {
        let other = (0..self.dim).filter(|&other| other != axis);
        other.zip(digits).fold(Index::default(), |start, (other, &digit)| {
            &start + &Index::from(digit).times(self.layout.strides[other])
        })
    }

    /// Returns the first point of the thread's line, and the digits of the line's index except the cell. The thread's
    /// index is the line's among all with these extents.
    fn digits_of(&self, b: &mut Builder, axis: usize, extents: &[usize]) -> (Index, Vec<VarId>) {
        let other = (0..self.dim).filter(|&other| other != axis);
        let (mut start, mut divisor) = (Index::default(), 1);
        let mut digits = Vec::new();
        for (other, &extent) in other.zip(extents) {
            let digit = b.thread_var("k", divisor, extent);
            digits.push(digit);
            start = &start + &Index::from(digit).times(self.layout.strides[other]);
            divisor *= extent;
        }
        let cell = b.thread_var("k", divisor, self.layout.cells);
        (&start + &Index::from(cell).times(self.layout.cell), digits)
    }

    /// Runs `body` in the threads that have a row of [`Group::rows`].
    pub(super) fn in_rows(
        &self,
        s: &mut Lowering<'_>,
        key: RowKey,
        body: impl FnOnce(&mut Lowering<'_>, &PointRow),
    ) {
        self.in_row(s, &self.rows[&key], body);
    }

    /// Runs `body` in the threads that have this row.
    pub(super) fn in_row(
        &self,
        s: &mut Lowering<'_>,
        row: &PointRow,
        body: impl FnOnce(&mut Lowering<'_>, &PointRow),
    ) {
        match row.below {
            None => body(s, row),
            Some(below) => {
                s.b.open_when();
                body(s, row);
                s.b.close_when(vec![Condition::Below(below.0, below.1)]);
            }
        }
    }

    /// Returns the thread's own line along an axis.
    pub(super) fn own_row(&self, axis: usize) -> PointRow {
        PointRow { start: self.own(axis), stride: self.layout.strides[axis], below: None }
    }

    /// Returns entry `at` of a row of a component.
    pub(super) fn place(&self, row: &PointRow, component: &Index, at: &Index) -> Index {
        &(&row.start + &at.times(row.stride)) + &component.times(self.layout.length())
    }

    /// Returns the first `count` entries of a row.
    pub(super) fn load(
        &self,
        b: &mut Builder,
        array: SharedId,
        row: &PointRow,
        component: &Index,
        count: usize,
    ) -> Vec<ValueId> {
        (0..count).map(|at| b.load_shared(array, self.place(row, component, &at.into()))).collect()
    }

    pub(super) fn store(
        &self,
        b: &mut Builder,
        array: SharedId,
        row: &PointRow,
        component: &Index,
        values: &[ValueId],
    ) {
        for (at, &value) in values.iter().enumerate() {
            b.statement(Statement::StoreShared(
                array,
                self.place(row, component, &at.into()),
                value,
            ));
        }
    }
}

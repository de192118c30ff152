//! The diagonal with a thread per line: rows of coefficients in shared memory, integrated axis by axis.
//!
//! A column keeps its coefficients private and integrates them along the last axis. Products with the same 1D tables
//! along the other axes are summed. Each sum passes through shared memory separately, so that it takes no more space
//! than the field.

use super::column::Column;
use super::{Group, PointRow, SharedQuantity};
use crate::kir::{LocalId, ValueId};
use crate::lower::contract::{Matrix, contract};
use crate::lower::ends::{Product, coefficients, products, table_of};
use crate::lower::lowering::Lowering;
use std::collections::{BTreeMap, BTreeSet};

/// The coefficients at the points of a column: that of a product at `(component · products + product) · q + at`, field
/// by field.
struct ColumnCoefficients {
    local: LocalId,
    products: Vec<Product>,
    /// The index of each field's first component.
    first: Vec<usize>,
}

impl Group {
    pub(super) fn diagonal(&self, s: &mut Lowering<'_>, columns: &[Vec<Column>]) {
        let waiting = self.coefficients(s, columns);
        let mut sums = BTreeMap::<Vec<usize>, Vec<usize>>::new();
        for (number, product) in waiting.products.iter().enumerate() {
            let across = (0..self.dim - 1).map(|axis| product.derived(axis));
            sums.entry(across.collect()).or_default().push(number);
        }
        if sums.is_empty() {
            // Zeros, for scatter algorithms that need a value for each DoF.
            sums.insert(vec![0; self.dim - 1], Vec::new());
        }
        let rows = self.rows_across(s);
        let total = |s: &mut Lowering<'_>, shared: &SharedQuantity| {
            s.b.local("sums", shared.components * shared.factors.n(0))
        };
        let totals: Vec<Option<LocalId>> = self
            .results
            .iter()
            .map(|outcome| (sums.len() > 1).then(|| total(s, &outcome.shared)))
            .collect();
        for (turn, (derived, members)) in sums.iter().enumerate() {
            s.b.comment("integrate along the column");
            for (outcome, &first) in self.results.iter().zip(&waiting.first) {
                self.along_column(s, &outcome.shared, (&waiting, first), members);
            }
            s.b.barrier();
            for axis in (0..self.dim - 1).rev() {
                s.b.comment(["and in x", "in y"][axis]);
                for (outcome, total) in self.results.iter().zip(&totals) {
                    let shared = &outcome.shared;
                    let matrix = self.table(shared, axis, derived[axis]);
                    let onto = total.filter(|_| axis == 0 && turn > 0);
                    let to = total.filter(|_| axis == 0 && turn + 1 < sums.len());
                    let row = &rows[&(axis, self.extents(shared, axis))];
                    self.along_row(s, shared, row, &matrix, (onto, to));
                }
                s.b.barrier();
            }
        }
        self.scatter_nodes(s);
    }

    /// Returns the extents of the rows along an axis: earlier axes still have points, later ones have nodes.
    fn extents(&self, shared: &SharedQuantity, axis: usize) -> Vec<usize> {
        let other = (0..self.dim).filter(|&other| other != axis);
        let extent = |other| if other < axis { self.layout.q } else { shared.factors.n(other) };
        other.map(extent).collect()
    }

    /// Returns the rows along all axes except the last, by their extents.
    fn rows_across(&self, s: &mut Lowering<'_>) -> BTreeMap<(usize, Vec<usize>), PointRow> {
        let counts: BTreeSet<Vec<Vec<usize>>> = self
            .results
            .iter()
            .map(|outcome| (0..self.dim - 1).map(|axis| self.extents(&outcome.shared, axis)))
            .map(Iterator::collect)
            .collect();
        let mut rows = BTreeMap::new();
        for (axis, extents) in counts.into_iter().flat_map(|all| all.into_iter().enumerate()) {
            if !rows.contains_key(&(axis, extents.clone())) {
                let lines = self.layout.distribute(axis, &extents);
                let row = self.row_of(&mut s.b, axis, &extents, &lines);
                rows.insert((axis, extents), row);
            }
        }
        rows
    }

    /// Returns the 1D table along an axis with this many differentiated factors.
    fn table(&self, shared: &SharedQuantity, axis: usize, derived: usize) -> Matrix {
        let orders = [usize::from(derived > 0), usize::from(derived > 1)];
        table_of(shared.factors.lines[axis], self.line, orders)
    }

    /// Stores the coefficients at the points of the thread's column in a private array.
    fn coefficients(&self, s: &mut Lowering<'_>, columns: &[Vec<Column>]) -> ColumnCoefficients {
        let (q, products) = (self.layout.q, products(&s.facts.blocks, self.dim));
        let rows: Vec<usize> =
            self.results.iter().flat_map(|outcome| outcome.rows.clone()).collect();
        let local = s.b.local("coefficients", rows.len() * products.len().max(1) * q);
        self.each_point(s, columns, &mut |s, at, known, number, evaluate| {
            let found = coefficients(s, &products, known, number, evaluate);
            for (i, &value) in rows.iter().flat_map(|&row| &found[row]).enumerate() {
                s.b.store(local, at.plus(i * q), value);
            }
        });
        let mut next = 0;
        let first = self.results.iter().map(|outcome| {
            next += outcome.rows.len();
            next - outcome.rows.len()
        });
        let first = first.collect();
        ColumnCoefficients { local, products, first }
    }

    /// Integrates the sum of some products along the thread's column, into shared memory.
    fn along_column(
        &self,
        s: &mut Lowering<'_>,
        result: &SharedQuantity,
        (waiting, before): (&ColumnCoefficients, usize),
        members: &[usize],
    ) {
        let (q, even_odd, last) = (self.layout.q, s.facts.plan.even_odd, self.dim - 1);
        let (own, n) = (self.own_row(last), result.factors.n(last));
        s.b.repeat("c", result.components, false, |b, c| {
            let mut sum: Option<Vec<ValueId>> = None;
            for &number in members {
                let first = c.plus(before).times(waiting.products.len()).plus(number).times(q);
                let line: Vec<ValueId> =
                    (0..q).map(|at| b.load(waiting.local, first.plus(at))).collect();
                let matrix = self.table(result, last, waiting.products[number].derived(last));
                sum = Some(contract(b, &matrix, &line, sum.as_deref(), even_odd));
            }
            let sum = sum.unwrap_or_else(|| vec![b.constant(0.0); n]);
            self.store(b, result.value(), &own, &c, &sum);
        });
    }

    /// Integrates the rows along an axis: onto the first thread-local sums if present, into the second if present, else
    /// into shared memory.
    fn along_row(
        &self,
        s: &mut Lowering<'_>,
        result: &SharedQuantity,
        row: &PointRow,
        matrix: &Matrix,
        (onto, to): (Option<LocalId>, Option<LocalId>),
    ) {
        let (q, n, even_odd) = (self.layout.q, matrix.rows, s.facts.plan.even_odd);
        self.in_row(s, row, |s, row| {
            s.b.repeat("c", result.components, false, |b, c| {
                let line = self.load(b, result.value(), row, &c, q);
                let known: Option<Vec<ValueId>> =
                    onto.map(|sums| (0..n).map(|at| b.load(sums, c.times(n).plus(at))).collect());
                let line = contract(b, matrix, &line, known.as_deref(), even_odd);
                match to {
                    None => self.store(b, result.value(), row, &c, &line),
                    Some(sums) => {
                        for (at, &value) in line.iter().enumerate() {
                            b.store(sums, c.times(n).plus(at), value);
                        }
                    }
                }
            });
        });
    }

    /// Adds the nodal values in shared memory to the result.
    fn scatter_nodes(&self, s: &mut Lowering<'_>) {
        for outcome in &self.results {
            let shared = &outcome.shared;
            s.comment_on("scatter", outcome.field);
            let (nodes, axis) = (self.nodal_lines(shared), self.nodal_axis(shared));
            self.in_row(s, &nodes.row, |s, row| {
                for c in 0..shared.components {
                    let n = shared.factors.n(axis);
                    let line = self.load(&mut s.b, shared.value(), row, &c.into(), n);
                    self.scatter_line(s, outcome, nodes, (axis, c), &line);
                }
            });
        }
    }
}

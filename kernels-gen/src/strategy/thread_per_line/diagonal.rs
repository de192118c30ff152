//! The diagonal by a thread a line: rows of coefficients in shared memory, integrated axis by axis.
//!
//! A column keeps its coefficients to itself and integrates them along the last axis. What then has the same
//! 1D tables along the other axes is one sum, which passes through shared memory by itself, so that no more
//! room is needed than for the field.

use super::{Group, Held, Row, barrier};
use crate::kir::build::Builder;
use crate::kir::{Index, LocalId, Statement, ValueId};
use crate::lower::contract::{Matrix, contract};
use crate::strategy::diagonal::{Product, coefficients, products, table};
use crate::strategy::setting::Setting;
use std::collections::BTreeMap;

/// The coefficients at the points of a column: that of a product at `(component · products + product) · q + at`.
struct Waiting {
    local: LocalId,
    products: Vec<Product>,
}

impl Group {
    pub(super) fn diagonal(&self, s: &mut Setting<'_>) {
        let Some(result) = &self.result else { return };
        let waiting = self.coefficients(s, result.components);
        let mut sums = BTreeMap::<Vec<usize>, Vec<usize>>::new();
        for (number, product) in waiting.products.iter().enumerate() {
            let across = (0..self.dim - 1).map(|axis| product.derived(axis));
            sums.entry(across.collect()).or_default().push(number);
        }
        let n = result.factors.n;
        let across: Vec<Row> = (0..self.dim - 1)
            .map(|axis| {
                // The axes before this one are still points, those behind it are nodes.
                let other = (0..self.dim).filter(|&other| other != axis);
                let extents = other.map(|other| if other < axis { self.layout.q } else { n });
                let extents: Vec<usize> = extents.collect();
                let lines = self.layout.deal(axis, &extents);
                self.row_of(&mut s.b, axis, &extents, &lines)
            })
            .collect();
        let total = (sums.len() > 1).then(|| s.b.local("sums", result.components * n));
        for (turn, (derived, members)) in sums.iter().enumerate() {
            s.b.comment("integrate along the column");
            self.along_column(s, result, &waiting, members);
            barrier(s);
            for axis in (0..self.dim - 1).rev() {
                s.b.comment(["and in x", "in y"][axis]);
                let matrix = table(n, self.line, derived[axis]);
                let onto = total.filter(|_| axis == 0 && turn > 0);
                let to = total.filter(|_| axis == 0 && turn + 1 < sums.len());
                self.along_row(s, result, &across[axis], &matrix, (onto, to));
                barrier(s);
            }
        }
        self.scatter_nodes(s, result);
    }

    /// The coefficients at the points of the thread's column, in an array of its own.
    fn coefficients(&self, s: &mut Setting<'_>, components: usize) -> Waiting {
        let (q, products) = (self.layout.q, products(&s.blocks, self.dim));
        let local = s.b.local("coefficients", components * products.len() * q);
        self.each_point(s, &mut |s, at, known, number, evaluate| {
            let found = coefficients(s, &products, known, number, evaluate);
            for (i, &value) in found.iter().flatten().enumerate() {
                s.b.store(local, at.plus(i * q), value);
            }
        });
        Waiting { local, products }
    }

    /// The sum of some products, integrated along the thread's column, to shared memory.
    fn along_column(
        &self,
        s: &mut Setting<'_>,
        result: &Held,
        waiting: &Waiting,
        members: &[usize],
    ) {
        let (q, even_odd, last) = (self.layout.q, s.plan.even_odd, self.dim - 1);
        let (own, n) = (self.own_row(last), result.factors.n);
        s.b.repeat("c", result.components, false, |b, c| {
            let mut sum: Option<Vec<ValueId>> = None;
            for &number in members {
                let first = c.times(waiting.products.len()).plus(number).times(q);
                let line: Vec<ValueId> =
                    (0..q).map(|at| b.load(waiting.local, first.plus(at))).collect();
                let matrix = table(n, self.line, waiting.products[number].derived(last));
                sum = Some(contract(b, &matrix, &line, sum.as_deref(), even_odd));
            }
            self.store_component(b, result, &own, &c, &sum.unwrap_or_default());
        });
    }

    /// Integrates the rows along an axis, onto the sums of the thread where these are given first, to them
    /// where they are given second, else to shared memory.
    fn along_row(
        &self,
        s: &mut Setting<'_>,
        result: &Held,
        row: &Row,
        matrix: &Matrix,
        (onto, to): (Option<LocalId>, Option<LocalId>),
    ) {
        let (q, n, even_odd) = (self.layout.q, result.factors.n, s.plan.even_odd);
        self.in_row(s, row, |s, row| {
            s.b.repeat("c", result.components, false, |b, c| {
                let place = |at: usize| self.place_of(row, &c, at);
                let line: Vec<ValueId> =
                    (0..q).map(|at| b.load_shared(result.value, place(at))).collect();
                let known: Option<Vec<ValueId>> =
                    onto.map(|sums| (0..n).map(|at| b.load(sums, c.times(n).plus(at))).collect());
                let line = contract(b, matrix, &line, known.as_deref(), even_odd);
                match to {
                    None => self.store_component(b, result, row, &c, &line),
                    Some(sums) => {
                        for (at, &value) in line.iter().enumerate() {
                            b.store(sums, c.times(n).plus(at), value);
                        }
                    }
                }
            });
        });
    }

    /// Adds what shared memory holds of the nodes.
    fn scatter_nodes(&self, s: &mut Setting<'_>, result: &Held) {
        s.b.comment("scatter");
        let n = result.factors.n;
        self.in_row(s, &self.nodal[&n].row, |s, row| {
            for c in 0..result.components {
                let line = self.load(&mut s.b, result.value, row, c, n);
                self.scatter_line(s, result, self.nodal_axis(result), c, &line);
            }
        });
    }

    fn place_of(&self, row: &Row, component: &Index, at: usize) -> Index {
        &row.start.plus(at * row.stride) + &component.times(self.layout.length())
    }

    fn store_component(
        &self,
        b: &mut Builder,
        result: &Held,
        row: &Row,
        component: &Index,
        line: &[ValueId],
    ) {
        for (at, &value) in line.iter().enumerate() {
            let place = self.place_of(row, component, at);
            b.statement(Statement::StoreShared(result.value, place, value));
        }
    }
}

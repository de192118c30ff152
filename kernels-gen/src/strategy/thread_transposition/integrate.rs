//! The phase after the transposition: basis functions times values of the points.

use super::layout::Digits;
use super::phases::{ElementVector, Tests, Transposition};
use super::sums::Sums;
use crate::element::tabulate;
use crate::kir::{Index, ValueId};
use crate::lower::ends::squared;
use crate::lower::lowering::{Lowering, repeat};
use crate::lower::restrict::NodalLocation;
use crate::lower::slots;
use crate::lower::stored::TestFactors;
use crate::lower::tables::BasisValues;
use crate::plan::Task;
use fem_dsl::point::Part;
use std::collections::BTreeMap;

impl Transposition {
    /// Integrates basis functions against the values of the points.
    pub(super) fn integrate(&self, s: &mut Lowering<'_>) {
        let Some(tests) = &self.tests else { return };
        for result in &tests.results {
            let nodes = result.tables.nodes;
            s.comment_on("integrate", result.field);
            let digits = Digits::new(&mut s.b, "basis", &self.layout, nodes);
            let node = digits.item();
            digits.each_cell(s, &mut |s, cell| {
                let sums = match s.facts.plan.task {
                    Task::Diagonal => self.diagonal(s, result, &node, cell),
                    _ => self.tested(s, (tests, result), &node, cell),
                };
                if let Some(hanging) = &result.hanging {
                    for (c, sum) in sums.into_iter().enumerate() {
                        let at = self.place(&node.plus(c * nodes), cell);
                        s.b.store_shared(hanging.nodal(), at, sum);
                    }
                    return;
                }
                let entry = &Index::from(s.b.batch()).times(nodes) + &node;
                slots::load_term(s, result.field, &entry);
                let nodal = NodalLocation::result(s, result.field);
                s.b.open_when();
                for (c, sum) in sums.into_iter().enumerate() {
                    nodal.scatter(&mut s.b, &entry, c, sum);
                }
                s.b.close_when_written();
            });
        }
        self.scatter_hanging(s, &tests.results);
    }

    /// Tests in the thread of a cell's only point, φ_b f0 + ∇φ_b · f1: the batch's nodes sum it over their cells.
    pub(super) fn leave(&self, s: &mut Lowering<'_>, tested: &[TestFactors]) {
        let Some(tests) = &self.tests else { return };
        s.b.open_when();
        for result in &tests.results {
            let element = s.facts.elements.fields[result.field];
            let tabulation = tabulate(element, &s.facts.elements.rule.points());
            let nodal = NodalLocation::result(s, result.field);
            for node in 0..result.tables.nodes {
                let entry = Index::from(s.b.batch()).times(result.tables.nodes).plus(node);
                for (c, tested) in tested[result.rows.clone()].iter().enumerate() {
                    let zero = s.b.constant(0.0);
                    let sum = tested.against(s, zero, |s, part| match part {
                        Part::Value => s.b.constant(tabulation.value(0, node)),
                        Part::Derivative(a) => s.b.constant(tabulation.gradient(0, node)[a]),
                        Part::Second(..) => {
                            unreachable!("second derivatives have one lane or thread a cell")
                        }
                        Part::Exterior(_) => {
                            unreachable!("the pull-back replaces exterior derivatives")
                        }
                    });
                    nodal.scatter(&mut s.b, &entry, c, sum);
                }
            }
        }
        s.b.close_when_written();
    }

    /// Loads a stored value of a point.
    fn waiting(&self, s: &mut Lowering<'_>, number: usize, q: &Index, cell: &Index) -> ValueId {
        let shared = self.tests.as_ref().and_then(|tests| tests.shared);
        let shared = shared.expect("something should wait");
        let at = self.place(&q.plus(number * self.layout.points), cell);
        s.b.load_shared(shared, at)
    }

    /// Computes Σ_q B f0 + D f1, component by component.
    fn tested(
        &self,
        s: &mut Lowering<'_>,
        (tests, result): (&Tests, &ElementVector),
        node: &Index,
        cell: &Index,
    ) -> Vec<ValueId> {
        let (components, points, tables) = (result.rows.len(), self.layout.points, &result.tables);
        let (parts, stored) = (tests.parts_of(result), s.facts.stored(result.field));
        let count = parts.len();
        // A derivative that is equal at all points multiplies the sum over the points.
        let constant = tables.are_linear();
        let each_part = |part: Part| constant && matches!(part, Part::Derivative(_));
        let unroll = s.facts.plan.unroll >= points;
        let sums = if constant { components * count } else { stored };
        let mut sums = Sums::new(s, "r", sums, unroll);
        let one = s.b.constant(1.0);
        repeat(s, "q", points, unroll, |s, q| {
            for (i, (part, numbers)) in parts.iter().enumerate() {
                let mut factor = one;
                for (n, &(c, number)) in numbers.iter().enumerate() {
                    if (n == 0 || tables.are_vectors()) && !each_part(*part) {
                        factor = tables.basis(s, (c, *part), node, &q);
                    }
                    let value = self.waiting(s, number, &q, cell);
                    let slot = if constant { c * count + i } else { c.min(stored - 1) };
                    sums.add(s, slot, factor, value);
                }
            }
        });
        let sums = sums.take(s);
        if !constant {
            return sums;
        }
        let (zero, start) = (s.b.constant(0.0), Index::default());
        let mut results = vec![zero; stored];
        for c in 0..components {
            let sum = &mut results[c.min(stored - 1)];
            for (i, (part, _)) in parts.iter().enumerate() {
                let factor = match each_part(*part) {
                    true => tables.basis(s, (c, *part), node, &start),
                    false => one,
                };
                *sum = s.b.fma(factor, sums[c * count + i], *sum);
            }
        }
        results
    }

    /// Computes Σ_q of each coefficient times φ_b φ_b and its derivatives.
    fn diagonal(
        &self,
        s: &mut Lowering<'_>,
        result: &ElementVector,
        node: &Index,
        cell: &Index,
    ) -> Vec<ValueId> {
        let (points, stored) = (self.layout.points, s.facts.stored(result.field));
        let tables = &result.tables;
        let blocks = &s.facts.blocks;
        let unroll = s.facts.plan.unroll >= points;
        let mut sums = Sums::new(s, "r", stored, unroll);
        let one = s.b.constant(1.0);
        repeat(s, "q", points, unroll, |s, q| {
            let components = if tables.are_vectors() { result.rows.len() } else { 1 };
            let of = |c: usize| BasisValues::new(s, tables, c, node, &q);
            let functions: Vec<BasisValues> = (0..components).map(of).collect();
            let own = blocks.pairs.iter().filter(|(row, _, _)| result.rows.contains(row));
            for &(row, trial, block) in own {
                let pulled = blocks.reread(block, |number| self.waiting(s, number, &q, cell));
                let zero = s.b.constant(0.0);
                let values = [row, trial]
                    .map(|row| functions[(row - result.rows.start).min(components - 1)].parts());
                let sum = squared(&mut s.b, &pulled, values, zero);
                sums.add(s, (row - result.rows.start).min(stored - 1), one, sum);
            }
        });
        sums.take(s)
    }
}

impl Tests {
    /// Returns the parts by which components of a field are tested, each with these components and their indices.
    fn parts_of(&self, result: &ElementVector) -> Vec<(Part, Vec<(usize, usize)>)> {
        let mut parts = BTreeMap::<Part, Vec<(usize, usize)>>::new();
        for (number, &(row, part)) in self.numbers.iter().enumerate() {
            if result.rows.contains(&row) {
                parts.entry(part).or_default().push((row - result.rows.start, number));
            }
        }
        parts.into_iter().collect()
    }
}

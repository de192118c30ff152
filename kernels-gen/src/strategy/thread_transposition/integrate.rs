//! The phase after the transposition: basis functions against what the points have left.

use super::layout::Digits;
use super::phases::{Tests, Transposition};
use super::tables::Sums;
use crate::kir::{Index, ValueId};
use crate::lower::stored::{Tested, act};
use crate::plan::Task;
use crate::strategy::nodal::Nodal;
use crate::strategy::setting::{Setting, repeat};
use fem_dsl::point::Part;

impl Transposition {
    /// Basis functions against what the points have left.
    pub(super) fn integrate(&self, s: &mut Setting<'_>) {
        let Some(tests) = &self.tests else { return };
        let nodes = tests.tables.nodes;
        s.b.comment("integrate");
        let digits = Digits::new(&mut s.b, "basis", &self.layout, nodes);
        let node = digits.item();
        let nodal = Nodal::result(s, 0);
        digits.each_cell(s, &mut |s, cell| {
            let sums = match s.plan.task {
                Task::Diagonal => self.diagonal(s, tests, &node, cell),
                _ => self.tested(s, tests, &node, cell),
            };
            let entry = &Index::from(s.b.batch()).times(nodes) + &node;
            s.b.open_when();
            for (c, sum) in sums.into_iter().enumerate() {
                nodal.scatter(&mut s.b, &entry, c, sum);
            }
            s.b.close_when_written();
        });
    }

    /// What component by component waits at a point.
    fn waiting(&self, s: &mut Setting<'_>, number: usize, q: &Index, cell: &Index) -> ValueId {
        let shared = self.tests.as_ref().expect("something should be tested").shared;
        let at = self.place(&q.plus(number * self.layout.points), cell);
        s.b.load_shared(shared, at)
    }

    /// Σ_q B f0 + D f1, component by component.
    fn tested(
        &self,
        s: &mut Setting<'_>,
        tests: &Tests,
        node: &Index,
        cell: &Index,
    ) -> Vec<ValueId> {
        let (components, points) = (s.components(0), self.layout.points);
        let (parts, count) = (&tests.parts, tests.parts.len());
        // A derivative that is the same at all points is taken of the sum over the points.
        let constant = tests.tables.constant.is_some();
        let each_part = |part: Part| constant && part != Part::Value;
        let slots = if constant { count } else { 1 };
        let unroll = s.plan.unroll >= points;
        let mut sums = Sums::new(s, "r", components * slots, unroll);
        let one = s.b.constant(1.0);
        repeat(s, "q", points, unroll, |s, q| {
            let at = &q.times(tests.tables.nodes) + node;
            for (i, &part) in parts.iter().enumerate() {
                let factor = if each_part(part) { one } else { tests.tables.load(s, part, &at) };
                for c in 0..components {
                    let value = self.waiting(s, c * count + i, &q, cell);
                    let slot = if constant { c * count + i } else { c };
                    sums.add(s, slot, factor, value);
                }
            }
        });
        let sums = sums.take(s);
        if !constant {
            return sums;
        }
        let mut results = Vec::new();
        for c in 0..components {
            let mut result = s.b.constant(0.0);
            for (i, &part) in parts.iter().enumerate() {
                let sum = sums[c * count + i];
                let factor = if each_part(part) { tests.tables.load(s, part, node) } else { one };
                result = s.b.fma(factor, sum, result);
            }
            results.push(result);
        }
        results
    }

    /// Σ_q of each coefficient times φ_b φ_b and its derivatives.
    fn diagonal(
        &self,
        s: &mut Setting<'_>,
        tests: &Tests,
        node: &Index,
        cell: &Index,
    ) -> Vec<ValueId> {
        let (components, points, dim) = (s.components(0), self.layout.points, s.form.dim);
        let blocks = s.blocks.clone();
        let unroll = s.plan.unroll >= points;
        let mut sums = Sums::new(s, "r", components, unroll);
        let one = s.b.constant(1.0);
        repeat(s, "q", points, unroll, |s, q| {
            let at = &q.times(tests.tables.nodes) + node;
            let derivative = if tests.tables.constant.is_some() { node } else { &at };
            let value = tests.tables.load(s, Part::Value, &at);
            let gradient: Vec<ValueId> =
                (0..dim).map(|a| tests.tables.load(s, Part::Derivative(a), derivative)).collect();
            for &(component, _, block) in &blocks.pairs {
                let (block, first) = &blocks.blocks[block];
                let numbers: Vec<ValueId> =
                    (0..block.numbers(dim)).map(|i| self.waiting(s, first + i, &q, cell)).collect();
                let mut next = numbers.into_iter();
                let pulled =
                    blocks.from_numbers(block, || next.next().expect("numbers should suffice"));
                let mut tested = Tested::default();
                act(&mut s.b, &pulled, Some(value), &gradient, &mut tested);
                let mut sum = s.b.constant(0.0);
                if let Some(flux) = tested.value {
                    sum = s.b.fma(value, flux, sum);
                }
                for (&g, &flux) in gradient.iter().zip(&tested.gradient) {
                    sum = s.b.fma(g, flux, sum);
                }
                sums.add(s, component, one, sum);
            }
        });
        sums.take(s)
    }
}

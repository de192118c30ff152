//! Dense tables of basis functions at the points, for elements that are no tensor product or have more nodes than
//! points.

use super::lowering::Lowering;
use crate::element::{Element, tabulate, tabulate_seconds};
use crate::kir::{Entries, Index, TableId, ValueId};
use fem_dsl::point::Part;
use std::collections::BTreeMap;

/// The tables of an element.
pub(crate) struct Tables {
    pub(crate) nodes: usize,
    value: TableId,
    derivatives: Vec<TableId>,
    /// Second derivatives, a ≤ b in ascending order, if they are needed and not all 0.
    seconds: BTreeMap<Part, TableId>,
    /// The derivatives at any point, `[axis][node]`, if they are equal at all.
    pub(crate) constant: Option<Vec<Vec<f64>>>,
    points: usize,
    by: TableReader,
}

/// The reader of a table: one thread or lane reads all of it, entries `[point][node]`; threads with a point each,
/// `[node][point]`; or threads with a node each, `[point][node]`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableReader {
    One,
    Point,
    Node,
}

impl Tables {
    pub(crate) fn new(s: &mut Lowering<'_>, name: &str, element: Element, by: TableReader) -> Self {
        Self::of(s, name, element, by, false)
    }

    /// Returns tables that one thread or lane reads, with second derivatives if they are needed.
    pub(crate) fn with_seconds(
        s: &mut Lowering<'_>,
        name: &str,
        element: Element,
        second: bool,
    ) -> Self {
        Self::of(s, name, element, TableReader::One, second)
    }

    fn of(
        s: &mut Lowering<'_>,
        name: &str,
        element: Element,
        by: TableReader,
        second: bool,
    ) -> Self {
        let points = s.facts.rule_points();
        let (tabulation, nodes, all) = (tabulate(element, &points), element.count(), points.len());
        let flat = |entry: &dyn Fn(usize, usize) -> f64| -> Entries {
            let pairs = (0..all * nodes).map(|i| match by {
                TableReader::Point => (i % all, i / all),
                TableReader::One | TableReader::Node => (i / nodes, i % nodes),
            });
            Entries::Real(pairs.map(|(q, b)| entry(q, b)).collect())
        };
        let same = element.degree() <= 1 && !s.facts.elements.cell.is_tensor();
        let axes = 0..s.facts.form.dim;
        let constant = same.then(|| {
            let of = |a: usize| (0..nodes).map(|b| tabulation.gradient(0, b)[a]).collect();
            axes.clone().map(of).collect::<Vec<Vec<f64>>>()
        });
        let suffix = if by == TableReader::Node { "_t" } else { "" };
        let mut table = |what: &str, entries: Entries| {
            let name = format!("{name}_{what}{suffix}");
            if by == TableReader::One {
                s.b.table(&name, entries)
            } else {
                s.b.spread_table(&name, entries)
            }
        };
        let value = table("values", flat(&|q, b| tabulation.value(q, b)));
        let derivatives = axes.map(|a| {
            let entries = match &constant {
                Some(constant) => Entries::Real(constant[a].clone()),
                None => flat(&|q, b| tabulation.gradient(q, b)[a]),
            };
            table(&format!("d{a}"), entries)
        });
        let derivatives = derivatives.collect();
        let mut seconds = BTreeMap::new();
        if second && !same {
            let entries = tabulate_seconds(element, &points);
            for (part, entries) in Part::of_order(2, s.facts.form.dim).into_iter().zip(entries) {
                let Part::Second(a, b) = part else { continue };
                let id = table(&format!("d{a}{b}"), flat(&|q, i| entries[q * nodes + i]));
                seconds.insert(part, id);
            }
        }
        Self { nodes, value, derivatives, seconds, constant, points: all, by }
    }

    /// Returns a part of a basis function at a point; a constant if all readers read the same entry.
    pub(crate) fn basis(
        &self,
        s: &mut Lowering<'_>,
        part: Part,
        node: &Index,
        point: &Index,
    ) -> ValueId {
        let (table, constant) = match part {
            Part::Value => (self.value, None),
            Part::Derivative(a) => (self.derivatives[a], self.constant.as_ref().map(|all| &all[a])),
            Part::Second(..) => match self.seconds.get(&part) {
                Some(&table) => (table, None),
                None => return s.b.constant(0.0),
            },
            Part::Exterior(_) => unreachable!("the pull-back replaces exterior derivatives"),
        };
        match (constant, node.known(), self.by) {
            (Some(slopes), Some(node), TableReader::One) => s.b.constant(slopes[node]),
            (Some(_), _, _) => s.b.load_table(table, node.clone()),
            (None, _, TableReader::Point) => {
                s.b.load_table(table, &node.times(self.points) + point)
            }
            (None, _, _) => s.b.load_table(table, &point.times(self.nodes) + node),
        }
    }

    /// Returns the derivatives of a function that are equal at all points, from its values at the nodes.
    pub(crate) fn constant_gradient(
        &self,
        s: &mut Lowering<'_>,
        mut value: impl FnMut(&mut Lowering<'_>, usize) -> ValueId,
    ) -> Option<Vec<ValueId>> {
        let constant = self.constant.as_ref()?;
        let values: Vec<ValueId> = (0..self.nodes).map(|node| value(s, node)).collect();
        let zero = s.b.constant(0.0);
        let along = |slopes: &Vec<f64>| {
            let terms = slopes.iter().zip(&values).filter(|(slope, _)| **slope != 0.0);
            terms.fold(zero, |sum, (&slope, &value)| {
                let slope = s.b.constant(slope);
                s.b.fma(slope, value, sum)
            })
        };
        Some(constant.iter().map(along).collect())
    }
}

//! Dense tables of basis functions at the points, for elements that are no tensor product or have more nodes than
//! points.

use super::lowering::Lowering;
use super::stored::PartValues;
use crate::element::{
    Element, Tabulation, tabulate, tabulate_components, tabulate_seconds, tabulate_turned,
};
use crate::kir::{Entries, Index, TableId, ValueId};
use crate::plan::turns;
use fem_dsl::point::{Part, Side};
use std::collections::BTreeMap;

/// The tables of an element.
pub(crate) struct Tables {
    pub(crate) nodes: usize,
    /// Of the functions, or of each of their components.
    parts: Vec<FunctionTables>,
    points: usize,
    by: TableReader,
}

/// The tables of scalar functions.
struct FunctionTables {
    value: TableId,
    /// The derivatives along each axis that are read.
    derivatives: Vec<Option<TableId>>,
    /// Second derivatives, a ≤ b in ascending order, if they are needed and not all 0.
    seconds: BTreeMap<Part, TableId>,
    /// The derivatives at any point, `[axis][node]`, if they are equal at all.
    constant: Option<Vec<Vec<f64>>>,
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
        Self::of(s, (name, Side::Inside), element, by, false)
    }

    /// Returns tables that one thread or lane reads, of the cell on a side, with second derivatives if they are needed.
    pub(crate) fn with_seconds(
        s: &mut Lowering<'_>,
        (name, side): (&str, Side),
        element: Element,
        second: bool,
    ) -> Self {
        Self::of(s, (name, side), element, TableReader::One, second)
    }

    fn of(
        s: &mut Lowering<'_>,
        (name, side): (&str, Side),
        element: Element,
        by: TableReader,
        second: bool,
    ) -> Self {
        let mut points = s.facts.rule_points();
        if s.facts.plan.larger == Some(side) {
            // The facet is the lower half along each of its axes.
            let halved = |[first, s, t]: [f64; 3]| [first, s / 2.0, t / 2.0];
            points = points.into_iter().map(halved).collect();
        }
        let parts = match element.whitney() {
            None => {
                let seconds = second.then(|| tabulate_seconds(element, &points));
                let tabulation = tabulate(element, &points);
                vec![FunctionTables::new(s, name, (element, 0), by, (tabulation, seconds))]
            }
            Some(whitney) => {
                let tables = match s.facts.plan.facet {
                    Some(number) => {
                        let turn = turns::on_side(whitney.cell(), number, side);
                        tabulate_turned(whitney, turn, &points)
                    }
                    None => tabulate_components(whitney, &points),
                };
                let of = |(a, tabulation)| {
                    let name = format!("{name}_{a}");
                    FunctionTables::new(s, &name, (element, a), by, (tabulation, None))
                };
                tables.into_iter().enumerate().map(of).collect()
            }
        };
        Self { nodes: element.count(), parts, points: points.len(), by }
    }

    /// Returns whether functions have several components, so that a degree of freedom contributes to all of a field.
    pub(crate) fn are_vectors(&self) -> bool {
        self.parts.len() > 1
    }

    /// Returns whether derivatives are equal at all points.
    pub(crate) fn are_linear(&self) -> bool {
        self.parts[0].constant.is_some()
    }

    fn of_component(&self, c: usize) -> &FunctionTables {
        if self.are_vectors() { &self.parts[c] } else { &self.parts[0] }
    }

    /// Returns the position of the degree of freedom of a component at a node among those of a cell.
    pub(crate) fn place(&self, node: &Index, c: usize) -> Index {
        if self.are_vectors() { node.clone() } else { node.plus(c * self.nodes) }
    }

    /// Returns the part of a component of a basis function at a point; a constant if all readers read the same entry.
    pub(crate) fn basis(
        &self,
        s: &mut Lowering<'_>,
        (c, part): (usize, Part),
        node: &Index,
        point: &Index,
    ) -> ValueId {
        let own = self.of_component(c);
        let (table, constant) = match part {
            Part::Value => (Some(own.value), None),
            Part::Derivative(a) => (own.derivatives[a], own.constant.as_ref().map(|all| &all[a])),
            Part::Second(..) => (own.seconds.get(&part).copied(), None),
            Part::Exterior(_) => unreachable!("the pull-back replaces exterior derivatives"),
        };
        let Some(table) = table else { return s.b.constant(0.0) };
        match (constant, node.known(), self.by) {
            (Some(slopes), Some(node), TableReader::One) => s.b.constant(slopes[node]),
            (Some(_), _, _) => s.b.load_table(table, node.clone()),
            (None, _, TableReader::Point) => {
                s.b.load_table(table, &node.times(self.points) + point)
            }
            (None, _, _) => s.b.load_table(table, &point.times(self.nodes) + node),
        }
    }

    /// Returns the derivatives of a component that are equal at all points, from the values at the nodes.
    pub(crate) fn constant_gradient(
        &self,
        s: &mut Lowering<'_>,
        c: usize,
        mut value: impl FnMut(&mut Lowering<'_>, usize) -> ValueId,
    ) -> Option<Vec<ValueId>> {
        let constant = self.of_component(c).constant.as_ref()?;
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

/// A component of a basis function at a point.
pub(crate) struct BasisValues {
    value: ValueId,
    gradient: Vec<ValueId>,
    second: Vec<ValueId>,
}

impl BasisValues {
    /// Loads the parts that blocks of coefficients multiply.
    pub(crate) fn new(
        s: &mut Lowering<'_>,
        tables: &Tables,
        c: usize,
        node: &Index,
        point: &Index,
    ) -> Self {
        let (dim, has_second) = (s.facts.form.dim, s.facts.blocks.has_second());
        let value = tables.basis(s, (c, Part::Value), node, point);
        let mut of_order = |order: usize| -> Vec<ValueId> {
            let parts = Part::of_order(order, dim).into_iter();
            parts.map(|part| tables.basis(s, (c, part), node, point)).collect()
        };
        let gradient = of_order(1);
        let second = if has_second { of_order(2) } else { Vec::new() };
        Self { value, gradient, second }
    }

    pub(crate) fn parts(&self) -> PartValues<'_> {
        PartValues { value: Some(self.value), gradient: &self.gradient, second: &self.second }
    }
}

impl FunctionTables {
    /// Creates the tables of a component of an element's functions.
    fn new(
        s: &mut Lowering<'_>,
        name: &str,
        (element, component): (Element, usize),
        by: TableReader,
        (tabulation, seconds): (Tabulation, Option<Vec<Vec<f64>>>),
    ) -> Self {
        let (nodes, all) = (tabulation.nodes, tabulation.points);
        let flat = |entry: &dyn Fn(usize, usize) -> f64| -> Entries {
            let pairs = (0..all * nodes).map(|i| match by {
                TableReader::Point => (i % all, i / all),
                TableReader::One | TableReader::Node => (i / nodes, i % nodes),
            });
            Entries::Real(pairs.map(|(q, b)| entry(q, b)).collect())
        };
        let same = element.degree() <= 1 && !s.facts.elements.cell.is_factorised();
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
            let entries = || match &constant {
                Some(constant) => Entries::Real(constant[a].clone()),
                None => flat(&|q, b| tabulation.gradient(q, b)[a]),
            };
            element.is_differentiated(component, a).then(|| table(&format!("d{a}"), entries()))
        });
        let derivatives = derivatives.collect();
        let mut known = BTreeMap::new();
        let parts = Part::of_order(2, s.facts.form.dim).into_iter();
        for (part, entries) in parts.zip(seconds.into_iter().flatten()).filter(|_| !same) {
            let Part::Second(a, b) = part else { continue };
            let name = format!("{name}_d{a}{b}{suffix}");
            let entries = flat(&|q, i| entries[q * nodes + i]);
            let id = match by {
                TableReader::One => s.b.table(&name, entries),
                _ => s.b.spread_table(&name, entries),
            };
            known.insert(part, id);
        }
        Self { value, derivatives, seconds: known, constant }
    }
}

//! Tables of basis functions, and sums over nodes and points.

use crate::element::{Lagrange, tabulate};
use crate::kir::{Entries, Index, LocalId, TableId, ValueId};
use crate::lower::lowering::Lowering;
use fem_dsl::point::Part;

/// The tables of an element at the points.
pub(super) struct Tables {
    pub(super) nodes: usize,
    pub(super) value: TableId,
    pub(super) derivatives: Vec<TableId>,
    /// The derivatives at any point, `[axis][node]`, where they are the same at all.
    pub(super) constant: Option<Vec<Vec<f64>>>,
}

/// Which digit of a thread's number a table is read by: the point, and entries are `[node][point]`, or
/// the node, and they are `[point][node]`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Point,
    Node,
}

impl Tables {
    pub(super) fn new(s: &mut Lowering<'_>, name: &str, element: Lagrange, by: By) -> Self {
        let points = s.facts.elements.rule.points();
        let (tabulation, nodes) = (tabulate(element, &points), element.count());
        let all = points.len();
        let flat = |entry: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            let pairs = (0..all * nodes).map(|i| match by {
                By::Point => (i % all, i / all),
                By::Node => (i / nodes, i % nodes),
            });
            pairs.map(|(q, b)| entry(q, b)).collect()
        };
        let same = element.degree() <= 1 && !s.facts.elements.cell.is_tensor();
        let axes = 0..s.facts.form.dim;
        let constant = same.then(|| {
            let of = |a: usize| (0..nodes).map(|b| tabulation.gradient(0, b)[a]).collect();
            axes.clone().map(of).collect::<Vec<Vec<f64>>>()
        });
        let suffix = if by == By::Point { "" } else { "_t" };
        let values = Entries::Real(flat(&|q, b| tabulation.value(q, b)));
        let value = s.b.spread_table(&format!("{name}_values{suffix}"), values);
        let derivatives = axes.map(|a| {
            let entries = match &constant {
                Some(constant) => constant[a].clone(),
                None => flat(&|q, b| tabulation.gradient(q, b)[a]),
            };
            s.b.spread_table(&format!("{name}_d{a}{suffix}"), Entries::Real(entries))
        });
        let derivatives = derivatives.collect();
        Self { nodes, value, derivatives, constant }
    }

    /// The factor of a node at a point.
    pub(super) fn load(&self, s: &mut Lowering<'_>, part: Part, at: &Index) -> ValueId {
        match part {
            Part::Value => s.b.load_table(self.value, at.clone()),
            Part::Derivative(a) => s.b.load_table(self.derivatives[a], at.clone()),
        }
    }
}

/// Sums that a loop adds to: values where it is written out, else entries of a private array.
pub(super) struct Sums {
    local: Option<LocalId>,
    values: Vec<ValueId>,
}

impl Sums {
    pub(super) fn new(s: &mut Lowering<'_>, name: &str, count: usize, written_out: bool) -> Self {
        let zero = s.b.constant(0.0);
        let local = (!written_out).then(|| s.b.local(&format!("{name}_sums"), count));
        if let Some(local) = local {
            (0..count).for_each(|i| s.b.store(local, Index::from(i), zero));
        }
        Self { local, values: vec![zero; count] }
    }

    pub(super) fn add(
        &mut self,
        s: &mut Lowering<'_>,
        slot: usize,
        factor: ValueId,
        value: ValueId,
    ) {
        let Some(local) = self.local else {
            self.values[slot] = s.b.fma(factor, value, self.values[slot]);
            return;
        };
        let sum = s.b.load(local, Index::from(slot));
        let sum = s.b.fma(factor, value, sum);
        s.b.store(local, Index::from(slot), sum);
    }

    pub(super) fn take(self, s: &mut Lowering<'_>) -> Vec<ValueId> {
        match self.local {
            None => self.values,
            Some(local) => {
                (0..self.values.len()).map(|i| s.b.load(local, Index::from(i))).collect()
            }
        }
    }
}

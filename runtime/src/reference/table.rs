//! Full tabulation with scales: (Lagrange, Rule) → φ_i(x_q) and ∂φ_i/∂ξ_j(x_q) as [`Bounded`].
//!
//! On tensor cells a kernel may reach these numbers on other roads: by even and odd parts, which
//! mix nodes i and n−1−i, and by the collocation derivative, B' = D B. The scale of an entry is
//! therefore, a direction, |B_i| + |B_{n−1−i}|, and Σ_q' |D_qq'| (|B_q'i| + |B_q',n−1−i|) for a
//! derivative.

use super::Bounded;
use kernels_gen::element::{Lagrange, LinePoints, LineTable, Rule, tabulate_rule};

/// A basis tabulated at the points of a rule.
pub(super) struct Table {
    nodes: usize,
    dim: usize,
    values: Vec<Bounded>,
    gradients: Vec<Bounded>,
}

impl Table {
    pub(super) fn new(element: Lagrange, rule: Rule) -> Self {
        let plain = tabulate_rule(element, rule);
        let mut table = Self {
            nodes: plain.nodes,
            dim: plain.dim,
            values: plain.values.iter().map(|&v| Bounded::new(v)).collect(),
            gradients: plain.gradients.iter().map(|&v| Bounded::new(v)).collect(),
        };
        if let (Some(nodes), Some(points)) = (element.line(), rule.line()) {
            table.widen(&LineScales::new(nodes, points));
        }
        table
    }

    /// φ_i(x_q), or its derivative along a reference axis.
    pub(super) fn entry(&self, q: usize, i: usize, axis: Option<usize>) -> Bounded {
        match axis {
            None => self.values[q * self.nodes + i],
            Some(axis) => self.gradients[(q * self.nodes + i) * self.dim + axis],
        }
    }

    /// The number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    /// Gives every entry the product of its directions' scales.
    fn widen(&mut self, line: &LineScales) {
        let (nodes, dim) = (self.nodes, self.dim);
        for (at, value) in self.values.iter_mut().enumerate() {
            let (q, i) = (at / nodes, at % nodes);
            *value = Bounded::with_scale(value.value, line.product(dim, q, i, None));
            for axis in 0..dim {
                let gradient = &mut self.gradients[at * dim + axis];
                let scale = line.product(dim, q, i, Some(axis));
                *gradient = Bounded::with_scale(gradient.value, scale);
            }
        }
    }
}

/// Scales of an interval's table.
struct LineScales {
    points: usize,
    nodes: usize,
    values: Vec<f64>,
    derivatives: Vec<f64>,
}

impl LineScales {
    fn new(nodes: LinePoints, points: LinePoints) -> Self {
        let (table, collocation) = (LineTable::new(nodes, points), LineTable::new(points, points));
        let (q, n) = (table.points, table.nodes);
        let folded = |values: &[f64], p: usize, i: usize| {
            values[p * n + i].abs() + values[p * n + n - 1 - i].abs()
        };
        let value = |at: usize| folded(&table.values, at / n, at % n);
        let derivative = |at: usize| {
            let (p, i) = (at / n, at % n);
            let through: f64 = (0..q)
                .map(|r| collocation.derivative(p, r).abs() * folded(&table.values, r, i))
                .sum();
            through.max(folded(&table.derivatives, p, i))
        };
        Self {
            points: q,
            nodes: n,
            values: (0..q * n).map(value).collect(),
            derivatives: (0..q * n).map(derivative).collect(),
        }
    }

    fn product(&self, dim: usize, q: usize, i: usize, derivative: Option<usize>) -> f64 {
        let digit = |number: usize, base: usize, axis: usize| number / base.pow(axis as u32) % base;
        (0..dim)
            .map(|axis| {
                let at = digit(q, self.points, axis) * self.nodes + digit(i, self.nodes, axis);
                if derivative == Some(axis) { self.derivatives[at] } else { self.values[at] }
            })
            .product()
    }
}

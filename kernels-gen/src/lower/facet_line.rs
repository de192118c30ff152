//! A line of nodes from a facet on: values and slopes at its beginning, and the tables in the plane of the facet.

use crate::element::{Element, LinePoints, LineTable};
use crate::kir::ValueId;
use crate::kir::build::Builder;
use crate::lower::contract::Matrix;
use crate::lower::factors::nodes_of;

/// Tables of the nodes of a line, at the points of a line and at its beginning.
pub(crate) struct FacetLine {
    pub(crate) n: usize,
    pub(crate) nodes: LinePoints,
    /// True of the larger cell of a pair.
    pub(crate) is_larger: bool,
    /// B, D and second derivatives: q × n.
    pub(crate) values: Matrix,
    pub(crate) derivatives: Matrix,
    pub(crate) seconds: Matrix,
    /// φ_i(0): 1 and zeros if the first node is on the facet.
    pub(crate) ends: Vec<f64>,
    /// φ_i'(0)
    pub(crate) slopes: Vec<f64>,
    /// φ_i''(0)
    pub(crate) bends: Vec<f64>,
}

impl FacetLine {
    /// Computes the tables of an element for the points of a line.
    pub(crate) fn new(points: LinePoints, element: Element, is_larger: bool) -> Self {
        let (nodes, n) = (nodes_of(element), element.degree() + 1);
        let table = match is_larger {
            false => LineTable::new(nodes, points),
            true => LineTable::at(nodes, &half(points)),
        };
        let start = LineTable::at(nodes, &[0.0]);
        Self {
            n,
            nodes,
            is_larger,
            values: Matrix::from_fn(table.points, table.nodes, |q, i| table.value(q, i)),
            derivatives: Matrix::from_fn(table.points, table.nodes, |q, i| table.derivative(q, i)),
            seconds: Matrix::from_fn(table.points, table.nodes, |q, i| table.entry(2, q, i)),
            ends: start.values,
            slopes: start.derivatives,
            bends: start.seconds,
        }
    }

    /// Returns the matrix of a derivative along the facet, by its order.
    pub(crate) fn of_order(&self, order: usize) -> &Matrix {
        [&self.values, &self.derivatives, &self.seconds][order]
    }

    /// Returns the number of nodes from the facet on with a nonzero value on it: the first, or all if none is on it.
    pub(crate) fn reach(&self) -> usize {
        let beyond = self.ends[1..].iter().any(|&end| end != 0.0);
        if beyond { self.n } else { 1 }
    }
}

/// Returns the points of the lower half of a line.
pub(crate) fn half(points: LinePoints) -> Vec<f64> {
    points.points().iter().map(|x| x / 2.0).collect()
}

/// Computes Σ_i factor_i · value_i over the available values; zero factors are skipped.
pub(crate) fn weighted(b: &mut Builder, factors: &[f64], values: &[ValueId]) -> ValueId {
    let mut sum = None;
    for (&factor, &value) in factors.iter().zip(values).filter(|(factor, _)| **factor != 0.0) {
        sum = Some(match sum {
            None => times(b, factor, value),
            Some(sum) => {
                let factor = b.constant(factor);
                b.fma(factor, value, sum)
            }
        });
    }
    sum.unwrap_or_else(|| b.constant(0.0))
}

/// Multiplies by a number.
pub(crate) fn times(b: &mut Builder, factor: f64, value: ValueId) -> ValueId {
    let constant = b.constant(factor);
    match factor {
        0.0 => constant,
        1.0 => value,
        _ => b.mul(constant, value),
    }
}

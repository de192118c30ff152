//! Values and reference gradients of a basis at points, and interpolation between point sets.
//!
//! `tabulate`: (Lagrange, points) → Tabulation with φ_i(x_q) and ∂φ_i/∂ξ_j(x_q). On tensor cells
//! these are products of interval tables, on simplices the dual basis of `simplex`.

use super::simplex::SimplexBasis;
use super::{Lagrange, LinePoints, LineTable, Rule};
use std::collections::BTreeMap;

/// A basis tabulated at points.
#[derive(Clone, Debug, PartialEq)]
pub struct Tabulation {
    /// Number of points N_q.
    pub points: usize,
    /// Number of nodes N_b.
    pub nodes: usize,
    /// Dimension of the cell.
    pub dim: usize,
    /// φ_i(x_q) at `[q * nodes + i]`.
    pub values: Vec<f64>,
    /// ∂φ_i/∂ξ_j(x_q) at `[(q * nodes + i) * dim + j]`.
    pub gradients: Vec<f64>,
}

impl Tabulation {
    /// Returns φ_i(x_q).
    pub fn value(&self, q: usize, i: usize) -> f64 {
        self.values[q * self.nodes + i]
    }

    /// Returns the reference gradient of φ_i at x_q.
    pub fn gradient(&self, q: usize, i: usize) -> &[f64] {
        let start = (q * self.nodes + i) * self.dim;
        &self.gradients[start..start + self.dim]
    }

    fn empty(element: Lagrange) -> Self {
        let (nodes, dim) = (element.count(), element.cell().dim());
        Self { points: 0, nodes, dim, values: Vec::new(), gradients: Vec::new() }
    }
}

/// Tabulates the basis of `element` at any points of its cell.
pub fn tabulate(element: Lagrange, points: &[[f64; 3]]) -> Tabulation {
    if let Some((table, rows)) = line_table(element, points) {
        return products(element, &table, rows.into_iter());
    }
    let mut result = Tabulation::empty(element);
    let basis = SimplexBasis::new(result.dim, element.degree(), &element.points());
    for &point in points {
        result.points += 1;
        for (value, gradient) in basis.evaluate(point) {
            result.values.push(value);
            result.gradients.extend(&gradient[..result.dim]);
        }
    }
    result
}

/// Returns the table of a tensor element's nodes of a line at the coordinates of points, and the row of each coordinate of
/// each point. Points of a tensor rule share coordinates; each is tabulated once.
fn line_table(element: Lagrange, points: &[[f64; 3]]) -> Option<(LineTable, Vec<Vec<usize>>)> {
    let (line, dim) = (element.line()?, element.cell().dim());
    let mut rows = BTreeMap::new();
    for coordinate in points.iter().flat_map(|point| &point[..dim]) {
        let next = rows.len();
        rows.entry(coordinate.to_bits()).or_insert(next);
    }
    let mut coordinates = vec![0.0; rows.len()];
    for (&bits, &row) in &rows {
        coordinates[row] = f64::from_bits(bits);
    }
    let at = |point: &[f64; 3]| -> Vec<usize> {
        point[..dim].iter().map(|coordinate| rows[&coordinate.to_bits()]).collect()
    };
    Some((LineTable::at(line, &coordinates), points.iter().map(at).collect()))
}

/// Tabulates second derivatives of the basis of `element` at any points of its cell: ∂²φ_i/∂ξ_a∂ξ_b(x_q) at
/// `[pair][q * nodes + i]`, the pairs a ≤ b in ascending order.
pub fn tabulate_seconds(element: Lagrange, points: &[[f64; 3]]) -> Vec<Vec<f64>> {
    let dim = element.cell().dim();
    let pairs: Vec<(usize, usize)> = (0..dim).flat_map(|a| (a..dim).map(move |b| (a, b))).collect();
    let Some((table, rows)) = line_table(element, points) else {
        let basis = SimplexBasis::new(dim, element.degree(), &element.points());
        return basis.seconds(points, &pairs);
    };
    let n = table.nodes;
    let entry = |rows: &[usize], i: usize, (a, b): (usize, usize)| -> f64 {
        let order = |axis: usize| usize::from(axis == a) + usize::from(axis == b);
        let factor = |axis: usize| table.entry(order(axis), rows[axis], i / n.pow(axis as u32) % n);
        (0..dim).map(factor).product()
    };
    let of = |&pair: &(usize, usize)| {
        let entries = rows.iter().flat_map(|rows| (0..element.count()).map(move |i| (rows, i)));
        entries.map(|(rows, i)| entry(rows, i, pair)).collect()
    };
    pairs.iter().map(of).collect()
}

/// Tabulates the basis of `element` at the points of a rule on the same cell. On tensor cells the entries are products
/// of the values that sum-factorised kernels use.
pub fn tabulate_rule(element: Lagrange, rule: Rule) -> Tabulation {
    assert_eq!(element.cell(), rule.cell(), "element and rule should be on one cell");
    let (Some(nodes), Some(points)) = (element.line(), rule.line()) else {
        return tabulate(element, &rule.points());
    };
    let q = points.count();
    let indices = |point: usize| -> Vec<usize> {
        (0..element.cell().dim()).map(|axis| point / q.pow(axis as u32) % q).collect()
    };
    products(element, &LineTable::new(nodes, points), (0..rule.count()).map(indices))
}

/// Returns products of the rows of an interval table; a point is given as one row per direction.
fn products(
    element: Lagrange,
    table: &LineTable,
    points: impl Iterator<Item = Vec<usize>>,
) -> Tabulation {
    let mut result = Tabulation::empty(element);
    let (n, dim) = (table.nodes, result.dim);
    for rows in points {
        result.points += 1;
        for i in 0..result.nodes {
            let node = |axis: usize| i / n.pow(axis as u32) % n;
            let factor = |axis: usize, derivative: Option<usize>| {
                let (q, i) = (rows[axis], node(axis));
                if derivative == Some(axis) { table.derivative(q, i) } else { table.value(q, i) }
            };
            let product = |d| (0..dim).map(|axis| factor(axis, d)).product::<f64>();
            result.values.push(product(None));
            result.gradients.extend((0..dim).map(|axis| product(Some(axis))));
        }
    }
    result
}

/// Returns the matrix that evaluates functions of `element` at points: row-major, one row per point, one column per
/// node. From [`Lagrange::equispaced`] to another element's points and back it changes between the bases of file
/// formats and ours.
pub fn interpolation(element: Lagrange, points: &[[f64; 3]]) -> Vec<f64> {
    tabulate(element, points).values
}

/// Returns the interpolation matrix between two one-dimensional point families: row-major, one row per point of `to`.
pub fn line_interpolation(from: LinePoints, to: LinePoints) -> Vec<f64> {
    LineTable::new(from, to).values
}

/// Returns the nodal functions of a line at the nodes of its lower or upper half: row-major, one row per node of the
/// half. These are the interpolation weights of a child's hanging line of nodes.
pub fn line_of_parent(nodes: LinePoints, up: bool) -> Vec<f64> {
    let shift = if up { 0.5 } else { 0.0 };
    let half: Vec<f64> = nodes.points().iter().map(|xi| shift + xi / 2.0).collect();
    let near = |value: f64| if value.abs() < 1e-15 { 0.0 } else { value };
    LineTable::at(nodes, &half).values.into_iter().map(near).collect()
}

#[cfg(test)]
mod tests;

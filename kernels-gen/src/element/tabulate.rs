//! Values and reference gradients of a basis at points, and interpolation between point sets.
//!
//! `tabulate`: (Element, points) → Tabulation with φ_i(x_q) and ∂φ_i/∂ξ_j(x_q) of scalar functions: a Lagrange element
//! or one component of another. On tensor cells these are products of interval tables, on simplices the dual bases of
//! `simplex` and `whitney`.

use super::simplex::SimplexBasis;
use super::whitney::WhitneyBasis;
use super::{Element, Lagrange, LineBasis, LinePoints, LineTable, Rule, Whitney, WhitneyFamily};
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

    fn empty(element: Element) -> Self {
        let (nodes, dim) = (element.count(), element.cell().dim());
        Self { points: 0, nodes, dim, values: Vec::new(), gradients: Vec::new() }
    }
}

/// Tabulates the basis of `element` at any points of its cell.
pub fn tabulate(element: impl Into<Element>, points: &[[f64; 3]]) -> Tabulation {
    let element = element.into();
    if let Some((tables, rows)) = line_tables(element, points) {
        return tables.products(element, rows.into_iter());
    }
    if let Element::Component(vectors, component) = element {
        return tabulate_components(vectors, points).swap_remove(component);
    }
    let mut result = Tabulation::empty(element);
    let basis = simplex_basis(element);
    for &point in points {
        result.points += 1;
        for (value, gradient) in basis.evaluate(point) {
            result.values.push(value);
            result.gradients.extend(&gradient[..result.dim]);
        }
    }
    result
}

/// Tabulates each component of the functions of a vector-valued element at any points of its cell.
pub fn tabulate_components(element: Whitney, points: &[[f64; 3]]) -> Vec<Tabulation> {
    let dim = element.cell().dim();
    let parts = (0..dim).map(|a| Element::Component(element, a));
    if element.cell().is_tensor() {
        return parts.map(|part| tabulate(part, points)).collect();
    }
    let mut tables: Vec<Tabulation> = parts.map(Tabulation::empty).collect();
    let basis = WhitneyBasis::of(element);
    for &point in points {
        tables.iter_mut().for_each(|table| table.points += 1);
        for function in basis.evaluate(point) {
            for (table, (value, gradient)) in tables.iter_mut().zip(function) {
                table.values.push(value);
                table.gradients.extend(&gradient[..dim]);
            }
        }
    }
    tables
}

/// Tabulates each component of the functions of a vector-valued element on a simplex at points of the cell that is rotated
/// so that a facet is ξ₀ = 0 ([`Lagrange::turned`]): with ξ = F(ξ'), T = ∂ξ/∂ξ',
///
/// ```text
/// H(curl)   û'(ξ') = Tᵀ û(ξ)          H(div)   û'(ξ') = det T · T⁻¹ û(ξ)
/// ```
pub fn tabulate_turned(
    element: Whitney,
    (facet, orientation): (usize, u8),
    points: &[[f64; 3]],
) -> Vec<Tabulation> {
    let (cell, dim) = (element.cell(), element.cell().dim());
    let corners = Lagrange::continuous(cell, 1).expect("degree 1 should have an element");
    let vertices: Vec<[f64; 3]> =
        corners.turned(facet, orientation).into_iter().map(|vertex| cell.vertex(vertex)).collect();
    // Rows of Tᵀ.
    let tangents = [0, 1, 2].map(|a| match a < dim {
        true => [0, 1, 2].map(|c| vertices[a + 1][c] - vertices[0][c]),
        false => [0, 1, 2].map(|c| f64::from(u8::from(c == a))),
    });
    let map = match element.family() {
        WhitneyFamily::Curl => tangents,
        WhitneyFamily::Div => [0, 1, 2].map(|a| {
            let (u, v) = (tangents[(a + 1) % 3], tangents[(a + 2) % 3]);
            let minor = |i: usize, j: usize| u[i] * v[j] - u[j] * v[i];
            [minor(1, 2), minor(2, 0), minor(0, 1)]
        }),
    };
    let place = |point: &[f64; 3]| {
        let along = |c: usize| (0..dim).map(|a| point[a] * tangents[a][c]).sum::<f64>();
        [0, 1, 2].map(|c| vertices[0][c] + along(c))
    };
    let own = tabulate_components(element, &points.iter().map(place).collect::<Vec<_>>());
    let of = |a: usize| {
        let mut table = Tabulation::empty(Element::Component(element, a));
        table.points = points.len();
        for (q, i) in (0..points.len()).flat_map(|q| (0..table.nodes).map(move |i| (q, i))) {
            let sum = |of: &dyn Fn(usize) -> f64| (0..dim).map(|c| map[a][c] * of(c)).sum::<f64>();
            table.values.push(sum(&|c| own[c].value(q, i)));
            for axis in 0..dim {
                let along = |c: usize| {
                    let slopes = own[c].gradient(q, i).iter().zip(tangents[axis]);
                    slopes.map(|(slope, x)| slope * x).sum()
                };
                table.gradients.push(sum(&along));
            }
        }
        table
    };
    (0..dim).map(of).collect()
}

fn simplex_basis(element: Element) -> SimplexBasis {
    let element = element.lagrange().expect("a scalar element on a simplex should be Lagrange's");
    SimplexBasis::new(element.cell().dim(), element.degree(), &element.points())
}

/// The tables of the functions along each axis of a tensor element.
struct AxisTables {
    tables: Vec<LineTable>,
    /// The table of each axis.
    of_axis: Vec<usize>,
}

impl AxisTables {
    /// Computes the tables of an element; `None` if it is no scalar product of functions along the axes.
    fn new(element: Element, table: impl Fn(LineBasis) -> LineTable) -> Option<Self> {
        let lines = element.lines()?;
        let mut known: Vec<LineBasis> = Vec::new();
        let of_axis = lines[..element.cell().dim()].iter().map(|line| {
            known.iter().position(|other| other == line).unwrap_or_else(|| {
                known.push(*line);
                known.len() - 1
            })
        });
        let of_axis = of_axis.collect();
        Some(Self { tables: known.into_iter().map(table).collect(), of_axis })
    }

    /// Returns the table of an axis.
    fn of(&self, axis: usize) -> &LineTable {
        &self.tables[self.of_axis[axis]]
    }

    /// Returns the index of each axis's function in function `i`.
    fn indices(&self, i: usize) -> Vec<usize> {
        let mut rest = i;
        let index = |axis: usize| {
            let n = self.of(axis).nodes;
            let own = rest % n;
            rest /= n;
            own
        };
        (0..self.of_axis.len()).map(index).collect()
    }

    /// Returns products of their rows; a point is given as one row per axis.
    fn products(&self, element: Element, points: impl Iterator<Item = Vec<usize>>) -> Tabulation {
        let mut result = Tabulation::empty(element);
        let dim = result.dim;
        let indices: Vec<Vec<usize>> = (0..result.nodes).map(|i| self.indices(i)).collect();
        for rows in points {
            result.points += 1;
            for indices in &indices {
                let factor = |axis: usize, derivative: Option<usize>| {
                    let (q, i, table) = (rows[axis], indices[axis], self.of(axis));
                    if derivative == Some(axis) {
                        table.derivative(q, i)
                    } else {
                        table.value(q, i)
                    }
                };
                let product = |d| (0..dim).map(|axis| factor(axis, d)).product::<f64>();
                result.values.push(product(None));
                result.gradients.extend((0..dim).map(|axis| product(Some(axis))));
            }
        }
        result
    }
}

/// Returns the tables of a tensor element along its axes at the coordinates of points, and the row of each coordinate of
/// each point. Points of a tensor rule share coordinates; each is tabulated once.
fn line_tables(element: Element, points: &[[f64; 3]]) -> Option<(AxisTables, Vec<Vec<usize>>)> {
    let dim = element.cell().dim();
    element.lines()?;
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
    let tables = AxisTables::new(element, |line| line.table_at(&coordinates))?;
    Some((tables, points.iter().map(at).collect()))
}

/// Tabulates second derivatives of the basis of a Lagrange element at any points of its cell: ∂²φ_i/∂ξ_a∂ξ_b(x_q) at
/// `[pair][q * nodes + i]`, the pairs a ≤ b in ascending order.
pub fn tabulate_seconds(element: impl Into<Element>, points: &[[f64; 3]]) -> Vec<Vec<f64>> {
    let element = element.into();
    let dim = element.cell().dim();
    let pairs: Vec<(usize, usize)> = (0..dim).flat_map(|a| (a..dim).map(move |b| (a, b))).collect();
    let Some((tables, rows)) = line_tables(element, points) else {
        return simplex_basis(element).seconds(points, &pairs);
    };
    let indices: Vec<Vec<usize>> = (0..element.count()).map(|i| tables.indices(i)).collect();
    let entry = |rows: &[usize], indices: &[usize], (a, b): (usize, usize)| -> f64 {
        let order = |axis: usize| usize::from(axis == a) + usize::from(axis == b);
        let factor = |axis: usize| tables.of(axis).entry(order(axis), rows[axis], indices[axis]);
        (0..dim).map(factor).product()
    };
    let of = |&pair: &(usize, usize)| {
        let entries = rows.iter().flat_map(|rows| indices.iter().map(move |i| (rows, i)));
        entries.map(|(rows, i)| entry(rows, i, pair)).collect()
    };
    pairs.iter().map(of).collect()
}

/// Tabulates the basis of `element` at the points of a rule on the same cell. On tensor cells the entries are products
/// of the values that sum-factorised kernels use.
pub fn tabulate_rule(element: impl Into<Element>, rule: Rule) -> Tabulation {
    let element = element.into();
    assert_eq!(element.cell(), rule.cell(), "element and rule should be on one cell");
    let tables = rule.line().and_then(|points| {
        Some((AxisTables::new(element, |line| line.table(points))?, points.count()))
    });
    let Some((tables, q)) = tables else { return tabulate(element, &rule.points()) };
    let indices = |point: usize| -> Vec<usize> {
        (0..element.cell().dim()).map(|axis| point / q.pow(axis as u32) % q).collect()
    };
    tables.products(element, (0..rule.count()).map(indices))
}

/// Returns the matrix that evaluates functions of `element` at points: row-major, one row per point, one column per
/// node. From [`Lagrange::equispaced`](super::Lagrange::equispaced) to another element's points and back it changes between the bases of file
/// formats and ours.
pub fn interpolation(element: impl Into<Element>, points: &[[f64; 3]]) -> Vec<f64> {
    tabulate(element, points).values
}

/// Returns the interpolation matrix between two one-dimensional point families: row-major, one row per point of `to`.
pub fn line_interpolation(from: LinePoints, to: LinePoints) -> Vec<f64> {
    LineTable::new(from, to).values
}

#[cfg(test)]
mod tests;

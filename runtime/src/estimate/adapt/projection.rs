//! Projection of a discontinuous function on the parts of a simplex to the polynomials of the simplex, in L2 of the
//! reference cell:
//!
//! ```text
//! v = M⁻¹ Σ_parts C u        M_ij = ∫ φ_i φ_j dη,  C_ij = |det T| ∫ φ_i(T ξ) φ_j(ξ) dξ
//! ```

use crate::mesh::refine::bisect::AffineMap;
use kernels_gen::element::{Element, Rule, Tabulation, tabulate, tabulate_rule};

/// Projection to the polynomials of a simplex.
pub(super) struct SimplexProjection {
    element: Element,
    rule: Rule,
    points: Vec<[f64; 3]>,
    weights: Vec<f64>,
    /// The functions at the points of the rule.
    table: Tabulation,
    /// M⁻¹, row by row.
    inverse: Vec<f64>,
}

impl SimplexProjection {
    pub(super) fn new(element: Element) -> Self {
        let rule = Rule::Simplex { cell: element.cell(), degree: 2 * element.degree() };
        let (points, weights) = (rule.points(), rule.weights());
        let (table, n) = (tabulate_rule(element, rule), element.count());
        let entry = |at: usize| -> f64 {
            let (i, j) = (at / n, at % n);
            let terms = weights.iter().enumerate();
            terms.map(|(q, weight)| weight * table.value(q, i) * table.value(q, j)).sum()
        };
        let inverse = inverted((0..n * n).map(entry).collect(), n);
        Self { element, rule, points, weights, table, inverse }
    }

    /// Returns the weights of a part's nodes in those of the cell, row by row; `map` takes the part into the cell.
    pub(super) fn of_part(&self, map: &AffineMap) -> Vec<f64> {
        let (n, at) = (self.element.count(), self.points.iter().map(|point| map.at(point)));
        let there = tabulate(self.element, &at.collect::<Vec<_>>());
        let size = size(map, self.rule.cell().dim());
        let coupling = |k: usize, j: usize| -> f64 {
            let terms = self.weights.iter().enumerate();
            let term = |(q, weight): (usize, &f64)| {
                size * weight * there.value(q, k) * self.table.value(q, j)
            };
            terms.map(term).sum()
        };
        let couplings: Vec<f64> = (0..n * n).map(|at| coupling(at / n, at % n)).collect();
        let entry = |at: usize| -> f64 {
            let (i, j) = (at / n, at % n);
            (0..n).map(|k| self.inverse[i * n + k] * couplings[k * n + j]).sum()
        };
        (0..n * n).map(entry).collect()
    }
}

/// Returns |det T| of a map.
fn size(map: &AffineMap, dim: usize) -> f64 {
    let [a, b, across] = map.axes();
    let c = if dim == 2 { [0.0, 0.0, 1.0] } else { across };
    let cross = [b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]];
    (a[0] * cross[0] + a[1] * cross[1] + a[2] * cross[2]).abs()
}

/// Returns the inverse of a symmetric positive definite matrix by elimination without pivoting.
fn inverted(mut matrix: Vec<f64>, n: usize) -> Vec<f64> {
    let mut inverse: Vec<f64> =
        (0..n * n).map(|at| if at / n == at % n { 1.0 } else { 0.0 }).collect();
    for pivot in 0..n {
        let scale = 1.0 / matrix[pivot * n + pivot];
        for own in [&mut matrix, &mut inverse] {
            own[pivot * n..][..n].iter_mut().for_each(|entry| *entry *= scale);
        }
        for row in (0..n).filter(|row| *row != pivot) {
            let factor = matrix[row * n + pivot];
            for own in [&mut matrix, &mut inverse] {
                for column in 0..n {
                    own[row * n + column] -= factor * own[pivot * n + column];
                }
            }
        }
    }
    inverse
}

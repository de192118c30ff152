//! An orthogonal polynomial basis on simplices and the Lagrange basis expressed in it.
//!
//! With barycentric coordinates λ, s = λ_0 + λ_1 and t = s + λ_2, the basis
//!
//! ```text
//! triangle      S_i(λ_1 − λ_0; s) · P_j^{(2i+1, 0)}(λ_2 − s; 1)
//! tetrahedron   S_i(λ_1 − λ_0; s) · P_j^{(2i+1, 0)}(λ_2 − s; t) · P_k^{(2i+2j+2, 0)}(λ_3 − t; 1)
//! ```
//!
//! of total degree at most p is orthogonal (M. Dubiner, "Spectral methods on triangles and other domains", Journal of
//! Scientific Computing 6 (1991)). P(x; t) = tⁿ P(x/t) are homogenised Jacobi polynomials, whose recurrence needs no
//! division. The coefficients of the Lagrange basis are the inverse of the matrix of the orthogonal basis at the nodes,
//! computed with 32 digits and rounded once.

use super::double::DoubleDouble;

/// A number with its gradient in reference coordinates.
#[derive(Clone, Copy)]
pub(super) struct Dual {
    pub(super) value: DoubleDouble,
    pub(super) gradient: [DoubleDouble; 3],
}

impl Dual {
    pub(super) const ZERO: Self =
        Self { value: DoubleDouble::ZERO, gradient: [DoubleDouble::ZERO; 3] };
    const ONE: Self = Self { value: DoubleDouble::ONE, gradient: [DoubleDouble::ZERO; 3] };

    /// Returns a coordinate.
    pub(super) fn coordinate(axis: usize, value: f64) -> Self {
        let mut gradient = [DoubleDouble::ZERO; 3];
        gradient[axis] = DoubleDouble::ONE;
        Self { value: DoubleDouble::from(value), gradient }
    }

    fn plus(self, other: Self) -> Self {
        self.combine(DoubleDouble::ONE, other, DoubleDouble::ONE)
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.combine(DoubleDouble::ONE, other, -DoubleDouble::ONE)
    }

    fn combine(self, a: DoubleDouble, other: Self, b: DoubleDouble) -> Self {
        let gradient = [0, 1, 2].map(|c| a * self.gradient[c] + b * other.gradient[c]);
        Self { value: a * self.value + b * other.value, gradient }
    }

    pub(super) fn times(self, other: Self) -> Self {
        let gradient =
            [0, 1, 2].map(|c| self.value * other.gradient[c] + self.gradient[c] * other.value);
        Self { value: self.value * other.value, gradient }
    }
}

/// Returns the homogenised Jacobi polynomials tⁿ P_n^{(a, 0)}(x/t) for n = 0, …, top.
fn jacobi(top: usize, a: usize, x: Dual, t: Dual) -> Vec<Dual> {
    let ratio = |p: usize, q: usize| DoubleDouble::from(p) / DoubleDouble::from(q);
    let mut all = vec![Dual::ONE];
    if top > 0 {
        all.push(x.combine(ratio(a + 2, 2), t, ratio(a, 2)));
    }
    for n in 1..top {
        let s = 2 * n + a;
        let scale = 2 * (n + 1) * (n + a + 1) * s;
        let factor =
            x.combine(ratio((s + 1) * (s + 2) * s, scale), t, ratio((s + 1) * a * a, scale));
        let back = ratio(2 * (n + a) * n * (s + 2), scale);
        let next =
            factor.times(all[n]).combine(DoubleDouble::ONE, t.times(t).times(all[n - 1]), -back);
        all.push(next);
    }
    all
}

/// Returns the degrees (i, j, k) of each function of the orthogonal basis, in its order.
pub(super) fn degrees(dim: usize, degree: usize) -> Vec<[usize; 3]> {
    let mut all = Vec::new();
    for i in 0..=degree {
        for j in 0..=degree - i {
            let last = if dim == 2 { 0 } else { degree - i - j };
            all.extend((0..=last).map(|k| [i, j, k]));
        }
    }
    all
}

/// Returns the orthogonal basis of total degree at most `degree` at a point.
pub(super) fn orthogonal(dim: usize, degree: usize, point: [f64; 3]) -> Vec<Dual> {
    let mut rest = Dual::ONE;
    let mut lambda = [Dual::ONE; 4];
    for axis in 0..dim {
        lambda[axis + 1] = Dual::coordinate(axis, point[axis]);
        rest = rest.minus(lambda[axis + 1]);
    }
    lambda[0] = rest;
    let s = lambda[0].plus(lambda[1]);
    let t = s.plus(lambda[2]);
    let mut basis = Vec::new();
    for (i, first) in jacobi(degree, 0, lambda[1].minus(lambda[0]), s).into_iter().enumerate() {
        let end = if dim == 2 { Dual::ONE } else { t };
        let seconds = jacobi(degree - i, 2 * i + 1, lambda[2].minus(s), end);
        for (j, second) in seconds.into_iter().enumerate() {
            let product = first.times(second);
            if dim == 2 {
                basis.push(product);
                continue;
            }
            let top = degree - i - j;
            let thirds = jacobi(top, 2 * (i + j) + 2, lambda[3].minus(t), Dual::ONE);
            basis.extend(thirds.into_iter().map(|third| product.times(third)));
        }
    }
    basis
}

/// The Lagrange basis on given nodes in terms of the orthogonal basis.
pub(super) struct SimplexBasis {
    dim: usize,
    degree: usize,
    nodes: Vec<[f64; 3]>,
    /// Coefficient of orthogonal function m in Lagrange function i at `[m][i]`.
    coefficients: Vec<Vec<DoubleDouble>>,
}

impl SimplexBasis {
    /// Returns the basis dual to evaluation at `nodes`, which must be unisolvent.
    pub(super) fn new(dim: usize, degree: usize, nodes: &[[f64; 3]]) -> Self {
        let matrix: Vec<Vec<DoubleDouble>> = nodes
            .iter()
            .map(|&node| orthogonal(dim, degree, node).iter().map(|b| b.value).collect())
            .collect();
        Self { dim, degree, nodes: nodes.to_vec(), coefficients: inverse(matrix) }
    }

    /// Returns the gradient of each Lagrange function at a point, unrounded.
    fn gradients(&self, point: [f64; 3]) -> Vec<[DoubleDouble; 3]> {
        let basis = orthogonal(self.dim, self.degree, point);
        let of = |i: usize| {
            let sum = |c: usize| {
                let terms = basis.iter().zip(&self.coefficients);
                terms.fold(DoubleDouble::ZERO, |sum, (b, row)| sum + b.gradient[c] * row[i])
            };
            [0, 1, 2].map(sum)
        };
        (0..basis.len()).map(of).collect()
    }

    /// Returns second derivatives of each Lagrange function, one for each pair of axes: `[pair][point][function]`. A
    /// derivative is a polynomial, which its values at the nodes determine.
    pub(super) fn seconds(&self, points: &[[f64; 3]], pairs: &[(usize, usize)]) -> Vec<Vec<f64>> {
        let at_nodes: Vec<_> = self.nodes.iter().map(|&node| self.gradients(node)).collect();
        let at_points: Vec<_> = points.iter().map(|&point| self.gradients(point)).collect();
        let second = |own: &[[DoubleDouble; 3]], i: usize, (a, b): (usize, usize)| {
            let terms = own.iter().zip(&at_nodes);
            let sum = |sum, (at_point, at_node): (&[DoubleDouble; 3], &Vec<[DoubleDouble; 3]>)| {
                sum + at_point[a] * at_node[i][b]
            };
            terms.fold(DoubleDouble::ZERO, sum).round_or_zero()
        };
        let of = |&pair: &(usize, usize)| {
            let rows = at_points.iter();
            rows.flat_map(|own| (0..own.len()).map(|i| second(own, i, pair)).collect::<Vec<_>>())
                .collect()
        };
        pairs.iter().map(of).collect()
    }

    /// Returns value and gradient of each Lagrange function at a point.
    pub(super) fn evaluate(&self, point: [f64; 3]) -> Vec<(f64, [f64; 3])> {
        let basis = orthogonal(self.dim, self.degree, point);
        (0..basis.len())
            .map(|i| {
                let mut value = DoubleDouble::ZERO;
                let mut gradient = [DoubleDouble::ZERO; 3];
                for (b, row) in basis.iter().zip(&self.coefficients) {
                    value += b.value * row[i];
                    for c in 0..self.dim {
                        gradient[c] += b.gradient[c] * row[i];
                    }
                }
                (value.round_or_zero(), gradient.map(DoubleDouble::round_or_zero))
            })
            .collect()
    }
}

/// Returns the inverse by Gauss-Jordan elimination with row pivoting.
pub(super) fn inverse(mut a: Vec<Vec<DoubleDouble>>) -> Vec<Vec<DoubleDouble>> {
    let n = a.len();
    for (i, row) in a.iter_mut().enumerate() {
        row.resize(2 * n, DoubleDouble::ZERO);
        row[n + i] = DoubleDouble::ONE;
    }
    for k in 0..n {
        let size = |row: &[DoubleDouble]| row[k].abs().round();
        let pivot = (k..n).fold(k, |best, i| if size(&a[i]) > size(&a[best]) { i } else { best });
        assert!(size(&a[pivot]) > 0.0, "the nodes should be unisolvent");
        a.swap(k, pivot);
        let scale = DoubleDouble::ONE / a[k][k];
        for entry in &mut a[k] {
            *entry = *entry * scale;
        }
        let row = a[k].clone();
        for (_, target) in a.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = target[k];
            for (entry, &r) in target.iter_mut().zip(&row) {
                *entry = *entry - factor * r;
            }
        }
    }
    a.into_iter().map(|row| row[n..].to_vec()).collect()
}

//! Dense factorisation L D Lᵀ of a small symmetric positive (semi-)definite matrix.
//!
//! ```text
//! d_j = a_jj − Σ_k l_jk² d_k,    l_ij = (a_ij − Σ_k l_ik d_k l_jk) / d_j
//! ```
//!
//! A pivot at the rounding-error level of a_jj is dropped, 1/d_j = 0: L⁻ᵀ D⁺ L⁻¹ is symmetric and positive
//! semi-definite, and solves consistent systems (a problem that is free up to constants).

use crate::algebra::sparse::Csr;

/// Rounding-error level of a diagonal entry, in multiples of n ε.
const ROUNDING: f64 = 16.0;

/// Factors L D Lᵀ.
#[derive(Clone, Debug)]
pub struct DenseFactors {
    n: usize,
    /// L by rows, strictly lower part.
    l: Vec<f64>,
    /// 1/d, or 0.
    inverse: Vec<f64>,
}

impl DenseFactors {
    /// Factorises a matrix.
    pub(super) fn new(matrix: &Csr) -> Self {
        let n = matrix.size();
        let mut l = vec![0.0; n * n];
        let mut inverse = vec![0.0; n];
        for i in 0..n {
            let (above, row) = l.split_at_mut(i * n);
            let row = &mut row[..n];
            matrix.row(i).filter(|(j, _)| *j <= i).for_each(|(j, value)| row[j] = value);
            // First l_ij d_j, as the subtraction needs it.
            for j in 0..i {
                row[j] -= dot(&row[..j], &above[j * n..j * n + j]);
            }
            let before = row[i];
            let mut pivot = before;
            for j in 0..i {
                let scaled = row[j] * inverse[j];
                pivot -= scaled * row[j];
                row[j] = scaled;
            }
            row[i] = 0.0;
            let bound = ROUNDING * n as f64 * f64::EPSILON * before;
            inverse[i] = if pivot > bound { 1.0 / pivot } else { 0.0 };
        }
        Self { n, l, inverse }
    }

    /// Returns the size.
    pub fn size(&self) -> usize {
        self.n
    }

    /// Returns the number of dropped pivots.
    pub fn left_out(&self) -> usize {
        self.inverse.iter().filter(|inverse| **inverse == 0.0).count()
    }

    /// Computes x = A⁻¹ x.
    pub fn solve(&self, x: &mut [f64]) {
        let n = self.n;
        for i in 0..n {
            x[i] -= dot(&self.l[i * n..i * n + i], &x[..i]);
        }
        x.iter_mut().zip(&self.inverse).for_each(|(x, inverse)| *x *= inverse);
        for i in (0..n).rev() {
            let value = x[i];
            let row = &self.l[i * n..i * n + i];
            x[..i].iter_mut().zip(row).for_each(|(x, l)| *x -= l * value);
        }
    }

    /// Returns the bytes of the factors.
    pub(super) fn bytes(&self) -> usize {
        (self.l.len() + self.inverse.len()) * size_of::<f64>()
    }
}

/// Computes the dot product in eight partial sums.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the matrix of a path of n nodes, with a spring at its first one.
    fn path(n: usize, spring: f64) -> Csr {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..n {
            let sides = usize::from(i > 0) + usize::from(i + 1 < n);
            let own = sides as f64 + if i == 0 { spring } else { 0.0 };
            let row = [(i.wrapping_sub(1), -1.0), (i, own), (i + 1, -1.0)];
            for (column, value) in row.into_iter().filter(|(column, _)| *column < n) {
                columns.push(column as u32);
                values.push(value);
            }
            starts.push(columns.len());
        }
        Csr::square(starts, columns, values)
    }

    #[test]
    fn a_definite_and_a_semi_definite_matrix_are_solved() {
        for (spring, left_out) in [(1.0, 0), (0.0, 1)] {
            let matrix = path(37, spring);
            let factors = DenseFactors::new(&matrix);
            assert_eq!(factors.left_out(), left_out);
            let wanted: Vec<f64> = (0..37).map(|i| f64::from(i * i % 11)).collect();
            let (mut x, mut b) = (vec![0.0; 37], vec![0.0; 37]);
            matrix.apply(&wanted, &mut x);
            factors.solve(&mut x);
            matrix.apply(&x, &mut b);
            let mut again = vec![0.0; 37];
            matrix.apply(&wanted, &mut again);
            let error = b.iter().zip(&again).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(error < 1e-12, "{error}");
        }
    }
}

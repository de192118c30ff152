//! Sparse factorisation of [`Csc`] to [`Factors`]. This is the only file that names the library.
//!
//! The matrix is first scaled, A → R A C with the largest entries of all rows and columns near 1 (Ruiz 2001). Identity
//! rows and different units therefore do not affect pivoting. A Cholesky factorisation is tried first if the matrix
//! should be symmetric positive definite. Otherwise, or if that fails, A = Pᵀ L U Qᵀ with partial pivoting. Hager's
//! estimate of ‖A⁻¹‖₁ detects matrices that are singular to working precision.

use super::FactorError;
use crate::algebra::sparse::Csc;
use faer::Side;
use faer::linalg::solvers::Solve as _;
use faer::mat::MatMut;
use faer::sparse::linalg::solvers::{Llt, Lu, SymbolicLlt, SymbolicLu};
use faer::sparse::linalg::{LltError, LuError};
use faer::sparse::{SparseColMat, SymbolicSparseColMat};

/// Number of scaling sweeps; each takes the square root of the remaining factors.
const SWEEPS: usize = 3;
/// Maximum number of sweeps while rows or columns differ by a factor of `APART`.
const MOST: usize = 20;
const APART: f64 = 1e3;

enum FactorKind {
    Cholesky(Llt<usize, f64>),
    Lu(Box<Lu<usize, f64>>),
}

/// A factorised matrix.
pub struct Factors {
    kind: FactorKind,
    /// Diagonals of R and C.
    rows: Vec<f64>,
    columns: Vec<f64>,
    /// Estimate of ‖A⁻¹‖₁ of the scaled matrix, whose columns have norms of about 1.
    inverse: f64,
}

/// Required distance of a definite matrix from the rounding-error level.
const ABOVE: f64 = 100.0;

/// Symbolic factorisation, reused for matrices with the same pattern.
#[derive(Default)]
pub struct SymbolicAnalysis {
    starts: Vec<usize>,
    indices: Vec<u32>,
    cholesky: Option<SymbolicLlt<usize>>,
    lu: Option<SymbolicLu<usize>>,
}

/// Fallback for matrices without a Cholesky factorisation.
#[derive(Clone, Copy)]
enum CholeskyFallback {
    /// LU.
    Lu,
    /// LU without trying Cholesky.
    LuAtOnce,
    NoFallback,
}

/// Returns the rounding error of the smallest pivot of a scaled matrix of size n.
fn rounding(n: usize) -> f64 {
    f64::EPSILON * (10.0 + (n as f64).sqrt())
}

impl SymbolicAnalysis {
    /// Factorises a matrix; `definite` states that it should be symmetric positive definite.
    ///
    /// # Errors
    ///
    /// The matrix is singular or too large.
    pub fn factorise(&mut self, matrix: &Csc, definite: bool) -> Result<Factors, FactorError> {
        let otherwise = if definite { CholeskyFallback::Lu } else { CholeskyFallback::LuAtOnce };
        let found = self.factorised(matrix, otherwise)?;
        found.ok_or(FactorError::Singular { unknown: 0, condition: f64::INFINITY })
    }

    /// Factorises a symmetric matrix that is positive definite, well above the rounding-error level; `None` if it is
    /// not.
    ///
    /// # Errors
    ///
    /// As for [`factorise`](Self::factorise).
    pub fn definite(&mut self, matrix: &Csc) -> Result<Option<Factors>, FactorError> {
        let found = self.factorised(matrix, CholeskyFallback::NoFallback)?;
        Ok(found.filter(Factors::is_definite))
    }

    fn factorised(
        &mut self,
        matrix: &Csc,
        otherwise: CholeskyFallback,
    ) -> Result<Option<Factors>, FactorError> {
        if !matrix.values.iter().all(|value| value.is_finite()) {
            return Err(FactorError::NotFinite);
        }
        if self.starts != matrix.starts || self.indices != matrix.rows {
            let (starts, indices) = (matrix.starts.clone(), matrix.rows.clone());
            *self = Self { starts, indices, cholesky: None, lu: None };
        }
        let (rows, columns) = scaling(matrix)?;
        let n = rows.len();
        let scaled = scaled(matrix, &rows, &columns);
        let norm = one_norm(&scaled);
        let cholesky = match otherwise {
            CholeskyFallback::LuAtOnce => None,
            CholeskyFallback::Lu | CholeskyFallback::NoFallback => self.cholesky(&scaled)?,
        };
        let kind = match (cholesky, otherwise) {
            (Some(factors), _) => FactorKind::Cholesky(factors),
            (None, CholeskyFallback::NoFallback) => return Ok(None),
            (None, _) => FactorKind::Lu(Box::new(self.lu(&scaled)?)),
        };
        let mut factors = Factors { kind, rows, columns, inverse: 0.0 };
        let (inverse, largest) = factors.inverse_norm(n);
        factors.inverse = inverse;
        // Columns of the scaled matrix have norms between 1 and their number of entries.
        if !inverse.is_finite() || inverse * rounding(n) > 1.0 {
            let condition = inverse * norm;
            return Err(FactorError::Singular { unknown: largest, condition });
        }
        Ok(Some(factors))
    }

    /// Computes a Cholesky factorisation; `None` if the matrix is not positive definite.
    fn cholesky(
        &mut self,
        matrix: &SparseColMat<usize, f64>,
    ) -> Result<Option<Llt<usize, f64>>, FactorError> {
        let memory = FactorError::Memory { unknowns: matrix.ncols() };
        let symbolic = match &self.cholesky {
            Some(known) => known.clone(),
            None => {
                let made = SymbolicLlt::try_new(matrix.symbolic(), Side::Lower);
                self.cholesky.insert(made.map_err(|_| memory)?).clone()
            }
        };
        match Llt::try_new_with_symbolic(symbolic, matrix.as_ref(), Side::Lower) {
            Ok(factors) => Ok(Some(factors)),
            Err(LltError::Numeric(_)) => Ok(None),
            Err(LltError::Generic(_)) => Err(memory),
        }
    }

    fn lu(&mut self, matrix: &SparseColMat<usize, f64>) -> Result<Lu<usize, f64>, FactorError> {
        let memory = FactorError::Memory { unknowns: matrix.ncols() };
        let symbolic = match &self.lu {
            Some(known) => known.clone(),
            None => {
                let made = SymbolicLu::try_new(matrix.symbolic()).map_err(|_| memory)?;
                self.lu.insert(made).clone()
            }
        };
        Lu::try_new_with_symbolic(symbolic, matrix.as_ref()).map_err(|error| match error {
            LuError::SymbolicSingular { index } => {
                FactorError::Singular { unknown: index, condition: f64::INFINITY }
            }
            LuError::Generic(_) => memory,
        })
    }
}

impl Factors {
    /// Returns `cholesky` or `lu`.
    pub fn word(&self) -> &'static str {
        match self.kind {
            FactorKind::Cholesky(_) => "cholesky",
            FactorKind::Lu(_) => "lu",
        }
    }

    /// Returns the number of degrees of freedom.
    pub fn unknowns(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether the matrix is positive definite, well above the rounding-error level.
    pub fn is_definite(&self) -> bool {
        matches!(self.kind, FactorKind::Cholesky(_))
            && self.inverse * ABOVE * rounding(self.rows.len()) < 1.0
    }

    /// Computes x = A⁻¹ x.
    pub fn solve(&self, x: &mut [f64]) {
        x.iter_mut().zip(&self.rows).for_each(|(x, scale)| *x *= scale);
        self.inner(x, false);
        x.iter_mut().zip(&self.columns).for_each(|(x, scale)| *x *= scale);
    }

    /// Computes x = (R A C)⁻¹ x, or the transpose.
    fn inner(&self, x: &mut [f64], transposed: bool) {
        let n = x.len();
        let right = MatMut::from_column_major_slice_mut(x, n, 1);
        match (&self.kind, transposed) {
            (FactorKind::Cholesky(factors), _) => factors.solve_in_place(right),
            (FactorKind::Lu(factors), false) => factors.solve_in_place(right),
            (FactorKind::Lu(factors), true) => factors.solve_transpose_in_place(right),
        }
    }

    /// Returns a lower bound of ‖(R A C)⁻¹‖₁, rarely far below it (Hager 1984). The index is that of the largest entry
    /// of the maximising vector, the null vector of a nearly singular matrix.
    fn inverse_norm(&self, n: usize) -> (f64, usize) {
        // Entries of equal size and irregular sign are not orthogonal to a null vector by accident.
        let sign = |i: usize| if (i.wrapping_mul(0x9E37_79B9) >> 16) & 1 == 0 { 1.0 } else { -1.0 };
        let mut x: Vec<f64> = (0..n).map(|i| sign(i) / n as f64).collect();
        let mut best = (0.0, 0);
        for _ in 0..4 {
            self.inner(&mut x, false);
            let norm: f64 = x.iter().map(|x| x.abs()).sum();
            let largest = largest(&x);
            if !norm.is_finite() {
                return (f64::INFINITY, largest);
            }
            if norm <= best.0 {
                break;
            }
            best = (norm, largest);
            let mut z: Vec<f64> = x.iter().map(|&x| if x < 0.0 { -1.0 } else { 1.0 }).collect();
            self.inner(&mut z, true);
            let steepest = self::largest(&z);
            x.fill(0.0);
            x[steepest] = 1.0;
        }
        best
    }
}

/// Returns the index of the largest entry; NaN counts as largest.
fn largest(x: &[f64]) -> usize {
    let size = |x: f64| if x.is_nan() { f64::INFINITY } else { x.abs() };
    let entries = x.iter().enumerate().map(|(i, &x)| (i, size(x)));
    let none = (0, -1.0);
    entries.fold(none, |best, entry| if entry.1 > best.1 { entry } else { best }).0
}

/// Returns the largest column sum of absolute values.
fn one_norm(matrix: &SparseColMat<usize, f64>) -> f64 {
    let sum = |j: usize| matrix.val_of_col(j).iter().map(|value| value.abs()).sum::<f64>();
    (0..matrix.ncols()).map(sum).fold(0.0, f64::max)
}

/// Returns the diagonals of R and C.
fn scaling(matrix: &Csc) -> Result<(Vec<f64>, Vec<f64>), FactorError> {
    let n = matrix.starts.len() - 1;
    let (mut rows, mut columns) = (vec![1.0; n], vec![1.0; n]);
    for sweep in 1..=MOST {
        let (mut of_rows, mut of_columns) = (vec![0.0f64; n], vec![0.0f64; n]);
        for j in 0..n {
            for (i, value) in matrix.column(j) {
                let size = (value * rows[i] * columns[j]).abs();
                of_rows[i] = of_rows[i].max(size);
                of_columns[j] = of_columns[j].max(size);
            }
        }
        let is_near = |sizes: &[f64]| sizes.iter().all(|size| (1.0 / APART..APART).contains(size));
        let near = is_near(&of_rows) && is_near(&of_columns);
        for (scales, largest) in [(&mut rows, of_rows), (&mut columns, of_columns)] {
            if let Some(unknown) = largest.iter().position(|&size| size == 0.0) {
                return Err(FactorError::Singular { unknown, condition: f64::INFINITY });
            }
            scales.iter_mut().zip(largest).for_each(|(scale, size)| *scale /= size.sqrt());
        }
        if sweep >= SWEEPS && near {
            break;
        }
    }
    Ok((rows, columns))
}

/// Returns R A C.
fn scaled(matrix: &Csc, rows: &[f64], columns: &[f64]) -> SparseColMat<usize, f64> {
    let n = rows.len();
    let mut values = Vec::with_capacity(matrix.values.len());
    for j in 0..n {
        values.extend(matrix.column(j).map(|(i, value)| rows[i] * value * columns[j]));
    }
    let indices = matrix.rows.iter().map(|&row| row as usize).collect();
    let pattern = SymbolicSparseColMat::new_checked(n, n, matrix.starts.clone(), None, indices);
    SparseColMat::new(pattern, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(n: usize, entry: impl Fn(usize, usize) -> f64) -> Csc {
        let mut matrix = Csc { starts: vec![0], rows: Vec::new(), values: Vec::new() };
        for j in 0..n {
            for i in 0..n {
                let value = entry(i, j);
                if value != 0.0 {
                    matrix.rows.push(i as u32);
                    matrix.values.push(value);
                }
            }
            matrix.starts.push(matrix.rows.len());
        }
        matrix
    }

    fn unit(i: usize) -> f64 {
        10f64.powi((i % 7) as i32 - 3)
    }

    /// Returns the second difference in different units for each degree of freedom.
    fn difference(i: usize, j: usize) -> f64 {
        let entry = match i.abs_diff(j) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        };
        unit(i) * entry * unit(j)
    }

    fn check(matrix: &Csc, definite: bool, word: &str) {
        let n = matrix.starts.len() - 1;
        let wanted: Vec<f64> = (0..n).map(|i| 1.0 + (i as f64).sin()).collect();
        let product = |x: &[f64]| {
            let (mut sums, mut sizes) = (vec![0.0; n], vec![0.0; n]);
            for (j, x) in x.iter().enumerate() {
                for (i, value) in matrix.column(j) {
                    sums[i] += value * x;
                    sizes[i] += (value * x).abs();
                }
            }
            (sums, sizes)
        };
        let (right, _) = product(&wanted);
        let mut analysis = SymbolicAnalysis::default();
        for _ in 0..2 {
            let mut x = right.clone();
            let factors = analysis.factorise(matrix, definite).expect("factors");
            assert_eq!(factors.word(), word);
            factors.solve(&mut x);
            let (left, sizes) = product(&x);
            for i in 0..n {
                assert!((left[i] - right[i]).abs() < 1e-11 * sizes[i], "{word}, row {i}");
            }
        }
    }

    #[test]
    fn factors_solve_badly_scaled_systems() {
        check(&columns(60, difference), true, "cholesky");
        check(&columns(60, difference), false, "lu");
        let indefinite = |i: usize, j: usize| difference(i, j) - if i == j { 1e-3 } else { 0.0 };
        check(&columns(60, indefinite), true, "lu");
        let turned = |i: usize, j: usize| difference(i, j) + if i == j + 1 { 0.4 } else { 0.0 };
        check(&columns(60, turned), false, "lu");
        // A saddle point: no diagonal in the last third.
        let saddle = |i: usize, j: usize| match (i < 40, j < 40) {
            (true, true) => difference(i, j),
            (false, false) => 0.0,
            _ => f64::from(u8::from(2 * (i.max(j) - 40) == i.min(j))),
        };
        check(&columns(60, saddle), true, "lu");
    }

    /// Two coupled blocks with rows that differ by 120 orders of magnitude.
    #[test]
    fn rows_in_far_apart_units_are_not_singular() {
        let coupled = |i: usize, j: usize| {
            let scale = if i < 30 { 1e-60 } else { 1e60 };
            let own = match i.abs_diff(j) {
                0 => 2.0,
                1 if (i < 30) == (j < 30) => -1.0,
                30 => 0.1,
                _ => 0.0,
            };
            scale * own
        };
        check(&columns(60, coupled), false, "lu");
    }

    #[test]
    fn singular_matrices_are_told_with_their_null_vector() {
        let mut analysis = SymbolicAnalysis::default();
        let mut error_of = |entry: &dyn Fn(usize, usize) -> f64, definite| {
            analysis.factorise(&columns(50, entry), definite).err()
        };
        // Neumann's problem in the degrees of freedom from 20, which are free up to a constant.
        let free = |i: usize, j: usize| match (i.min(j), i.abs_diff(j)) {
            (0..20, 0) => 2.0,
            (20 | 49, 0) => 1.0,
            (_, 0) => 2.0,
            (20.., 1) => -1.0,
            _ => 0.0,
        };
        for definite in [true, false] {
            let found = error_of(&free, definite);
            assert!(
                matches!(found, Some(FactorError::Singular { unknown: 20.., .. })),
                "{found:?}"
            );
        }
        let empty = |i: usize, j: usize| f64::from(u8::from(i == j && i != 31));
        assert_eq!(
            error_of(&empty, true),
            Some(FactorError::Singular { unknown: 31, condition: f64::INFINITY })
        );
        let twice = |i: usize, j: usize| {
            f64::from(u8::from(i == j || (i, j) == (8, 9)))
                * if j == 9 && i == 9 { 0.0 } else { 1.0 }
        };
        assert!(matches!(error_of(&twice, false), Some(FactorError::Singular { .. })));
        let broken = |i: usize, j: usize| if i == j { f64::NAN } else { 0.0 };
        assert_eq!(error_of(&broken, false), Some(FactorError::NotFinite));
    }
}

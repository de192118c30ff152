//! V-cycle of assembled levels: x ≈ A⁻¹ b, from x = 0.
//!
//! ```text
//! smooth     x_k = x_{k−1} + z_k,   r_k = r_{k−1} − A z_k
//!            z_k = (2k − 3)/(2k + 1) z_{k−1} + (8k − 4)/((2k + 1) λ) D⁻¹ r_{k−1}
//! correct    x += P x_c,   x_c the cycle of the next level on Pᵀ r
//! smooth
//! ```
//!
//! with the Chebyshev iteration of the fourth kind (Lottes 2023, "Optimal polynomial smoothers for multigrid V-cycles",
//! algorithm 1). From x = 0 its first step needs no product, and the residual after the last one is restricted: k pre-
//! and post-smoothing steps take 2k products. Each step is one pass over the matrix that updates all vectors row by
//! row.

use super::{Aggregation, AggregationLevel, CoarsestSolver};
use crate::algebra::sparse::{Csr, dot};
use crate::support::parallel::*;

/// Number of rows per task.
const ROWS: usize = 4096;

/// Work vectors of a level.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkVectors {
    b: Vec<f64>,
    x: Vec<f64>,
    r: Vec<f64>,
    z: Vec<f64>,
    /// Next z.
    next: Vec<f64>,
}

impl WorkVectors {
    pub(super) fn new(n: usize) -> Self {
        let zeros = || vec![0.0; n];
        Self { b: zeros(), x: zeros(), r: zeros(), z: zeros(), next: zeros() }
    }

    pub(super) fn bytes(&self) -> usize {
        5 * self.b.len() * size_of::<f64>()
    }
}

/// Returns the coefficients of z and of D⁻¹ r in step k.
fn coefficients(k: usize, largest: f64) -> (f64, f64) {
    let k = k as f64;
    ((2.0 * k - 3.0) / (2.0 * k + 1.0), (8.0 * k - 4.0) / ((2.0 * k + 1.0) * largest))
}

/// Computes x = M b.
pub(super) fn cycle(of: &Aggregation, work: &mut [WorkVectors], b: &[f64], x: &mut [f64]) {
    work[0].b.copy_from_slice(b);
    down(of, 0, work);
    x.copy_from_slice(&work[0].x);
}

/// Runs the cycle of a level, from its b to its x.
fn down(of: &Aggregation, level: usize, work: &mut [WorkVectors]) {
    let Some((own, rest)) = work.split_first_mut() else { return };
    let Some(at) = of.levels.get(level) else {
        own.x.copy_from_slice(&own.b);
        match &of.bottom {
            CoarsestSolver::Dense(factors) => factors.solve(&mut own.x),
            CoarsestSolver::Smoothed { matrix, inverse, largest } => {
                smooth_from_zero(matrix, (inverse, *largest), 2 * of.steps, own);
            }
        }
        return;
    };
    let AggregationLevel { matrix, prolongator, restrictor, inverse, largest } = at;
    smooth_from_zero(matrix, (inverse, *largest), of.steps, own);
    subtract(matrix, &own.z, &mut own.r);
    if let Some(coarse) = rest.first_mut() {
        restrictor.apply(&own.r, &mut coarse.b);
    }
    down(of, level + 1, rest);
    if let Some(coarse) = rest.first() {
        prolongator.add_product(&coarse.x, &mut own.x);
    }
    own.r.copy_from_slice(&own.b);
    subtract(matrix, &own.x, &mut own.r);
    let (_, b) = coefficients(1, *largest);
    first(inverse, b, own, false);
    steps(matrix, (inverse, *largest), of.steps, own);
}

/// Takes `count` steps from x = 0; on return r does not yet include A times the last z.
fn smooth_from_zero(
    matrix: &Csr,
    (inverse, largest): (&[f64], f64),
    count: usize,
    work: &mut WorkVectors,
) {
    work.r.copy_from_slice(&work.b);
    let (_, b) = coefficients(1, largest);
    first(inverse, b, work, true);
    steps(matrix, (inverse, largest), count, work);
}

/// Computes z = b D⁻¹ r, and x = z or x += z.
fn first(inverse: &[f64], b: f64, work: &mut WorkVectors, from_zero: bool) {
    let WorkVectors { x, r, z, .. } = work;
    let vectors = x.par_iter_mut().zip(z.par_iter_mut()).zip(r.par_iter()).zip(inverse);
    vectors.with_min_len(ROWS).each(|(((x, z), r), inverse)| {
        *z = b * inverse * r;
        *x = if from_zero { *z } else { *x + *z };
    });
}

/// Takes the steps after the first one.
fn steps(matrix: &Csr, (inverse, largest): (&[f64], f64), count: usize, work: &mut WorkVectors) {
    for k in 2..=count {
        let (a, b) = coefficients(k, largest);
        let WorkVectors { x, r, z, next, .. } = &mut *work;
        let vectors = x.par_chunks_mut(ROWS).zip(r.par_chunks_mut(ROWS));
        let vectors = vectors.zip(next.par_chunks_mut(ROWS)).enumerate();
        vectors.each(|(chunk, ((x, r), next))| {
            for i in 0..x.len() {
                let row = chunk * ROWS + i;
                r[i] -= times(matrix, row, z);
                next[i] = a * z[row] + b * inverse[row] * r[i];
                x[i] += next[i];
            }
        });
        std::mem::swap(&mut work.z, &mut work.next);
    }
}

/// Computes r −= A x.
fn subtract(matrix: &Csr, x: &[f64], r: &mut [f64]) {
    r.par_chunks_mut(ROWS).enumerate().each(|(chunk, r)| {
        r.iter_mut().enumerate().for_each(|(i, r)| *r -= times(matrix, chunk * ROWS + i, x));
    });
}

fn times(matrix: &Csr, row: usize, x: &[f64]) -> f64 {
    let range = matrix.starts[row]..matrix.starts[row + 1];
    dot(&matrix.columns[range.clone()], &matrix.values[range], x)
}

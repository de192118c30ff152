//! Approximate upper bound λ of the eigenvalues of D⁻¹A.
//!
//! The conjugate gradient method on a random right-hand side is equivalent to Lanczos' method: with its α_j and β_j,
//!
//! ```text
//! T_jj = 1/α_j + β_{j−1}/α_{j−1},   T_{j,j+1} = √β_j / α_j
//! ```
//!
//! has eigenvalues that approach those of D⁻¹A from inside (Golub and Van Loan 2013, section 10.2); the largest is
//! raised by a tenth. The largest row sum of |D⁻¹A| is a rigorous upper bound (Gershgorin), and replaces it if it is
//! smaller.

use crate::algebra::lanczos::largest_of;
use crate::algebra::sparse::Csr;
use crate::support::parallel::*;
use crate::support::random::random_entries;

/// Number of Lanczos steps.
const STEPS: usize = 12;
/// Safety factor: the estimate approaches the eigenvalue from inside.
const RAISED: f64 = 1.1;
/// Number of entries in a partial sum, so that sums are independent of the number of threads.
const CHUNK: usize = 4096;

/// Returns λ.
pub(super) fn largest(matrix: &Csr, inverse: &[f64]) -> f64 {
    let sums = (0..matrix.size())
        .into_par_iter()
        .map(|i| matrix.row(i).map(|(_, value)| value.abs()).sum::<f64>() * inverse[i]);
    let above = sums.merged(f64::max).unwrap_or(0.0);
    match lanczos(matrix, inverse) {
        Some(found) if found > 0.0 => above.min(RAISED * found),
        _ => above,
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let parts = a.par_chunks(CHUNK).zip(b.par_chunks(CHUNK));
    let parts: Vec<f64> =
        parts.map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>()).listed();
    parts.iter().sum()
}

fn lanczos(matrix: &Csr, inverse: &[f64]) -> Option<f64> {
    let n = matrix.size();
    let mut r = random_entries(n, 1);
    let mut z: Vec<f64> = r.iter().zip(inverse).map(|(r, d)| r * d).collect();
    let (mut p, mut q) = (z.clone(), vec![0.0; n]);
    let mut square = dot(&r, &z);
    let (mut diagonal, mut off_diagonal) = (Vec::new(), Vec::new());
    let (mut alpha, mut beta) = (1.0, 0.0);
    for _ in 0..STEPS {
        matrix.apply(&p, &mut q);
        let curvature = dot(&p, &q);
        if !(curvature > 0.0 && curvature.is_finite() && square > 0.0) {
            break;
        }
        let before = beta / alpha;
        alpha = square / curvature;
        diagonal.push(1.0 / alpha + before);
        r.par_iter_mut().zip(&q).each(|(r, q)| *r -= alpha * q);
        z.par_iter_mut().zip(&r).zip(inverse).each(|((z, r), d)| *z = r * d);
        let next = dot(&r, &z);
        beta = next / square;
        square = next;
        off_diagonal.push(beta.sqrt() / alpha);
        p.par_iter_mut().zip(&z).each(|(p, z)| *p = z + beta * *p);
    }
    (!diagonal.is_empty()).then(|| largest_of(&diagonal, &off_diagonal))
}

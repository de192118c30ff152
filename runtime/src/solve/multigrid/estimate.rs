//! Largest eigenvalue λ of D⁻¹A.
//!
//! The conjugate gradient method is equivalent to Lanczos' method: with its α_j and β_j, the tridiagonal matrix of
//!
//! ```text
//! T_jj = 1/α_j + β_{j−1}/α_{j−1},   T_{j,j+1} = √β_j / α_j
//! ```
//!
//! has eigenvalues that approach those of D⁻¹A from inside (Golub and Van Loan 2013, section 10.2).

use super::super::{LinearOperator, NullSpace, OperatorError};
use crate::algebra::lanczos::largest_of;
use crate::algebra::vector::Vector;

/// Number of iterations.
pub(super) const ITERATIONS: usize = 12;
/// Period of the entries of the initial right-hand side: without high frequencies it would converge early and reveal
/// nothing about them.
const PERIOD: usize = 11;

/// Binary exponent beyond which a typical entry of D is considered large or small.
const LARGE: f64 = 20.0;

/// Squared residuals below this fraction of the initial one are rounding error.
const ROUNDING: f64 = 1e-13;

/// Returns λ; `None` for a direction without positive curvature, or a number that is not finite. The vectors are
/// workspace.
pub(in crate::solve) fn largest(
    a: &dyn LinearOperator,
    inverse: &Vector,
    [b, r, p, q]: [&mut Vector; 4],
    null: Option<&NullSpace>,
) -> Result<Option<f64>, OperatorError> {
    // D⁻¹ is 0 in unused entries, which therefore do not contribute.
    r.ramp(PERIOD);
    // Rows of essential conditions are the identity. For large D they would dominate rᵀ D⁻¹ r.
    let typical = exponent(inverse, q);
    let half = (typical.abs() / 2.0).round();
    if typical != 0.0 {
        r.scale((-half).exp2());
    }
    if typical > 0.0 {
        q.copy_from(inverse);
        q.invert();
        r.multiply(q);
    }
    null.iter().for_each(|null| null.project(r));
    p.copy_from(r);
    p.multiply(inverse);
    let mut rz = r.dot(p);
    let solved = ROUNDING * rz;
    let (mut diagonal, mut off_diagonal): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    let (mut alpha, mut beta) = (1.0, 0.0);
    for _ in 0..ITERATIONS {
        a.apply(p, q)?;
        let curvature = p.dot(q);
        if !(curvature > 0.0 && curvature.is_finite() && rz > 0.0 && rz.is_finite()) {
            return Ok(None);
        }
        let before = beta / alpha;
        alpha = rz / curvature;
        diagonal.push(1.0 / alpha + before);
        r.axpy(-alpha, q);
        b.copy_from(r);
        b.multiply(inverse);
        let next = r.dot(b);
        beta = next / rz;
        rz = next;
        // Rounding error contains no information.
        if (0.0..=solved).contains(&next) {
            break;
        }
        if !(next > 0.0 && next.is_finite()) {
            return Ok(None);
        }
        off_diagonal.push(beta.sqrt() / alpha);
        p.axpby(1.0, b, beta);
    }
    let found = largest_of(&diagonal, &off_diagonal);
    Ok(Some(found).filter(|found| found.is_finite() && *found > 0.0))
}

/// Returns the binary exponent of a typical entry of D if that is far from 1, otherwise 0; −∞ if D⁻¹ overflows. The
/// second vector is workspace.
pub(super) fn exponent(inverse: &Vector, work: &mut Vector) -> f64 {
    let count = (inverse.entries_in_all().max(1) as f64).sqrt();
    work.copy_from(inverse);
    work.invert();
    let largest = inverse.norm();
    if largest == f64::INFINITY {
        return f64::NEG_INFINITY;
    }
    let (most, least) = ((work.norm() / count).log2(), -(largest / count).log2());
    match [most, least].map(|exponent| exponent.is_finite() && exponent.abs() > LARGE) {
        [true, _] if most > 0.0 => most.round(),
        [_, true] if least < 0.0 => least.round(),
        _ => 0.0,
    }
}

/// Returns λ for unsymmetric A: the largest of the last few ‖v_k‖/‖v_{k−1}‖ of v_k = D⁻¹A v_{k−1}.
pub(super) fn largest_by_powers(
    a: &dyn LinearOperator,
    inverse: &Vector,
    [v, next]: [&mut Vector; 2],
) -> Result<Option<f64>, OperatorError> {
    v.ramp(PERIOD);
    let (mut before, mut found) = (v.norm(), 0.0f64);
    for k in 0..ITERATIONS {
        a.apply(v, next)?;
        next.multiply(inverse);
        let norm = next.norm();
        if !(norm > 0.0 && norm.is_finite()) {
            return Ok(None);
        }
        if k >= ITERATIONS / 2 {
            found = found.max(norm / before);
        }
        v.copy_from(next);
        v.scale(1.0 / norm);
        before = 1.0;
    }
    Ok(Some(found))
}

//! Minimal residual method (Paige and Saunders 1975) for symmetric, possibly indefinite operators, with a symmetric
//! positive definite preconditioner.
//!
//! The Lanczos recurrence gives A V_k = V_{k+1} T_k; reflections keep T_k triangular, and x follows by another
//! recurrence. The method minimises √(rᵀM⁻¹r). The residual itself follows one more recurrence,
//!
//! ```text
//! r_k = s_k² r_{k−1} − φ_k c_k v_{k+1}
//! ```
//!
//! so that the reported norm, to which the tolerance applies, is ‖r‖ for every preconditioner. Convergence is confirmed
//! with the true residual; if that is larger than the recurrence states, the method restarts.

use super::stopping::{self, LinearSystem, PATIENCE};
use super::{
    CgSettings, Continue, LinearOperator, Observer, OperatorError, Outcome, Preconditioner,
    Progress, Report, alike, residual,
};
use crate::algebra::vector::Vector;

/// Ratio below which a residual counts as a new minimum.
const FALL: f64 = 0.99;

/// Solves A x = b from the given `x`.
///
/// # Errors
///
/// The operator or the preconditioner cannot be applied.
pub fn minres(
    a: &dyn LinearOperator,
    b: &Vector,
    x: &mut Vector,
    preconditioner: Preconditioner<'_>,
    settings: CgSettings,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    alike(b, &preconditioner.vectors().into_iter().chain([&*x]).collect::<Vec<_>>())?;
    stopping::solve("minres", b, x, settings, observe, |b, x, criterion, observe, history| {
        let system = LinearSystem { a, b, preconditioner, criterion };
        let mut work = WorkVectors::new(b);
        runs(system, x, settings.max_iterations, &mut work, observe, history)
    })
}

/// Work vectors.
struct WorkVectors {
    /// The residual.
    r: Vector,
    /// β v, of this iteration and of the last one.
    next: Vector,
    last: Vector,
    /// M⁻¹ of `next`, and its normalised multiple.
    z: Vector,
    v: Vector,
    /// A v.
    q: Vector,
    /// Search directions, the newest last.
    w: [Vector; 3],
}

impl WorkVectors {
    fn new(b: &Vector) -> Self {
        let new = || b.like();
        Self {
            r: new(),
            next: new(),
            last: new(),
            z: new(),
            v: new(),
            q: new(),
            w: [new(), new(), new()],
        }
    }
}

/// Scalars carried to the next iteration.
struct RecurrenceScalars {
    beta: f64,
    before: f64,
    /// Last two entries carried by the reflections (dbar and epsilon).
    carried: f64,
    far: f64,
    phi: f64,
    cosine: f64,
    sine: f64,
}

/// Runs the method, and restarts it from the true residual while that helps.
fn runs(
    system: LinearSystem<'_>,
    x: &mut Vector,
    max_iterations: usize,
    work: &mut WorkVectors,
    observe: Observer<'_>,
    history: &mut Vec<f64>,
) -> Result<Outcome, OperatorError> {
    let LinearSystem { a, b, criterion, .. } = system;
    let mut last = f64::INFINITY;
    loop {
        let norm = residual(a, b, x, &mut work.r)?;
        let claimed = history.last().is_some_and(|&norm| norm <= criterion.claim());
        match history.last_mut() {
            Some(end) => *end = norm,
            None => history.push(norm),
        }
        if !norm.is_finite() {
            return Ok(Outcome::NotFinite);
        }
        if norm <= criterion.asked {
            return Ok(Outcome::Converged);
        }
        if (claimed || norm > 0.5 * last)
            && let Some(outcome) = criterion.claimed(a, x, norm, last)?
        {
            return Ok(outcome);
        }
        last = norm;
        if let Some(outcome) = run(system, x, max_iterations, work, observe, history)? {
            return Ok(outcome);
        }
    }
}

/// Runs the recurrence from r = b − A x; returns an outcome if the true residual need not be checked.
fn run(
    system: LinearSystem<'_>,
    x: &mut Vector,
    max_iterations: usize,
    work: &mut WorkVectors,
    observe: Observer<'_>,
    history: &mut Vec<f64>,
) -> Result<Option<Outcome>, OperatorError> {
    let LinearSystem { a, b, preconditioner, criterion } = system;
    work.next.copy_from(&work.r);
    preconditioner.apply(&work.next, &mut work.z)?;
    let square = work.next.dot(&work.z);
    if square <= 0.0 {
        return Ok(Some(Outcome::Indefinite { curvature: square }));
    }
    let mut scalars = RecurrenceScalars {
        beta: square.sqrt(),
        before: 0.0,
        carried: 0.0,
        far: 0.0,
        phi: square.sqrt(),
        cosine: -1.0,
        sine: 0.0,
    };
    work.w.iter_mut().for_each(|w| w.fill(0.0));
    let (mut best, mut best_at, mut looked_at) = (f64::INFINITY, history.len(), history.len());
    while history.len() <= max_iterations {
        let exhausted = iterate(a, x, preconditioner, work, &mut scalars)?;
        let norm = work.r.norm();
        history.push(norm);
        if !norm.is_finite() || !scalars.beta.is_finite() {
            return Ok(Some(match scalars.beta.is_finite() {
                true => Outcome::NotFinite,
                // rᵀM⁻¹r < 0 has no root.
                false => Outcome::Indefinite { curvature: scalars.beta },
            }));
        }
        let progress =
            Progress { iteration: history.len() - 1, residual: norm, target: criterion.asked };
        if observe(progress) == Continue::No {
            return Ok(Some(Outcome::Cancelled));
        }
        if norm <= criterion.claim() || exhausted {
            return Ok(None);
        }
        if norm < FALL * best {
            (best, best_at, looked_at) = (norm, history.len(), history.len());
        } else if history.len() - looked_at >= PATIENCE {
            looked_at = history.len();
            // The next iteration overwrites q.
            let norm = residual(a, b, x, &mut work.q)?;
            if let Some(outcome) = criterion.unmoved(a, x, norm)? {
                history.last_mut().into_iter().for_each(|last| *last = norm);
                return Ok(Some(outcome));
            }
        }
    }
    Ok(Some(criterion.limit(history.len() - best_at)))
}

/// Runs one iteration; returns whether the Krylov space is exhausted.
fn iterate(
    a: &dyn LinearOperator,
    x: &mut Vector,
    preconditioner: Preconditioner<'_>,
    work: &mut WorkVectors,
    scalars: &mut RecurrenceScalars,
) -> Result<bool, OperatorError> {
    let RecurrenceScalars { beta, before, .. } = *scalars;
    let WorkVectors { r, next, last, z, v, q, w } = work;
    v.add_combination(0.0, &[z], &[1.0 / beta]);
    a.apply(v, q)?;
    if before != 0.0 {
        q.axpy(-beta / before, last);
    }
    let alpha = v.dot(q);
    q.axpy(-alpha / beta, next);
    // last ← next ← q
    std::mem::swap(last, next);
    std::mem::swap(next, q);
    preconditioner.apply(next, z)?;
    let square = next.dot(z);
    let length = if square == 0.0 { 0.0 } else { square.sqrt() };

    let far = scalars.far;
    let delta = scalars.cosine * scalars.carried + scalars.sine * alpha;
    let pivot = scalars.sine * scalars.carried - scalars.cosine * alpha;
    let gamma = pivot.hypot(length);
    let exhausted = length <= f64::EPSILON * (alpha.abs() + beta) || gamma == 0.0;
    scalars.far = scalars.sine * length;
    scalars.carried = -scalars.cosine * length;
    (scalars.before, scalars.beta) = (beta, length);
    if gamma == 0.0 {
        // A null vector of a singular operator: no further progress.
        return Ok(true);
    }
    scalars.cosine = pivot / gamma;
    scalars.sine = length / gamma;
    let step = scalars.cosine * scalars.phi;
    scalars.phi *= scalars.sine;

    w.rotate_left(1);
    let [older, newer, newest] = w;
    let factors = [1.0, -far, -delta].map(|factor| factor / gamma);
    newest.add_combination(0.0, &[v, older, newer], &factors);
    x.axpy(step, newest);
    let along = if length > 0.0 { -scalars.phi * scalars.cosine / length } else { 0.0 };
    r.axpby(along, next, scalars.sine * scalars.sine);
    Ok(exhausted)
}

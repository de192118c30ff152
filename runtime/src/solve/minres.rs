//! The minimal residual method (Paige and Saunders 1975) for symmetric operators, indefinite ones too, with a
//! preconditioner that is symmetric and positive definite.
//!
//! Lanczos' three terms give A V_k = V_{k+1} T_k; reflections keep T_k triangular, and x follows by a recurrence of
//! its own. What is minimised is √(rᵀM⁻¹r). The residual itself follows one more recurrence,
//!
//! ```text
//! r_k = s_k² r_{k−1} − φ_k c_k v_{k+1}
//! ```
//!
//! so that the norm that is reported, and that the tolerance is for, is ‖r‖ whatever the preconditioner. Before it
//! counts as converged it is formed anew, and where it is larger than the recurrence has it the method starts again.

use super::goal::{self, PATIENCE, System};
use super::{
    CgSettings, Continue, LinearOperator, Observer, OperatorError, Outcome, Preconditioner,
    Progress, Report, alike, residual,
};
use crate::algebra::vector::Vector;

/// What counts as a new smallest residual.
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
    goal::solve("minres", b, x, settings, observe, |b, x, goal, observe, history| {
        let system = System { a, b, preconditioner, goal };
        let mut work = Work::new(b);
        runs(system, x, settings.max_iterations, &mut work, observe, history)
    })
}

/// The vectors of the method beside x.
struct Work {
    /// The residual.
    r: Vector,
    /// β v, of this iteration and of the one before.
    next: Vector,
    last: Vector,
    /// M⁻¹ of `next`, and its multiple of length 1.
    z: Vector,
    v: Vector,
    /// A v.
    q: Vector,
    /// Directions, the newest last.
    w: [Vector; 3],
}

impl Work {
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

/// The numbers that an iteration hands to the next.
struct Scalars {
    beta: f64,
    before: f64,
    /// dbar and epsilon: what earlier reflections have made of T's next columns.
    carried: f64,
    far: f64,
    phi: f64,
    cosine: f64,
    sine: f64,
}

/// Runs the method, and again from the true residual as long as that helps.
fn runs(
    system: System<'_>,
    x: &mut Vector,
    max_iterations: usize,
    work: &mut Work,
    observe: Observer<'_>,
    history: &mut Vec<f64>,
) -> Result<Outcome, OperatorError> {
    let System { a, b, goal, .. } = system;
    let mut last = f64::INFINITY;
    loop {
        let norm = residual(a, b, x, &mut work.r)?;
        let claimed = history.last().is_some_and(|&norm| norm <= goal.claim());
        match history.last_mut() {
            Some(end) => *end = norm,
            None => history.push(norm),
        }
        if !norm.is_finite() {
            return Ok(Outcome::NotFinite);
        }
        if norm <= goal.asked {
            return Ok(Outcome::Converged);
        }
        if (claimed || norm > 0.5 * last)
            && let Some(outcome) = goal.claimed(a, x, norm, last)?
        {
            return Ok(outcome);
        }
        last = norm;
        if let Some(outcome) = run(system, x, max_iterations, work, observe, history)? {
            return Ok(outcome);
        }
    }
}

/// One run from r = b − A x; an outcome where that is not to be checked with the true residual.
fn run(
    system: System<'_>,
    x: &mut Vector,
    max_iterations: usize,
    work: &mut Work,
    observe: Observer<'_>,
    history: &mut Vec<f64>,
) -> Result<Option<Outcome>, OperatorError> {
    let System { a, b, preconditioner, goal } = system;
    work.next.copy_from(&work.r);
    preconditioner.apply(&work.next, &mut work.z)?;
    let square = work.next.dot(&work.z);
    if square <= 0.0 {
        return Ok(Some(Outcome::Indefinite { curvature: square }));
    }
    let mut scalars = Scalars {
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
            Progress { iteration: history.len() - 1, residual: norm, target: goal.asked };
        if observe(progress) == Continue::No {
            return Ok(Some(Outcome::Cancelled));
        }
        if norm <= goal.claim() || exhausted {
            return Ok(None);
        }
        if norm < FALL * best {
            (best, best_at, looked_at) = (norm, history.len(), history.len());
        } else if history.len() - looked_at >= PATIENCE {
            looked_at = history.len();
            // The next iteration writes q anew.
            let norm = residual(a, b, x, &mut work.q)?;
            if let Some(outcome) = goal.unmoved(a, x, norm)? {
                history.last_mut().into_iter().for_each(|last| *last = norm);
                return Ok(Some(outcome));
            }
        }
    }
    Ok(Some(goal.limit(history.len() - best_at)))
}

/// One iteration; whether the Krylov space is exhausted.
fn iterate(
    a: &dyn LinearOperator,
    x: &mut Vector,
    preconditioner: Preconditioner<'_>,
    work: &mut Work,
    scalars: &mut Scalars,
) -> Result<bool, OperatorError> {
    let Scalars { beta, before, .. } = *scalars;
    let Work { r, next, last, z, v, q, w } = work;
    v.copy_from(z);
    v.scale(1.0 / beta);
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
        // A singular operator's null vector: nothing more is to be had here.
        return Ok(true);
    }
    scalars.cosine = pivot / gamma;
    scalars.sine = length / gamma;
    let step = scalars.cosine * scalars.phi;
    scalars.phi *= scalars.sine;

    w.rotate_left(1);
    let [older, newer, newest] = w;
    newest.copy_from(v);
    newest.axpy(-far, older);
    newest.axpy(-delta, newer);
    newest.scale(1.0 / gamma);
    x.axpy(step, newest);
    let along = if length > 0.0 { -scalars.phi * scalars.cosine / length } else { 0.0 };
    r.axpby(along, next, scalars.sine * scalars.sine);
    Ok(exhausted)
}

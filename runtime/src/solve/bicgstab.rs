//! BiCGStab (van der Vorst 1992) with right preconditioning, for unsymmetric operators. It stores eight vectors,
//! independent of the iteration count, and takes two products per iteration.
//!
//! ```text
//! ρ = r̂·r,   p = r + β (p − ω v),   β = (ρ/ρ′)(α/ω)
//! v = A M⁻¹ p,   α = ρ/(r̂·v),   s = r − α v
//! t = A M⁻¹ s,   ω = t·s/t·t,     x += M⁻¹(α p + ω s),   r = s − ω t
//! ```
//!
//! The recurrence breaks down if ρ, r̂·v or ω vanish. The method then restarts with the true residual as the new r̂; it
//! fails if this does not reduce the residual. Convergence is checked with the true residual.

use super::stopping::{self, LinearSystem, PATIENCE};
use super::{
    CgSettings, Continue, LinearOperator, Observer, OperatorError, Outcome, Preconditioner,
    Progress, Report, alike, residual,
};
use crate::algebra::vector::multi_vector::products;
use crate::algebra::vector::{Vector, epsilon};

/// Ratio below which a residual counts as a new minimum.
const FALL: f64 = 0.99;
/// Growth of the residual over the initial one of a run at which rounding error dominates.
const GROWN: f64 = 1e6;

/// Solves A x = b from the given `x`.
///
/// # Errors
///
/// The operator or the preconditioner cannot be applied; invalid settings.
pub fn bicgstab(
    a: &dyn LinearOperator,
    b: &Vector,
    x: &mut Vector,
    preconditioner: Preconditioner<'_>,
    settings: CgSettings,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    alike(b, &preconditioner.vectors().into_iter().chain([&*x]).collect::<Vec<_>>())?;
    stopping::solve("bicgstab", b, x, settings, observe, |b, x, criterion, observe, history| {
        let system = LinearSystem { a, b, preconditioner, criterion };
        let mut work = WorkVectors::new(b);
        runs(system, x, settings.max_iterations, &mut work, observe, history)
    })
}

/// Work vectors.
struct WorkVectors {
    r: Vector,
    /// r̂.
    shadow: Vector,
    p: Vector,
    v: Vector,
    t: Vector,
    /// M⁻¹ p, and M⁻¹ s.
    y: Vector,
    z: Vector,
}

impl WorkVectors {
    fn new(b: &Vector) -> Self {
        let new = || b.like();
        Self { r: new(), shadow: new(), p: new(), v: new(), t: new(), y: new(), z: new() }
    }
}

/// End of a run.
enum RunEnd {
    /// The recurrence residual reached the tolerance, or is meaningless.
    RecurrenceConverged,
    /// A divisor vanished.
    Breakdown,
    /// Final outcome.
    Final(Outcome),
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
    let (mut last, mut end) = (f64::INFINITY, RunEnd::Breakdown);
    loop {
        let norm = residual(a, b, x, &mut work.r)?;
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
        let helped = norm <= 0.5 * last;
        if (matches!(end, RunEnd::RecurrenceConverged) || !helped && last.is_finite())
            && let Some(outcome) = criterion.claimed(a, x, norm, last)?
        {
            let broken = outcome == Outcome::Stagnated && matches!(end, RunEnd::Breakdown);
            return Ok(if broken { Outcome::BrokeDown } else { outcome });
        }
        last = norm;
        end = run(system, x, norm, max_iterations, work, observe, history)?;
        if let RunEnd::Final(outcome) = end {
            return Ok(outcome);
        }
    }
}

/// Runs the recurrence from r = b − A x.
fn run(
    LinearSystem { a, b, preconditioner, criterion }: LinearSystem<'_>,
    x: &mut Vector,
    first: f64,
    max_iterations: usize,
    work: &mut WorkVectors,
    observe: Observer<'_>,
    history: &mut Vec<f64>,
) -> Result<RunEnd, OperatorError> {
    let WorkVectors { r, shadow, p, v, t, y, z } = work;
    let tiny = epsilon(b.precision()).powi(2);
    shadow.copy_from(r);
    p.copy_from(r);
    let mut rho = first * first;
    let (mut best, mut best_at, mut looked_at) = (first, history.len(), history.len());
    while history.len() <= max_iterations {
        preconditioner.apply(p, y)?;
        a.apply(y, v)?;
        let found = products(&[v], &[shadow, v]);
        let (along, length) = (found[0], found[1].sqrt());
        if !along.is_finite() || !length.is_finite() {
            return Ok(RunEnd::Final(Outcome::NotFinite));
        }
        if along.abs() <= tiny * first * length {
            return Ok(RunEnd::Breakdown);
        }
        let alpha = rho / along;
        r.axpy(-alpha, v);
        preconditioner.apply(r, z)?;
        a.apply(z, t)?;
        let found = products(&[t], &[r, t]);
        let (product, square) = (found[0], found[1]);
        let omega = if square > 0.0 { product / square } else { 0.0 };
        x.add_combination(1.0, &[y, z], &[alpha, omega]);
        r.axpy(-omega, t);
        let (next, norm) = (shadow.dot_later(r), r.norm());
        let next = next.value();
        history.push(norm);
        if !norm.is_finite() || !next.is_finite() {
            return Ok(RunEnd::Final(Outcome::NotFinite));
        }
        let progress =
            Progress { iteration: history.len() - 1, residual: norm, target: criterion.asked };
        if observe(progress) == Continue::No {
            return Ok(RunEnd::Final(Outcome::Cancelled));
        }
        if norm <= criterion.claim() {
            return Ok(RunEnd::RecurrenceConverged);
        }
        if omega == 0.0 || next.abs() <= tiny * first * norm || norm > GROWN * first {
            return Ok(RunEnd::Breakdown);
        }
        if norm < FALL * best {
            (best, best_at, looked_at) = (norm, history.len(), history.len());
        } else if history.len() - looked_at >= PATIENCE {
            looked_at = history.len();
            // The next iteration overwrites t.
            let norm = residual(a, b, x, t)?;
            if let Some(outcome) = criterion.unmoved(a, x, norm)? {
                history.last_mut().into_iter().for_each(|last| *last = norm);
                return Ok(RunEnd::Final(outcome));
            }
        }
        let beta = next / rho * (alpha / omega);
        rho = next;
        p.add_combination(beta, &[r, v], &[1.0, -beta * omega]);
    }
    Ok(RunEnd::Final(criterion.limit(history.len() - best_at)))
}

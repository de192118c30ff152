//! Preconditioned conjugate gradient method (Hestenes and Stiefel) for symmetric positive definite operators.
//!
//! Besides the operator, an iteration takes one dot product and two fused passes: x += α p, r −= α q with both products
//! of r; and p = M⁻¹r + β p. An M that is an operator adds one pass, for its products. M⁻¹r stays in the preconditioner's
//! own vector and precision, if it has one.
//!
//! A device processes [`batches`] of iterations on its own if the operators run there without host synchronisation.
//! Otherwise the host synchronises once per iteration, after the first of these passes. That pass computes α on the
//! device and skips the step if pᵀAp is not positive.

mod batches;

use super::stopping::{self, CgSettings, PATIENCE, StoppingCriterion};
use super::{
    Continue, LinearOperator, Observer, OperatorError, Outcome, Preconditioner, Progress, Report,
    alike, residual,
};
use crate::algebra::vector::{CgStep, Vector};
use batches::IterationBatches;
use std::sync::Arc;

/// Solves A x = b from the given `x`.
///
/// `observe` is called for every iteration in order; on a device, later iterations may be complete by then. If it stops
/// the solve, x belongs to the latest iteration.
///
/// The recurrence residual drifts from the true one. For tolerances near the precision and after many iterations,
/// convergence is therefore checked with the true residual. If that is too large, the method restarts from it, as long
/// as restarts help.
pub fn cg(
    a: &dyn LinearOperator,
    b: &Vector,
    x: &mut Vector,
    preconditioner: Preconditioner<'_>,
    settings: CgSettings,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    cg_with(&mut None, a, b, x, preconditioner, settings, observe)
}

/// Solves like [`cg`], with work vectors that are left for later solves. Those of a device are not: its memory is
/// scarcer.
pub(super) fn cg_with(
    work: &mut Option<WorkVectors>,
    a: &dyn LinearOperator,
    b: &Vector,
    x: &mut Vector,
    preconditioner: Preconditioner<'_>,
    settings: CgSettings,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    alike(b, &preconditioner.vectors().into_iter().chain([&*x]).collect::<Vec<_>>())?;
    work.take_if(|work| !work.suits(b));
    let kept = &mut *work;
    let report =
        stopping::solve("cg", b, x, settings, observe, |b, x, criterion, observe, history| {
            let system = PreconditionedSystem { a, preconditioner };
            let work = kept.get_or_insert_with(|| WorkVectors::new(b));
            work.z.take_if(|_| !matches!(preconditioner, Preconditioner::Operator(_)));
            iterate(system, work, b, x, criterion, settings.max_iterations, observe, history)
        });
    work.take_if(|work| work.r.array().is_some());
    report
}

/// Operator and preconditioner.
#[derive(Clone, Copy)]
struct PreconditionedSystem<'a> {
    a: &'a dyn LinearOperator,
    preconditioner: Preconditioner<'a>,
}

/// Work vectors.
pub(super) struct WorkVectors {
    /// Residual.
    r: Vector,
    /// Search direction.
    p: Vector,
    /// A p.
    q: Vector,
    /// M⁻¹ r, if M is an operator without a vector for it.
    z: Option<Vector>,
}

impl WorkVectors {
    fn new(b: &Vector) -> Self {
        Self { r: b.like(), p: b.like(), q: b.like(), z: None }
    }

    /// Returns whether the vectors are like `b`.
    fn suits(&self, b: &Vector) -> bool {
        let place = |vector: &Vector| vector.array().map(|(own, _)| Arc::as_ptr(own));
        let sharing = |vector: &Vector| vector.sharing().map(Arc::as_ptr);
        let of = |vector: &Vector| (vector.len(), vector.precision(), vector.numbering());
        let all = |vector: &Vector| (of(vector), place(vector), sharing(vector));
        all(&self.r) == all(b) && self.q.len() == b.len()
    }

    /// Takes a vector out, of undefined entries.
    pub(super) fn take_spare(&mut self) -> Vector {
        std::mem::replace(&mut self.q, Vector::zeros(0, self.r.precision()))
    }

    /// Takes it back.
    pub(super) fn put_spare(&mut self, spare: Vector) {
        self.q = spare;
    }

    /// Computes p = M⁻¹ r and returns r·p; `norm` is ‖r‖.
    fn restart(
        &mut self,
        preconditioner: Preconditioner<'_>,
        norm: f64,
    ) -> Result<f64, OperatorError> {
        let Self { r, p, z, .. } = self;
        match preconditioner {
            Preconditioner::Operator(operator) => {
                let range = 0..r.len();
                operator.apply_lending(r, norm, z, &mut |a, z| p.put_part(a, z, range.clone()))?;
            }
            _ => preconditioner.apply(r, p)?,
        }
        Ok(self.r.dot(&self.p))
    }

    /// Computes x = x + α p, r = r − α A p.
    fn step(
        &mut self,
        PreconditionedSystem { a, preconditioner }: PreconditionedSystem<'_>,
        x: &mut Vector,
        rz: f64,
    ) -> Result<CgStep, OperatorError> {
        let curvature = a.apply_dot(&self.p, &mut self.q)?;
        let inverse = preconditioner.inverse_diagonal();
        Ok(x.step(rz, &curvature, &self.p, &mut self.r, &self.q, inverse))
    }

    /// Computes p = M⁻¹ r + β p and returns r·M⁻¹r, which `weighted` holds already unless M is an operator. An operator
    /// may vary between iterations, e.g. by single-precision rounding: then β = z·(r − r′)/(r′·z′), with r − r′ = −α A
    /// p.
    fn advance(
        &mut self,
        preconditioner: Preconditioner<'_>,
        rz: f64,
        CgStep { curvature, square, weighted }: CgStep,
    ) -> Result<f64, OperatorError> {
        let Self { r, p, q, z } = self;
        let Preconditioner::Operator(operator) = preconditioner else {
            let inverse = preconditioner.inverse_diagonal();
            p.advance(weighted / rz, r, inverse);
            return Ok(weighted);
        };
        let mut next = f64::NAN;
        operator.apply_lending(r, square.sqrt(), z, &mut |a, z| {
            let [own, change] = r.products_with(a, z, q);
            next = own;
            p.advance_with(a, z, -change / curvature);
        })?;
        Ok(next)
    }
}

fn iterate(
    system: PreconditionedSystem<'_>,
    work: &mut WorkVectors,
    b: &Vector,
    x: &mut Vector,
    criterion: StoppingCriterion,
    max_iterations: usize,
    observe: Observer<'_>,
    history: &mut Vec<f64>,
) -> Result<Outcome, OperatorError> {
    let PreconditionedSystem { a, preconditioner } = system;
    let mut norm = residual(a, b, x, &mut work.r)?;
    history.push(norm);
    if !norm.is_finite() {
        return Ok(Outcome::NotFinite);
    }
    if norm <= criterion.asked {
        return Ok(Outcome::Converged);
    }
    let mut rz = work.restart(preconditioner, norm)?;
    let mut batches = IterationBatches::new(system, b, criterion.claim())?;
    if let Some(batches) = &mut batches {
        batches.start(rz)?;
    }
    // Smallest recurrence residual, its iteration, and the iteration of the last check of the true residual.
    let (mut best, mut best_at, mut looked_at) = (norm, 0, 0);
    let mut last_true = f64::INFINITY;
    for iteration in 1..=max_iterations {
        if rz <= 0.0 {
            return Ok(Outcome::Indefinite { curvature: rz });
        }
        let step = match &mut batches {
            Some(batches) => {
                // Not beyond the iteration at which the host may have to end the solve.
                let end = max_iterations.min((best_at.max(looked_at) + PATIENCE).max(iteration));
                batches.next(system, work, x, history, end - iteration + 1)?
            }
            None => work.step(system, x, rz)?,
        };
        let CgStep { curvature, square, weighted } = step;
        if !curvature.is_finite() || !rz.is_finite() {
            return Ok(Outcome::NotFinite);
        }
        if curvature <= 0.0 {
            return Ok(Outcome::Indefinite { curvature });
        }
        norm = square.sqrt();
        let claimed = norm <= criterion.claim() && criterion.doubtful(iteration);
        if claimed {
            norm = residual(a, b, x, &mut work.r)?;
        }
        history.push(norm);
        if !norm.is_finite() {
            return Ok(Outcome::NotFinite);
        }
        if norm <= criterion.asked {
            return Ok(Outcome::Converged);
        }
        if observe(Progress { iteration, residual: norm, target: criterion.asked }) == Continue::No
        {
            return Ok(Outcome::Cancelled);
        }
        if claimed {
            if let Some(outcome) = criterion.claimed(a, x, norm, last_true)? {
                return Ok(outcome);
            }
            (best, best_at, last_true) = (norm, iteration, norm);
            rz = work.restart(preconditioner, norm)?;
            if let Some(batches) = &mut batches {
                batches.start(rz)?;
            }
            continue;
        }
        if norm < best {
            (best, best_at) = (norm, iteration);
        } else if iteration - best_at.max(looked_at) >= PATIENCE {
            looked_at = iteration;
            // The next iteration overwrites q.
            norm = residual(a, b, x, &mut work.q)?;
            if let Some(outcome) = criterion.unmoved(a, x, norm)? {
                history[iteration] = norm;
                return Ok(outcome);
            }
        }
        rz = match batches {
            Some(_) => weighted,
            None => work.advance(preconditioner, rz, step)?,
        };
    }
    Ok(criterion.limit(max_iterations - best_at))
}

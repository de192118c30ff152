//! Linear systems one after another: a problem's solver → solves that share what was made of a Jacobian.

use super::super::plan::SolvePlan;
use super::{System, not_finite, precondition};
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::problem::RunError;
use crate::problem::mean::Compatibility;
use crate::solve::{
    Affine, CgSettings, Continue, NonlinearSystem, OperatorError, Outcome, Progress, Report,
    Wrapper,
};

/// Solves linear systems one after another, as [`solve`](super::solve) does one: what was made for a Jacobian serves as long as that is the same.
pub(in crate::problem) struct Again {
    affine: Affine,
    stop: CgSettings,
    /// What should be known of it.
    pub(in crate::problem) note: Option<String>,
}

impl Again {
    /// Prepares solves by a plan; `u` is any state.
    ///
    /// # Errors
    ///
    /// Settings that do not fit.
    pub(in crate::problem) fn new(
        operator: &mut Operator,
        system: System<'_>,
        u: &Vector,
        plan: &SolvePlan,
    ) -> Result<Self, RunError> {
        system.eliminate(operator);
        let (preconditioning, note) = precondition(operator, system, &plan.linear)?;
        let affine = Affine::new(u, plan.linear.with(preconditioning));
        Ok(Self { affine, stop: plan.stop(0.0), note })
    }

    /// One system, of which the Jacobian may be the same as of the last one.
    ///
    /// # Errors
    ///
    /// As those of [`solve`](super::solve).
    pub(in crate::problem) fn solve(
        &mut self,
        operator: &mut Operator,
        system: System<'_>,
        u: &mut Vector,
        (same, floor): (bool, f64),
        observe: &mut dyn FnMut(Progress) -> Continue,
    ) -> Result<Report, RunError> {
        operator.impose(u)?;
        let compatibility = Compatibility::of(operator, system)?;
        let mut kept = Kept { operator, same };
        let atol = self.stop.atol.max(self.stop.rtol * floor);
        let report = self.affine.solve(&mut kept, u, CgSettings { atol, ..self.stop }, observe)?;
        if let Some(error) = system.failed(&report) {
            return Err(error);
        }
        if report.outcome == Outcome::NotFinite {
            return Err(not_finite(operator, system, u, &report));
        }
        let mut report = report.converged()?;
        report.notes.extend(compatibility.settle(operator, system, u)?);
        Ok(report)
    }
}

/// An operator whose Jacobian may be what it was.
struct Kept<'a> {
    operator: &'a mut Operator,
    same: bool,
}

impl Wrapper for Kept<'_> {
    fn inner(&self) -> &dyn NonlinearSystem {
        self.operator
    }

    fn inner_mut(&mut self) -> &mut dyn NonlinearSystem {
        self.operator
    }

    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        if self.same { Ok(()) } else { self.operator.linearise(u) }
    }

    fn same_jacobian(&self) -> bool {
        self.same
    }

    fn precondition(&mut self) -> Result<Result<(), String>, OperatorError> {
        match self.same && self.operator.preconditioner().is_some() {
            true => Ok(Ok(())),
            false => self.operator.precondition(),
        }
    }
}

//! Sequences of linear systems that reuse factors or levels of an unchanged Jacobian.

use super::super::plan::SolvePlan;
use super::{Context, not_finite, precondition};
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::problem::RunError;
use crate::problem::mean::Compatibility;
use crate::solve::{
    AffineSolver, CgSettings, Continue, NonlinearSystem, OperatorError, Outcome, Progress, Report,
    Wrapper,
};

/// Solver for a sequence of linear systems, each solved like [`solve`](super::solve); factors and levels are reused
/// while the Jacobian is unchanged.
pub(in crate::problem) struct LinearSolveSequence {
    affine: AffineSolver,
    stop: CgSettings,
    /// Note on the preconditioner.
    pub(in crate::problem) note: Option<String>,
}

impl LinearSolveSequence {
    /// Prepares solves by a plan; `u` is any state.
    ///
    /// # Errors
    ///
    /// Invalid settings.
    pub(in crate::problem) fn new(
        operator: &mut Operator,
        context: &Context,
        u: &Vector,
        plan: &SolvePlan,
    ) -> Result<Self, RunError> {
        context.eliminate(operator);
        let (preconditioning, note) = precondition(operator, context, &plan.linear)?;
        let affine = AffineSolver::new(u, plan.linear.with(preconditioning));
        Ok(Self { affine, stop: plan.stop(0.0), note })
    }

    /// Solves one system; `same` states that its Jacobian equals the last one.
    ///
    /// # Errors
    ///
    /// As for [`solve`](super::solve).
    pub(in crate::problem) fn solve(
        &mut self,
        operator: &mut Operator,
        context: &Context,
        u: &mut Vector,
        (same, floor): (bool, f64),
        observe: &mut dyn FnMut(Progress) -> Continue,
    ) -> Result<Report, RunError> {
        operator.impose(u)?;
        let compatibility = Compatibility::of(operator, context)?;
        let mut kept = ReusedJacobian { operator, same };
        let atol = self.stop.atol.max(self.stop.rtol * floor);
        let report = self.affine.solve(&mut kept, u, CgSettings { atol, ..self.stop }, observe)?;
        if let Some(error) = context.failed(&report) {
            return Err(error);
        }
        if report.outcome == Outcome::NotFinite {
            return Err(not_finite(operator, context, u, &report));
        }
        let mut report = report.converged()?;
        report.notes.extend(compatibility.settle(operator, context, u)?);
        Ok(report)
    }
}

/// An operator with a possibly unchanged Jacobian.
struct ReusedJacobian<'a> {
    operator: &'a mut Operator,
    same: bool,
}

impl Wrapper for ReusedJacobian<'_> {
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

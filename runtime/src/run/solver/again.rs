//! Linear systems one after another: a problem's solver → solves that share what was made of a Jacobian.

use super::{Settings, System, linear, not_finite};
use crate::coupling::Coupling;
use crate::operator::Operator;
use crate::run::RunError;
use crate::run::mean::Compatibility;
use crate::solve::{
    Affine, Approximation, CgSettings, Continue, FieldDofs, LinearOperator, Local, NonlinearSystem,
    NullSpace, OperatorError, Outcome, Progress, Report,
};
use crate::vector::Vector;
use fem_dsl::problem::Solver;
use std::sync::Arc;

/// Solves linear systems one after another, as [`solve`](super::solve) does one: what was made for a Jacobian serves as long as that is the same.
pub(in crate::run) struct Again {
    affine: Affine,
    stop: CgSettings,
    /// What should be known of it.
    pub(in crate::run) note: Option<String>,
}

impl Again {
    /// With the solver that was named or the one that suits the form; `u` is any state.
    ///
    /// # Errors
    ///
    /// Settings that do not fit.
    pub(in crate::run) fn new(
        operator: &mut Operator,
        system: System<'_>,
        u: &Vector,
        named: Option<&Solver>,
    ) -> Result<Self, RunError> {
        let settings = Settings { named, floor: 0.0 };
        settings.available()?;
        let name = named.map_or("", |solver| solver.name.as_str());
        system.eliminate(operator);
        let (linear, stop, note) = linear(operator, system, name, settings)?;
        Ok(Self { affine: Affine::new(u, linear), stop, note })
    }

    /// One system, of which the Jacobian may be the same as of the last one.
    ///
    /// # Errors
    ///
    /// As those of [`solve`](super::solve).
    pub(in crate::run) fn solve(
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
        if let Outcome::Singular { unknown, condition } = report.outcome {
            return Err(system.singular(unknown, condition));
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

impl NonlinearSystem for Kept<'_> {
    fn size(&self) -> usize {
        NonlinearSystem::size(self.operator)
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        self.operator.residual(u, r)
    }

    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        if self.same { Ok(()) } else { self.operator.linearise(u) }
    }

    fn complete(&self, u: &mut Vector) -> Result<(), OperatorError> {
        self.operator.complete(u)
    }

    fn null_space(&self) -> Option<&NullSpace> {
        self.operator.null_space()
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        self.operator.jacobian()
    }

    fn same_jacobian(&self) -> bool {
        self.same
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        self.operator.diagonal(diagonal)
    }

    fn precondition(&mut self) -> Result<Result<(), String>, OperatorError> {
        match self.same && self.operator.preconditioner().is_some() {
            true => Ok(Ok(())),
            false => self.operator.precondition(),
        }
    }

    fn preconditioner(&self) -> Option<&dyn Approximation> {
        self.operator.preconditioner()
    }

    fn forget_preconditioner(&mut self) {
        self.operator.forget_preconditioner();
    }

    fn symmetric(&self) -> bool {
        self.operator.symmetric()
    }

    fn fields(&self) -> Vec<FieldDofs> {
        self.operator.fields()
    }

    fn local(&self) -> Option<Arc<Local>> {
        self.operator.local()
    }

    fn coupling(&self) -> Option<Coupling> {
        self.operator.coupling()
    }
}

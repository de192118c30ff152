//! Direct solvers with several processes: redundant factorisation of the whole matrix, on request or as a last resort.

use super::super::RunError;
use super::super::factors::{self, Facts};
use super::super::fixed::in_any;
use super::super::multigrid::{Asked, AtEach, Problem};
use super::{Levels, RESTART, Settings, System, is_saddle};
use crate::algebra::factor::FactorError;
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::solve::{Approximation, Factors, InnerSolver, Linear, Preconditioning};
use fem_dsl::point::eliminated;

/// Error of a redundant factorisation without data on the whole mesh.
pub(in crate::problem) const UNKNOWN_DATA: &str = "several processes cannot factorise the matrix: its data is not known on the whole mesh\n\
     help: name another solver, or start one process";

impl System<'_> {
    /// Decides when a serial run would factorise the matrix that is distributed here; `Never` in a serial run.
    pub(crate) fn factors_of_one(&self) -> Factors {
        if self.on.mesh.cut().is_none() {
            return Factors::Never;
        }
        // Factors of one state serve others: Newton's method may start with them.
        let facts = Facts { linear: true, saddle: is_saddle(self.form), device: false };
        let found = factors::of_one(self.on, &eliminated(self.form), facts);
        // Each process has checked its own memory.
        let mut never = [found == Factors::Never];
        in_any(&self.on.mesh, &mut never);
        if never[0] { Factors::Never } else { found }
    }

    /// Returns a linear solver with redundant factors at a state; `None` if these are unavailable. A singular matrix of
    /// a linear form is an error.
    pub(crate) fn by_factors(
        &self,
        operator: &mut Operator,
        u: &Vector,
    ) -> Result<Option<Linear>, RunError> {
        let (solver, preconditioning) = (InnerSolver::Fgmres, Preconditioning::Multigrid);
        let linear = Linear { solver, restart: RESTART, preconditioning, factors: Factors::Never };
        let Some(mut made) = self.at_each()? else { return Ok(None) };
        if let (true, Err(FactorError::Singular { unknown, condition })) =
            (self.is_linear(), made.take(u)?)
        {
            return Err(System { on: made.whole(), ..*self }.singular(unknown, condition));
        }
        operator.precondition_by(Some(Box::new(made)));
        Ok(Some(linear))
    }

    /// Builds the redundant factorisation.
    pub(in crate::problem) fn at_each(&self) -> Result<Option<AtEach>, RunError> {
        let Some(Levels { elements, target, device }) = self.levels else { return Ok(None) };
        let Self { form, on, parameters, prescribed, .. } = *self;
        let asked = &Asked::default();
        Problem { form, elements, on, parameters, prescribed, target, device, asked }.at_each()
    }

    /// Preconditions an operator by redundant factors; returns whether these are available.
    fn make_factors(&self, operator: &mut Operator) -> Result<bool, RunError> {
        let made = self.at_each()?;
        let is_made = made.is_some();
        operator.precondition_by(made.map(|made| Box::new(made) as Box<dyn Approximation>));
        Ok(is_made)
    }
}

impl Settings<'_> {
    /// Returns whether redundant factors are used, on request or by default.
    fn may_have_factors(self, system: System<'_>) -> Result<bool, RunError> {
        if system.on.mesh.cut().is_none() {
            return Ok(false);
        }
        let solver = self.named.map_or("", |solver| solver.name.as_str());
        let unnamed = self.named.is_none() || solver == "newton" && self.word("linear")?.is_none();
        let unasked = self.named.is_none() || self.word("preconditioner")?.is_none();
        let own = unnamed && unasked && factors::at_each(system.on, is_saddle(system.form));
        Ok(self.is_direct()? || own)
    }

    /// Returns preconditioning by redundant factors; `None` if they are not used.
    pub(super) fn factors_at_each(
        self,
        system: System<'_>,
        operator: &mut Operator,
    ) -> Result<Option<Preconditioning>, RunError> {
        if !self.may_have_factors(system)? {
            return Ok(None);
        }
        // Factors of an earlier solve are reused.
        if operator.approximation().is_some() || system.make_factors(operator)? {
            return Ok(Some(Preconditioning::Multigrid));
        }
        match self.is_direct()? {
            true => Err(RunError::Setting(UNKNOWN_DATA.to_owned())),
            false => Ok(None),
        }
    }
}

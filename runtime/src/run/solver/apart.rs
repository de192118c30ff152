//! Solvers of several processes: the factors of the whole matrix at each of them, where these are asked for or nothing else serves.

use super::super::RunError;
use super::super::factors;
use super::super::multigrid::{Asked, Problem};
use super::{Levels, Settings, System, is_saddle};
use crate::operator::Operator;
use crate::solve::{Approximation, Preconditioning};

impl System<'_> {
    /// Gives an operator of several processes the factors of the whole matrix at each; whether it has them.
    fn make_factors(&self, operator: &mut Operator) -> Result<bool, RunError> {
        let Some(Levels { elements, target, device }) = self.levels else { return Ok(false) };
        let Self { form, on, parameters, prescribed, .. } = *self;
        let asked = &Asked::default();
        let problem = Problem { form, elements, on, parameters, prescribed, target, device, asked };
        let made = problem.at_each()?;
        let is_made = made.is_some();
        operator.precondition_by(made.map(|made| Box::new(made) as Box<dyn Approximation>));
        Ok(is_made)
    }
}

impl Settings<'_> {
    /// Whether several processes have factors of the whole matrix each, as asked or because nothing else serves.
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

    /// What preconditions by such factors; none where there are to be none.
    pub(super) fn factors_at_each(
        self,
        system: System<'_>,
        operator: &mut Operator,
    ) -> Result<Option<Preconditioning>, RunError> {
        if !self.may_have_factors(system)? {
            return Ok(None);
        }
        // Those of an earlier solve, or new ones.
        if operator.approximation().is_some() || system.make_factors(operator)? {
            return Ok(Some(Preconditioning::Multigrid));
        }
        match self.is_direct()? {
            true => Err(RunError::Setting(
                "several processes cannot factorise the matrix: its data is not known on the whole mesh\n\
                 help: name another solver, or start one process"
                    .to_owned(),
            )),
            false => Ok(None),
        }
    }
}

//! Direct solvers with several processes: redundant factorisation of the whole matrix, on request or as a last resort.

use super::super::RunError;
use super::super::multigrid::RedundantFactors;
use super::super::plan::cost::factorisation;
use super::super::plan::{LinearPlan, ProblemProperties, Requirement};
use super::super::structural_null_space::in_any;
use super::Context;
use crate::algebra::factor::FactorError;
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::problem::plan::HierarchySettings;
use crate::solve::{Approximation, DirectFallback};
use std::sync::Arc;

/// Error of a redundant factorisation without data on the whole mesh.
pub(in crate::problem) const UNKNOWN_DATA: &str = "several processes cannot factorise the matrix: its data is not defined on the whole mesh\n\
     help: name another solver, or start one process";

impl Context {
    /// Decides when a serial run would factorise the matrix that is distributed here; `Never` in a serial run.
    pub(crate) fn factors_of_one(&self) -> DirectFallback {
        if self.on.mesh.cut().is_none() {
            return DirectFallback::Never;
        }
        // Those of one state serve others: Newton's method may begin with them, too.
        let properties =
            ProblemProperties { is_linear: true, ..self.properties().at_one_process() };
        let found = factorisation(&properties);
        // Each has looked at its own memory.
        let mut never = [found == DirectFallback::Never];
        in_any(&self.on.mesh, &mut never);
        if never[0] { DirectFallback::Never } else { found }
    }

    /// Preconditions an operator by redundant factors at a state, if these are available. A singular matrix of a linear
    /// form is an error.
    pub(crate) fn factorise_whole(
        &self,
        operator: &mut Operator,
        u: &Vector,
    ) -> Result<(), RunError> {
        let Some(mut made) = self.at_each()? else { return Ok(()) };
        if let (true, Err(FactorError::Singular { unknown, condition })) =
            (self.is_linear(), made.take(u)?)
        {
            let whole = Self { on: Arc::clone(made.whole()), ..self.clone() };
            return Err(whole.singular(unknown, condition));
        }
        operator.precondition_by(Some(Box::new(made)));
        Ok(())
    }

    /// Builds the redundant factorisation.
    pub(in crate::problem) fn at_each(&self) -> Result<Option<RedundantFactors>, RunError> {
        self.hierarchy(&HierarchySettings::default()).at_each()
    }

    /// Preconditions an operator by redundant factors; returns whether these are available.
    fn make_factors(&self, operator: &mut Operator) -> Result<bool, RunError> {
        let made = self.at_each()?;
        let is_made = made.is_some();
        operator.precondition_by(made.map(|made| Box::new(made) as Box<dyn Approximation>));
        Ok(is_made)
    }

    /// Gives an operator of several processes the factors of the whole matrix at each, where the plan wants that. Returns
    /// whether it has them.
    pub(super) fn factorise_at_each(
        &self,
        operator: &mut Operator,
        plan: &LinearPlan,
    ) -> Result<bool, RunError> {
        let Some(requirement) = plan.factors_at_each else { return Ok(false) };
        // Those of an earlier solve, or new ones.
        if operator.approximation().is_some() || self.make_factors(operator)? {
            return Ok(true);
        }
        match requirement {
            Requirement::Required => Err(RunError::Setting(UNKNOWN_DATA.to_owned())),
            Requirement::Preferred => Ok(false),
        }
    }
}

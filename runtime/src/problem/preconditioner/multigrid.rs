//! Multigrid cycles: a hierarchy of the only field, or one of each field of several.

use super::PreconditionerBuilder;
use crate::operator::Operator;
use crate::problem::RunError;
use crate::problem::context::Context;
use crate::problem::plan::HierarchySettings;
use crate::solve::Approximation;

impl PreconditionerBuilder for HierarchySettings {
    fn build(
        &self,
        context: &Context,
        operator: &Operator,
    ) -> Result<Result<Box<dyn Approximation>, String>, RunError> {
        let made = context.hierarchy(self).approximation(operator)?;
        Ok(made.map_err(|unsuited| unsuited.to_string()))
    }
}

//! Preconditioners of a problem: from their settings and an operator to an approximation of J⁻¹.
//!
//! The diagonal and its absence are part of the linear solver, which falls back to them.

mod block_jacobi;
mod mixed;
mod multigrid;

use super::RunError;
use super::context::Context;
use super::plan::HierarchySettings;
use crate::operator::Operator;
use crate::solve::Approximation;
use fem_dsl::point::{self, PointForm};
use fem_dsl::problem::PreconditionerSettings;

/// Builder of a preconditioner, from its settings. A new one is a file of this folder, a line in [`builder`], and its
/// words in the language.
pub(super) trait PreconditionerBuilder {
    /// Builds an approximation of J⁻¹; `operator` applies J.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, a device failure; the inner error is the reason why there is none.
    fn build(
        &self,
        context: &Context,
        operator: &Operator,
    ) -> Result<Result<Box<dyn Approximation>, String>, RunError>;
}

/// Returns the builder of a preconditioner of a form; `None` for those of the linear solver itself.
pub(super) fn builder(
    settings: &PreconditionerSettings,
    form: &PointForm,
) -> Option<Box<dyn PreconditionerBuilder>> {
    if let (PreconditionerSettings::Multigrid(_), Some(fields)) = (settings, point::mixed(form)) {
        return Some(Box::new(mixed::MixedFields(fields)));
    }
    Some(match settings {
        PreconditionerSettings::None | PreconditionerSettings::Jacobi => return None,
        PreconditionerSettings::BlockJacobi => Box::new(block_jacobi::CellBlocks),
        PreconditionerSettings::Multigrid(_) | PreconditionerSettings::Block(_) => {
            Box::new(HierarchySettings::of(settings)?)
        }
    })
}

impl Context {
    /// Gives an operator a preconditioner; the inner error is the reason why it has none.
    pub(super) fn precondition(
        &self,
        operator: &mut Operator,
        builder: &dyn PreconditionerBuilder,
    ) -> Result<Result<(), String>, RunError> {
        let made = builder.build(self, operator)?;
        Ok(made.map(|made| operator.precondition_by(Some(made))))
    }
}

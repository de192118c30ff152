//! Integrals over facets between cells: what their kernels do not do yet.

use super::{Plan, PlanError, Task};
use fem_dsl::point::Integral;

/// Checks that the kernel of a plan for pairs of cells can be generated.
pub(super) fn has_kernel(plan: &Plan, integral: &Integral) -> Result<(), PlanError> {
    let unsupported = |text: &str| Err(PlanError::Unsupported(text.to_owned()));
    if !integral.region.is_interior() {
        return match plan.larger {
            None => Ok(()),
            Some(_) => unsupported("only pairs of cells have a larger one"),
        };
    }
    match plan.task {
        Task::Residual
        | Task::Action
        | Task::Diagonal
        | Task::Matrix
        | Task::StoredProduct
        | Task::MatrixProduct
        | Task::Flux => Ok(()),
        _ => unsupported("nothing is stored or transferred for pairs of cells"),
    }
}

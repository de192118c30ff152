//! Integrals over facets between cells: what their kernels do not do yet.

use super::{Plan, PlanError, Task};
use fem_dsl::point::Integral;

/// Checks that the kernel of a plan for pairs of cells can be generated.
pub(super) fn has_kernel(plan: &Plan, integral: &Integral) -> Result<(), PlanError> {
    if !integral.region.is_interior() {
        return Ok(());
    }
    let unsupported = |text: &str| Err(PlanError::Unsupported(text.to_owned()));
    if plan.hanging {
        return unsupported("pairs of cells have no hanging nodes yet");
    }
    match plan.task {
        Task::Residual | Task::Action | Task::Diagonal | Task::Matrix => Ok(()),
        _ => unsupported(
            "pairs of cells have a residual, its derivative, their diagonal and matrices",
        ),
    }
}

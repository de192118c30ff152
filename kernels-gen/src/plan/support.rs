//! Forms without kernels: this version does not generate those between cells.

use super::PlanError;
use fem_dsl::point::PointForm;

/// Checks that the kernels of a form's integrals can be generated.
pub(super) fn has_kernels(form: &PointForm) -> Result<(), PlanError> {
    if form.integrals.iter().any(|integral| integral.region.is_interior()) {
        return Err(PlanError::Interior(form.name.clone()));
    }
    Ok(())
}

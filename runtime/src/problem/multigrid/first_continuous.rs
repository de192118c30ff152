//! First level below a discontinuous field: the continuous functions of the same degree on the same mesh.
//!
//! They are a subspace, so that the transfer is exact. The operator of the level is that of the finest level on the
//! subspace ([`continuous`]): penalties between cells vanish, those of the boundary are the same.

use super::HierarchyInput;
use crate::problem::RunError;
use crate::problem::prescribed::FinerLevel;
use crate::space::discretisation::Discretisation;
use fem_dsl::point::{Degree, PointForm, Space, continuous};
use kernels_gen::plan::Elements;
use std::sync::Arc;

/// The level with its form.
pub(super) struct FirstContinuous {
    pub(super) form: PointForm,
    pub(super) elements: Elements,
    pub(super) on: Arc<Discretisation>,
}

impl HierarchyInput<'_> {
    /// Returns the form for continuous functions of the only field, with the degree k at which it has the field's own
    /// degree; `None` if the field is continuous, or has no such functions.
    pub(super) fn first_continuous_form(&self) -> Option<(PointForm, usize)> {
        let own = self.elements.fields.first().filter(|own| !own.is_continuous())?;
        let mut form = continuous(self.form).filter(|_| own.degree() > 0)?;
        // A relative degree lets each level choose its own.
        let k = match &mut form.fields[0].space {
            Space::H1(degree @ Degree::Fixed(_)) => {
                *degree = Degree::Relative(0);
                own.degree()
            }
            _ => self.elements.degree,
        };
        Some((form, k))
    }

    /// Discretises the level below a discontinuous field; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Spaces that cannot be numbered, a value that is not finite.
    pub(super) fn first_continuous(&self) -> Result<Option<FirstContinuous>, RunError> {
        let Some((form, k)) = self.first_continuous_form() else { return Ok(None) };
        let (mesh, on) = (Arc::clone(&self.on.mesh), self.on);
        let above = Some(FinerLevel { on, coarser: None });
        let found = self.prescribed.at(&form, mesh, k, self.parameters, above)?;
        Ok(found.map(|(elements, on)| FirstContinuous { form, elements, on: Arc::new(on) }))
    }
}

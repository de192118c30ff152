//! Checks of problems whose periodic sides are rotated or antiperiodic: combinations that are not implemented for them.

use super::RunError;
use crate::mesh::Mesh;
use crate::space::Space;
use crate::space::images::ImageError;
use fem_dsl::problem::{PeriodicSides, Problem};
use kernels_gen::plan::Elements;

impl From<ImageError> for RunError {
    fn from(error: ImageError) -> Self {
        Self::Setting(error.to_string())
    }
}

/// Checks that a problem asks of rotated and antiperiodic sides of its mesh only what they have.
///
/// # Errors
///
/// The first combination that is not implemented, with a remedy.
pub fn check(problem: &Problem, elements: &Elements, mesh: &Mesh) -> Result<(), RunError> {
    let unequal = |pair: &&PeriodicSides| !pair.has_equal_values();
    let Some(pair) = mesh.periodic_sides().iter().find(unequal) else { return Ok(()) };
    let [tag, other] = &pair.tags;
    let refused = |what: &str, help: &str| {
        let kind = if pair.factor < 0.0 { "antiperiodic" } else { "rotations of each other" };
        Err(RunError::Setting(format!(
            "\"{tag}\" and \"{other}\" are {kind}: {what}\nhelp: {help}"
        )))
    };
    let form = &problem.form;
    if form.integrals.iter().any(|integral| integral.region.is_interior()) {
        return refused(
            "terms between cells would take vectors across the sides without rotating them",
            "mesh the whole domain instead of a sector, or take continuous fields without such terms",
        );
    }
    if problem.adapt.is_some() {
        return refused(
            "error estimates do not compare fluxes across the sides",
            "leave out `adapt`, and write `refine`",
        );
    }
    let is_antiperiodic = mesh.periodic_sides().iter().any(|pair| pair.factor != 1.0);
    let piola = form.fields.iter().find(|field| field.space.is_piola());
    if let Some(field) = piola.filter(|_| is_antiperiodic) {
        let what =
            format!("`{}` is in H(curl) or H(div), whose functions have no factor", field.name);
        return refused(&what, "mesh two sectors, and leave out `factor`");
    }
    let by_rows = elements
        .spaces()
        .into_iter()
        .position(|(element, components)| !Space::is_identified(mesh, element, components));
    let Some(field) = by_rows.and_then(|at| form.fields.get(at)) else { return Ok(()) };
    if problem.eigen.is_some() {
        let what = format!("modes of `{}` would take masses of nodes on both sides", field.name);
        return refused(
            &what,
            "mesh the whole domain: its modes are not all symmetric under the rotation",
        );
    }
    if problem.stepping.as_ref().is_some_and(|stepping| stepping.scheme.is_explicit()) {
        let what = format!("the mass of `{}` has constraints between both sides", field.name);
        return refused(&what, "take an implicit scheme, as `bdf` or `newmark`");
    }
    if mesh.cut().is_some() {
        let what = format!(
            "the values of `{}` there are related by constraints of one process",
            field.name
        );
        return refused(&what, "run it in one process, whose threads share the work");
    }
    if mesh.hanging().is_some() {
        let what = format!("the constraints of `{}` there know no hanging nodes", field.name);
        return refused(&what, "take a mesh without hanging nodes");
    }
    Ok(())
}

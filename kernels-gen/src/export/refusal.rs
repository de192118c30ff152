//! Terms that a library has no counterpart for: `PointForm` → [`ExportError`], which names the first of them.

use super::{ExportError, Library};
use crate::plan::reads;
use fem_dsl::point::{Aux, Input, Integral, Location, Part, PointForm, Region, Slot, Space};

/// A reason, and an alternative.
type Refusal = (String, String);

/// Checks that every term of a form has a counterpart in a library.
///
/// # Errors
///
/// The first term without one.
pub fn check(form: &PointForm, library: Library) -> Result<(), ExportError> {
    let of_integrals = || form.integrals.iter().find_map(|of| integral(form, of, library));
    let refusal = spaces(form, library).or_else(|| rates(form, library)).or_else(of_integrals);
    match refusal {
        None => Ok(()),
        Some((reason, remedy)) => {
            let form = form.name.clone();
            Err(ExportError::Refused { form, library, reason, remedy })
        }
    }
}

/// Returns the first refusal of a field's or data's space.
fn spaces(form: &PointForm, library: Library) -> Option<Refusal> {
    let name = library.name();
    for field in &form.fields {
        let of = &field.name;
        if !field.cells.is_empty() && library != Library::C {
            return Some((
                format!(
                    "`{of}` lives on some of the cells only, and the header registers all fields for one set of cells"
                ),
                "give it all cells, and fix it by conditions where it has no meaning".to_owned(),
            ));
        }
        if let Some(refusal) = space(of, field.space, library) {
            return Some(refusal);
        }
    }
    form.own_aux().iter().find_map(|aux: &Aux| match aux.location {
        Location::Nodes(own) => space(&aux.name, own, library),
        Location::Cells => None,
        Location::Points if library == Library::C => None,
        Location::Points => Some((
            format!("`{}` is data at quadrature points, which {name} keeps per cell in a layout of its own", aux.name),
            "declare it `on cells` or `on nodes`; states need the runtime of weakform".to_owned(),
        )),
    })
}

/// Returns the refusal of a space that is not of Lagrange elements.
fn space(of: &str, space: Space, library: Library) -> Option<Refusal> {
    let name = library.name();
    match space {
        Space::H1(_) | Space::L2(_) => None,
        Space::Hcurl(_) | Space::Hdiv(_) if library == Library::C => Some((
            format!(
                "`{of}` is in {space}: its degrees of freedom are moments on edges and facets, with signs by the orientation of these in the mesh, and the header describes nodes"
            ),
            "choose H1 or L2, or solve it with `wf run`".to_owned(),
        )),
        Space::Hcurl(_) | Space::Hdiv(_) => Some((
            format!(
                "`{of}` is in {space}: {name} gives its pointwise functions gradients, not curl or div of functions that a Piola map transforms"
            ),
            "choose H1 or L2, or solve it with `wf run`".to_owned(),
        )),
        Space::Number => Some((
            format!("`{of}` is one number for the whole mesh, whose row couples all cells"),
            "make it a parameter, and iterate on it outside".to_owned(),
        )),
    }
}

/// Returns the first refusal of a time derivative. The others take all of them as data.
fn rates(form: &PointForm, library: Library) -> Option<Refusal> {
    if library != Library::Petsc {
        return None;
    }
    let second = form.rates.iter().find(|rate| rate.order == 2)?;
    let name = &form.fields[second.field].name;
    Some((
        format!(
            "dt(dt({name})): PETSc gives its pointwise functions u and u_t, but no second derivative"
        ),
        format!("declare the velocity as a field v, with rows for dt({name}) - v and dt(v)"),
    ))
}

/// Returns the first refusal of a term of an integral.
fn integral(form: &PointForm, of: &Integral, library: Library) -> Option<Refusal> {
    let name = library.name();
    if let (Region::Interior(_), Library::C) = (&of.region, library) {
        return Some((
            format!(
                "it has terms `on {}`: a function of the header integrates over one cell, not over both sides of a facet",
                of.region
            ),
            "leave the block out, or take kernels with index arrays, `--target gnu`".to_owned(),
        ));
    }
    if library == Library::C {
        return None;
    }
    if let Region::Interior(_) = of.region {
        return Some((
            format!(
                "it has terms `on {}`: a pointwise function of {name} sees one cell, not both sides of a facet",
                of.region
            ),
            "leave the block out, or solve it with `wf run`".to_owned(),
        ));
    }
    let is_second = |slot: Slot| matches!(slot.part, Part::Second(..));
    let tested = of.residual.iter().any(|(slot, _)| is_second(*slot))
        || of.jacobian.iter().any(|entry| is_second(entry.test) || is_second(entry.trial));
    let state = |input| matches!(input, Input::State(slot) | Input::Direction(slot) | Input::Aux(slot) if is_second(slot));
    if tested || reads(of, state) {
        return Some((
            format!("it has second derivatives in space, which {name} does not tabulate"),
            "write it as two equations of second order".to_owned(),
        ));
    }
    let rate_gradient = |input| {
        matches!(input, Input::Aux(slot) if form.rates.iter().any(|rate| rate.aux == slot.field)
            && slot.part != Part::Value)
    };
    if library == Library::Petsc && reads(of, rate_gradient) {
        return Some((
            "it has grad(dt(u)): PETSc gives its pointwise functions u_t, but not its gradient"
                .to_owned(),
            "declare the rate as a field v, with the row dt(u) - v".to_owned(),
        ));
    }
    let extent = |input| matches!(input, Input::Extent(_) | Input::PenaltyFactor(_));
    if reads(of, extent) {
        return Some((
            format!(
                "it has `hn` or `penalty(…)`, the extent of a cell from its facet, which {name} does not give"
            ),
            "declare `aux size: scalar on cells`, and write c / size".to_owned(),
        ));
    }
    reads(of, |input| matches!(input, Input::Diameter(_))).then(|| {
        (
            format!("it has `h`, the diameter of a cell, which {name} does not give"),
            "declare `aux size: scalar on cells`, and use it instead of `h`".to_owned(),
        )
    })
}

//! Essential conditions on fields of H(curl) and H(div): on the tangential part and on the normal component.
//!
//! The degrees of freedom of the facets, and of H(curl) those of their edges, get the values of their functionals
//! ([`FacetFunctionals`]), which depend on that part of the field alone.

use super::{ConditionSupport, supports};
use crate::problem::RunError;
use crate::space::discretisation::Discretisation;
use crate::space::functionals::{FacetFunctionals, GivenTrace};
use fem_dsl::problem::{Support, Trace};
use kernels_gen::element::{Whitney, WhitneyFamily};

impl ConditionSupport {
    /// Returns the points at which the values of the condition are needed.
    pub(super) fn points(&self) -> &[[f64; 3]] {
        self.functionals.as_ref().map_or(&self.places, |functionals| &functionals.points)
    }

    /// Returns the values of the nodes, `[node][component]`, from those at the [points](Self::points).
    pub(super) fn of_values(&self, values: Vec<f64>) -> Vec<f64> {
        match &self.functionals {
            Some(functionals) => functionals.of_values(&values),
            None => values,
        }
    }
}

/// Finds the support of a condition on a field of H(curl) or H(div). Collective.
///
/// # Errors
///
/// Tags that the mesh lacks, conditions that such a field cannot have.
pub(super) fn of_facets(
    on: &Discretisation,
    (field, name): (usize, String),
    trace: Trace,
    support: &Support,
) -> Result<ConditionSupport, RunError> {
    let space = &on.fields[field].space;
    let element = space.element().whitney().expect("traces should be those of H(curl) or H(div)");
    let given = given(element, trace, support, &name)?;
    let mut facets = supports::facets(&on.mesh, support)?;
    facets.sort_unstable();
    let functionals = FacetFunctionals::new(&on.mesh, space, &facets, given)?;
    let (nodes, places) = (functionals.nodes.clone(), functionals.places());
    let (support, normals, functionals) = (support.clone(), Vec::new(), Some(functionals));
    Ok(ConditionSupport {
        field,
        name,
        trace,
        support,
        facets,
        nodes,
        places,
        normals,
        functionals,
    })
}

/// Returns the trace that a condition gives.
fn given(
    element: Whitney,
    trace: Trace,
    support: &Support,
    name: &str,
) -> Result<GivenTrace, RunError> {
    let (family, part) = match element.family() {
        WhitneyFamily::Curl => ("H(curl)", format!("`dirichlet cross(n, {name}) = …`")),
        WhitneyFamily::Div => ("H(div)", format!("`dirichlet dot({name}, n) = …`")),
    };
    if let Support::Vertex(_) = support {
        return Err(RunError::Setting(format!(
            "a field of {family} has no value at a vertex\nhelp: state {part} on facets"
        )));
    }
    match (trace, element.family()) {
        (Trace::Whole, _) => Ok(GivenTrace::Field),
        (Trace::Normal, WhitneyFamily::Div) => Ok(GivenTrace::Normal),
        (Trace::Tangential, WhitneyFamily::Curl) => Ok(GivenTrace::Tangential),
        (Trace::Component(_), _)
        | (Trace::Normal, WhitneyFamily::Curl)
        | (Trace::Tangential, WhitneyFamily::Div) => Err(RunError::Setting(format!(
            "of `{name}` in {family} this trace is undefined on facets\nhelp: state {part} or \
                 `dirichlet {name} = …`"
        ))),
    }
}

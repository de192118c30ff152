//! Pairs of cells at a facet, as one cell with twice the fields.
//!
//! A field on a side is a *trace*. The traces of a form with n fields are numbered like fields: those of the inside are
//! 0 to n − 1, those of the outside n to 2n − 1, and auxiliary data likewise. All that is known of one field then holds
//! for a trace: gather, interpolation, rows and columns of the Jacobian, element matrices. Only the map of the cell
//! differs between the sides.

use super::components::{is_bent, with_components};
use super::{Elements, Origin, Plan};
use fem_dsl::point::{Coefficient, Graph, Input, Integral, Node, NodeId, PointForm, Side, Slot};
use std::borrow::Cow;

/// Returns a form and its elements with components for vector-valued functions ([`with_components`]), and with traces for
/// fields if the integral is over pairs of cells.
pub(crate) fn with_traces<'a>(
    form: &'a PointForm,
    elements: &'a Elements,
    plan: &Plan,
) -> (Cow<'a, PointForm>, Cow<'a, Elements>) {
    with_traces_of(form, elements, (plan.integral, is_bent(elements.cell, plan)))
}

/// Returns the same for all plans: of cells whose map may have second derivatives.
pub(crate) fn with_all_traces<'a>(
    form: &'a PointForm,
    elements: &'a Elements,
    integral: usize,
) -> (Cow<'a, PointForm>, Cow<'a, Elements>) {
    with_traces_of(form, elements, (integral, true))
}

fn with_traces_of<'a>(
    form: &'a PointForm,
    elements: &'a Elements,
    (integral, bent): (usize, bool),
) -> (Cow<'a, PointForm>, Cow<'a, Elements>) {
    let (count, of_aux) = (elements.fields.len(), elements.aux.len());
    let (form, elements) = with_components(form, elements, (integral, bent));
    let of_pairs = |integral: &Integral| integral.region.is_interior();
    if !form.integrals.get(integral).is_some_and(of_pairs) {
        return (form, elements);
    }
    let (mut traces, mut of_traces) = (form.clone().into_owned(), elements.clone().into_owned());
    let outside = |name: &str| format!("outside_{name}");
    let on_outside = |origins: &[Origin], count: usize| -> Vec<Origin> {
        let moved = |own: &Origin| Origin {
            index: own.index + count,
            name: outside(&own.name),
            ..own.clone()
        };
        origins.iter().map(moved).collect()
    };
    of_traces.origins.extend(on_outside(&elements.origins, count));
    of_traces.aux_origins.extend(on_outside(&elements.aux_origins, of_aux));
    for field in &form.fields {
        traces.fields.push(fem_dsl::point::Field { name: outside(&field.name), ..field.clone() });
    }
    for aux in &form.aux {
        traces.aux.push(fem_dsl::point::Aux { name: outside(&aux.name), ..aux.clone() });
    }
    of_traces.fields.extend_from_within(..);
    of_traces.components.extend_from_within(..);
    of_traces.aux.extend_from_within(..);
    let own = &mut traces.integrals[integral];
    *own = renumbered(own, form.fields.len(), form.aux.len());
    (Cow::Owned(traces), Cow::Owned(of_traces))
}

/// Renumbers the slots of an integral.
fn renumbered(integral: &Integral, fields: usize, aux: usize) -> Integral {
    let trace = |slot: Slot, count: usize| Slot {
        field: slot.field + if slot.side == Side::Outside { count } else { 0 },
        side: Side::Inside,
        ..slot
    };
    let mut graph = Graph::new();
    // Different inputs stay different, so that nodes keep their numbers.
    for &node in integral.graph.nodes() {
        graph.intern(match node {
            Node::Input(Input::State(slot)) => Node::Input(Input::State(trace(slot, fields))),
            Node::Input(Input::Direction(slot)) => {
                Node::Input(Input::Direction(trace(slot, fields)))
            }
            Node::Input(Input::Aux(slot)) => Node::Input(Input::Aux(trace(slot, aux))),
            node => node,
        });
    }
    let rows = |rows: &[(Slot, NodeId)]| {
        let mut rows: Vec<_> =
            rows.iter().map(|&(slot, node)| (trace(slot, fields), node)).collect();
        rows.sort_by_key(|&(slot, _)| slot);
        rows
    };
    let mut jacobian: Vec<Coefficient> = integral
        .jacobian
        .iter()
        .map(|own| Coefficient {
            test: trace(own.test, fields),
            trial: trace(own.trial, fields),
            value: own.value,
        })
        .collect();
    jacobian.sort_by_key(|own| (own.test, own.trial));
    Integral {
        graph,
        residual: rows(&integral.residual),
        action: rows(&integral.action),
        jacobian,
        ..integral.clone()
    }
}

//! Vector-valued elements in kernels: a field of H(curl) or H(div) becomes one of the reference cell.
//!
//! On simplices it stays one field, whose functions have a table for each component. On tensor cells a field for each
//! component takes its place, all of them in one vector. Each component is gathered, interpolated and integrated like any scalar field, with functions of its own along each
//! axis ([`Element::Component`]). The map of the cell is part of the point function ([`fem_dsl::point::pulled_back`]).
//! A form whose field is in no such space, but has its elements, is one of grid transfers: it reads the components as
//! they are.

use super::{Elements, Geometry, Plan};
use crate::element::{Cell, Element, Whitney, WhitneyFamily};
use fem_dsl::point::{Field, Input, Node, Part, Piola, PointForm, PulledField, Slot, pulled_back};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The place of a kernel's field, or of its nodal data, among those of the form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The index of the form's field or data; of traces on the outside after all on the inside.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// The first degree of freedom of a cell.
    pub first: usize,
    /// The number of degrees of freedom of a cell, of each component.
    pub total: usize,
}

/// Returns a form and its elements with vector-valued fields of the reference cell, in one of the form's integrals; both
/// as they are if there are none. `bent`: the map of a cell has second derivatives ([`is_bent`]).
pub(crate) fn with_components<'a>(
    form: &'a PointForm,
    elements: &'a Elements,
    (integral, bent): (usize, bool),
) -> (Cow<'a, PointForm>, Cow<'a, Elements>) {
    let of_field = |(field, element): (&Field, &Element)| {
        element.whitney().map(|element| PulledField {
            map: if field.space.is_piola() { map(element) } else { Piola::Reference },
            bent,
            ..pulled(element)
        })
    };
    let fields: Vec<Option<PulledField>> =
        form.fields.iter().zip(&elements.fields).map(of_field).collect();
    let of_aux = |element: &Option<Element>| element.and_then(Element::whitney).map(pulled);
    let aux: Vec<Option<PulledField>> = elements.aux.iter().map(of_aux).collect();
    let known = integral < form.integrals.len();
    if !known || fields.iter().chain(&aux).all(Option::is_none) {
        return (Cow::Borrowed(form), Cow::Borrowed(elements));
    }
    let mut split = Elements {
        fields: Vec::new(),
        components: Vec::new(),
        aux: Vec::new(),
        origins: Vec::new(),
        aux_origins: Vec::new(),
        ..elements.clone()
    };
    let gradients = with_gradients(form, integral);
    for (field, &element) in elements.fields.iter().enumerate() {
        let element = match element {
            Element::Whitney(own) if gradients.contains(&field) => {
                Element::Whitney(own.with_gradient())
            }
            other => other,
        };
        let count = elements.components[field];
        for part in parts(element) {
            split.fields.push(part);
            split.components.push(count);
            split.origins.push(origin(&elements.origins[field], part));
        }
    }
    for (data, element) in elements.aux.iter().enumerate() {
        let own =
            element.map_or(vec![None], |element| parts(element).into_iter().map(Some).collect());
        for part in own {
            let from = &elements.aux_origins[data];
            split.aux.push(part);
            split.aux_origins.push(part.map_or_else(|| from.clone(), |part| origin(from, part)));
        }
    }
    (Cow::Owned(pulled_back(form, integral, &fields, &aux)), Cow::Owned(split))
}

/// Returns the elements of the fields in the place of one.
fn parts(element: Element) -> Vec<Element> {
    match element.whitney() {
        Some(whitney) if whitney.cell().is_tensor() => {
            (0..whitney.cell().dim()).map(|a| Element::Component(whitney, a)).collect()
        }
        _ => vec![element],
    }
}

fn origin(from: &Origin, part: Element) -> Origin {
    let first = match part {
        Element::Component(whitney, component) => whitney.first(component),
        _ => 0,
    };
    Origin { first, ..from.clone() }
}

fn map(element: Whitney) -> Piola {
    match element.family() {
        WhitneyFamily::Curl => Piola::Covariant,
        WhitneyFamily::Div => Piola::Contravariant,
    }
}

fn pulled(element: Whitney) -> PulledField {
    PulledField {
        map: map(element),
        signs: (0..element.cell().dim()).map(|a| element.sign(a)).collect(),
        split: element.cell().is_tensor(),
        bent: false,
    }
}

/// Returns the fields of H(curl) and H(div) whose gradients an integral reads or tests.
pub(crate) fn with_gradients(form: &PointForm, integral: usize) -> BTreeSet<usize> {
    let Some(integral) = form.integrals.get(integral) else { return BTreeSet::new() };
    let tested = integral.residual.iter().chain(&integral.action).map(|(slot, _)| *slot);
    let pairs = integral.jacobian.iter().flat_map(|entry| [entry.test, entry.trial]);
    let read = integral.graph.nodes().iter().filter_map(|node| match node {
        Node::Input(Input::State(slot) | Input::Direction(slot)) => Some(*slot),
        _ => None,
    });
    let own = |slot: &Slot| {
        matches!(slot.part, Part::Derivative(_)) && form.fields[slot.field].space.is_piola()
    };
    tested.chain(pairs).chain(read).filter(own).map(|slot| slot.field).collect()
}

/// Returns whether the map of a cell may have second derivatives, so that gradients of H(curl) and H(div) depend on
/// them.
pub(crate) fn is_bent(cell: Cell, plan: &Plan) -> bool {
    match plan.geometry {
        Geometry::Affine => false,
        Geometry::Corners | Geometry::Nodes(1) if !cell.is_tensor() => false,
        Geometry::Nodes(_) => !plan.affine,
        _ => true,
    }
}

//! Fields of H(curl) and H(div) → fields of the reference cell, by Piola's maps written into the graph.
//!
//! With J = ∂x/∂ξ, K = J⁻¹ and the derivatives ∂_a along the axes of the reference cell (R. Hiptmair, "Finite elements in
//! computational electromagnetism", Acta Numerica 11 (2002), section 2; D. Boffi, F. Brezzi, M. Fortin, "Mixed Finite
//! Element Methods and Applications" (2013), section 2.1):
//!
//! ```text
//! H(curl)   u_i = Σ_a K_ai û_a           curl u = J curl û / det J;  in the plane curl û / det J
//! H(div)    u_i = Σ_a J_ia û_a / det J   div u = Σ_a ∂_a û_a / det J
//! ```
//!
//! Each û_a becomes a scalar field, or a component of the field in its place; its derivatives are along reference axes.
//! The kernels thus see fields of the reference cell, and the entries of the map as inputs ([`Input::Inverse`], [`Input::Tangent`], [`Input::Density`]). The same linear map T of
//! slots serves residual, action and Jacobian: r̂ = Tᵀ r and Ĝ = Tᵀ G T.

use super::block::{moved, of_rows};
use super::scalars::Scalars;
use super::{Aux, Field, Input, Integral, NodeId, Part, PointForm, Shape, Side, Slot};
use std::collections::BTreeMap;

/// The map of the values of a vector field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piola {
    /// Of H(curl): u = Kᵀ û.
    Covariant,
    /// Of H(div): u = J û / det J.
    Contravariant,
    /// Of grid transfers: the components of the reference functions themselves, without their signs.
    Reference,
}

/// A field whose components are pulled back.
#[derive(Clone, Debug, PartialEq)]
pub struct PulledField {
    /// Its map.
    pub map: Piola,
    /// The factor of each reference component, 1 or −1.
    pub signs: Vec<f64>,
    /// True if each component becomes a field of its own; else the field stays one, with reference components.
    pub split: bool,
}

impl PulledField {
    /// Returns the number of fields in its place.
    fn fields(&self) -> usize {
        if self.split { self.signs.len() } else { 1 }
    }
}

/// Replaces fields and data by those of the reference cell, in one of a form's integrals; others keep the slots that they
/// have. A field of d components that is split becomes d scalar fields in its place.
pub fn pulled_back(
    form: &PointForm,
    number: usize,
    fields: &[Option<PulledField>],
    aux: &[Option<PulledField>],
) -> PointForm {
    let mut made = form.clone();
    let names = |name: &str, of: &PulledField| -> Vec<String> {
        (0..of.signs.len()).map(|a| format!("{name}_{a}")).collect()
    };
    let of_field = |(field, pulled): (&Field, &Option<PulledField>)| -> Vec<Field> {
        let Some(pulled) = pulled.as_ref().filter(|of| of.split) else {
            return vec![field.clone()];
        };
        let names = names(&field.name, pulled).into_iter();
        names.map(|name| Field { name, shape: Shape::Scalar, ..field.clone() }).collect()
    };
    let of_aux = |(data, pulled): (&Aux, &Option<PulledField>)| -> Vec<Aux> {
        let Some(pulled) = pulled.as_ref().filter(|of| of.split) else { return vec![data.clone()] };
        let names = names(&data.name, pulled).into_iter();
        names.map(|name| Aux { name, shape: Shape::Scalar, ..data.clone() }).collect()
    };
    made.fields = form.fields.iter().zip(fields).flat_map(of_field).collect();
    made.aux = form.aux.iter().zip(aux).flat_map(of_aux).collect();
    let slots = SlotMap { dim: form.dim, fields, aux };
    made.integrals[number] = slots.integral(&form.integrals[number]);
    made
}

/// The map from slots of a form to slots of its fields' components.
struct SlotMap<'a> {
    dim: usize,
    fields: &'a [Option<PulledField>],
    aux: &'a [Option<PulledField>],
}

impl SlotMap<'_> {
    /// Returns the factors of reference slots in a slot.
    fn terms(
        &self,
        s: &mut Scalars,
        pulled: &[Option<PulledField>],
        slot: Slot,
    ) -> Vec<(Slot, NodeId)> {
        let first = first(pulled, slot.field);
        let Some(PulledField { map, signs, split }) = &pulled[slot.field] else {
            return vec![(Slot { field: first, ..slot }, s.constant(1.0))];
        };
        let own = |a: usize, part: Part| match split {
            true => Slot { field: first + a, component: 0, part, ..slot },
            false => Slot { field: first, component: a, part, ..slot },
        };
        let (dim, side) = (self.dim, slot.side);
        let mut terms = Vec::new();
        let mut push = |s: &mut Scalars, a: usize, part: Part, factor: NodeId, sign: f64| {
            let sign = s.constant(sign * signs[a]);
            let factor = s.mul(sign, factor);
            terms.push((own(a, part), factor));
        };
        match (slot.part, map) {
            (Part::Value, Piola::Reference) => {
                let one = s.constant(1.0);
                terms.push((own(slot.component, Part::Value), one));
            }
            (Part::Value, _) => {
                for a in 0..dim {
                    let factor = match map {
                        Piola::Covariant => s.input(Input::Inverse(side, a, slot.component)),
                        _ => column(s, side, a, slot.component),
                    };
                    push(s, a, Part::Value, factor, 1.0);
                }
            }
            (Part::Exterior(_), Piola::Contravariant) => {
                let density = s.input(Input::Density(side));
                for a in 0..dim {
                    push(s, a, Part::Derivative(a), density, 1.0);
                }
            }
            (Part::Exterior(_), Piola::Covariant) if dim == 2 => {
                let density = s.input(Input::Density(side));
                push(s, 1, Part::Derivative(0), density, 1.0);
                push(s, 0, Part::Derivative(1), density, -1.0);
            }
            (Part::Exterior(i), Piola::Covariant) => {
                for c in 0..3 {
                    let (a, b) = ((c + 1) % 3, (c + 2) % 3);
                    let factor = column(s, side, c, i);
                    push(s, b, Part::Derivative(a), factor, 1.0);
                    push(s, a, Part::Derivative(b), factor, -1.0);
                }
            }
            (Part::Exterior(_), Piola::Reference) | (Part::Derivative(_) | Part::Second(..), _) => {
                unreachable!("of these fields only values and exterior derivatives are functions")
            }
        }
        terms
    }

    /// Returns the value of a slot as an input of reference slots.
    fn value(
        &self,
        s: &mut Scalars,
        pulled: &[Option<PulledField>],
        slot: Slot,
        input: impl Fn(Slot) -> Input,
    ) -> NodeId {
        let terms = self.terms(s, pulled, slot);
        let terms: Vec<NodeId> = terms
            .into_iter()
            .map(|(slot, factor)| {
                let value = s.input(input(slot));
                s.mul(factor, value)
            })
            .collect();
        let zero = s.constant(0.0);
        terms.into_iter().fold(zero, |sum, term| s.add(sum, term))
    }

    fn integral(&self, from: &Integral) -> Integral {
        let mut s = Scalars::default();
        let rows = from.residual.iter().chain(&from.action).map(|(_, node)| *node);
        let roots: Vec<NodeId> =
            rows.chain(from.jacobian.iter().map(|entry| entry.value)).collect();
        let nodes = moved(&mut s, &from.graph, &roots, |s, input| match input {
            Input::State(slot) => self.value(s, self.fields, slot, Input::State),
            Input::Direction(slot) => self.value(s, self.fields, slot, Input::Direction),
            Input::Aux(slot) => self.value(s, self.aux, slot, Input::Aux),
            Input::PenaltyFactor(field) => s.input(Input::PenaltyFactor(first(self.fields, field))),
            other => s.input(other),
        });
        let (residual, rest) = nodes.split_at(from.residual.len());
        let (action, jacobian) = rest.split_at(from.action.len());
        let slots =
            |rows: &[(Slot, NodeId)]| rows.iter().map(|(slot, _)| *slot).collect::<Vec<_>>();
        let residual = self.tested(&mut s, &slots(&from.residual), residual);
        let action = self.tested(&mut s, &slots(&from.action), action);
        let entries = from.jacobian.iter().map(|entry| (entry.test, entry.trial));
        let entries: Vec<(Slot, Slot, NodeId)> =
            entries.zip(jacobian).map(|((test, trial), &node)| (test, trial, node)).collect();
        let jacobian = self.coefficients(&mut s, &entries, from.symmetric);
        let made = of_rows(from, &s, [residual, action], jacobian);
        Integral { symmetric: from.symmetric, linear: from.linear, ..made }
    }

    /// Returns Tᵀ r.
    fn tested(&self, s: &mut Scalars, slots: &[Slot], values: &[NodeId]) -> BTreeMap<Slot, NodeId> {
        let mut sums: BTreeMap<Slot, NodeId> = BTreeMap::new();
        for (&slot, &value) in slots.iter().zip(values) {
            for (own, factor) in self.terms(s, self.fields, slot) {
                let term = s.mul(factor, value);
                add(s, &mut sums, own, term);
            }
        }
        sums.retain(|_, node| !s.is_zero(*node));
        sums
    }

    /// Returns Tᵀ G T.
    fn coefficients(
        &self,
        s: &mut Scalars,
        entries: &[(Slot, Slot, NodeId)],
        is_symmetric: bool,
    ) -> BTreeMap<(Slot, Slot), NodeId> {
        let mut halves: BTreeMap<(Slot, Slot), NodeId> = BTreeMap::new();
        for &(test, trial, value) in entries {
            for (own, factor) in self.terms(s, self.fields, trial) {
                let term = s.mul(factor, value);
                add(s, &mut halves, (test, own), term);
            }
        }
        let mut sums: BTreeMap<(Slot, Slot), NodeId> = BTreeMap::new();
        for ((test, trial), value) in halves {
            for (own, factor) in self.terms(s, self.fields, test) {
                // One of two equal entries is computed.
                if is_symmetric && own > trial {
                    continue;
                }
                let term = s.mul(factor, value);
                add(s, &mut sums, (own, trial), term);
            }
        }
        sums.retain(|_, node| !s.is_zero(*node));
        if is_symmetric {
            let mirrored: Vec<_> =
                sums.iter().map(|(&(test, trial), &node)| ((trial, test), node)).collect();
            sums.extend(mirrored);
        }
        sums
    }
}

/// Returns the index of the first component of a field.
fn first(pulled: &[Option<PulledField>], field: usize) -> usize {
    pulled[..field].iter().map(|of| of.as_ref().map_or(1, PulledField::fields)).sum()
}

fn add<K: Ord>(s: &mut Scalars, sums: &mut BTreeMap<K, NodeId>, key: K, term: NodeId) {
    let sum = match sums.get(&key) {
        Some(&sum) => s.add(sum, term),
        None => term,
    };
    sums.insert(key, sum);
}

/// Returns ∂x_i/∂ξ_a / det J.
fn column(s: &mut Scalars, side: Side, a: usize, i: usize) -> NodeId {
    let (tangent, density) = (s.input(Input::Tangent(side, a, i)), s.input(Input::Density(side)));
    s.mul(density, tangent)
}

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
//! In each cell such functions have gradients, too. With H_ab = ∂²x/∂ξ_a∂ξ_b, Γ^c_ab = K_c · H_ab and Γ_b = Σ_c Γ^c_cb:
//!
//! ```text
//! H(curl)   ∂_j u_i = Σ_ab K_bj (K_ai ∂_b û_a − Σ_c Γ^a_bc K_ci û_a)
//! H(div)    ∂_j u_i = Σ_ab K_bj (J_ia ∂_b û_a + (H_ab,i − J_ia Γ_b) û_a) / det J
//! ```
//!
//! Each û_a becomes a scalar field, or a component of the field in its place; its derivatives are along reference axes.
//! The kernels thus see fields of the reference cell, and the entries of the map as inputs ([`Input::Inverse`],
//! [`Input::Tangent`], [`Input::Density`]). The same linear map T of slots serves residual, action and Jacobian:
//! r̂ = Tᵀ r and Ĝ = Tᵀ G T.

use super::block::{moved, of_rows};
use super::scalars::Scalars;
use super::{Aux, Field, Input, Integral, NodeId, Part, PointForm, Shape, Side, Slot};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
    /// True if the map of a cell has second derivatives, on which gradients depend.
    pub bent: bool,
}

impl PulledField {
    /// Returns the number of fields in its place.
    fn fields(&self) -> usize {
        if self.split { self.signs.len() } else { 1 }
    }

    /// Returns the slot of a reference component, from one of the first.
    fn component(&self, first: Slot, a: usize) -> Slot {
        match self.split {
            true => Slot { field: first.field + a, component: 0, ..first },
            false => Slot { component: a, ..first },
        }
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
    made.integrals[number] = known((form.dim, fields, aux), &form.integrals[number]);
    made
}

/// An integral that was pulled back, with its origin.
struct KnownIntegral {
    dim: usize,
    fields: Vec<Option<PulledField>>,
    aux: Vec<Option<PulledField>>,
    from: Integral,
    made: OnceLock<Integral>,
}

/// Number of integrals that are kept: those of a few forms.
const KEPT: usize = 16;

/// The last integrals that were pulled back. Each plan of a form asks for the same one, several times.
static KNOWN: Mutex<VecDeque<Arc<KnownIntegral>>> = Mutex::new(VecDeque::new());

/// Returns an integral in the reference cell; computed once for all plans of a form.
fn known(
    (dim, fields, aux): (usize, &[Option<PulledField>], &[Option<PulledField>]),
    from: &Integral,
) -> Integral {
    let is_it = |known: &Arc<KnownIntegral>| {
        (known.dim, &known.fields[..], &known.aux[..]) == (dim, fields, aux)
            && is_same(&known.from, from)
    };
    let known = {
        let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().position(is_it).and_then(|at| all.remove(at));
        let known = found.unwrap_or_else(|| {
            let (fields, aux) = (fields.to_vec(), aux.to_vec());
            Arc::new(KnownIntegral { dim, fields, aux, from: from.clone(), made: OnceLock::new() })
        });
        all.push_front(Arc::clone(&known));
        all.truncate(KEPT);
        known
    };
    // Others that want it wait for the first; those that want another do not.
    known.made.get_or_init(|| SlotMap { dim, fields, aux }.integral(from)).clone()
}

/// Returns whether two integrals have the same views, whatever their names.
fn is_same(a: &Integral, b: &Integral) -> bool {
    a.graph.nodes().len() == b.graph.nodes().len()
        && (a.symmetric, a.linear, &a.region) == (b.symmetric, b.linear, &b.region)
        && (&a.residual, &a.action, &a.jacobian) == (&b.residual, &b.action, &b.jacobian)
        && a.graph.nodes() == b.graph.nodes()
}

/// The map from slots of a form to slots of its fields' components. In between, `Part::Exterior(c)` of a field's first
/// component is component c of the exterior derivative in the reference cell.
struct SlotMap<'a> {
    dim: usize,
    fields: &'a [Option<PulledField>],
    aux: &'a [Option<PulledField>],
}

/// A slot as a factor times a sum of slots in the reference cell with factors of their own.
struct PulledSlot {
    factor: NodeId,
    terms: Vec<(Slot, NodeId)>,
}

impl SlotMap<'_> {
    fn pulled(&self, s: &mut Scalars, pulled: &[Option<PulledField>], slot: Slot) -> PulledSlot {
        let (first, one) = (first(pulled, slot.field), s.constant(1.0));
        let Some(of) = &pulled[slot.field] else {
            return PulledSlot { factor: one, terms: vec![(Slot { field: first, ..slot }, one)] };
        };
        let signs = &of.signs;
        let (dim, side, i) = (self.dim, slot.side, slot.component);
        let exterior =
            |c: usize| Slot { field: first, component: 0, part: Part::Exterior(c), ..slot };
        let own = |a: usize| of.component(Slot { field: first, component: 0, ..slot }, a);
        let mut density = || s.input(Input::Density(side));
        match (slot.part, of.map) {
            (Part::Value, Piola::Reference) => {
                PulledSlot { factor: one, terms: vec![(own(i), one)] }
            }
            (Part::Value, Piola::Covariant) => {
                let term = |a: usize| {
                    let (sign, entry) = (s.constant(signs[a]), s.input(Input::Inverse(side, a, i)));
                    (own(a), s.mul(sign, entry))
                };
                PulledSlot { factor: one, terms: (0..dim).map(term).collect() }
            }
            (Part::Value, Piola::Contravariant) => {
                let factor = density();
                let term = |a: usize| {
                    let (sign, entry) = (s.constant(signs[a]), s.input(Input::Tangent(side, a, i)));
                    (own(a), s.mul(sign, entry))
                };
                PulledSlot { factor, terms: (0..dim).map(term).collect() }
            }
            (Part::Exterior(i), Piola::Covariant) if dim == 3 => {
                let factor = density();
                let term = |c: usize| (exterior(c), s.input(Input::Tangent(side, c, i)));
                PulledSlot { factor, terms: (0..3).map(term).collect() }
            }
            (Part::Exterior(_), Piola::Covariant | Piola::Contravariant) => {
                PulledSlot { factor: density(), terms: vec![(exterior(0), one)] }
            }
            (Part::Derivative(j), Piola::Covariant | Piola::Contravariant) => {
                self.gradient(s, of, &own, slot, j)
            }
            (Part::Exterior(_) | Part::Derivative(_), Piola::Reference) | (Part::Second(..), _) => {
                unreachable!("of these fields only values and first derivatives are functions")
            }
        }
    }

    /// Returns ∂_j u_i of a slot of component i.
    fn gradient(
        &self,
        s: &mut Scalars,
        of: &PulledField,
        own: &impl Fn(usize) -> Slot,
        slot: Slot,
        j: usize,
    ) -> PulledSlot {
        let (dim, side, i) = (self.dim, slot.side, slot.component);
        let is_covariant = of.map == Piola::Covariant;
        // K_ai or J_ia
        let entry = |s: &mut Scalars, a: usize| match is_covariant {
            true => s.input(Input::Inverse(side, a, i)),
            false => s.input(Input::Tangent(side, a, i)),
        };
        let mut terms = Vec::new();
        for a in 0..dim {
            let mut value = s.constant(0.0);
            let sign = s.constant(of.signs[a]);
            for b in 0..dim {
                let (inverse, entry) = (s.input(Input::Inverse(side, b, j)), entry(s, a));
                let scaled = s.mul(sign, entry);
                let factor = s.mul(inverse, scaled);
                terms.push((Slot { part: Part::Derivative(b), ..own(a) }, factor));
                if of.bent {
                    let slope = match is_covariant {
                        true => self.slope_of_inverse(s, side, (a, i), b),
                        false => self.slope_of_tangent(s, side, (a, i), b),
                    };
                    let term = s.mul(inverse, slope);
                    value = s.add(value, term);
                }
            }
            if of.bent {
                terms.push((Slot { part: Part::Value, ..own(a) }, s.mul(sign, value)));
            }
        }
        let factor = if is_covariant { s.constant(1.0) } else { s.input(Input::Density(side)) };
        PulledSlot { factor, terms }
    }

    /// Returns ∂_b K_ai = −Σ_c Γ^a_bc K_ci.
    fn slope_of_inverse(
        &self,
        s: &mut Scalars,
        side: Side,
        (a, i): (usize, usize),
        b: usize,
    ) -> NodeId {
        let mut sum = s.constant(0.0);
        for c in 0..self.dim {
            let symbol = self.symbol(s, side, a, (b, c));
            let entry = s.input(Input::Inverse(side, c, i));
            let term = s.mul(symbol, entry);
            sum = s.sub(sum, term);
        }
        sum
    }

    /// Returns det J ∂_b (J_ia / det J) = H_ab,i − J_ia Σ_c Γ^c_cb.
    fn slope_of_tangent(
        &self,
        s: &mut Scalars,
        side: Side,
        (a, i): (usize, usize),
        b: usize,
    ) -> NodeId {
        let mut trace = s.constant(0.0);
        for c in 0..self.dim {
            let symbol = self.symbol(s, side, c, (c, b));
            trace = s.add(trace, symbol);
        }
        let bend = s.input(Input::Bend(side, a.min(b), a.max(b), i));
        let entry = s.input(Input::Tangent(side, a, i));
        let term = s.mul(entry, trace);
        s.sub(bend, term)
    }

    /// Returns Γ^c_ab = Σ_l K_cl ∂²x_l/∂ξ_a∂ξ_b.
    fn symbol(&self, s: &mut Scalars, side: Side, c: usize, (a, b): (usize, usize)) -> NodeId {
        let mut sum = s.constant(0.0);
        for l in 0..self.dim {
            let entry = s.input(Input::Inverse(side, c, l));
            let bend = s.input(Input::Bend(side, a.min(b), a.max(b), l));
            let term = s.mul(entry, bend);
            sum = s.add(sum, term);
        }
        sum
    }

    /// Returns the slots of a component of the exterior derivative in the reference cell, with their signs; other slots
    /// as they are.
    fn parts(&self, pulled: &[Option<PulledField>], slot: Slot) -> Vec<(Slot, f64)> {
        let Part::Exterior(c) = slot.part else { return vec![(slot, 1.0)] };
        let of = (0..pulled.len()).find(|&field| first(pulled, field) == slot.field);
        let Some(of) = of.and_then(|field| pulled[field].as_ref()) else {
            return vec![(slot, 1.0)];
        };
        let derived = |component: usize, axis: usize, sign: f64| {
            let own = of.component(Slot { part: Part::Derivative(axis), ..slot }, component);
            (own, sign * of.signs[component])
        };
        match of.map {
            Piola::Contravariant => (0..self.dim).map(|a| derived(a, a, 1.0)).collect(),
            Piola::Reference => unreachable!("transfers read values alone"),
            Piola::Covariant => {
                let [a, b] = if self.dim == 2 { [0, 1] } else { [(c + 1) % 3, (c + 2) % 3] };
                vec![derived(b, a, 1.0), derived(a, b, -1.0)]
            }
        }
    }

    /// Returns the value of a slot as an input of reference slots.
    fn value(
        &self,
        s: &mut Scalars,
        pulled: &[Option<PulledField>],
        slot: Slot,
        input: impl Fn(Slot) -> Input,
    ) -> NodeId {
        let PulledSlot { factor, terms } = self.pulled(s, pulled, slot);
        let mut sum = s.constant(0.0);
        for (slot, own) in terms {
            let mut value = s.constant(0.0);
            for (part, sign) in self.parts(pulled, slot) {
                let (sign, input) = (s.constant(sign), s.input(input(part)));
                let term = s.mul(sign, input);
                value = s.add(value, term);
            }
            let term = s.mul(own, value);
            sum = s.add(sum, term);
        }
        s.mul(factor, sum)
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
            let PulledSlot { factor, terms } = self.pulled(s, self.fields, slot);
            let value = s.mul(factor, value);
            for (own, factor) in terms {
                let term = s.mul(factor, value);
                add(s, &mut sums, own, term);
            }
        }
        let mut parts = BTreeMap::new();
        sums.retain(|_, node| !s.is_zero(*node));
        for (slot, node) in sums {
            for (part, sign) in self.parts(self.fields, slot) {
                let sign = s.constant(sign);
                let term = s.mul(sign, node);
                add(s, &mut parts, part, term);
            }
        }
        parts
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
            let PulledSlot { factor, terms } = self.pulled(s, self.fields, trial);
            let value = s.mul(factor, value);
            let factor = self.pulled(s, self.fields, test).factor;
            let value = s.mul(factor, value);
            for (own, factor) in terms {
                let term = s.mul(factor, value);
                add(s, &mut halves, (test, own), term);
            }
        }
        let mut sums: BTreeMap<(Slot, Slot), NodeId> = BTreeMap::new();
        for ((test, trial), value) in halves {
            for (own, factor) in self.pulled(s, self.fields, test).terms {
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
        let mut parts = BTreeMap::new();
        for ((test, trial), node) in sums {
            for (of_test, sign) in self.parts(self.fields, test) {
                for (of_trial, other) in self.parts(self.fields, trial) {
                    let sign = s.constant(sign * other);
                    let term = s.mul(sign, node);
                    add(s, &mut parts, (of_test, of_trial), term);
                }
            }
        }
        parts
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

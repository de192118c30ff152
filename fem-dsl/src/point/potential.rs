//! A form of one field in H(curl) or H(div) → the form of its potential, and the identities by which it is scaled.
//!
//! ```text
//! H(curl)           E = grad φ,   curl E = 0          φ in H1(k)
//! H(div), plane     u = curl φ,   div u = 0           φ in H1(k),  curl φ = (∂₁φ, −∂₀φ)
//! H(div), space     u = curl ψ,   div u = 0           ψ in Hcurl(k)
//! ```
//!
//! With G the matrix of the discrete derivative and A the operator of the first form, that of the second is Gᵀ A G: the
//! spaces form a complex. (R. Hiptmair, "Multigrid method for Maxwell's equations", SIAM J. Numer. Anal. 36 (1998);
//! R. Hiptmair and J. Xu, "Nodal auxiliary space preconditioning in H(curl) and H(div) spaces", SIAM J. Numer. Anal. 45
//! (2007).)

use super::block::{moved, of_rows};
use super::scalars::Scalars;
use super::verify::expect_point;
use super::{Input, Integral, NodeId, Part, PointForm, Region, Shape, Side, Slot, Space};
use std::collections::BTreeMap;

/// Returns the form of the potential of the only field, under its name. `None` if the form has other fields, has no term
/// that is left, or has one whose derivative depends on the state.
pub fn potential(form: &PointForm) -> Option<PointForm> {
    let [field] = &form.fields[..] else { return None };
    let space = match (field.space, form.dim) {
        (Space::Hcurl(degree), _) | (Space::Hdiv(degree), 2) => Space::H1(degree),
        (Space::Hdiv(degree), _) => Space::Hcurl(degree),
        (Space::H1(_) | Space::L2(_) | Space::Number, _) => return None,
    };
    let mut made = PointForm { integrals: Vec::new(), ..form.clone() };
    made.name = format!("{}_potential", form.name);
    made.fields[0].space = space;
    if !space.is_piola() {
        made.fields[0].shape = Shape::Scalar;
    }
    made.integrals =
        form.integrals.iter().filter_map(|from| of_integral(from, field.space, form.dim)).collect();
    let is_constant = |integral: &Integral| {
        let depends = integral.depends_on(|input| matches!(input, Input::State(_)));
        integral.jacobian.iter().all(|entry| !depends[entry.value])
    };
    let has_cells = made.integrals.iter().any(|integral| integral.region.is_of_cells());
    if !has_cells || !made.integrals.iter().all(is_constant) {
        return None;
    }
    expect_point(&made);
    Some(made)
}

/// Returns the slot of the potential that a slot of the field becomes, with its sign; `None` for 0.
fn derived(slot: Slot, space: Space, dim: usize) -> Option<(Slot, f64)> {
    if slot.part != Part::Value {
        return None;
    }
    let (part, sign) = match (space, dim, slot.component) {
        (Space::Hdiv(_), 2, 0) => (Part::Derivative(1), 1.0),
        (Space::Hdiv(_), 2, _) => (Part::Derivative(0), -1.0),
        (Space::Hdiv(_), _, i) => (Part::Exterior(i), 1.0),
        (_, _, i) => (Part::Derivative(i), 1.0),
    };
    Some((Slot { component: 0, part, ..slot }, sign))
}

fn of_integral(from: &Integral, space: Space, dim: usize) -> Option<Integral> {
    let mut s = Scalars::default();
    let value =
        |s: &mut Scalars, slot: Slot, input: fn(Slot) -> Input| match derived(slot, space, dim) {
            Some((own, sign)) => {
                let value = s.input(input(own));
                if sign < 0.0 { s.neg(value) } else { value }
            }
            None => s.constant(0.0),
        };
    let rows = from.residual.iter().chain(&from.action).map(|(_, node)| *node);
    let roots: Vec<NodeId> = rows.chain(from.jacobian.iter().map(|entry| entry.value)).collect();
    let nodes = moved(&mut s, &from.graph, &roots, |s, input| match input {
        Input::State(slot) => value(s, slot, Input::State),
        Input::Direction(slot) => value(s, slot, Input::Direction),
        other => s.input(other),
    });
    let mut nodes = nodes.into_iter();
    let mut list = |s: &mut Scalars, rows: &[(Slot, NodeId)]| -> BTreeMap<Slot, NodeId> {
        let all: Vec<(Slot, NodeId)> = rows.iter().map(|(slot, _)| *slot).zip(&mut nodes).collect();
        let own = all.into_iter().filter_map(|(slot, node)| {
            let (slot, sign) = derived(slot, space, dim)?;
            let node = if sign < 0.0 { s.neg(node) } else { node };
            (!s.is_zero(node)).then_some((slot, node))
        });
        own.collect()
    };
    let (residual, action) = (list(&mut s, &from.residual), list(&mut s, &from.action));
    let mut jacobian = BTreeMap::new();
    for (entry, node) in from.jacobian.iter().zip(nodes) {
        let own = |slot| derived(slot, space, dim);
        let (Some((test, a)), Some((trial, b))) = (own(entry.test), own(entry.trial)) else {
            continue;
        };
        let node = if a * b < 0.0 { s.neg(node) } else { node };
        if !s.is_zero(node) {
            jacobian.insert((test, trial), node);
        }
    }
    if jacobian.is_empty() {
        return None;
    }
    let made = of_rows(from, &s, [residual, action], jacobian);
    Some(Integral { symmetric: from.symmetric, ..made })
}

/// The part of a field that [`identity`] tests against itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityOf {
    /// Its values: the form of the mass.
    Values,
    /// Its exterior derivative.
    Exterior,
}

/// Returns the form ∫ w · w' over the cells, with w the value of the only field, or its exterior derivative, and the data
/// and parameters of a form.
pub fn identity(form: &PointForm, of: IdentityOf) -> PointForm {
    let space = form.fields[0].space;
    let slot = |component, part| Slot { field: 0, side: Side::Inside, component, part };
    let slots: Vec<Slot> = match of {
        IdentityOf::Values => {
            (0..form.fields[0].shape.components()).map(|c| slot(c, Part::Value)).collect()
        }
        IdentityOf::Exterior => {
            let parts = Part::of_component(space, 0, form.dim).into_iter();
            parts.filter(|part| part.order() == 1).map(|part| slot(0, part)).collect()
        }
    };
    let mut s = Scalars::default();
    let one = s.constant(1.0);
    let mut rows = |input: fn(Slot) -> Input| -> BTreeMap<Slot, NodeId> {
        slots.iter().map(|&slot| (slot, s.input(input(slot)))).collect()
    };
    let lists = [rows(Input::State), rows(Input::Direction)];
    let jacobian = slots.iter().map(|&slot| ((slot, slot), one)).collect();
    let mut from = form.integrals[0].clone();
    from.region = Region::Cells;
    let mut made =
        PointForm { integrals: vec![of_rows(&from, &s, lists, jacobian)], ..form.clone() };
    made.name = format!("{}_identity", form.name);
    expect_point(&made);
    made
}

#[cfg(test)]
mod tests {
    use super::{IdentityOf, identity, potential};
    use crate::point::{Input, Part, PointForm, Shape, Space, eval};
    use crate::program::compile;
    use crate::source::Source;

    fn form(text: &str, dim: usize) -> PointForm {
        let (program, found) = compile(&Source::new("test", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        program.point_form("f", dim).expect("a form")
    }

    /// Returns the entries of the derivative, with x = 2 and the parameter 3.
    fn entries(form: &PointForm) -> Vec<(Part, Part, f64)> {
        let [integral] = &form.integrals[..] else { panic!("one integral") };
        let values = eval(&integral.graph, |input| match input {
            Input::Param(..) => 3.0,
            Input::Coordinate(_) => 2.0,
            _ => 1.0,
        });
        let entry = |entry: &crate::point::Coefficient| {
            (entry.test.part, entry.trial.part, values[entry.value])
        };
        integral.jacobian.iter().map(entry).collect()
    }

    #[test]
    fn a_gradient_keeps_the_terms_of_values() {
        let text = "form f { field E: vector in Hcurl(k); param b = 3; f1[E] = x[0] * curl(E);
                    f0[E] = [b * E[0] + E[1], E[0] + x[1] * E[1]]; }";
        let made = potential(&form(text, 2)).expect("terms of values");
        assert!(matches!(made.fields[0].space, Space::H1(_)));
        assert_eq!(made.fields[0].shape, Shape::Scalar);
        assert!(made.integrals[0].symmetric && made.integrals[0].linear);
        let [x, y] = [Part::Derivative(0), Part::Derivative(1)];
        assert_eq!(entries(&made), [(x, x, 3.0), (x, y, 1.0), (y, x, 1.0), (y, y, 2.0)]);
        let alone = "form f { field E: vector in Hcurl(k); f1[E] = curl(E); }";
        assert_eq!(potential(&form(alone, 2)), None);
        let nonlinear =
            "form f { field E: vector in Hcurl(k); f1[E] = curl(E); f0[E] = dot(E, E) * E; }";
        assert_eq!(potential(&form(nonlinear, 3)), None);
    }

    #[test]
    fn a_curl_has_the_terms_of_the_flux() {
        let text = "form f { field u: vector in Hdiv(k); param b = 3; f1[u] = div(u);
                    f0[u] = [b * u[0] + 5 * u[1], 5 * u[0] + x[1] * u[1]]; }";
        let made = potential(&form(text, 2)).expect("terms of values");
        let [x, y] = [Part::Derivative(0), Part::Derivative(1)];
        assert_eq!(entries(&made), [(x, x, 2.0), (x, y, -5.0), (y, x, -5.0), (y, y, 3.0)]);
        let text =
            "form f { field u: vector in Hdiv(k); param b = 3; f1[u] = div(u); f0[u] = b * u; }";
        let made = potential(&form(text, 3)).expect("terms of values");
        assert!(matches!(made.fields[0].space, Space::Hcurl(_)));
        let expected: Vec<_> =
            (0..3).map(|i| (Part::Exterior(i), Part::Exterior(i), 3.0)).collect();
        assert_eq!(entries(&made), expected);
    }

    #[test]
    fn identities_are_symmetric() {
        let text = "form f { field E: vector in Hcurl(k); f1[E] = 7 * curl(E); f0[E] = 8 * E; }";
        let whole = form(text, 3);
        for (of, part) in [(IdentityOf::Values, false), (IdentityOf::Exterior, true)] {
            let made = identity(&whole, of);
            assert!(made.integrals[0].symmetric && made.integrals[0].linear);
            let entries = entries(&made);
            assert_eq!(entries.len(), 3);
            let fits = |part: Part| matches!(part, Part::Exterior(_));
            assert!(
                entries
                    .iter()
                    .all(|&(a, b, value)| { value == 1.0 && fits(a) == part && fits(b) == part })
            );
        }
    }
}

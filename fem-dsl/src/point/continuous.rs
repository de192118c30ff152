//! A form of discontinuous fields → the form of their continuous functions.
//!
//! ```text
//! L2(k) → H1(k)       u_inside = u_outside = u,   φ_inside = φ_outside = φ
//! ```
//!
//! Rows that cancel vanish, and with them most integrals over facets between cells. With E the embedding of H1(k) in
//! L2(k) and A the operator of the first form, that of the second is Eᵀ A E.

use super::block::{integral, moved};
use super::eval::eval;
use super::lower::sample;
use super::optimise::finished;
use super::polynomial::Expansion;
use super::scalars::Scalars;
use super::verify::expect_point;
use super::{Coefficient, Degree, Input, Integral, NodeId, Part, PointForm, Side, Slot, Space};
use std::collections::BTreeMap;

/// Returns the form for continuous functions; `None` if no field in L2 is coupled between cells, or one of them may be
/// constant in each cell.
pub fn continuous(form: &PointForm) -> Option<PointForm> {
    let jumps = |slot: Slot| !form.fields[slot.field].space.is_continuous();
    let couples = |integral: &Integral| {
        let mut entries = integral.jacobian.iter();
        integral.region.is_interior() && entries.any(|own| jumps(own.test) && jumps(own.trial))
    };
    if !form.integrals.iter().any(couples) {
        return None;
    }
    let mut made = PointForm { integrals: Vec::new(), ..form.clone() };
    made.name = format!("{}_continuous", form.name);
    for field in &mut made.fields {
        field.space = match field.space {
            Space::L2(Degree::Fixed(0)) => return None,
            Space::L2(degree) | Space::H1(degree) => Space::H1(degree),
            other @ (Space::Hcurl(_) | Space::Hdiv(_) | Space::Number) => other,
        };
    }
    made.integrals = form.integrals.iter().filter_map(of_integral).collect();
    expect_point(&made);
    Some(made)
}

/// A row of a test function, or an entry of the Jacobian.
type Place = (Slot, Option<Slot>);

/// Names the value on both sides by the inside.
fn one(slot: Slot) -> Slot {
    match slot.part {
        Part::Value => Slot { side: Side::Inside, ..slot },
        Part::Derivative(_) | Part::Second(..) | Part::Exterior(_) => slot,
    }
}

/// Returns the integral for continuous functions, if anything is left of it.
fn of_integral(from: &Integral) -> Option<Integral> {
    if !from.region.is_interior() {
        return Some(from.clone());
    }
    let mut scalars = Scalars::default();
    let rows = from.residual.iter().chain(&from.action).map(|(_, node)| *node);
    let roots: Vec<NodeId> = rows.chain(from.jacobian.iter().map(|entry| entry.value)).collect();
    let nodes = moved(&mut scalars, &from.graph, &roots, |scalars, input| {
        scalars.input(match input {
            Input::State(slot) => Input::State(one(slot)),
            Input::Direction(slot) => Input::Direction(one(slot)),
            other => other,
        })
    });
    let (residual, rest) = nodes.split_at(from.residual.len());
    let (action, values) = rest.split_at(from.action.len());
    let of_rows = |rows: &[(Slot, NodeId)], nodes: &[NodeId]| -> Vec<(Place, NodeId)> {
        rows.iter().zip(nodes).map(|((slot, _), &node)| ((*slot, None), node)).collect()
    };
    let entries = from.jacobian.iter().zip(values);
    let entries = entries.map(|(entry, &node)| ((entry.test, Some(entry.trial)), node)).collect();
    let residual = sums(&mut scalars, of_rows(&from.residual, residual));
    let action = sums(&mut scalars, of_rows(&from.action, action));
    let mut entries = sums(&mut scalars, entries);
    if residual.is_empty() && entries.is_empty() {
        return None;
    }
    if from.symmetric {
        // Equal entries become one node, as of the first form.
        let lower: Vec<(Place, NodeId)> = entries.iter().map(|(key, &node)| (*key, node)).collect();
        for ((test, trial), node) in lower {
            if let Some(trial) = trial.filter(|trial| test < *trial)
                && let Some(other) = entries.get_mut(&(trial, Some(test)))
            {
                *other = node;
            }
        }
    }
    let all = residual.values().chain(action.values()).chain(entries.values());
    let (graph, nodes) = finished(&scalars, &all.copied().collect::<Vec<_>>());
    let (own, rest) = nodes.split_at(residual.len());
    let (actions, values) = rest.split_at(action.len());
    let rows = |keys: &Sums, nodes: &[NodeId]| {
        keys.keys().zip(nodes).map(|((slot, _), &node)| (*slot, node)).collect()
    };
    let jacobian = entries.keys().zip(values).filter_map(|((test, trial), &value)| {
        Some(Coefficient { test: *test, trial: (*trial)?, value })
    });
    let (residual, action) = (rows(&residual, own), rows(&action, actions));
    Some(integral(from, graph, residual, action, jacobian.collect()))
}

/// Sums of rows or entries.
type Sums = BTreeMap<Place, NodeId>;

/// Largest sum that is 0, relative to its terms.
const ROUNDING: f64 = 1e-12;

/// Adds the entries whose places become the same, and leaves out those that cancel.
fn sums(scalars: &mut Scalars, entries: Vec<(Place, NodeId)>) -> Sums {
    let mut terms: BTreeMap<Place, Vec<NodeId>> = BTreeMap::new();
    for ((test, trial), node) in entries {
        terms.entry((one(test), trial.map(one))).or_default().push(node);
    }
    // Each sum as the difference of two nodes.
    let mut sums = Vec::new();
    for (place, terms) in terms {
        let zero = scalars.constant(0.0);
        let (rest, last) = terms.split_at(terms.len() - 1);
        let rest = rest.iter().fold(zero, |sum, &term| scalars.add(sum, term));
        let (sum, opposite) = (scalars.add(rest, last[0]), scalars.neg(last[0]));
        sums.push((place, terms, sum, [rest, opposite]));
    }
    let samples = [1, 2].map(|seed| eval(&scalars.graph, |input| sample(input, seed)));
    let near = |terms: &[NodeId], sum: NodeId| {
        samples.iter().all(|values| {
            let scale: f64 = terms.iter().map(|&term| values[term].abs()).sum();
            values[sum].abs() <= ROUNDING * scale
        })
    };
    let mut expansion = Expansion::new(scalars);
    sums.retain(|(_, terms, sum, [rest, opposite])| {
        !(near(terms, *sum) && expansion.equal(*rest, *opposite))
    });
    sums.into_iter().map(|(place, _, sum, _)| (place, sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::continuous;
    use crate::point::{PointForm, Space};
    use crate::program::compile;
    use crate::source::Source;

    fn form(text: &str) -> PointForm {
        let (program, found) = compile(&Source::new("test", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        program.point_form("f", 2).expect("a form")
    }

    #[test]
    fn interior_penalty_becomes_the_laplacian_with_its_boundary_terms() {
        let sipg = form(
            "form f { field u: scalar in L2(k); aux kappa: scalar on cells; let q = kappa * grad(u);
                f0[u] = -1; f1[u] = q;
                on interior {
                    let w = outside(kappa) / (inside(kappa) + outside(kappa));
                    let flux = dot(w * inside(q) + (1 - w) * outside(q), n);
                    energy = avg(kappa * penalty(u)) * jump(u)^2 - flux * jump(u);
                }
                on boundary \"x0\" { energy = kappa * penalty(u) / 2 * u^2 - dot(q, n) * u; } }",
        );
        let made = continuous(&sipg).expect("a form");
        let of = |form: &PointForm| -> Vec<String> {
            form.integrals.iter().map(|integral| format!("{:?}", integral.region)).collect()
        };
        assert_eq!((of(&made).len(), of(&sipg).len()), (2, 3), "{:?}", of(&made));
        assert!(made.integrals.iter().all(|integral| integral.symmetric && integral.linear));
        assert!(matches!(made.fields[0].space, Space::H1(_)));
        assert_eq!(continuous(&made), None);
    }

    #[test]
    fn sums_that_cancel_only_as_polynomials_vanish() {
        let body = form(
            "form f { field u: vector in L2(k); param mu = 1; param lambda = 1e4;
                let e = sym(grad(u)); let s = 2 * mu * e + lambda * tr(e) * I;
                fn stiff(j, m) = 2 * mu * dot(j, j) + lambda * dot(j, m)^2;
                energy = inner(s, e) / 2;
                on interior { energy = avg(penalty(u)) * stiff(jump(u), n) - dot(avg(s) * n, jump(u)); } }",
        );
        assert_eq!(continuous(&body).expect("a form").integrals.len(), 1);
    }

    #[test]
    fn what_does_not_cancel_stays() {
        // A resistance, and a penalty on kinks.
        let kinks = form(
            "form f { field u: scalar in L2(k); f1[u] = grad(u);
                on interior { energy = jump(u)^2 + dot(jump(grad(u)), n)^2; } }",
        );
        let made = continuous(&kinks).expect("a form");
        let [cells, facets] = &made.integrals[..] else { panic!("two integrals") };
        assert!(cells.region.is_of_cells() && facets.region.is_interior() && facets.symmetric);
        // Four derivatives: two axes of two sides.
        assert_eq!((facets.residual.len(), facets.jacobian.len()), (4, 16));
        // Nothing between cells, or constants in cells.
        let alone = form("form f { field u: scalar in L2(k); f0[u] = u; }");
        assert_eq!(continuous(&alone), None);
        let constant = form(
            "form f { field u: scalar in L2(0); f0[u] = u; on interior { energy = jump(u)^2; } }",
        );
        assert_eq!(continuous(&constant), None);
    }
}

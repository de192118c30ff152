//! Every stage against the previous one: a form's tensors, their derivative, and the scalars.

use super::common::{Sample, close, forms, values};
use fem_dsl::eval::eval;
use fem_dsl::form::{ExprId, Form, Row, Terminal};
use fem_dsl::point::{Input, Part, PointForm, Region, Slot, point};
use fem_dsl::{differentiate::differentiate, simplify::simplify};
use std::collections::BTreeMap;

/// Returns the entries of rows by slot, from the tensors of the form.
fn entries(form: &Form, rows: &[Row], sample: &Sample) -> BTreeMap<Slot, f64> {
    let roots: Vec<ExprId> = rows.iter().flat_map(|row| row.factors()).collect();
    let tensors = values(form, &roots, sample);
    let mut entries = BTreeMap::new();
    for row in rows {
        let Row { field, side, .. } = *row;
        for (component, value) in row.f0.iter().flat_map(|f0| tensors[f0].iter()).enumerate() {
            entries.insert(Slot { field, side, component, part: Part::Value }, *value);
        }
        for (flat, value) in row.f1.iter().flat_map(|f1| tensors[f1].iter()).enumerate() {
            let (component, part) =
                Part::of_flat(Some(form.fields[field].space), flat, 1, form.dim);
            entries.insert(Slot { field, side, component, part }, *value);
        }
        // Second derivatives along two axes are one, in either order.
        for (flat, value) in row.f2.iter().flat_map(|f2| tensors[f2].iter()).enumerate() {
            let (of, j) = (flat / form.dim, flat % form.dim);
            let (component, i) = (of / form.dim, of % form.dim);
            let part = Part::Second(i.min(j), i.max(j));
            *entries.entry(Slot { field, side, component, part }).or_insert(0.0) += value;
        }
    }
    entries
}

fn agree(name: &str, left: &BTreeMap<Slot, f64>, right: &BTreeMap<Slot, f64>) {
    for slot in left.keys().chain(right.keys()) {
        let of = |side: &BTreeMap<Slot, f64>| side.get(slot).copied().unwrap_or(0.0);
        close(of(left), of(right), &format!("{name} at {slot:?}"));
    }
}

fn check_point_form(name: &str, form: &Form, point: &PointForm, sample: &Sample) {
    for (integral, scalar) in form.integrals.iter().zip(&point.integrals) {
        let values = eval(&scalar.graph, |input| sample.input(form, input));
        let list = |list: &[(Slot, fem_dsl::point::NodeId)]| -> BTreeMap<Slot, f64> {
            list.iter().map(|&(slot, node)| (slot, values[node])).collect()
        };
        agree(name, &entries(form, &integral.rows, sample), &list(&scalar.residual));
        let action = list(&scalar.action);
        agree(name, &entries(form, &integral.action, sample), &action);
        // s[test] = Σ G[test][trial] δ[trial]
        let mut product: BTreeMap<Slot, f64> = BTreeMap::new();
        for entry in &scalar.jacobian {
            let delta = sample.input(form, Input::Direction(entry.trial));
            *product.entry(entry.test).or_insert(0.0) += values[entry.value] * delta;
        }
        agree(name, &action, &product);
        if let (Some(energy), Some(node)) = (integral.energy, scalar.energy) {
            let tensors = super::common::values(form, &[energy], sample);
            close(tensors[&energy][0], values[node], &format!("energy of {name}"));
        }
    }
}

#[test]
fn scalars_agree_with_tensors() {
    for (name, form) in forms() {
        let differentiated = differentiate(&form);
        let simplified = simplify(&differentiated);
        let point = point(&simplified);
        for seed in 0..4 {
            let sample = Sample::new(&form, seed);
            for (a, b) in differentiated.integrals.iter().zip(&simplified.integrals) {
                for (a, b) in [(&a.rows, &b.rows), (&a.action, &b.action)] {
                    agree(
                        &name,
                        &entries(&differentiated, a, &sample),
                        &entries(&simplified, b, &sample),
                    );
                }
            }
            check_point_form(&name, &simplified, &point, &sample);
        }
    }
}

/// |f(u + ε δu) − f(u) − ε δf| falls like ε², at points away from kinks.
#[test]
fn derivatives_pass_taylors_test() {
    for (name, form) in forms() {
        let form = differentiate(&form);
        for seed in 0..2 {
            let sample = Sample::new(&form, seed);
            for integral in &form.integrals {
                let base = entries(&form, &integral.rows, &sample);
                let action = entries(&form, &integral.action, &sample);
                let steps = [1.0 / 512.0, 1.0 / 1024.0].map(|epsilon| {
                    (epsilon, entries(&form, &integral.rows, &sample.moved(&form, epsilon)))
                });
                for slot in base.keys() {
                    let slope = action.get(slot).copied().unwrap_or(0.0);
                    let [coarse, fine] = steps
                        .each_ref()
                        .map(|(epsilon, moved)| (moved[slot] - base[slot] - epsilon * slope).abs());
                    let noise = 1024.0 * f64::EPSILON * (base[slot].abs() + slope.abs() + 1.0);
                    assert!(
                        fine <= 0.35 * coarse + noise,
                        "{name} {slot:?} seed {seed}: {coarse} then {fine}"
                    );
                }
            }
        }
    }
}

/// f0 and f1 of an energy are its derivatives.
#[test]
fn rows_of_an_energy_are_its_derivative() {
    let mut seen = 0;
    for (name, form) in forms() {
        for integral in form.integrals.iter().filter(|integral| integral.energy.is_some()) {
            seen += 1;
            let energy = integral.energy.expect("it was filtered for an energy");
            for seed in 0..4 {
                let sample = Sample::new(&form, seed);
                let at = |epsilon: f64| {
                    values(&form, &[energy], &sample.moved(&form, epsilon))[&energy][0]
                };
                let rows = entries(&form, &integral.rows, &sample);
                let slope: f64 = rows
                    .iter()
                    .map(|(&slot, value)| value * sample.input(&form, Input::Direction(slot)))
                    .sum();
                let remainder = |epsilon: f64| (at(epsilon) - at(0.0) - epsilon * slope).abs();
                let (coarse, fine) = (remainder(1.0 / 512.0), remainder(1.0 / 1024.0));
                let noise = 1024.0 * f64::EPSILON * (at(0.0).abs() + slope.abs() + 1.0);
                assert!(fine <= 0.35 * coarse + noise, "{name}: {coarse} then {fine}");
            }
        }
    }
    assert!(seen >= 4, "the corpus should hold energies in both dimensions");
}

/// The three notations of one physics yield one PointForm.
#[test]
fn three_notations_give_one_point_form() {
    let text = "
        form a { field u: scalar; f0[u] = u^3; f1[u] = grad(u); }
        form b { field u: scalar; test v for u; residual = dot(grad(u), grad(v)) + u^3 * v; }
        form c { field u: scalar; energy = dot(grad(u), grad(u)) / 2 + u^4 / 4; }";
    for dim in [2, 3] {
        let points: Vec<PointForm> = super::common::check(text, dim)
            .iter()
            .map(|form| point(&simplify(&differentiate(form))))
            .collect();
        let sample_form = &super::common::check(text, dim)[0];
        for other in &points[1..] {
            let (a, b) = (&points[0].integrals[0], &other.integrals[0]);
            assert_eq!(a.region, Region::Cells);
            assert_eq!((a.linear, a.symmetric), (b.linear, b.symmetric));
            assert_eq!(
                fem_dsl::point::operation_count(&a.graph, &roots(&a.action)),
                fem_dsl::point::operation_count(&b.graph, &roots(&b.action))
            );
            let sample = Sample::new(sample_form, 1);
            let value = |integral: &fem_dsl::point::Integral| -> Vec<(Slot, f64)> {
                let values = eval(&integral.graph, |input| sample.input(sample_form, input));
                integral.action.iter().map(|&(slot, node)| (slot, values[node])).collect()
            };
            for ((slot, x), (other, y)) in value(a).into_iter().zip(value(b)) {
                assert_eq!(slot, other);
                close(x, y, "one of three ways");
            }
        }
    }
}

fn roots(list: &[(Slot, fem_dsl::point::NodeId)]) -> Vec<fem_dsl::point::NodeId> {
    list.iter().map(|(_, node)| *node).collect()
}

#[test]
fn terminals_have_shapes() {
    for (_, form) in forms() {
        for i in 0..form.fields.len() {
            assert!(form.shape_of(Terminal::FieldGradient(i, None)).is_some());
        }
        assert_eq!(form.shape_of(Terminal::Field(form.fields.len(), None)), None);
    }
}

/// Simplification does not change the set on which a formula is finite.
#[test]
fn formulas_stay_finite_where_they_were() {
    let cases: [(&str, fn(f64) -> f64); 10] = [
        ("u / u", |u| u / u),
        ("u^-1 * u", |u| 1.0 / u * u),
        ("sqrt(u)^2", |u| u.sqrt() * u.sqrt()),
        ("sqrt(u) * sqrt(u) + 1", |u| u.sqrt() * u.sqrt() + 1.0),
        ("1 / (1 / u)", |u| 1.0 / (1.0 / u)),
        ("exp(log(u))", |u| u.ln().exp()),
        ("u * u / u", |u| u * u / u),
        ("(u + 1) / (u + 1) + 2 / u", |u| (u + 1.0) / (u + 1.0) + 2.0 / u),
        ("u^3 / u^2 - u / 3", |u| u * u * u / (u * u) - u / 3.0),
        ("inv([[u, 0], [0, 1]])[1, 1]", |u| u / u),
    ];
    for (text, expected) in cases {
        let form =
            &super::common::check(&format!("form f {{ field u: scalar; f0[u] = {text}; }}"), 2)[0];
        let point = point(&simplify(&differentiate(form)));
        let integral = &point.integrals[0];
        for u in [0.0, -1.0, 0.5, 3.0, 1e100, -1e100] {
            let values = eval(&integral.graph, |input| match input {
                Input::State(_) => u,
                _ => 0.0,
            });
            let (found, expected) = (values[integral.residual[0].1], expected(u));
            assert_eq!(found.is_finite(), expected.is_finite(), "{text} at {u}: {found}");
            if expected.is_finite() {
                close(found, expected, text);
            }
        }
    }
}

/// Entries that cancel only after factoring are removed: the verifier, which runs in `point`, accepts no constant zero.
#[test]
fn entries_that_cancel_are_dropped() {
    let text = "form rank_one {
        field u: scalar;
        aux c: scalar on cells;
        f1[u] = grad(u) + det(outer(grad(u), c * [grad(u)[1], u, u])) / 2 * grad(u);
    }";
    let form = super::common::check(text, 3).remove(0);
    let form = point(&simplify(&differentiate(&form)));
    let [integral] = form.integrals.as_slice() else { panic!("one integral") };
    let values = integral.jacobian.iter().any(|entry| entry.trial.part == Part::Value);
    assert!(!values, "no coefficient of δu itself is left: {form}");
}

//! A form of several fields → the definite form of one field of H(curl) or H(div) that a preconditioner takes for its block.
//!
//! ```text
//! S = |A| + Σ_j |A_j|        A_ij = ∂r_i/∂u_j of the field's own block,  A_j of its block with another field of its space
//! |m| = diag |m_ii|          of a diagonal coefficient
//!       sign(tr m) (m + mᵀ)/2    of another one, which is definite where m is
//! ```
//!
//! Coefficients of values and of derivatives are taken separately; those of a value with a derivative are left out. For the
//! parts of a complex field, [A −B; B A], S is |A| + |B|. With A and B positive semi-definite, S⁻¹ [A −B; B A] has singular
//! values between 1/√2 and 1. (O. Axelsson and A. Kucherov, "Real valued iterative methods for solving complex symmetric
//! linear systems", Numer. Linear Algebra Appl. 7 (2000).)

use super::block::{moved, of_rows};
use super::scalars::Scalars;
use super::verify::expect_point;
use super::{Coefficient, Input, Integral, NodeId, Part, PointForm, Slot, Unary};
use std::collections::BTreeMap;

/// Entries of a block, by test and trial slot.
type BlockEntries = BTreeMap<(Slot, Slot), NodeId>;

/// Returns the form S of a field, under its name. `None` if the field is of neither space, has no term with itself or its
/// partners over cells, has terms between cells, or coefficients that depend on the state.
pub fn magnitude(form: &PointForm, field: usize) -> Option<PointForm> {
    if !form.fields[field].space.is_piola() {
        return None;
    }
    let blocks: Vec<usize> =
        (0..form.fields.len()).filter(|&other| is_partner(form, field, other)).collect();
    let mut made = PointForm { integrals: Vec::new(), ..form.clone() };
    made.name = format!("{}_{}_magnitude", form.name, form.fields[field].name);
    made.fields = vec![form.fields[field].clone()];
    for from in &form.integrals {
        let is_own =
            |entry: &&Coefficient| entry.test.field == field && blocks.contains(&entry.trial.field);
        let entries: Vec<Coefficient> = from.jacobian.iter().filter(is_own).copied().collect();
        if entries.is_empty() {
            continue;
        }
        let is_foreign = |input| match input {
            Input::State(_) => true,
            Input::PenaltyFactor(of) => !blocks.contains(&of),
            _ => false,
        };
        let depends = from.depends_on(is_foreign);
        if from.region.is_interior() || entries.iter().any(|entry| depends[entry.value]) {
            return None;
        }
        made.integrals.extend(of_integral(from, &entries));
    }
    let has_cells = made.integrals.iter().any(|integral| integral.region.is_of_cells());
    expect_point(&made);
    has_cells.then_some(made)
}

/// Returns whether another field of the same space is coupled with the field in both directions, or is the field.
fn is_partner(form: &PointForm, field: usize, other: usize) -> bool {
    let couples = |test: usize, trial: usize| {
        let mut entries = form.integrals.iter().flat_map(|integral| &integral.jacobian);
        entries.any(|entry| entry.test.field == test && entry.trial.field == trial)
    };
    form.fields[other].space == form.fields[field].space
        && (other == field || couples(field, other) && couples(other, field))
}

fn of_integral(from: &Integral, entries: &[Coefficient]) -> Option<Integral> {
    let mut s = Scalars::default();
    let roots: Vec<NodeId> = entries.iter().map(|entry| entry.value).collect();
    let nodes = moved(&mut s, &from.graph, &roots, |s, input| match input {
        Input::PenaltyFactor(_) => s.input(Input::PenaltyFactor(0)),
        other => s.input(other),
    });
    // By the other field, and by values or derivatives.
    let mut blocks: BTreeMap<(usize, bool), BlockEntries> = BTreeMap::new();
    let of_field = |slot: Slot| Slot { field: 0, ..slot };
    for (entry, node) in entries.iter().zip(nodes) {
        let [test, trial] = [entry.test, entry.trial].map(|slot| slot.part == Part::Value);
        if test == trial {
            let block = blocks.entry((entry.trial.field, test)).or_default();
            block.insert((of_field(entry.test), of_field(entry.trial)), node);
        }
    }
    let mut jacobian = BlockEntries::new();
    for block in blocks.values() {
        for (key, node) in absolute(&mut s, block) {
            let sum = match jacobian.get(&key) {
                Some(&before) => s.add(before, node),
                None => node,
            };
            jacobian.insert(key, sum);
        }
    }
    jacobian.retain(|_, node| !s.is_zero(*node));
    if jacobian.is_empty() {
        return None;
    }
    let mut rows = |input: fn(Slot) -> Input| {
        let mut rows: BTreeMap<Slot, NodeId> = BTreeMap::new();
        for (&(test, trial), &coefficient) in &jacobian {
            let value = s.input(input(trial));
            let term = s.mul(coefficient, value);
            let sum = match rows.get(&test) {
                Some(&before) => s.add(before, term),
                None => term,
            };
            rows.insert(test, sum);
        }
        rows
    };
    let lists = [rows(Input::State), rows(Input::Direction)];
    Some(of_rows(from, &s, lists, jacobian))
}

/// Returns |m|, symmetric to the node.
fn absolute(s: &mut Scalars, m: &BlockEntries) -> BlockEntries {
    if m.keys().all(|(test, trial)| test == trial) {
        return m.iter().map(|(&key, &node)| (key, s.unary(Unary::Abs, node))).collect();
    }
    let zero = s.constant(0.0);
    let diagonal = m.iter().filter(|((test, trial), _)| test == trial).map(|(_, node)| *node);
    let trace = diagonal.fold(zero, |sum, node| s.add(sum, node));
    let sign = s.unary(Unary::Sign, trace);
    let half = s.constant(0.5);
    let mut made = BlockEntries::new();
    for &(a, b) in m.keys() {
        let (low, high) = (a.min(b), a.max(b));
        let [one, other] = [(low, high), (high, low)].map(|key| m.get(&key).copied());
        let sum = s.add(one.unwrap_or(zero), other.unwrap_or(zero));
        let mean = s.mul(half, sum);
        let node = s.mul(sign, mean);
        made.insert((low, high), node);
        made.insert((high, low), node);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::magnitude;
    use crate::point::{Input, Part, PointForm, eval};
    use crate::program::compile;
    use crate::source::Source;

    fn form(text: &str, dim: usize) -> PointForm {
        let (program, found) = compile(&Source::new("test", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        program.point_form("f", dim).expect("a form")
    }

    /// Returns the entries of an integral, with the coordinates (2, −3) and the normal (0.6, 0.8).
    fn entries(form: &PointForm, integral: usize) -> Vec<((usize, Part), (usize, Part), f64)> {
        let integral = &form.integrals[integral];
        assert!(integral.symmetric && integral.linear);
        let values = eval(&integral.graph, |input| match input {
            Input::Coordinate(axis) => [2.0, -3.0][axis],
            Input::Normal(axis) => [0.6, 0.8][axis],
            _ => 1.0,
        });
        let entry = |entry: &crate::point::Coefficient| {
            let [test, trial] = [entry.test, entry.trial].map(|slot| (slot.component, slot.part));
            (test, trial, values[entry.value])
        };
        integral.jacobian.iter().map(entry).collect()
    }

    #[test]
    fn both_parts_of_a_complex_field_have_one_form() {
        let whole = form(
            "form f { field E: complex vector in Hcurl(k); test v for E;
             residual = (2 + x[1] * i) * inner(curl(E), curl(v)) + (-5 * x[0] + i * x[1]) * inner(E, v);
             on boundary \"x0\" { residual = -7 * i * inner(tangential(E), v); } }",
            2,
        );
        let [first, second] = [0, 1].map(|field| magnitude(&whole, field).expect("a form"));
        assert_eq!(first.integrals, second.integrals);
        let (x, y) = ((0, Part::Value), (1, Part::Value));
        let curl = (0, Part::Exterior(0));
        assert_eq!(entries(&first, 0), [(x, x, 13.0), (curl, curl, 5.0), (y, y, 13.0)]);
        let wall = entries(&first, 1);
        for ((test, trial, value), (a, b, expected)) in
            wall.iter().zip([(x, x, 0.64), (x, y, -0.48), (y, x, -0.48), (y, y, 0.36)])
        {
            assert_eq!((*test, *trial), (a, b));
            assert!((value - 7.0 * expected).abs() < 1e-14, "{value}");
        }
    }

    #[test]
    fn tensors_keep_their_axes() {
        let whole = form(
            "form f { field E: complex vector in Hcurl(k); test v for E;
             residual = inner(curl(E), curl(v)) + i * x[1] * inner([2 * E[0] + E[1], E[0] + 3 * E[1]], v); }",
            2,
        );
        let made = magnitude(&whole, 1).expect("a form");
        let values: Vec<f64> = entries(&made, 0).into_iter().map(|(.., value)| value).collect();
        assert_eq!(values, [6.0, 3.0, 1.0, 3.0, 9.0]);
    }

    #[test]
    fn other_forms_have_none() {
        let refused = |text: &str| assert_eq!(magnitude(&form(text, 2), 0), None, "{text}");
        refused("form f { field u: vector; field v: vector; f1[u] = grad(v); f1[v] = grad(u); }");
        refused(
            "form f { field E: vector in Hcurl(k); field T: scalar; f1[E] = (1 + T^2) * curl(E); f0[E] = E;
             f1[T] = grad(T); }",
        );
        refused(
            "form f { field u: vector in Hdiv(k); field p: scalar in L2(k - 1); f1[u] = p; f0[p] = div(u); }",
        );
    }
}

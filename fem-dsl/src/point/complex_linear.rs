//! A form → its fields in pairs of real and imaginary parts, if its derivative is linear in complex numbers.
//!
//! ```text
//! ⎡A −B⎤
//! ⎣B  A⎦      for every two pairs of fields
//! ```

use super::block::moved;
use super::polynomial::Expansion;
use super::scalars::Scalars;
use super::{Integral, NodeId, PointForm, Slot};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the pairs of fields, neighbours in the order of declaration; `None` for a form that is not complex-linear, or
/// has fields that are in no pair.
pub fn complex_pairs(form: &PointForm) -> Option<Vec<[usize; 2]>> {
    let n = form.fields.len();
    let are_alike = |pair: usize| {
        let [re, im] = [&form.fields[pair], &form.fields[pair + 1]];
        re.space == im.space && re.shape == im.shape
    };
    if n == 0 || n % 2 == 1 || !(0..n).step_by(2).all(are_alike) {
        return None;
    }
    let pairs = (0..n).step_by(2).map(|re| [re, re + 1]).collect();
    form.integrals.iter().all(is_linear).then_some(pairs)
}

/// Returns whether an integral's derivative has the pattern of complex numbers.
fn is_linear(integral: &Integral) -> bool {
    let mut scalars = Scalars::default();
    let roots: Vec<NodeId> = integral.jacobian.iter().map(|entry| entry.value).collect();
    let nodes = moved(&mut scalars, &integral.graph, &roots, Scalars::input);
    let keys = integral.jacobian.iter().map(|entry| (entry.test, entry.trial));
    let entries: BTreeMap<(Slot, Slot), NodeId> = keys.zip(nodes).collect();
    let (zero, part) = (scalars.constant(0.0), |slot: Slot, odd: usize| Slot {
        field: slot.field - slot.field % 2 + odd,
        ..slot
    });
    let real: BTreeSet<(Slot, Slot)> =
        entries.keys().map(|&(test, trial)| (part(test, 0), part(trial, 0))).collect();
    let mut equal = Vec::new();
    for (test, trial) in real {
        let entry = |a, b| entries.get(&(part(test, a), part(trial, b))).copied().unwrap_or(zero);
        equal.push([entry(0, 0), entry(1, 1)]);
        equal.push([entry(1, 0), scalars.neg(entry(0, 1))]);
    }
    let mut expansion = Expansion::new(&scalars);
    equal.into_iter().all(|[a, b]| expansion.equal(a, b))
}

#[cfg(test)]
mod tests {
    use super::complex_pairs;
    use crate::program::compile;
    use crate::source::Source;

    fn pairs(text: &str) -> Option<Vec<[usize; 2]>> {
        let (program, found) = compile(&Source::new("test", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        complex_pairs(&program.point_form("f", 2).expect("a form"))
    }

    #[test]
    fn complex_forms_have_pairs() {
        let text = "form f { field E: complex vector in Hcurl(k); field u: complex scalar; param w = 3;
            aux eps: complex scalar on cells; test v for E; test q for u;
            residual = (1 + 2 * i) * inner(curl(E), curl(v)) - w^2 * eps * inner(E, v) + i * inner(grad(u), v)
                + inner(eps * grad(u), grad(q)) + eps^2 * u * conj(q);
            on boundary \"x0\" { residual = -i * w * inner(tangential(E), v); } }";
        assert_eq!(pairs(text), Some(vec![[0, 1], [2, 3]]));
    }

    #[test]
    fn other_forms_have_none() {
        for text in [
            "form f { field u: scalar; f1[u] = grad(u); }",
            "form f { field u: scalar; field v: scalar; f1[u] = grad(u); f1[v] = 2 * grad(v); }",
            "form f { field u: scalar; field v: scalar; f1[u] = grad(u); f1[v] = grad(v); f0[u] = v; f0[v] = u; }",
            "form f { field u: complex scalar; field v: scalar; f1[u] = grad(u); f1[v] = grad(v); }",
            "form f { field u: complex scalar; f1[u] = grad(u); f0[u] = re(u) * u; }",
        ] {
            assert_eq!(pairs(text), None, "{text}");
        }
    }
}

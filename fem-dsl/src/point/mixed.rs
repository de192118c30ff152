//! The mixed form of diffusion: a flux in H(div) whose divergence a pressure in L2 tests.
//!
//! ```text
//! J = [A Bᵀ; B 0]      A = ∫ v · a u,   B = c ∫ q div u
//! ```
//!
//! (D. Boffi, F. Brezzi, M. Fortin, "Mixed Finite Element Methods and Applications" (2013), chapter 7.)

use super::{Node, Part, PointForm, Space};

/// The fields of a mixed form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixedForm {
    /// The flux in H(div).
    pub flux: usize,
    /// The pressure in L2.
    pub pressure: usize,
    /// The constant c.
    pub factor: f64,
}

/// Returns the fields of a symmetric form of two fields that is one.
pub fn mixed(form: &PointForm) -> Option<MixedForm> {
    let [first, second] = &form.fields[..] else { return None };
    let (flux, pressure) = match (first.space, second.space) {
        (Space::Hdiv(_), Space::L2(_)) => (0, 1),
        (Space::L2(_), Space::Hdiv(_)) => (1, 0),
        _ => return None,
    };
    let is_symmetric = form.integrals.iter().all(|integral| integral.symmetric);
    if form.fields[pressure].shape.components() != 1 || !is_symmetric {
        return None;
    }
    let mut factor = None;
    for integral in &form.integrals {
        let nodes = integral.graph.nodes();
        for entry in &integral.jacobian {
            let part = |field: usize| {
                [entry.test, entry.trial].into_iter().find(|slot| slot.field == field)
            };
            match (part(flux), part(pressure)) {
                (Some(u), None) if u.part == Part::Value && entry.test.part == entry.trial.part => {
                }
                (Some(u), Some(p)) if u.part == Part::Exterior(0) && p.part == Part::Value => {
                    let Node::Constant(number) = nodes[entry.value] else { return None };
                    let known = *factor.get_or_insert(number.get());
                    if known != number.get() || !integral.region.is_of_cells() {
                        return None;
                    }
                }
                _ => return None,
            }
        }
    }
    factor.map(|factor| MixedForm { flux, pressure, factor })
}

#[cfg(test)]
mod tests {
    use super::{MixedForm, mixed};
    use crate::program::compile;
    use crate::source::Source;

    fn found(items: &str) -> Option<MixedForm> {
        let fields = "field p: scalar in L2(k - 1); field u: vector in Hdiv(k);";
        let text = format!("form f {{ {fields} param f = 1; {items} }}");
        let (program, found) = compile(&Source::new("test", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        mixed(&program.point_form("f", 2).expect("a form"))
    }

    #[test]
    fn forms_of_darcy_are_mixed() {
        let darcy = "f0[u] = (1 + x[0]) * u; f1[u] = -2 * p; f0[p] = f - 2 * div(u);";
        assert_eq!(found(darcy), Some(MixedForm { flux: 1, pressure: 0, factor: -2.0 }));
        let robin = format!("{darcy} on boundary \"b\" {{ f0[u] = dot(u, n) * n; }}");
        assert_eq!(found(&robin), found(darcy));
        for other in [
            "f0[u] = u; f1[u] = -p; f0[p] = f - div(u) + p;",
            "f0[u] = u; f1[u] = div(u) - p; f0[p] = f - div(u);",
            "f0[u] = u; f1[u] = -p; f0[p] = f - (1 + x[0]) * div(u);",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}

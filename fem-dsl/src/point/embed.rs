//! A form with a subset of another's fields → the same form with all fields, data and parameters of the other, in its
//! order. Kernels of both then read the same state, data and parameters.

use super::block::{integral, moved};
use super::optimise::finished;
use super::scalars::Scalars;
use super::verify::expect_point;
use super::{Coefficient, Input, Integral, NodeId, PointForm, Slot};

/// Returns the position of each name of a list in another.
fn places<'a>(
    own: impl Iterator<Item = &'a String>,
    other: impl Iterator<Item = &'a String> + Clone,
) -> Option<Vec<usize>> {
    own.map(|name| other.clone().position(|known| known == name)).collect()
}

/// Returns `form` with the declarations of `other`; `None` if `other` lacks a field, data or a parameter of the same
/// name.
pub fn embed(form: &PointForm, other: &PointForm) -> Option<PointForm> {
    let fields = places(
        form.fields.iter().map(|field| &field.name),
        other.fields.iter().map(|field| &field.name),
    )?;
    let aux = places(form.aux.iter().map(|aux| &aux.name), other.aux.iter().map(|aux| &aux.name))?;
    let params = places(
        form.params.iter().map(|param| &param.name),
        other.params.iter().map(|param| &param.name),
    )?;
    let slot = |slot: Slot| Slot { field: fields[slot.field], ..slot };
    let input = |input: Input| match input {
        Input::State(of) => Input::State(slot(of)),
        Input::Direction(of) => Input::Direction(slot(of)),
        Input::Aux(of) => Input::Aux(Slot { field: aux[of.field], ..of }),
        Input::Param(param, component) => Input::Param(params[param], component),
        Input::PenaltyFactor(field) => Input::PenaltyFactor(fields[field]),
        other => other,
    };
    let integrals = form.integrals.iter().map(|from| of_integral(from, slot, input)).collect();
    let made = PointForm {
        fields: other.fields.clone(),
        aux: other.aux.clone(),
        params: other.params.clone(),
        integrals,
        ..form.clone()
    };
    expect_point(&made);
    Some(made)
}

fn of_integral(
    from: &Integral,
    slot: impl Fn(Slot) -> Slot,
    input: impl Fn(Input) -> Input,
) -> Integral {
    let lists = from.residual.iter().chain(&from.action).map(|(_, node)| *node);
    let roots: Vec<NodeId> = lists.chain(from.jacobian.iter().map(|entry| entry.value)).collect();
    let mut scalars = Scalars::default();
    let copies =
        moved(&mut scalars, &from.graph, &roots, |scalars, which| scalars.input(input(which)));
    let (graph, nodes) = finished(&scalars, &copies);
    let (residual_nodes, rest) = nodes.split_at(from.residual.len());
    let (action_nodes, values) = rest.split_at(from.action.len());
    let list = |list: &[(Slot, NodeId)], nodes: &[NodeId]| {
        let mut list: Vec<_> =
            list.iter().zip(nodes).map(|((of, _), &node)| (slot(*of), node)).collect();
        list.sort_by_key(|(of, _)| *of);
        list
    };
    let (residual, action) =
        (list(&from.residual, residual_nodes), list(&from.action, action_nodes));
    let mut jacobian: Vec<Coefficient> = from
        .jacobian
        .iter()
        .zip(values)
        .map(|(entry, &value)| Coefficient {
            test: slot(entry.test),
            trial: slot(entry.trial),
            value,
        })
        .collect();
    jacobian.sort_by_key(|entry| (entry.test, entry.trial));
    let made = integral(from, graph, residual, action, jacobian);
    Integral { symmetric: from.symmetric, linear: from.linear, ..made }
}

#[cfg(test)]
mod tests {
    use super::embed;
    use crate::point::eval;
    use crate::program::compile;
    use crate::source::Source;

    #[test]
    fn names_lead_to_the_others_places() {
        let text = "
            form stiffness {
                field u: vector; field p: scalar; param a = 2; param rho = 3; aux c: scalar; aux d: vector;
                f0[u] = a * u + d; f0[p] = p + rho * c;
            }
            form inertia {
                field p: scalar; field u: vector; aux d: vector; param rho = 3;
                f0[u] = rho * u + d; f0[p] = p * rho;
                on boundary \"y0\" { f0[u] = penalty(p) * u; f0[p] = penalty(u) * p; }
            }";
        let (program, found) = compile(&Source::new("test", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        let [stiffness, inertia] =
            ["stiffness", "inertia"].map(|name| program.point_form(name, 2).expect("a form"));
        let made = embed(&inertia, &stiffness).expect("the same names");
        assert_eq!((&made.fields, &made.params), (&stiffness.fields, &stiffness.params));
        assert!(embed(&stiffness, &inertia).is_none());
        // Numbers that distinguish inputs by their names.
        let number = |form: &crate::point::PointForm, input: crate::point::Input| {
            use crate::point::Input;
            let of = |name: &str, component: usize| {
                name.bytes().map(f64::from).sum::<f64>() + 0.1 * component as f64
            };
            match input {
                Input::State(slot) => of(&form.fields[slot.field].name, slot.component),
                Input::Aux(slot) => of(&form.aux[slot.field].name, slot.component),
                Input::Param(param, component) => of(&form.params[param].name, component),
                Input::PenaltyFactor(field) => of(&form.fields[field].name, 2),
                _ => 0.5,
            }
        };
        let numbers = [0, 1].map(|at| {
            [&inertia, &made].map(|form| {
                let integral = &form.integrals[at];
                let values = eval(&integral.graph, |input| number(form, input));
                let rows = integral.residual.iter().map(|(slot, node)| {
                    ((form.fields[slot.field].name.clone(), slot.component), values[*node])
                });
                let mut rows: Vec<_> = rows.collect();
                rows.sort_by(|a, b| a.0.cmp(&b.0));
                rows
            })
        });
        for [own, other] in numbers {
            assert_eq!(own, other);
            assert_eq!(own.len(), 3);
        }
    }
}

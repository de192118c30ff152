//! A form of several fields → forms of parts of its derivative, for preconditioners.
//!
//! ```text
//! block        the derivative of one field's equation by that field:   G_uu
//! complement   a mass that stands for Schur's complement of a field that has no term with itself:
//!
//!              f0[p] = w p,     w = Σ_u |(1/d) Σ_ij B_ij B'_ij / a_u|
//! ```
//!
//! with B_ij = `∂f1[u]_ij/∂p`, B'_ij = `∂f0[p]/∂(∂_j u_i)`, or one of the two if the other is absent, and a_u the mean
//! of the coefficients `∂f1[u]_ij/∂(∂_j u_i)`: the size of the symbol of B' A⁻¹ B over all directions, up to a factor
//! that does not depend on the mesh. For Stokes' equations it is p/ν (Elman, Silvester and Wathen 2014, chapter 4).

use super::lower::symmetric;
use super::optimise::finished;
use super::scalars::Scalars;
use super::traverse::reachable;
use super::verify::expect_point;
use super::{
    Coefficient, Graph, Input, Integral, Node, NodeId, Part, PointForm, Side, Slot, Unary,
    is_affine,
};
use crate::arena::IdMap;
use std::collections::BTreeMap;

/// Returns the form of one field, with the others 0: its derivative is the corresponding diagonal block. `None` if the
/// field has no term with itself over cells, or if the block depends on the state or the degree of other fields.
pub fn block(form: &PointForm, field: usize) -> Option<PointForm> {
    let mut made = PointForm { integrals: Vec::new(), ..form.clone() };
    made.name = format!("{}_{}", form.name, form.fields[field].name);
    made.fields = vec![form.fields[field].clone()];
    for integral in &form.integrals {
        let own = |entry: &&Coefficient| entry.test.field == field && entry.trial.field == field;
        let entries: Vec<Coefficient> = integral.jacobian.iter().filter(own).copied().collect();
        if entries.is_empty() {
            continue;
        }
        let others = |input| match input {
            Input::State(slot) => slot.field != field,
            Input::PenaltyFactor(of) => of != field,
            _ => false,
        };
        let depends = integral.depends_on(others);
        if entries.iter().any(|entry| depends[entry.value]) {
            return None;
        }
        made.integrals.push(of_integral(integral, field, entries));
    }
    let cells = made.integrals.iter().any(|integral| integral.region.is_of_cells());
    expect_point(&made);
    cells.then_some(made)
}

/// Returns the block of an integral.
fn of_integral(from: &Integral, field: usize, entries: Vec<Coefficient>) -> Integral {
    let tested = |list: &[(Slot, NodeId)]| -> Vec<(Slot, NodeId)> {
        let own = list.iter().filter(|(slot, _)| slot.field == field);
        own.map(|(slot, node)| (first(*slot), *node)).collect()
    };
    let own = |entry: Coefficient| Coefficient {
        test: first(entry.test),
        trial: first(entry.trial),
        ..entry
    };
    let entries = entries.into_iter().map(own).collect();
    let lists = (tested(&from.residual), tested(&from.action), entries);
    mapped(from, lists, |scalars, input| match input {
        Input::State(slot) | Input::Direction(slot) if slot.field != field => scalars.constant(0.0),
        Input::State(slot) => scalars.input(Input::State(first(slot))),
        Input::Direction(slot) => scalars.input(Input::Direction(first(slot))),
        // The entries have none of another field; the residual is that of the others at 0.
        Input::PenaltyFactor(of) if of != field => scalars.constant(0.0),
        Input::PenaltyFactor(_) => scalars.input(Input::PenaltyFactor(0)),
        other => scalars.input(other),
    })
}

/// Rows of the residual and of the action, and entries of the Jacobian.
type IntegralRows = (Vec<(Slot, NodeId)>, Vec<(Slot, NodeId)>, Vec<Coefficient>);

/// Copies some rows and entries of an integral with other inputs, without those that become 0.
pub(super) fn mapped(
    from: &Integral,
    (residual, action, entries): IntegralRows,
    input: impl Fn(&mut Scalars, Input) -> NodeId,
) -> Integral {
    let mut scalars = Scalars::default();
    let of_lists = residual.iter().chain(&action).map(|(_, node)| *node);
    let roots: Vec<NodeId> = of_lists.chain(entries.iter().map(|entry| entry.value)).collect();
    let moved = moved(&mut scalars, &from.graph, &roots, input);
    let (graph, nodes) = finished(&scalars, &moved);
    let (residual_nodes, rest) = nodes.split_at(residual.len());
    let (action_nodes, values) = rest.split_at(action.len());
    let zero = |node: NodeId| matches!(graph.nodes()[node], Node::Constant(c) if c.get() == 0.0);
    let kept = |list: &[(Slot, NodeId)], nodes: &[NodeId]| -> Vec<(Slot, NodeId)> {
        let all = list.iter().zip(nodes).map(|((slot, _), &node)| (*slot, node));
        all.filter(|(_, node)| !zero(*node)).collect()
    };
    let (residual, action) = (kept(&residual, residual_nodes), kept(&action, action_nodes));
    let jacobian = entries.into_iter().zip(values);
    let jacobian = jacobian.map(|(entry, &value)| Coefficient { value, ..entry });
    let jacobian: Vec<Coefficient> = jacobian.filter(|entry| !zero(entry.value)).collect();
    integral(from, graph, residual, action, jacobian)
}

fn first(slot: Slot) -> Slot {
    Slot { field: 0, ..slot }
}

/// Creates an integral over the region of another from rows and entries whose graph is under construction.
pub(super) fn of_rows(
    from: &Integral,
    scalars: &Scalars,
    [residual, action]: [BTreeMap<Slot, NodeId>; 2],
    jacobian: BTreeMap<(Slot, Slot), NodeId>,
) -> Integral {
    let roots: Vec<NodeId> =
        residual.values().chain(action.values()).chain(jacobian.values()).copied().collect();
    let (graph, nodes) = finished(scalars, &roots);
    let mut nodes = nodes.into_iter();
    let mut list = |slots: BTreeMap<Slot, NodeId>| -> Vec<(Slot, NodeId)> {
        slots.into_keys().zip(nodes.by_ref()).collect()
    };
    let [residual, action] = [residual, action].map(&mut list);
    let entries = jacobian.into_keys().zip(nodes);
    let entries = entries.map(|((test, trial), value)| Coefficient { test, trial, value });
    integral(from, graph, residual, action, entries.collect())
}

/// Creates an integral over the region of another.
pub(super) fn integral(
    from: &Integral,
    graph: Graph,
    residual: Vec<(Slot, NodeId)>,
    action: Vec<(Slot, NodeId)>,
    jacobian: Vec<Coefficient>,
) -> Integral {
    Integral {
        region: from.region.clone(),
        symmetric: symmetric(&jacobian),
        linear: is_affine(&graph, &residual, &jacobian),
        energy: None,
        names: BTreeMap::new(),
        graph,
        residual,
        action,
        jacobian,
    }
}

/// Returns the mass form that approximates the Schur complement of a field without a term with itself, with the fields
/// of the form. `None` if the field is not scalar, if no other field is coupled to it by gradients, or if these have no
/// coefficients.
pub fn complement(form: &PointForm, field: usize) -> Option<PointForm> {
    if form.fields[field].shape.components() != 1 {
        return None;
    }
    let mut made = PointForm { integrals: Vec::new(), ..form.clone() };
    made.name = format!("{}_{}", form.name, form.fields[field].name);
    for from in form.integrals.iter().filter(|integral| integral.region.is_of_cells()) {
        made.integrals.extend(of_cells(form, from, field));
    }
    expect_point(&made);
    (!made.integrals.is_empty()).then_some(made)
}

fn of_cells(form: &PointForm, from: &Integral, field: usize) -> Option<Integral> {
    let value = Slot { field, side: Side::Inside, component: 0, part: Part::Value };
    let entries: BTreeMap<(Slot, Slot), NodeId> =
        from.jacobian.iter().map(|entry| ((entry.test, entry.trial), entry.value)).collect();
    let mut scalars = Scalars::default();
    let values: Vec<NodeId> = entries.values().copied().collect();
    let copies = moved(&mut scalars, &from.graph, &values, Scalars::input);
    let entries: BTreeMap<(Slot, Slot), NodeId> =
        entries.into_keys().zip(copies.iter().copied()).collect();
    let mut weight = scalars.constant(0.0);
    for (other, of) in form.fields.iter().enumerate().filter(|(other, _)| *other != field) {
        let slots = (0..of.shape.components()).flat_map(|component| {
            (0..form.dim).map(move |axis| Slot {
                field: other,
                side: Side::Inside,
                component,
                part: Part::Derivative(axis),
            })
        });
        let (mut joined, mut own, mut count) =
            (scalars.constant(0.0), scalars.constant(0.0), 0usize);
        for slot in slots {
            let pair = [(slot, value), (value, slot)].map(|key| entries.get(&key).copied());
            let (b, c) = match pair {
                [Some(b), Some(c)] => (b, c),
                [Some(b), None] | [None, Some(b)] => (b, b),
                [None, None] => continue,
            };
            let product = scalars.mul(b, c);
            joined = scalars.add(joined, product);
            if let Some(&a) = entries.get(&(slot, slot)) {
                own = scalars.add(own, a);
                count += 1;
            }
        }
        if count == 0 || scalars.is_zero(joined) || scalars.is_zero(own) {
            continue;
        }
        // Σ B B'/d over the mean of the coefficients.
        let factor = scalars.constant(count as f64 / form.dim as f64);
        let joined = scalars.mul(factor, joined);
        let share = scalars.div(joined, own);
        let share = scalars.unary(Unary::Abs, share);
        weight = scalars.add(weight, share);
    }
    if scalars.is_zero(weight) {
        return None;
    }
    let state = scalars.input(Input::State(value));
    let direction = scalars.input(Input::Direction(value));
    let roots = [scalars.mul(weight, state), scalars.mul(weight, direction), weight];
    let (graph, nodes) = finished(&scalars, &roots);
    let entry = Coefficient { test: value, trial: value, value: nodes[2] };
    Some(integral(from, graph, vec![(value, nodes[0])], vec![(value, nodes[1])], vec![entry]))
}

/// Copies the roots of another graph with other inputs, and returns their nodes.
pub(super) fn moved(
    scalars: &mut Scalars,
    from: &Graph,
    roots: &[NodeId],
    input: impl Fn(&mut Scalars, Input) -> NodeId,
) -> Vec<NodeId> {
    let mut moved: IdMap<NodeId, NodeId> = IdMap::new();
    for id in reachable(from, roots) {
        let new = match from.nodes()[id] {
            Node::Input(which) => input(scalars, which),
            node => scalars.rebuild(node, |old| moved[&old]),
        };
        moved.insert(id, new);
    }
    roots.iter().map(|root| moved[root]).collect()
}

#[cfg(test)]
mod tests {
    use super::{block, complement};
    use crate::point::{Input, PointForm, eval};
    use crate::program::compile;
    use crate::source::Source;

    fn form(text: &str) -> PointForm {
        let (program, found) = compile(&Source::new("test", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        program.point_form("f", 2).expect("a form")
    }

    const STOKES: &str =
        "form f { field u: vector in H1(k); field p: scalar in H1(k - 1); param nu = 2;
        f0[u] = -x; f1[u] = nu * (1 + x[0]^2) * grad(u) - p * I; f0[p] = -div(u); }";

    #[test]
    fn a_block_is_the_derivative_of_a_field_alone() {
        let whole = form(STOKES);
        let own = block(&whole, 0).expect("viscosity");
        assert_eq!((own.fields.len(), own.integrals.len()), (1, 1));
        let [integral] = &own.integrals[..] else { panic!("one integral") };
        assert!(integral.linear && integral.symmetric);
        assert_eq!(integral.jacobian.len(), 4);
        assert!(integral.jacobian.iter().all(|entry| entry.test == entry.trial));
        assert_eq!(block(&whole, 1), None);
        // If a coefficient depends on another field there is no block; if it depends on its own field, the block is
        // taken at its state.
        let coupled = "form f { field u: scalar; field c: scalar;
            f1[u] = (1 + c^2) * grad(u); f1[c] = (1 + c^2) * grad(c); f0[c] = u; }";
        let coupled = form(coupled);
        assert_eq!(block(&coupled, 0), None);
        assert!(!block(&coupled, 1).expect("a block").integrals[0].linear);
        let penalised = "form f { field u: scalar; field c: scalar; f1[u] = grad(u); f1[c] = grad(c);
            on boundary \"x0\" { f0[u] = penalty(c) * u; f0[c] = penalty(c) * c + penalty(u) * u; } }";
        let penalised = form(penalised);
        assert_eq!(block(&penalised, 0), None);
        assert_eq!(block(&penalised, 1).expect("a block").integrals[1].jacobian.len(), 1);
    }

    #[test]
    fn the_complement_of_a_pressure_is_its_mass_over_the_viscosity() {
        let made = complement(&form(STOKES), 1).expect("a mass");
        let integral = &made.integrals[0];
        assert_eq!(integral.jacobian.len(), 1);
        let values = eval(&integral.graph, |input| match input {
            Input::Param(..) => 2.0,
            Input::Coordinate(_) => 3.0,
            _ => 1.0,
        });
        let weight = values[integral.jacobian[0].value];
        assert!((weight - 1.0 / 20.0).abs() < 1e-15, "{weight}");
        assert_eq!(complement(&form(STOKES), 0), None);
        assert_eq!(
            complement(
                &form("form f { field u: scalar; field p: scalar; f0[u] = p; f0[p] = u; }"),
                1
            ),
            None
        );
    }
}

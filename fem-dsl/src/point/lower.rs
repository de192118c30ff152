//! The function `point`: [`Form`] → [`PointForm`].

use super::jacobian::{self, Linear};
use super::scalars::Scalars;
use super::{
    Coefficient, Graph, Input, Integral, Node, NodeId, Part, PointForm, Slot, optimise, scalarise,
};
use crate::form::{self, ExprId, Form, Row, Shape};
use crate::verify::{Phase, expect_form, expect_point};
use std::collections::BTreeMap;

/// Turns a differentiated form into scalars.
pub fn point(form: &Form) -> PointForm {
    expect_form(form, Phase::Differentiated);
    let point = PointForm {
        name: form.name.clone(),
        doc: form.doc.clone(),
        source: form.source.clone(),
        dim: form.dim,
        fields: form.fields.clone(),
        aux: form.aux.clone(),
        params: form.params.clone(),
        integrals: form.integrals.iter().map(|integral| of_integral(form, integral)).collect(),
    };
    expect_point(&point);
    point
}

fn of_integral(form: &Form, integral: &form::Integral) -> Integral {
    let rows = integral.rows.iter().chain(&integral.action);
    let roots: Vec<ExprId> =
        rows.flat_map(|row| row.f0.into_iter().chain(row.f1)).chain(integral.energy).collect();
    let mut scalars = Scalars::default();
    let nodes = scalarise(&mut scalars, form, &roots);
    let residual = slots(&scalars, form, &nodes, &integral.rows);
    let action = slots(&scalars, form, &nodes, &integral.action);
    let roots: Vec<NodeId> = action.iter().map(|(_, node)| *node).collect();
    let linear = jacobian::coefficients(&mut scalars, &roots);
    let jacobian: Vec<Coefficient> = action
        .iter()
        .zip(linear)
        .flat_map(|(&(test, _), linear): (_, Linear)| {
            linear.into_iter().map(move |(trial, value)| Coefficient { test, trial, value })
        })
        .collect();
    let energy = integral.energy.map(|energy| nodes[&energy][0]);

    let mut builder = Views { scalars: &scalars, graph: Graph::new(), names: BTreeMap::new() };
    let called = names(form, &nodes);
    let residual = builder.slots(&residual, &called);
    let action = builder.slots(&action, &called);
    let values: Vec<NodeId> = jacobian.iter().map(|coefficient| coefficient.value).collect();
    let values = builder.view(&values, &called);
    let jacobian: Vec<Coefficient> = jacobian
        .into_iter()
        .zip(values)
        .map(|(coefficient, value)| Coefficient { value, ..coefficient })
        .collect();
    let energy = energy.map(|energy| builder.view(&[energy], &called)[0]);
    let Views { graph, names, .. } = builder;

    let values: Vec<NodeId> = jacobian.iter().map(|coefficient| coefficient.value).collect();
    let linear = optimise::reachable(&graph, &values)
        .into_iter()
        .all(|id| !matches!(graph.nodes()[id], Node::Input(Input::State(_))));
    Integral {
        region: integral.region.clone(),
        symmetric: symmetric(&jacobian),
        graph,
        residual,
        action,
        jacobian,
        linear,
        energy,
        names,
    }
}

/// The entries of f0 and f1 by test slot, without zeros.
fn slots(
    scalars: &Scalars,
    form: &Form,
    nodes: &BTreeMap<ExprId, Vec<NodeId>>,
    rows: &[Row],
) -> Vec<(Slot, NodeId)> {
    let mut entries = Vec::new();
    for row in rows {
        let field = row.field;
        for (component, &node) in row.f0.iter().flat_map(|f0| nodes[f0].iter()).enumerate() {
            entries.push((Slot { field, component, part: Part::Value }, node));
        }
        for (flat, &node) in row.f1.iter().flat_map(|f1| nodes[f1].iter()).enumerate() {
            let (component, part) = (flat / form.dim, Part::Derivative(flat % form.dim));
            entries.push((Slot { field, component, part }, node));
        }
    }
    entries.retain(|(_, node)| !scalars.is_zero(*node));
    entries.sort_unstable();
    entries
}

/// What the user called the canonical nodes: `kappa`, `eps_0_1`.
fn names(form: &Form, nodes: &BTreeMap<ExprId, Vec<NodeId>>) -> BTreeMap<NodeId, String> {
    let mut names = BTreeMap::new();
    for (expr, name) in &form.names {
        let Some(components) = nodes.get(expr) else { continue };
        let shape = form.exprs.shape(*expr);
        for (flat, &node) in components.iter().enumerate() {
            names.entry(node).or_insert_with(|| component_name(name, shape, flat));
        }
    }
    names
}

fn component_name(name: &str, shape: Shape, mut flat: usize) -> String {
    let mut indices = String::new();
    for extent in shape.extents().into_iter().rev() {
        indices = format!("_{}{indices}", flat % extent);
        flat /= extent;
    }
    format!("{name}{indices}")
}

/// Collects the views of one integral in one graph.
struct Views<'a> {
    scalars: &'a Scalars,
    graph: Graph,
    names: BTreeMap<NodeId, String>,
}

impl Views<'_> {
    fn view(&mut self, roots: &[NodeId], called: &BTreeMap<NodeId, String>) -> Vec<NodeId> {
        let moved = optimise::finish(self.scalars, roots, &mut self.graph);
        for (from, &to) in &moved {
            let plain = matches!(self.graph.nodes()[to], Node::Constant(_) | Node::Input(_));
            if let (Some(name), false) = (called.get(from), plain) {
                self.names.entry(to).or_insert_with(|| name.clone());
            }
        }
        roots.iter().map(|root| moved[root]).collect()
    }

    fn slots(
        &mut self,
        entries: &[(Slot, NodeId)],
        called: &BTreeMap<NodeId, String>,
    ) -> Vec<(Slot, NodeId)> {
        let roots: Vec<NodeId> = entries.iter().map(|(_, node)| *node).collect();
        let nodes = self.view(&roots, called);
        entries.iter().zip(nodes).map(|(&(slot, _), node)| (slot, node)).collect()
    }
}

/// Whether G[a][b] and G[b][a] are the same nodes.
fn symmetric(jacobian: &[Coefficient]) -> bool {
    let entries: BTreeMap<(Slot, Slot), NodeId> =
        jacobian.iter().map(|c| ((c.test, c.trial), c.value)).collect();
    entries.iter().all(|(&(test, trial), value)| entries.get(&(trial, test)) == Some(value))
}

//! The function `point`: [`Form`] → [`PointForm`].

use super::canonical::canonical;
use super::count::operation_count;
use super::eval::eval;
use super::factor::{FactoredGraph, factor};
use super::polynomial::Expansion;
use super::prepare::{distribute, prepare};
use super::products::{self, Level};
use super::scalars::Scalars;
use super::verify::expect_point;
use super::{
    Coefficient, Graph, Input, Integral, Location, Node, NodeId, Part, PointForm, Slot, is_affine,
    jacobian, optimise, scalarise,
};
use crate::arena::IdMap;
use crate::form::{self, ExprId, Form, Row, Shape, expect_form};
use crate::verify::Phase;
use std::collections::{BTreeMap, BTreeSet};

/// Converts a differentiated form to scalars.
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
        rates: form.rates.clone(),
        integrals: form.integrals.iter().map(|integral| of_integral(form, integral)).collect(),
    };
    expect_point(&point);
    point
}

fn of_integral(form: &Form, integral: &form::Integral) -> Integral {
    let rows = integral.rows.iter().chain(&integral.action);
    let roots: Vec<ExprId> = rows.flat_map(|row| row.factors()).chain(integral.energy).collect();
    let mut scalars = Scalars::default();
    let nodes = scalarise(&mut scalars, form, &roots);
    let residual = slots(&mut scalars, form, &nodes, &integral.rows);
    let action = slots(&mut scalars, form, &nodes, &integral.action);
    let jacobian = jacobian(&mut scalars, &action, integral.energy.is_some());
    let energy = integral.energy.map(|energy| nodes[&energy][0]);

    let called = names(form, &nodes);
    let mut views = Views { form, scalars: &scalars, graph: Graph::new(), called, names: vec![] };
    let residual = views.slots(&residual);
    let action = views.slots(&action);
    let (jacobian, values) = views.coefficients(jacobian);
    let energy = energy.map(|energy| views.view(&[energy])[0]);
    let Views { graph, names, .. } = views;

    let of_slots = residual.iter().chain(&action).map(|(_, node)| *node);
    let roots: Vec<NodeId> = of_slots.chain(values.iter().copied()).chain(energy).collect();
    let (graph, moved) = optimise::compact(&graph, &roots);
    let to = |entries: Vec<(Slot, NodeId)>| {
        entries.into_iter().map(|(slot, node)| (slot, moved[&node])).collect()
    };
    let jacobian: Vec<Coefficient> = jacobian
        .into_iter()
        .zip(values)
        .map(|(coefficient, value)| Coefficient { value: moved[&value], ..coefficient })
        .collect();
    let residual: Vec<(Slot, NodeId)> = to(residual);
    Integral {
        region: integral.region.clone(),
        symmetric: symmetric(&jacobian),
        linear: is_affine(&graph, &residual, &jacobian),
        residual,
        action: to(action),
        jacobian,
        energy: energy.map(|energy| moved[&energy]),
        names: final_names(&graph, &moved, names),
        graph,
    }
}

/// Returns the coefficients of the action. Those of a pair of slots become the same node if they are equal polynomials,
/// and always for an energy, whose second derivative is symmetric.
fn jacobian(
    scalars: &mut Scalars,
    action: &[(Slot, NodeId)],
    has_energy: bool,
) -> Vec<Coefficient> {
    let roots: Vec<NodeId> = action.iter().map(|(_, node)| *node).collect();
    let rows = jacobian::coefficients(scalars, &roots);
    let mut entries: BTreeMap<(Slot, Slot), NodeId> = BTreeMap::new();
    for (&(test, _), row) in action.iter().zip(rows) {
        entries.extend(row.into_iter().map(|(trial, value)| ((test, trial), value)));
    }
    if has_energy {
        let known: BTreeSet<(Slot, Slot)> = entries.keys().copied().collect();
        entries.retain(|&(test, trial), _| known.contains(&(trial, test)));
    }
    let samples = [1, 2].map(|seed| eval(&scalars.graph, |input| sample(input, seed)));
    let differ = |a: NodeId, b: NodeId| {
        samples.iter().any(|values| {
            let scale = values[a].abs().max(values[b].abs());
            (values[a] - values[b]).abs() > f64::EPSILON.sqrt() * scale
        })
    };
    let mut expansion = Expansion::new(scalars);
    let pairs: Vec<((Slot, Slot), NodeId)> =
        entries.iter().filter(|((a, b), _)| a < b).map(|(&key, &value)| (key, value)).collect();
    for ((test, trial), value) in pairs {
        if let Some(other) = entries.get_mut(&(trial, test))
            && (has_energy || !differ(value, *other) && expansion.equal(value, *other))
        {
            *other = value;
        }
    }
    let coefficients = entries.into_iter();
    coefficients.map(|((test, trial), value)| Coefficient { test, trial, value }).collect()
}

/// Returns a number between 1/4 and 5/4 for an input: two polynomials that differ there are different.
pub(super) fn sample(input: Input, seed: u64) -> f64 {
    let (kind, slot) = match input {
        Input::State(slot) => (1, Some(slot)),
        Input::Direction(slot) => (2, Some(slot)),
        Input::Aux(slot) => (3, Some(slot)),
        Input::Param(i, component) => (4 + 1000 * i + 20 * component, None),
        Input::Coordinate(j) => (5 + 20 * j, None),
        Input::Normal(j) => (6 + 20 * j, None),
        Input::Time => (7, None),
        Input::Diameter(side) => (8 + 20 * side as usize, None),
        Input::Degree => (9, None),
        Input::Extent(side) => (10 + 20 * side as usize, None),
        Input::PenaltyFactor(field) => (11 + 20 * field, None),
        Input::Inverse(side, a, i) => (12 + 20 * (9 * side as usize + 3 * a + i), None),
        Input::Tangent(side, a, i) => (13 + 20 * (9 * side as usize + 3 * a + i), None),
        Input::Bend(side, a, b, i) => (15 + 20 * (27 * side as usize + 9 * a + 3 * b + i), None),
        Input::Density(side) => (14 + 20 * side as usize, None),
    };
    let place = slot.map_or(0, |slot| {
        let part = match slot.part {
            Part::Value => 0,
            Part::Derivative(j) => j + 1,
            Part::Second(i, j) => 300 + 3 * i + j,
            Part::Exterior(i) => 400 + i,
        };
        1000 * slot.field + 10 * slot.component + part + 500_000 * slot.side as usize
    });
    let hash = (kind as u64 + 31 * place as u64 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    0.25 + hash as f64 / (1_u64 << 24) as f64
}

/// Returns the entries of f0, f1 and f2 by test slot, without zeros. Equal second derivatives of a test function have
/// one slot.
fn slots(
    scalars: &mut Scalars,
    form: &Form,
    nodes: &BTreeMap<ExprId, Vec<NodeId>>,
    rows: &[Row],
) -> Vec<(Slot, NodeId)> {
    let mut entries: BTreeMap<Slot, NodeId> = BTreeMap::new();
    for row in rows {
        let Row { field, side, .. } = *row;
        for (order, factor) in [row.f0, row.f1, row.f2].iter().enumerate() {
            for (flat, &node) in factor.iter().flat_map(|factor| nodes[factor].iter()).enumerate() {
                let space = Some(form.fields[field].space);
                let (component, part) = Part::of_flat(space, flat, order, form.dim);
                let entry = entries.entry(Slot { field, side, component, part });
                entry.and_modify(|sum| *sum = scalars.add(*sum, node)).or_insert(node);
            }
        }
    }
    entries.retain(|_, node| !scalars.is_zero(*node));
    entries.into_iter().collect()
}

/// Returns the user-defined names of the canonical nodes: `kappa`, `eps_0_1`.
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

/// Returns the names of the final nodes; the first name of a node is used, and each name is used once.
fn final_names(
    graph: &Graph,
    moved: &IdMap<NodeId, NodeId>,
    names: Vec<(NodeId, String)>,
) -> BTreeMap<NodeId, String> {
    let mut given = BTreeSet::new();
    let mut result = BTreeMap::new();
    for (node, name) in names {
        let Some(&node) = moved.get(&node) else { continue };
        let plain = matches!(graph.nodes()[node], Node::Constant(_) | Node::Input(_));
        if !plain && !result.contains_key(&node) && given.insert(name.clone()) {
            result.insert(node, name);
        }
    }
    result
}

/// Returns the cheaper of two factored forms, one of the original formula and one of the expanded formula.
fn cheapest(
    scalars: &Scalars,
    roots: &[NodeId],
    level: impl Fn(Input) -> Level + Copy,
) -> FactoredGraph {
    let (prepared, first) = prepare(scalars, roots);
    let inner: Vec<NodeId> = roots.iter().map(|root| first[root]).collect();
    // Through both maps, from the original graph.
    let through = |factored: FactoredGraph, between: Option<&IdMap<NodeId, NodeId>>| {
        let steps = first.iter().filter_map(|(from, prepared)| {
            let to = between.map_or(Some(prepared), |between| between.get(prepared))?;
            Some((from, *factored.moved.get(to)?))
        });
        FactoredGraph { moved: steps.collect(), scalars: factored.scalars }
    };
    let plain = through(factor(&prepared, &inner), None);
    let Some((opened, second)) = distribute(&prepared, &inner) else { return plain };
    let inner: Vec<NodeId> = inner.iter().map(|root| second[root]).collect();
    let open = through(factor(&opened, &inner), Some(&second));
    let cost = |factored: &FactoredGraph| {
        let inner: Vec<NodeId> = roots.iter().map(|root| factored.moved[root]).collect();
        let mut graph = Graph::new();
        let moved = optimise::arrange(&factored.scalars, &inner, level, &mut graph);
        let inner: Vec<NodeId> = inner.iter().map(|root| moved[root]).collect();
        operation_count(&graph, &inner).weight()
    };
    if cost(&open) < cost(&plain) { open } else { plain }
}

/// Collector of the views of one integral in one graph.
struct Views<'a> {
    form: &'a Form,
    scalars: &'a Scalars,
    graph: Graph,
    called: BTreeMap<NodeId, String>,
    names: Vec<(NodeId, String)>,
}

impl Views<'_> {
    /// Adds a view, optimised separately.
    fn view(&mut self, roots: &[NodeId]) -> Vec<NodeId> {
        let per_cell = |aux: usize| self.form.aux[aux].location == Location::Cells;
        let level = |input| products::level(input, per_cell);
        let (ordered, place) = canonical(self.scalars, roots);
        let roots: Vec<NodeId> = roots.iter().map(|root| place[root]).collect();
        let FactoredGraph { scalars, moved: factored } = cheapest(&ordered, &roots, level);
        let inner: Vec<NodeId> = roots.iter().map(|root| factored[root]).collect();
        let moved = optimise::arrange(&scalars, &inner, level, &mut self.graph);
        for (from, name) in &self.called {
            let inner = place.get(from).and_then(|from| factored.get(from));
            if let Some(&to) = inner.and_then(|inner| moved.get(inner)) {
                self.names.push((to, name.clone()));
            }
        }
        inner.iter().map(|root| moved[root]).collect()
    }

    fn slots(&mut self, entries: &[(Slot, NodeId)]) -> Vec<(Slot, NodeId)> {
        let roots: Vec<NodeId> = entries.iter().map(|(_, node)| *node).collect();
        let nodes = self.view(&roots);
        let slots = entries.iter().zip(nodes).map(|(&(slot, _), node)| (slot, node));
        slots.filter(|(_, node)| !self.is_zero(*node)).collect()
    }

    /// Returns the coefficients that are not zero, and the nodes of their values.
    fn coefficients(&mut self, entries: Vec<Coefficient>) -> (Vec<Coefficient>, Vec<NodeId>) {
        let roots: Vec<NodeId> = entries.iter().map(|entry| entry.value).collect();
        let nodes = self.view(&roots);
        entries.into_iter().zip(nodes).filter(|(_, node)| !self.is_zero(*node)).unzip()
    }

    /// Returns whether factoring has found that terms cancel, as in the determinant of outer(a, b).
    fn is_zero(&self, node: NodeId) -> bool {
        matches!(self.graph.nodes()[node], Node::Constant(number) if number.get() == 0.0)
    }
}

/// Returns whether `G[a][b]` and `G[b][a]` are the same nodes.
pub(super) fn symmetric(jacobian: &[Coefficient]) -> bool {
    let entries: BTreeMap<(Slot, Slot), NodeId> =
        jacobian.iter().map(|c| ((c.test, c.trial), c.value)).collect();
    entries.iter().all(|(&(test, trial), value)| entries.get(&(trial, test)) == Some(value))
}

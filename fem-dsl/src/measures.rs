//! A form, and functionals of its solution → the form whose kernels integrate them.
//!
//! The form's own fields are followed by additional ones of `L2(0)`, whose components are tested with the integrands.
//! Their entries of the residual are then the integrals over each cell:
//!
//! ```text
//! errors    (s (u − u*))²,  (s ∇(u − u*))²          for each known solution u*
//! energy    W(s u), or f0(s u) · u + f1(s u) : ∇u    where the form has no density W
//! ```
//!
//! s is an additional parameter after the form's own: it scales squares that would underflow or overflow, and an energy
//! is an integral over it. Differences are computed first, without expanding products: squares of two numbers that
//! agree to twelve digits would cancel.

mod estimator;
mod norms;

pub use estimator::{EstimatorComponents, EstimatorForm, MassComponents, estimator_form};
pub(crate) use norms::norms;

use crate::arena::IdMap;
use crate::point::{
    Binary, Degree, Field, Graph, Input, Integral, Node, NodeId, Param, Part, PointForm, Region,
    Shape, Side, Slot, Space, reachable,
};
use crate::problem::Expression;

/// Returns the form of the errors against known solutions of some fields. It has an additional field for each of them,
/// with the squares of the difference and of its gradient, in Hcurl and Hdiv of its exterior derivative. It has no
/// auxiliary data.
pub fn errors(form: &PointForm, known: &[(usize, Expression)]) -> PointForm {
    let mut made = with_scale(form, "errors");
    made.aux.clear();
    // The cells of each field.
    let mut parts: Vec<(Region, Graph, Vec<(Slot, NodeId)>)> = Vec::new();
    for (field, exact) in known {
        let own = made.fields.len();
        let name = made.unused_name("measured");
        made.fields.push(further(name, 2));
        let region = form.fields[*field].region();
        let at = parts.iter().position(|(known, ..)| *known == region).unwrap_or(parts.len());
        if at == parts.len() {
            parts.push((region, Graph::new(), Vec::new()));
        }
        let (_, graph, residual) = &mut parts[at];
        let scale = graph.intern(Node::Input(Input::Param(form.params.len(), 0)));
        let roots: Vec<NodeId> = exact.value.iter().chain(&exact.gradient).copied().collect();
        let copies =
            copied(graph, &exact.graph, &roots, |graph, input| graph.intern(Node::Input(input)));
        let (values, gradient) = copies.split_at(exact.value.len());
        let derivatives = match made.fields[*field].space {
            _ if gradient.is_empty() => Vec::new(),
            space if space.is_piola() => exterior(graph, space, gradient),
            _ => gradient.to_vec(),
        };
        let space = Some(made.fields[*field].space);
        for (order, known) in [values, &derivatives].into_iter().enumerate() {
            let squares = known.iter().enumerate().map(|(flat, &known)| {
                let (component, part) = Part::of_flat(space, flat, order, form.dim);
                let slot = Slot { field: *field, side: Side::Inside, component, part };
                let computed = graph.intern(Node::Input(Input::State(slot)));
                let difference = graph.intern(Node::Binary(Binary::Sub, computed, known));
                let scaled = graph.intern(Node::Binary(Binary::Mul, scale, difference));
                graph.intern(Node::Binary(Binary::Mul, scaled, scaled))
            });
            let squares: Vec<NodeId> = squares.collect();
            let sum = sum(graph, &squares);
            let slot = Slot { field: own, side: Side::Inside, component: order, part: Part::Value };
            residual.extend(sum.map(|sum| (slot, sum)));
        }
    }
    // The cells of all fields come first.
    parts.sort_by_key(|(region, ..)| *region != Region::Cells);
    let integrals = parts
        .into_iter()
        .map(|(region, graph, residual)| Integral::of_residual(region, graph, residual));
    made.integrals = integrals.collect();
    made
}

/// Returns the components of the exterior derivative of a vector in a space from those of its gradient.
fn exterior(graph: &mut Graph, space: Space, gradient: &[NodeId]) -> Vec<NodeId> {
    let dim = if gradient.len() == 4 { 2 } else { 3 };
    if let Space::Hdiv(_) = space {
        let diagonal: Vec<NodeId> = (0..dim).map(|i| gradient[i * dim + i]).collect();
        return sum(graph, &diagonal).into_iter().collect();
    }
    let pairs: &[(usize, usize)] = if dim == 2 { &[(1, 0)] } else { &[(2, 1), (0, 2), (1, 0)] };
    let rotation = |&(i, j): &(usize, usize)| {
        let (left, right) = (gradient[i * dim + j], gradient[j * dim + i]);
        graph.intern(Node::Binary(Binary::Sub, left, right))
    };
    pairs.iter().map(rotation).collect()
}

/// Returns the form of the energy of a form with exactly one integral, at s times a state; `None` for other forms.
pub fn energy(form: &PointForm) -> Option<PointForm> {
    let [own] = form.integrals.as_slice() else { return None };
    let mut made = with_scale(form, "energy");
    let field = made.fields.len();
    let name = made.unused_name("measured");
    made.fields.push(further(name, 1));
    let mut graph = Graph::new();
    let scale = graph.intern(Node::Input(Input::Param(form.params.len(), 0)));
    let roots: Vec<NodeId> = match own.energy {
        Some(density) => vec![density],
        None => own.residual.iter().map(|(_, node)| *node).collect(),
    };
    let copies = copied(&mut graph, &own.graph, &roots, |graph, input| {
        let node = graph.intern(Node::Input(input));
        match input {
            Input::State(_) => graph.intern(Node::Binary(Binary::Mul, scale, node)),
            _ => node,
        }
    });
    let value = match own.energy {
        Some(_) => copies.first().copied(),
        None => {
            let tested = own.residual.iter().zip(&copies).map(|((slot, _), &value)| {
                let test = graph.intern(Node::Input(Input::State(*slot)));
                graph.intern(Node::Binary(Binary::Mul, value, test))
            });
            let tested: Vec<NodeId> = tested.collect();
            sum(&mut graph, &tested)
        }
    };
    let slot = Slot { field, side: Side::Inside, component: 0, part: Part::Value };
    let is_zero = |node| matches!(graph.nodes()[node], Node::Constant(c) if c.get() == 0.0);
    let value = value.filter(|&value| !is_zero(value))?;
    made.integrals = vec![Integral::of_residual(own.region.clone(), graph, vec![(slot, value)])];
    Some(made)
}

/// Returns the form with the parameter s, without integrals.
fn with_scale(form: &PointForm, what: &str) -> PointForm {
    let mut made = PointForm { integrals: Vec::new(), ..form.clone() };
    made.name = format!("{}_{what}", form.name);
    made.source = format!("// the {what} of a solution");
    let name = made.unused_name("scale");
    made.params.push(Param { name, shape: Shape::Scalar, value: vec![1.0] });
    made
}

fn further(name: String, components: usize) -> Field {
    let shape = if components == 1 { Shape::Scalar } else { Shape::Vector(components) };
    Field { name, shape, space: Space::L2(Degree::Fixed(0)), cells: Vec::new() }
}

fn sum(graph: &mut Graph, terms: &[NodeId]) -> Option<NodeId> {
    terms.iter().copied().reduce(|a, b| graph.intern(Node::Binary(Binary::Add, a, b)))
}

/// Copies the roots of another graph with other inputs, and returns their nodes.
fn copied(
    graph: &mut Graph,
    from: &Graph,
    roots: &[NodeId],
    input: impl Fn(&mut Graph, Input) -> NodeId,
) -> Vec<NodeId> {
    let mut moved: IdMap<NodeId, NodeId> = IdMap::new();
    for id in reachable(from, roots) {
        let to = |old: NodeId| moved[&old];
        let new = match from.nodes()[id] {
            node @ Node::Constant(_) => graph.intern(node),
            Node::Input(which) => input(graph, which),
            Node::Unary(function, a) => graph.intern(Node::Unary(function, to(a))),
            Node::Binary(function, a, b) => graph.intern(Node::Binary(function, to(a), to(b))),
            Node::Powi(a, n) => graph.intern(Node::Powi(to(a), n)),
            Node::Compare(comparison, a, b) => {
                graph.intern(Node::Compare(comparison, to(a), to(b)))
            }
            Node::And(a, b) => graph.intern(Node::And(to(a), to(b))),
            Node::Or(a, b) => graph.intern(Node::Or(to(a), to(b))),
            Node::Not(a) => graph.intern(Node::Not(to(a))),
            Node::Select(c, a, b) => graph.intern(Node::Select(to(c), to(a), to(b))),
        };
        moved.insert(id, new);
    }
    roots.iter().map(|root| moved[root]).collect()
}

#[cfg(test)]
mod tests;

//! From the canonical graph to the one that kernels are made of: few and cheap operations.

use super::scalars::Scalars;
use super::{Binary, Graph, Node, NodeId, Number};
use std::collections::{BTreeMap, BTreeSet};

/// The nodes on which `roots` rest, operands first.
pub fn reachable(graph: &Graph, roots: &[NodeId]) -> Vec<NodeId> {
    let mut seen = BTreeSet::new();
    let mut open = roots.to_vec();
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            open.extend(graph.nodes()[id].operands());
        }
    }
    seen.into_iter().collect()
}

/// How often each node is used by others and as a root.
pub(super) fn uses(graph: &Graph, order: &[NodeId], roots: &[NodeId]) -> BTreeMap<NodeId, usize> {
    let mut uses = BTreeMap::new();
    let operands = order.iter().flat_map(|&id| graph.nodes()[id].operands());
    for id in operands.chain(roots.iter().copied()) {
        *uses.entry(id).or_insert(0) += 1;
    }
    uses
}

/// A graph of what `roots` rest on, as it is to be computed, and where the roots are in it.
pub(crate) fn finished(scalars: &Scalars, roots: &[NodeId]) -> (Graph, Vec<NodeId>) {
    let mut graph = Graph::new();
    let moved = finish(scalars, roots, &mut graph);
    let roots = roots.iter().map(|root| moved[root]).collect();
    (graph, roots)
}

/// Copies what `roots` rest on into `target`, where several quotients by one denominator share its
/// reciprocal and whole powers become products. Says where each node went.
pub(super) fn finish(
    scalars: &Scalars,
    roots: &[NodeId],
    target: &mut Graph,
) -> BTreeMap<NodeId, NodeId> {
    let graph = &scalars.graph;
    let order = reachable(graph, roots);
    let uses = uses(graph, &order, roots);
    let mut denominators: BTreeMap<NodeId, usize> = BTreeMap::new();
    for &id in &order {
        if let Node::Binary(Binary::Div, _, b) = graph.nodes()[id] {
            *denominators.entry(b).or_insert(0) += 1;
        }
    }
    let shared = |b: NodeId| denominators[&b] > 1 && scalars.value(b).is_none();
    let is_one = |a: NodeId| scalars.value(a) == Some(1.0);
    // c · (1/y), the reciprocal used nowhere else, is the quotient c/y.
    let lone = |a: NodeId| match graph.nodes()[a] {
        Node::Binary(Binary::Div, x, y) if is_one(x) && uses[&a] == 1 && !shared(y) => Some(y),
        _ => None,
    };
    let mut moved: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    for &id in &order {
        let to = |a: NodeId| moved[&a];
        let new = match graph.nodes()[id] {
            Node::Constant(_) | Node::Input(_) => target.intern(graph.nodes()[id]),
            Node::Binary(Binary::Div, a, b) if shared(b) => {
                let one = target.intern(Node::Constant(Number::new(1.0)));
                let reciprocal = target.intern(Node::Binary(Binary::Div, one, to(b)));
                if is_one(a) { reciprocal } else { commutative(target, to(a), reciprocal) }
            }
            Node::Binary(Binary::Mul, a, b) => match (lone(a), lone(b)) {
                (_, Some(y)) => target.intern(Node::Binary(Binary::Div, to(a), to(y))),
                (Some(y), None) => target.intern(Node::Binary(Binary::Div, to(b), to(y))),
                (None, None) => commutative(target, to(a), to(b)),
            },
            Node::Powi(a, n) => power(target, to(a), n),
            Node::Unary(function, a) => target.intern(Node::Unary(function, to(a))),
            Node::Binary(function, a, b) => target.intern(Node::Binary(function, to(a), to(b))),
            Node::Compare(comparison, a, b) => {
                target.intern(Node::Compare(comparison, to(a), to(b)))
            }
            Node::And(a, b) => target.intern(Node::And(to(a), to(b))),
            Node::Or(a, b) => target.intern(Node::Or(to(a), to(b))),
            Node::Not(a) => target.intern(Node::Not(to(a))),
            Node::Select(c, a, b) => target.intern(Node::Select(to(c), to(a), to(b))),
        };
        moved.insert(id, new);
    }
    moved
}

fn commutative(target: &mut Graph, a: NodeId, b: NodeId) -> NodeId {
    target.intern(Node::Binary(Binary::Mul, a, b))
}

/// aⁿ for n ≥ 1 as products, by squaring.
fn power(target: &mut Graph, a: NodeId, n: i32) -> NodeId {
    let (mut result, mut square, mut rest) = (None, a, n.unsigned_abs());
    while rest > 0 {
        if rest & 1 == 1 {
            result = Some(match result {
                Some(result) => commutative(target, result, square),
                None => square,
            });
        }
        rest >>= 1;
        if rest > 0 {
            square = commutative(target, square, square);
        }
    }
    result.unwrap_or(a)
}

//! Canonical order of a graph's nodes: by structure, independent of the order of construction.
//!
//! Rows, weak forms and energies yield the same formulas, but construct their parts in different order. Each node has a
//! rank:
//!
//! ```text
//! height    0 for constants and inputs, else one more than the highest operand's
//! then      kind and ranks of the operands, those of sums and products in ascending order
//! ```
//!
//! and nodes are numbered by a traversal from the roots, lower ranks first. Choices that depend on node indices are
//! then equal for equal formulas.

use super::scalars::Scalars;
use super::traverse::{reachable, walk};
use super::{Binary, Node, NodeId};
use crate::arena::{Id, IdMap};
use std::collections::BTreeSet;

/// Returns the part of the graph that `roots` depend on, in canonical order, and the map of its nodes.
pub(super) fn canonical(old: &Scalars, roots: &[NodeId]) -> (Scalars, IdMap<NodeId, NodeId>) {
    let order = reachable(&old.graph, roots);
    let ranks = ranks(old, &order);
    let (mut new, mut moved) = (Scalars::default(), IdMap::new());
    // Inputs first, so that products have them in a uniform order.
    let mut inputs: Vec<NodeId> =
        order.iter().copied().filter(|&id| matches!(old.node(id), Node::Input(_))).collect();
    inputs.sort_unstable_by_key(|id| ranks[id]);
    for id in inputs {
        moved.insert(id, new.rebuild(old.node(id), |id| id));
    }
    let by_rank = |id: NodeId| {
        let mut operands: Vec<NodeId> = old.node(id).operands().collect();
        operands.sort_by_key(|operand| ranks[operand]);
        operands
    };
    for id in walk(roots, by_rank) {
        if !moved.contains_key(&id) {
            let value = new.rebuild(old.node(id), |operand| moved[&operand]);
            moved.insert(id, value);
        }
    }
    (new, moved)
}

/// Returns the rank of each node, by height and then by structure.
pub(super) fn ranks(scalars: &Scalars, order: &[NodeId]) -> IdMap<NodeId, usize> {
    let mut heights: IdMap<NodeId, usize> = IdMap::new();
    let mut layers: Vec<Vec<NodeId>> = Vec::new();
    for &id in order {
        let operands = scalars.node(id).operands();
        let height = operands.map(|operand| heights[&operand] + 1).max().unwrap_or(0);
        heights.insert(id, height);
        if layers.len() == height {
            layers.push(Vec::new());
        }
        layers[height].push(id);
    }
    let (mut ranks, mut next) = (IdMap::new(), 0);
    for layer in layers {
        let keys: BTreeSet<(Key, NodeId)> =
            layer.into_iter().map(|id| (key(scalars.node(id), &ranks), id)).collect();
        for (_, id) in keys {
            ranks.insert(id, next);
            next += 1;
        }
    }
    ranks
}

/// A node without its operands' ids, and their ranks.
type Key = (Node, [usize; 3]);

fn key(node: Node, ranks: &IdMap<NodeId, usize>) -> Key {
    let mut operands = [0; 3];
    for (to, operand) in operands.iter_mut().zip(node.operands()) {
        *to = ranks[&operand] + 1;
    }
    if let Node::Binary(Binary::Add | Binary::Mul, ..) = node {
        operands[..2].sort_unstable();
    }
    let none = NodeId::from_index(0);
    let bare = match node {
        Node::Constant(_) | Node::Input(_) => node,
        Node::Unary(function, _) => Node::Unary(function, none),
        Node::Binary(function, ..) => Node::Binary(function, none, none),
        Node::Powi(_, n) => Node::Powi(none, n),
        Node::Compare(comparison, ..) => Node::Compare(comparison, none, none),
        Node::And(..) => Node::And(none, none),
        Node::Or(..) => Node::Or(none, none),
        Node::Not(_) => Node::Not(none),
        Node::Select(..) => Node::Select(none, none, none),
    };
    (bare, operands)
}

//! Traversals of a graph from its roots.

use super::{Graph, NodeId};
use crate::arena::IdMap;

/// Returns the nodes on which `roots` depend, operands first.
pub fn reachable(graph: &Graph, roots: &[NodeId]) -> Vec<NodeId> {
    let mut seen = IdMap::new();
    let mut open = roots.to_vec();
    while let Some(id) = open.pop() {
        if seen.insert(id, ()).is_none() {
            open.extend(graph.nodes()[id].operands());
        }
    }
    seen.iter().map(|(id, ())| id).collect()
}

/// Counts the uses of each node by others and as a root.
pub(super) fn uses(graph: &Graph, order: &[NodeId], roots: &[NodeId]) -> IdMap<NodeId, usize> {
    let mut uses = IdMap::new();
    let operands = order.iter().flat_map(|&id| graph.nodes()[id].operands());
    for id in operands.chain(roots.iter().copied()) {
        *uses.get_or_insert(id, 0) += 1;
    }
    uses
}

/// Returns the nodes on which `roots` depend in depth-first post-order: the `operands` of a node, in their order,
/// before the node itself.
pub(super) fn walk(roots: &[NodeId], operands: impl Fn(NodeId) -> Vec<NodeId>) -> Vec<NodeId> {
    let (mut order, mut done) = (Vec::new(), IdMap::new());
    // Each with a flag that its operands have been visited.
    let mut open: Vec<(NodeId, bool)> = roots.iter().rev().map(|&root| (root, false)).collect();
    while let Some((id, ready)) = open.pop() {
        if done.contains_key(&id) {
            continue;
        }
        if ready {
            done.insert(id, ());
            order.push(id);
            continue;
        }
        open.push((id, true));
        open.extend(operands(id).into_iter().rev().map(|operand| (operand, false)));
    }
    order
}

//! The coefficients of an action: `G[test][trial]` of `s[test] = Σ_trial G[test][trial] · δtrial`.
//!
//! The action is linear in δ, so each of its nodes is a sum of coefficients times direction slots;
//! these sums are carried forward through the graph.

use super::scalars::Scalars;
use super::{Binary, Input, Node, NodeId, Slot, Unary};
use std::collections::BTreeMap;

/// The coefficient of each direction slot; absent ones are zero.
pub(super) type Linear = BTreeMap<Slot, NodeId>;

/// Computes the coefficients of `roots`, which are linear in the direction.
pub(super) fn coefficients(scalars: &mut Scalars, roots: &[NodeId]) -> Vec<Linear> {
    let mut linear: BTreeMap<NodeId, Linear> = BTreeMap::new();
    for id in super::traverse::reachable(&scalars.graph, roots) {
        if let Some(sum) = of_node(scalars, &linear, id) {
            linear.insert(id, sum);
        }
    }
    roots.iter().map(|root| linear.get(root).cloned().unwrap_or_default()).collect()
}

/// Returns `None` if the node does not depend on the direction.
fn of_node(s: &mut Scalars, linear: &BTreeMap<NodeId, Linear>, id: NodeId) -> Option<Linear> {
    let node = s.node(id);
    if let Node::Input(Input::Direction(slot)) = node {
        return Some(BTreeMap::from([(slot, s.constant(1.0))]));
    }
    if node.operands().all(|operand| !linear.contains_key(&operand)) {
        return None;
    }
    let of = |a: NodeId| linear.get(&a);
    let zero = s.constant(0.0);
    let sum = match node {
        Node::Unary(Unary::Neg, a) => each(s, of(a), None, |s, a, _| s.neg(a), zero),
        Node::Binary(Binary::Add, a, b) => each(s, of(a), of(b), Scalars::add, zero),
        Node::Binary(Binary::Sub, a, b) => each(s, of(a), of(b), Scalars::sub, zero),
        Node::Binary(Binary::Mul, a, b) => match (of(a), of(b)) {
            (Some(_), None) => each(s, of(a), None, |s, a, _| s.mul(a, b), zero),
            (None, Some(_)) => each(s, of(b), None, |s, b, _| s.mul(a, b), zero),
            _ => unreachable!("an action has no product of two directions"),
        },
        Node::Binary(Binary::Div, a, b) if of(b).is_none() => {
            each(s, of(a), None, |s, a, _| s.div(a, b), zero)
        }
        Node::Select(c, a, b) if of(c).is_none() => {
            each(s, of(a), of(b), |s, a, b| s.select(c, a, b), zero)
        }
        _ => unreachable!("an action is linear in the direction"),
    };
    Some(sum)
}

fn each(
    s: &mut Scalars,
    a: Option<&Linear>,
    b: Option<&Linear>,
    combine: impl Fn(&mut Scalars, NodeId, NodeId) -> NodeId,
    zero: NodeId,
) -> Linear {
    let slots = a.into_iter().chain(b).flat_map(BTreeMap::keys).copied();
    let part = |side: Option<&Linear>, slot: Slot| {
        side.and_then(|side| side.get(&slot)).copied().unwrap_or(zero)
    };
    let mut sums = Linear::new();
    for slot in slots {
        sums.entry(slot).or_insert_with(|| combine(s, part(a, slot), part(b, slot)));
    }
    sums.retain(|_, sum| *sum != zero);
    sums
}

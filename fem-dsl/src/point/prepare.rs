//! Preparation for factoring: equivalent formulas are converted to one form.
//!
//! ```text
//! a/s, b/s      →  a r, b r with r = 1/s                 several quotients by one denominator
//! w^q, w^(q−1)  →  w^(q−1) w                             a power and its derivative
//! r (1 ± x)     →  r ± r x                               on request: shows the factors that r x shares with other
//!                                                        products
//! ```
//!
//! None increases the cost. At w = 0 the second is not finite if w^(q−1) is not; it is therefore applied only if that
//! makes a result infinite anyway, without an intervening condition or function that could hide it.

use super::polynomial::Expansion;
use super::scalars::Scalars;
use super::traverse::{reachable, uses, walk};
use super::{Binary, Node, NodeId, Unary};
use crate::arena::IdMap;
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of powers that are compared with one another.
const MOST_POWERS: usize = 32;

/// A graph, and the map from the nodes of another.
pub(super) type PreparedGraph = (Scalars, IdMap<NodeId, NodeId>);

/// Applies the first two rules.
pub(super) fn prepare(old: &Scalars, roots: &[NodeId]) -> PreparedGraph {
    let smaller = smaller_powers(old, roots);
    let order = reachable(&old.graph, roots);
    let shared = shared_denominators(old, &order);
    let mut new = Scalars::default();
    let mut moved: IdMap<NodeId, NodeId> = IdMap::new();
    for id in after_operands(old, roots, &smaller) {
        let to = |id: NodeId| moved[&id];
        let value = match old.node(id) {
            Node::Binary(Binary::Div, a, b) if shared.contains(&b) => {
                let one = new.constant(1.0);
                let reciprocal = new.div(one, to(b));
                new.mul(to(a), reciprocal)
            }
            Node::Binary(Binary::Pow, base, _) if smaller.contains_key(&id) => {
                new.mul(to(smaller[&id]), to(base))
            }
            node => new.rebuild(node, to),
        };
        moved.insert(id, value);
    }
    (new, moved)
}

/// Applies the last rule, if possible.
pub(super) fn distribute(old: &Scalars, roots: &[NodeId]) -> Option<PreparedGraph> {
    let order = reachable(&old.graph, roots);
    let uses = uses(&old.graph, &order, roots);
    let mut new = Scalars::default();
    let mut moved: IdMap<NodeId, NodeId> = IdMap::new();
    let mut applies = false;
    for id in order {
        let to = |id: NodeId| moved[&id];
        let sum = match old.node(id) {
            Node::Binary(Binary::Mul, a, b) => one_and(old, &uses, a, b),
            _ => None,
        };
        let value = match sum {
            Some(Sum { factor, one, negative, part }) => {
                applies = true;
                let one = new.constant(one);
                let (left, right) = (new.mul(one, to(factor)), new.mul(to(factor), to(part)));
                if negative { new.sub(left, right) } else { new.add(left, right) }
            }
            None => new.rebuild(old.node(id), to),
        };
        moved.insert(id, value);
    }
    applies.then_some((new, moved))
}

/// Returns the nodes on which `roots` depend, operands first, with dependencies of powers on smaller ones.
fn after_operands(
    scalars: &Scalars,
    roots: &[NodeId],
    smaller: &BTreeMap<NodeId, NodeId>,
) -> Vec<NodeId> {
    if smaller.is_empty() {
        return reachable(&scalars.graph, roots);
    }
    walk(roots, |id| scalars.node(id).operands().chain(smaller.get(&id).copied()).collect())
}

/// factor · (one ± part)
struct Sum {
    factor: NodeId,
    one: f64,
    negative: bool,
    part: NodeId,
}

/// Returns the product `a b` as such a sum, if it is one without other uses.
fn one_and(scalars: &Scalars, uses: &IdMap<NodeId, usize>, a: NodeId, b: NodeId) -> Option<Sum> {
    [(a, b), (b, a)].into_iter().find_map(|(factor, sum)| {
        let Node::Binary(op @ (Binary::Add | Binary::Sub), one, part) = scalars.node(sum) else {
            return None;
        };
        let one = scalars.value(one).filter(|one| one.abs() == 1.0)?;
        let product = matches!(scalars.node(part), Node::Binary(Binary::Mul, ..) | Node::Powi(..));
        let own = product && uses[&sum] == 1 && uses[&part] == 1;
        let negative = op == Binary::Sub;
        (own && scalars.value(factor).is_none()).then_some(Sum { factor, one, negative, part })
    })
}

/// Returns the denominators of several quotients, without constants.
fn shared_denominators(scalars: &Scalars, order: &[NodeId]) -> BTreeSet<NodeId> {
    let mut seen = BTreeSet::new();
    let mut shared = BTreeSet::new();
    for &id in order {
        if let Node::Binary(Binary::Div, _, b) = scalars.node(id)
            && scalars.value(b).is_none()
            && !seen.insert(b)
        {
            shared.insert(b);
        }
    }
    shared
}

/// Returns w^(q−1) for each w^q, if both occur.
fn smaller_powers(scalars: &Scalars, roots: &[NodeId]) -> BTreeMap<NodeId, NodeId> {
    let order = reachable(&scalars.graph, roots);
    let powers: Vec<(NodeId, NodeId, NodeId)> = order
        .iter()
        .filter_map(|&id| match scalars.node(id) {
            Node::Binary(Binary::Pow, base, exponent) => Some((id, base, exponent)),
            _ => None,
        })
        .take(MOST_POWERS)
        .collect();
    if powers.len() < 2 {
        return BTreeMap::new();
    }
    let open = unhidden(scalars, roots);
    let mut raised_too = scalars.clone();
    let one = raised_too.constant(1.0);
    let raised: Vec<NodeId> =
        powers.iter().map(|&(_, _, exponent)| raised_too.add(exponent, one)).collect();
    let mut expansion = Expansion::new(&raised_too);
    let mut smaller = BTreeMap::new();
    for &(power, base, exponent) in &powers {
        let found = powers.iter().zip(&raised).find(|((other, same, _), raised)| {
            same == &base && open.contains(other) && expansion.equal(exponent, **raised)
        });
        if let Some(((other, ..), _)) = found {
            smaller.insert(power, *other);
        }
    }
    smaller
}

/// Returns the nodes that make a root infinite or NaN if they are.
fn unhidden(scalars: &Scalars, roots: &[NodeId]) -> BTreeSet<NodeId> {
    let mut seen = BTreeSet::new();
    let mut open = roots.to_vec();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        match scalars.node(id) {
            Node::Binary(Binary::Add | Binary::Sub | Binary::Mul, a, b) => open.extend([a, b]),
            Node::Binary(Binary::Div, a, _) | Node::Unary(Unary::Neg, a) => open.push(a),
            _ => {}
        }
    }
    seen
}

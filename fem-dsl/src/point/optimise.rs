//! From the canonical graph to the one that kernels are made of: the order of operations.
//!
//! Products and sums are flattened through what is used nowhere else and put together again from
//! what varies least to what varies most (constants; parameters; data of a cell; data of a point;
//! the state; the direction), so that a kernel computes as much as possible outside its loops and
//! once for all directions. Several quotients by one denominator share its reciprocal. Whole powers
//! become products.

use super::scalars::Scalars;
use super::{Binary, Graph, Input, Node, NodeId, Number, Unary};
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

/// The longest sum or product that is taken as one. Longer ones are several: flattening each part
/// of a chain anew would take time that grows with the square of its length.
pub(super) const LONGEST: usize = 128;

/// How much something varies, from 0 (a constant) up.
pub(super) type Level = u8;

/// The level of an input; `per_cell` says of aux whether it is one value a cell.
pub(super) fn level(input: Input, per_cell: impl Fn(usize) -> bool) -> Level {
    match input {
        Input::Param(..) | Input::Time | Input::Degree => 1,
        Input::Diameter => 2,
        Input::Aux(slot) if per_cell(slot.field) => 2,
        Input::Aux(_) | Input::Coordinate(_) | Input::Normal(_) => 3,
        Input::State(_) => 4,
        Input::Direction(_) => 5,
    }
}

/// Copies what `roots` rest on into `target` in the order in which it is to be computed. Says
/// where each node went that is still there.
pub(super) fn arrange(
    scalars: &Scalars,
    roots: &[NodeId],
    level: impl Fn(Input) -> Level,
    target: &mut Graph,
) -> BTreeMap<NodeId, NodeId> {
    let order = reachable(&scalars.graph, roots);
    let uses = uses(&scalars.graph, &order, roots);
    let mut levels: BTreeMap<NodeId, Level> = BTreeMap::new();
    let mut quotients: BTreeMap<NodeId, usize> = BTreeMap::new();
    for &id in &order {
        let node = scalars.node(id);
        let own = if let Node::Input(input) = node { level(input) } else { 0 };
        let operands = node.operands().map(|operand| levels[&operand]);
        levels.insert(id, operands.fold(own, Level::max));
        if let Node::Binary(Binary::Div, _, b) = node {
            *quotients.entry(b).or_insert(0) += 1;
        }
    }
    let mut arranged =
        Arranged { scalars, uses, levels, quotients, target, moved: BTreeMap::new() };
    for &id in &order {
        let new = arranged.node(id);
        arranged.moved.insert(id, new);
    }
    arranged.moved
}

struct Arranged<'a> {
    scalars: &'a Scalars,
    uses: BTreeMap<NodeId, usize>,
    levels: BTreeMap<NodeId, Level>,
    /// How many quotients each denominator has.
    quotients: BTreeMap<NodeId, usize>,
    target: &'a mut Graph,
    moved: BTreeMap<NodeId, NodeId>,
}

impl Arranged<'_> {
    fn node(&mut self, id: NodeId) -> NodeId {
        let to = |a: NodeId| self.moved[&a];
        let new = match self.scalars.node(id) {
            node @ (Node::Constant(_) | Node::Input(_)) => node,
            Node::Binary(Binary::Add | Binary::Sub, ..) => return self.sum(id),
            Node::Binary(Binary::Mul | Binary::Div, ..) => return self.product(id),
            Node::Powi(a, n) => return power(self.target, to(a), n),
            Node::Unary(function, a) => Node::Unary(function, to(a)),
            Node::Binary(function, a, b) => Node::Binary(function, to(a), to(b)),
            Node::Compare(comparison, a, b) => Node::Compare(comparison, to(a), to(b)),
            Node::And(a, b) => Node::And(to(a), to(b)),
            Node::Or(a, b) => Node::Or(to(a), to(b)),
            Node::Not(a) => Node::Not(to(a)),
            Node::Select(c, a, b) => Node::Select(to(c), to(a), to(b)),
        };
        self.target.intern(new)
    }

    fn product(&mut self, id: NodeId) -> NodeId {
        let mut constant = 1.0;
        // What is multiplied by, or (`true`) divided by.
        let mut factors: Vec<(Level, bool, usize, NodeId)> = Vec::new();
        let mut open = vec![(id, true)];
        while let Some((id, own)) = open.pop() {
            let place = factors.len();
            let own = own && place + open.len() < LONGEST;
            match self.scalars.node(id) {
                Node::Constant(number) if (constant * number.get()).is_finite() => {
                    constant *= number.get();
                }
                Node::Binary(Binary::Mul, a, b) if own => {
                    open.push((b, self.uses[&b] == 1));
                    open.push((a, self.uses[&a] == 1));
                }
                Node::Binary(Binary::Div, a, b) if own => {
                    let shared = self.quotients[&b] > 1;
                    match self.scalars.value(b) {
                        Some(divisor) if shared && (constant / divisor).is_finite() => {
                            constant /= divisor;
                        }
                        None if shared => {
                            let reciprocal = self.quotient(None, self.moved[&b]);
                            factors.push((self.levels[&b], false, place, reciprocal));
                        }
                        _ => factors.push((self.levels[&b], true, place, self.moved[&b])),
                    }
                    open.push((a, self.uses[&a] == 1));
                }
                _ => factors.push((self.levels[&id], false, place, self.moved[&id])),
            }
        }
        factors.sort_unstable();
        let mut product = (constant.abs() != 1.0)
            .then(|| self.target.intern(Node::Constant(Number::new(constant))));
        for (_, divides, _, factor) in factors {
            product = Some(match product {
                product if divides => self.quotient(product, factor),
                Some(product) => self.target.intern(Node::Binary(Binary::Mul, product, factor)),
                None => factor,
            });
        }
        let product =
            product.unwrap_or_else(|| self.target.intern(Node::Constant(Number::new(1.0))));
        if constant == -1.0 {
            return self.target.intern(Node::Unary(Unary::Neg, product));
        }
        product
    }

    fn quotient(&mut self, a: Option<NodeId>, b: NodeId) -> NodeId {
        let a = a.unwrap_or_else(|| self.target.intern(Node::Constant(Number::new(1.0))));
        self.target.intern(Node::Binary(Binary::Div, a, b))
    }

    fn sum(&mut self, id: NodeId) -> NodeId {
        let mut terms: Vec<(Level, usize, bool, NodeId)> = Vec::new();
        let mut open = vec![(id, false, true)];
        while let Some((id, negative, own)) = open.pop() {
            let own = own && terms.len() + open.len() < LONGEST;
            match self.scalars.node(id) {
                Node::Binary(op @ (Binary::Add | Binary::Sub), a, b) if own => {
                    open.push((b, negative != (op == Binary::Sub), self.uses[&b] == 1));
                    open.push((a, negative, self.uses[&a] == 1));
                }
                _ => terms.push((self.levels[&id], terms.len(), negative, self.moved[&id])),
            }
        }
        terms.sort_unstable();
        // The sum so far, and whether it stands for its opposite.
        let mut sum: Option<(NodeId, bool)> = None;
        for (_, _, negative, term) in terms {
            sum = Some(match sum {
                None => (term, negative),
                Some((sum, opposite)) if opposite == negative => {
                    (self.target.intern(Node::Binary(Binary::Add, sum, term)), opposite)
                }
                Some((sum, false)) => {
                    (self.target.intern(Node::Binary(Binary::Sub, sum, term)), false)
                }
                Some((sum, true)) => {
                    (self.target.intern(Node::Binary(Binary::Sub, term, sum)), false)
                }
            });
        }
        match sum {
            Some((sum, false)) => sum,
            Some((sum, true)) => self.target.intern(Node::Unary(Unary::Neg, sum)),
            None => self.target.intern(Node::Constant(Number::new(0.0))),
        }
    }
}

/// aⁿ for n ≥ 1 as products, by squaring.
fn power(target: &mut Graph, a: NodeId, n: i32) -> NodeId {
    let (mut result, mut square, mut rest) = (None, a, n.unsigned_abs());
    while rest > 0 {
        if rest & 1 == 1 {
            result = Some(match result {
                Some(result) => target.intern(Node::Binary(Binary::Mul, result, square)),
                None => square,
            });
        }
        rest >>= 1;
        if rest > 0 {
            square = target.intern(Node::Binary(Binary::Mul, square, square));
        }
    }
    result.unwrap_or(a)
}

/// A graph of what `roots` rest on, and where each node went.
pub(super) fn compact(graph: &Graph, roots: &[NodeId]) -> (Graph, BTreeMap<NodeId, NodeId>) {
    let mut compact = Graph::new();
    let mut moved: BTreeMap<NodeId, NodeId> = BTreeMap::new();
    for id in reachable(graph, roots) {
        let to = |a: NodeId| moved[&a];
        let node = match graph.nodes()[id] {
            node @ (Node::Constant(_) | Node::Input(_)) => node,
            Node::Unary(function, a) => Node::Unary(function, to(a)),
            Node::Binary(function, a, b) => Node::Binary(function, to(a), to(b)),
            Node::Powi(a, n) => Node::Powi(to(a), n),
            Node::Compare(comparison, a, b) => Node::Compare(comparison, to(a), to(b)),
            Node::And(a, b) => Node::And(to(a), to(b)),
            Node::Or(a, b) => Node::Or(to(a), to(b)),
            Node::Not(a) => Node::Not(to(a)),
            Node::Select(c, a, b) => Node::Select(to(c), to(a), to(b)),
        };
        moved.insert(id, compact.intern(node));
    }
    (compact, moved)
}

/// A graph of what `roots` rest on, as it is to be computed, and where the roots are in it.
pub(crate) fn finished(scalars: &Scalars, roots: &[NodeId]) -> (Graph, Vec<NodeId>) {
    let mut graph = Graph::new();
    let moved = arrange(scalars, roots, |input| level(input, |_| false), &mut graph);
    let arranged: Vec<NodeId> = roots.iter().map(|root| moved[root]).collect();
    let (graph, moved) = compact(&graph, &arranged);
    let roots = arranged.iter().map(|root| moved[root]).collect();
    (graph, roots)
}

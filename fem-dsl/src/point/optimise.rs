//! From the canonical graph to the one for kernels: the order of operations.
//!
//! Products and sums are flattened through nodes with a single use and rebuilt from the least to the most variable
//! operands. The order is constants, parameters, data of a cell, data of a point, the state, the direction. A kernel
//! then computes as much as possible outside its loops and once for all directions. Products share common parts
//! ([`products`](super::products)). Several quotients by one denominator share its reciprocal. Integer powers become
//! products. A sign is applied to the least variable operand.

use super::canonical::ranks;
use super::products::{Factor, LONGEST, Level, NodeProperties, Product, Products, level};
use super::scalars::Scalars;
use super::traverse::{reachable, uses, walk};
use super::{Binary, Graph, Input, Node, NodeId, Number, Unary};
use crate::arena::IdMap;

/// Copies the nodes on which `roots` depend into `target` in the order of computation. Returns the map of the remaining
/// nodes.
pub(super) fn arrange(
    scalars: &Scalars,
    roots: &[NodeId],
    level: impl Fn(Input) -> Level,
    target: &mut Graph,
) -> IdMap<NodeId, NodeId> {
    let order = reachable(&scalars.graph, roots);
    let uses = uses(&scalars.graph, &order, roots);
    let mut levels: IdMap<NodeId, Level> = IdMap::new();
    let mut quotients: IdMap<NodeId, usize> = IdMap::new();
    for &id in &order {
        let node = scalars.node(id);
        let own = if let Node::Input(input) = node { level(input) } else { 0 };
        let operands = node.operands().map(|operand| levels[&operand]);
        levels.insert(id, operands.fold(own, Level::max));
        if let Node::Binary(Binary::Div, _, b) = node {
            *quotients.get_or_insert(b, 0) += 1;
        }
    }
    let facts = NodeProperties { scalars, uses: &uses, levels: &levels, quotients: &quotients };
    let products = Products::new(&facts, &order, roots);
    let pairs = vec![None; products.pairs.len()];
    let ranks = ranks(scalars, &order);
    let needed = products.needed.clone();
    let mut arranged =
        Arranger { scalars, uses, levels, ranks, products, pairs, target, moved: IdMap::new() };
    for &id in order.iter().filter(|id| needed.contains(id)) {
        let new = arranged.node(id);
        arranged.moved.insert(id, new);
    }
    // A part of a product may exist without other uses; it then keeps its name.
    for &id in order.iter().filter(|id| !needed.contains(id)) {
        let new = arranged.part(id);
        arranged.moved.insert(id, new);
    }
    arranged.moved
}

struct Arranger<'a> {
    scalars: &'a Scalars,
    uses: IdMap<NodeId, usize>,
    levels: IdMap<NodeId, Level>,
    /// The order of terms with equal variability.
    ranks: IdMap<NodeId, usize>,
    products: Products,
    /// The computed pairs of `products`.
    pairs: Vec<Option<(Level, NodeId)>>,
    target: &'a mut Graph,
    moved: IdMap<NodeId, NodeId>,
}

impl Arranger<'_> {
    fn node(&mut self, id: NodeId) -> NodeId {
        if let Some(product) = self.products.products.get(&id) {
            let product = product.clone();
            return self.product(&product);
        }
        match self.scalars.node(id) {
            Node::Binary(Binary::Add | Binary::Sub, ..) => self.sum(id, false),
            Node::Unary(Unary::Neg, a) if self.uses[&a] == 1 && is_sum(self.scalars.node(a)) => {
                self.sum(a, true)
            }
            _ => self.part(id),
        }
    }

    /// Returns the arranged form of a node of the canonical graph.
    fn part(&mut self, id: NodeId) -> NodeId {
        let to = |a: NodeId| self.moved[&a];
        let new = match self.scalars.node(id) {
            node @ (Node::Constant(_) | Node::Input(_)) => node,
            Node::Binary(Binary::Mul, a, b) => {
                let pair = [(self.levels[&a], to(a)), (self.levels[&b], to(b))];
                return multiply(self.target, pair).1;
            }
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

    /// Returns a factor with its level.
    fn factor(&mut self, factor: Factor) -> (Level, NodeId) {
        match factor {
            Factor::Constant(number) => (0, self.target.intern(Node::Constant(number))),
            Factor::Node(id) => (self.levels[&id], self.moved[&id]),
            Factor::Reciprocal(id) => (self.levels[&id], self.quotient(None, self.moved[&id])),
            Factor::Pair(i) => {
                if let Some(pair) = self.pairs[i] {
                    return pair;
                }
                // A pair's factors are earlier pairs; the depth is at most the length of a product.
                let (a, b) = self.products.pairs[i];
                let [a, b] = [a, b].map(|part| self.factor(part));
                let pair = multiply(self.target, [a, b]);
                self.pairs[i] = Some(pair);
                pair
            }
        }
    }

    fn product(&mut self, product: &Product) -> NodeId {
        let mut factors: Vec<(Level, bool, NodeId)> = Vec::new();
        for &factor in &product.factors {
            let (level, factor) = self.factor(factor);
            factors.push((level, false, factor));
        }
        for divisor in &product.divisors {
            factors.push((self.levels[divisor], true, self.moved[divisor]));
        }
        factors.sort_unstable();
        // The sign is applied at the first rise of the level, or at the end.
        let lowest = factors.first().map_or(0, |factor| factor.0);
        let mut negative = product.negative;
        let mut result: Option<(Level, NodeId)> = None;
        for (level, divides, factor) in factors {
            if negative && level > lowest {
                result = result.map(|(at, node)| (at, self.negated(node)));
                negative = false;
            }
            result = Some(match result {
                None if divides => (level, self.quotient(None, factor)),
                None => (level, factor),
                Some((_, node)) if divides => (level, self.quotient(Some(node), factor)),
                Some(node) => multiply(self.target, [node, (level, factor)]),
            });
        }
        let result = match result {
            Some((_, node)) => node,
            None => self.target.intern(Node::Constant(Number::new(1.0))),
        };
        if negative { self.negated(result) } else { result }
    }

    fn negated(&mut self, a: NodeId) -> NodeId {
        self.target.intern(Node::Unary(Unary::Neg, a))
    }

    fn quotient(&mut self, a: Option<NodeId>, b: NodeId) -> NodeId {
        let a = a.unwrap_or_else(|| self.target.intern(Node::Constant(Number::new(1.0))));
        self.target.intern(Node::Binary(Binary::Div, a, b))
    }

    /// Arranges a sum, or its negative.
    fn sum(&mut self, id: NodeId, negative: bool) -> NodeId {
        let mut terms: Vec<(Level, usize, bool, NodeId)> = Vec::new();
        let mut open = vec![(id, negative, true)];
        while let Some((id, negative, own)) = open.pop() {
            let own = own && terms.len() + open.len() < LONGEST;
            match self.scalars.node(id) {
                Node::Binary(op @ (Binary::Add | Binary::Sub), a, b) if own => {
                    open.push((b, negative != (op == Binary::Sub), self.uses[&b] == 1));
                    open.push((a, negative, self.uses[&a] == 1));
                }
                // A number includes its sign.
                Node::Constant(number) if negative => {
                    let opposite = Node::Constant(Number::new(-number.get()));
                    terms.push((0, self.ranks[&id], false, self.target.intern(opposite)));
                }
                _ => terms.push((self.levels[&id], self.ranks[&id], negative, self.moved[&id])),
            }
        }
        terms.sort_unstable();
        // The partial sum, and true if it is negated.
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

fn is_sum(node: Node) -> bool {
    matches!(node, Node::Binary(Binary::Add | Binary::Sub, ..))
}

/// Returns the product of two factors, the less variable one first, so that equal products are one node.
fn multiply(target: &mut Graph, mut pair: [(Level, NodeId); 2]) -> (Level, NodeId) {
    pair.sort_unstable();
    let [(_, a), (level, b)] = pair;
    (level, target.intern(Node::Binary(Binary::Mul, a, b)))
}

/// Computes aⁿ for n ≥ 1 as products, by squaring.
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

/// Returns a graph of the nodes on which `roots` depend, and the map of the nodes. Inputs come first, component by
/// component, so that a kernel can release the data of each after use. This halved the spilled memory of elasticity's
/// GPU threads.
pub(super) fn compact(graph: &Graph, roots: &[NodeId]) -> (Graph, IdMap<NodeId, NodeId>) {
    let mut compact = Graph::new();
    let mut moved: IdMap<NodeId, NodeId> = IdMap::new();
    let mut order = walk(roots, |id| graph.nodes()[id].operands().collect());
    order.sort_by_key(|&id| match graph.nodes()[id] {
        Node::Input(input) => (false, Some(input)),
        _ => (true, None),
    });
    for id in order {
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

/// Returns a graph of the nodes on which `roots` depend in the order of computation, and the new roots.
pub(crate) fn finished(scalars: &Scalars, roots: &[NodeId]) -> (Graph, Vec<NodeId>) {
    let mut graph = Graph::new();
    let moved = arrange(scalars, roots, |input| level(input, |_| false), &mut graph);
    let arranged: Vec<NodeId> = roots.iter().map(|root| moved[root]).collect();
    let (graph, moved) = compact(&graph, &arranged);
    let roots = arranged.iter().map(|root| moved[root]).collect();
    (graph, roots)
}

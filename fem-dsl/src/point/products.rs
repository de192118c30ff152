//! Products with common parts: all products of a graph at once, each as a multiset of factors. The pair of factors that
//! is common to most of them repeatedly becomes a new factor.
//!
//! The least variable pairs come first, so that operations outside of loops stay there; among these, the one that saves
//! most. For example, r³ gᵢ gⱼ for all i and j costs two products for r³, one for each r³ gᵢ, and one for each entry.

use super::scalars::Scalars;
use super::{Binary, Input, Node, NodeId, Number, Unary};
use crate::arena::IdMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Longest sum or product that is treated as a unit. Longer ones are split: flattening each part of a chain separately
/// would take quadratic time.
pub(super) const LONGEST: usize = 128;

/// The variability of a node, from 0 (a constant) up.
pub(super) type Level = u8;

/// Returns the level of an input; `per_cell` is true for auxiliary data with one value per cell.
pub(super) fn level(input: Input, per_cell: impl Fn(usize) -> bool) -> Level {
    match input {
        Input::Param(..) | Input::Time | Input::Degree | Input::PenaltyFactor(_) => 1,
        Input::Diameter(_) => 2,
        Input::Aux(slot) if per_cell(slot.field) => 2,
        Input::Aux(_) | Input::Coordinate(_) | Input::Normal(_) | Input::Extent(_) => 3,
        Input::Inverse(..) | Input::Tangent(..) | Input::Bend(..) | Input::Density(_) => 3,
        Input::State(_) => 4,
        Input::Direction(_) => 5,
    }
}

/// Largest number of factors of a split product: the number of their pairs grows quadratically.
const MOST_FACTORS: usize = 12;

/// Largest power that is a multiset of equal factors if it is used once.
pub(super) const MOST_EQUAL: i32 = 4;

/// A factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Factor {
    /// A number.
    Constant(Number),
    /// A node of the canonical graph.
    Node(NodeId),
    /// The reciprocal of a denominator with several quotients.
    Reciprocal(NodeId),
    /// A pair, by its index in [`Products::pairs`].
    Pair(usize),
}

/// A product.
#[derive(Clone, Debug)]
pub(super) struct Product {
    /// True for the negative of the product.
    pub(super) negative: bool,
    /// In no order; equal ones are repeated.
    pub(super) factors: Vec<Factor>,
    /// The divisors.
    pub(super) divisors: Vec<NodeId>,
}

/// All products of a graph.
#[derive(Debug, Default)]
pub(super) struct Products {
    /// The products by their nodes.
    pub(super) products: BTreeMap<NodeId, Product>,
    /// The pairs common to several products.
    pub(super) pairs: Vec<(Factor, Factor)>,
    /// The levels of these pairs.
    pair_levels: Vec<Level>,
    /// The nodes to compute: all except products that are only parts of others.
    pub(super) needed: BTreeSet<NodeId>,
}

/// Properties of the nodes of a graph.
pub(super) struct NodeProperties<'a> {
    pub(super) scalars: &'a Scalars,
    /// The number of uses of each node.
    pub(super) uses: &'a IdMap<NodeId, usize>,
    pub(super) levels: &'a IdMap<NodeId, Level>,
    /// The number of quotients of each denominator.
    pub(super) quotients: &'a IdMap<NodeId, usize>,
}

impl Products {
    /// Returns the products among `order`, which has operands first. Products within several others are expanded in
    /// each, or not, whichever needs fewer multiplications.
    pub(super) fn new(facts: &NodeProperties<'_>, order: &[NodeId], roots: &[NodeId]) -> Self {
        let [whole, apart] = [false, true].map(|deep| {
            let mut products = Self::collect(facts, order, roots, deep);
            Pairing::new(facts, &mut products).run();
            products
        });
        if apart.cost(facts) < whole.cost(facts) { apart } else { whole }
    }

    fn collect(facts: &NodeProperties<'_>, order: &[NodeId], roots: &[NodeId], deep: bool) -> Self {
        let mut products = Self { needed: roots.iter().copied().collect(), ..Self::default() };
        for &id in order.iter().rev() {
            if !products.needed.contains(&id) {
                continue;
            }
            let Some(product) = facts.flatten(id, deep) else {
                products.needed.extend(facts.scalars.node(id).operands());
                continue;
            };
            let nodes = product.factors.iter().filter_map(|factor| match factor {
                Factor::Node(node) | Factor::Reciprocal(node) => Some(*node),
                Factor::Constant(_) | Factor::Pair(_) => None,
            });
            products.needed.extend(nodes.chain(product.divisors.iter().copied()));
            products.products.insert(id, product);
        }
        products
    }

    /// Returns the number of multiplications and divisions, and their total variability.
    fn cost(&self, facts: &NodeProperties<'_>) -> (usize, usize) {
        let (mut count, mut varies) = (0, 0);
        for product in self.products.values() {
            let own = product.factors.iter().map(|&factor| facts.level(&self.pair_levels, factor));
            let mut levels: Vec<Level> =
                own.chain(product.divisors.iter().map(|divisor| facts.levels[divisor])).collect();
            levels.sort_unstable();
            // The first needs no operation; each other is one operation of its level.
            count += levels.len().max(1) - 1;
            varies += levels.iter().skip(1).map(|&level| usize::from(level)).sum::<usize>();
        }
        for &id in &self.needed {
            if let Node::Powi(_, n) = facts.scalars.node(id) {
                let n = n.unsigned_abs().max(1);
                let own = (n.ilog2() + n.count_ones() - 1) as usize;
                count += own;
                varies += own * usize::from(facts.levels[&id]);
            }
        }
        varies += self.pair_levels.iter().map(|&level| usize::from(level)).sum::<usize>();
        (count + self.pairs.len(), varies)
    }
}

impl NodeProperties<'_> {
    /// Returns the level of a factor.
    fn level(&self, pairs: &[Level], factor: Factor) -> Level {
        match factor {
            Factor::Constant(_) => 0,
            Factor::Node(id) | Factor::Reciprocal(id) => self.levels[&id],
            Factor::Pair(i) => pairs[i],
        }
    }

    /// Returns the product that a node represents, expanded through nodes with a single use, or (`deep`) wherever it
    /// has few factors.
    fn flatten(&self, id: NodeId, deep: bool) -> Option<Product> {
        let scalars = self.scalars;
        let begins = match scalars.node(id) {
            Node::Binary(Binary::Mul | Binary::Div, ..) => true,
            Node::Unary(Unary::Neg, a) => self.uses[&a] == 1 && is_product(scalars.node(a)),
            _ => false,
        };
        if !begins {
            return None;
        }
        let (mut constant, mut factors, mut divisors) = (1.0, Vec::new(), Vec::new());
        let mut open = vec![(id, true)];
        while let Some((at, own)) = open.pop() {
            let length = factors.len() + open.len();
            let single = own && length < LONGEST;
            let own = single || deep && length < MOST_FACTORS / 2;
            match scalars.node(at) {
                Node::Constant(number) if f64::is_finite(constant * number.get()) => {
                    constant *= number.get();
                }
                Node::Unary(Unary::Neg, a) if own && at == id => {
                    constant = -constant;
                    open.push((a, true));
                }
                Node::Binary(Binary::Mul, a, b) if own => {
                    open.push((b, self.uses[&b] == 1));
                    open.push((a, self.uses[&a] == 1));
                }
                // One of several quotients by one denominator is computed separately.
                Node::Binary(Binary::Div, a, b) if single => {
                    let shared = self.quotients[&b] > 1;
                    match scalars.value(b) {
                        Some(divisor) if shared && f64::is_finite(constant / divisor) => {
                            constant /= divisor;
                        }
                        None if shared => factors.push(Factor::Reciprocal(b)),
                        _ => divisors.push(b),
                    }
                    open.push((a, self.uses[&a] == 1));
                }
                Node::Powi(a, n @ 2..=MOST_EQUAL) if deep && own => {
                    open.extend((0..n).map(|_| (a, self.uses[&a] == 1)));
                }
                _ => factors.push(Factor::Node(at)),
            }
        }
        let negative = constant == -1.0;
        if constant.abs() != 1.0 || factors.is_empty() && divisors.is_empty() {
            factors.push(Factor::Constant(Number::new(constant)));
        }
        Some(Product { negative, factors, divisors })
    }
}

fn is_product(node: Node) -> bool {
    matches!(node, Node::Binary(Binary::Mul | Binary::Div, ..))
}

type Pair = (Factor, Factor);

/// The search for pairs.
struct Pairing<'p, 'a> {
    facts: &'p NodeProperties<'a>,
    products: &'p mut Products,
    /// The products that contain a pair.
    places: BTreeMap<Pair, BTreeSet<NodeId>>,
    /// The pairs in several products, the best first.
    queue: BTreeSet<(Level, Reverse<usize>, Pair)>,
}

impl<'p, 'a> Pairing<'p, 'a> {
    fn new(facts: &'p NodeProperties<'a>, products: &'p mut Products) -> Self {
        let (places, queue) = (BTreeMap::new(), BTreeSet::new());
        Self { facts, products, places, queue }
    }

    fn run(&mut self) {
        let ids: Vec<NodeId> = self.products.products.keys().copied().collect();
        for id in ids {
            for pair in self.pairs_of(id) {
                self.places.entry(pair).or_default().insert(id);
            }
        }
        for (&pair, places) in &self.places {
            if places.len() > 1 {
                self.queue.insert((self.level(pair), Reverse(places.len()), pair));
            }
        }
        while let Some((level, _, pair)) = self.queue.pop_first() {
            let made = Factor::Pair(self.products.pairs.len());
            self.products.pairs.push(pair);
            self.products.pair_levels.push(level);
            let Some(places) = self.places.get(&pair).cloned() else { continue };
            for id in places {
                self.replace(id, pair, made);
            }
        }
    }

    fn level(&self, (a, b): Pair) -> Level {
        let made = &self.products.pair_levels;
        self.facts.level(made, a).max(self.facts.level(made, b))
    }

    /// Returns the distinct pairs of factors of a product.
    fn pairs_of(&self, id: NodeId) -> BTreeSet<Pair> {
        let factors = self.products.products.get(&id).map_or(&[][..], |product| &product.factors);
        let mut pairs = BTreeSet::new();
        if factors.len() <= MOST_FACTORS {
            for (i, &a) in factors.iter().enumerate() {
                pairs.extend(factors[i + 1..].iter().map(|&b| (a.min(b), a.max(b))));
            }
        }
        pairs
    }

    /// Replaces all occurrences of a pair by `made`.
    fn replace(&mut self, id: NodeId, pair: Pair, made: Factor) {
        let before = self.pairs_of(id);
        if let Some(product) = self.products.products.get_mut(&id) {
            let factors = &mut product.factors;
            let at = |factors: &[Factor], wanted: Factor, except: Option<usize>| {
                factors.iter().enumerate().position(|(i, f)| *f == wanted && Some(i) != except)
            };
            while let Some(i) = at(factors, pair.0, None)
                && let Some(j) = at(factors, pair.1, Some(i))
            {
                factors.swap_remove(i.max(j));
                factors[i.min(j)] = made;
            }
        }
        let after = self.pairs_of(id);
        for &gone in before.difference(&after) {
            self.count(gone, |places| places.remove(&id));
        }
        for &new in after.difference(&before) {
            self.count(new, |places| places.insert(id));
        }
    }

    /// Changes the occurrences of a pair, and its position in the queue.
    fn count(&mut self, pair: Pair, change: impl FnOnce(&mut BTreeSet<NodeId>) -> bool) {
        let level = self.level(pair);
        let places = self.places.entry(pair).or_default();
        let before = places.len();
        change(places);
        let after = places.len();
        if before > 1 {
            self.queue.remove(&(level, Reverse(before), pair));
        }
        if after > 1 {
            self.queue.insert((level, Reverse(after), pair));
        }
    }
}

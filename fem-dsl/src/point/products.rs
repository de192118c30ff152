//! Products with common parts: all products of a graph at once, each as a multiset of factors. The pair of factors that
//! is common to most of them repeatedly becomes a new factor.
//!
//! The least variable pairs come first, so that operations outside of loops stay there; among these, the one that saves
//! most. For example, r³ gᵢ gⱼ for all i and j costs two products for r³, one for each r³ gᵢ, and one for each entry.

use super::scalars::Scalars;
use super::{Binary, Input, Node, NodeId, Number, Unary};
use crate::arena::IdMap;
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
#[derive(Clone, Debug, PartialEq)]
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
        let [mut whole, mut apart] =
            [false, true].map(|deep| Self::collect(facts, order, roots, deep));
        let differ = apart.products != whole.products;
        Pairing::new(facts, &mut whole).run();
        if !differ {
            return whole;
        }
        Pairing::new(facts, &mut apart).run();
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

/// The position of a factor among all factors in ascending order. New pairs come last, in the order of their creation.
type Rank = u32;

/// The search for pairs. A step that creates a factor is the only one that adds pairs, all of them with the new factor.
/// Other pairs only lose products, so that the queue's counts are upper bounds, corrected when a pair is taken.
struct Pairing<'p> {
    products: &'p mut Products,
    /// The factors by rank.
    factors: Vec<Factor>,
    /// Their levels.
    levels: Vec<Level>,
    /// The factors of each product that has few, in the order of the products.
    own: Vec<Vec<Rank>>,
    /// The pairs in several products, the best first, with these products, ascending.
    queue: BTreeMap<u128, Vec<u32>>,
}

impl<'p> Pairing<'p> {
    fn new(facts: &NodeProperties<'_>, products: &'p mut Products) -> Self {
        let all = products.products.values();
        let mut factors: Vec<Factor> =
            all.flat_map(|product| product.factors.iter().copied()).collect();
        factors.sort_unstable();
        factors.dedup();
        let levels = factors.iter().map(|&factor| facts.level(&[], factor)).collect();
        let rank = |factor: &Factor| factors.binary_search(factor).unwrap_or(0) as Rank;
        let own = products.products.values().map(|product| match product.factors.len() {
            0..=MOST_FACTORS => product.factors.iter().map(rank).collect(),
            _ => Vec::new(),
        });
        let own = own.collect();
        Self { products, factors, levels, own, queue: BTreeMap::new() }
    }

    fn run(mut self) {
        self.begin();
        while let Some((key, places)) = self.queue.pop_first() {
            let (count, a, b) = pair_of(key);
            let has = |&id: &u32| has_pair(&self.own[id as usize], a, b);
            let places: Vec<u32> = places.into_iter().filter(has).collect();
            match places.len() {
                0 | 1 => {}
                found if found < count => self.add((a, b), places),
                _ => self.replace((a, b), &places),
            }
        }
        let Self { factors, own, products, .. } = self;
        for (product, own) in products.products.values_mut().zip(own) {
            if !own.is_empty() {
                product.factors = own.into_iter().map(|rank| factors[rank as usize]).collect();
            }
        }
    }

    /// Finds the pairs of all products.
    fn begin(&mut self) {
        let mut all: Vec<u128> = Vec::new();
        for (id, own) in self.own.iter().enumerate() {
            for (i, &a) in own.iter().enumerate() {
                for &b in &own[i + 1..] {
                    all.push(u128::from(a.min(b)) << 64 | u128::from(a.max(b)) << 32 | id as u128);
                }
            }
        }
        all.sort_unstable();
        all.dedup();
        for places in all.chunk_by(|one, next| one >> 32 == next >> 32) {
            if places.len() > 1 {
                let pair = ((places[0] >> 64) as Rank, (places[0] >> 32) as Rank);
                self.add(pair, places.iter().map(|&place| place as u32).collect());
            }
        }
    }

    /// Adds a pair to the queue: the lowest levels first, then the most frequent pairs, then those of least rank.
    fn add(&mut self, (a, b): (Rank, Rank), places: Vec<u32>) {
        let level = self.levels[a as usize].max(self.levels[b as usize]);
        let most = u128::from(u32::MAX - places.len() as u32);
        let pair = u128::from(a) << 32 | u128::from(b);
        self.queue.insert(u128::from(level) << 96 | most << 64 | pair, places);
    }

    /// Makes a pair a factor, in all products that contain it.
    fn replace(&mut self, (a, b): (Rank, Rank), places: &[u32]) {
        let level = self.levels[a as usize].max(self.levels[b as usize]);
        let made = self.factors.len() as Rank;
        self.factors.push(Factor::Pair(self.products.pairs.len()));
        self.levels.push(level);
        self.products.pairs.push((self.factors[a as usize], self.factors[b as usize]));
        self.products.pair_levels.push(level);
        let mut joined: BTreeMap<Rank, Vec<u32>> = BTreeMap::new();
        for &id in places {
            let factors = &mut self.own[id as usize];
            while let Some(i) = factors.iter().position(|&f| f == a)
                && let Some(j) = other_position(factors, b, i)
            {
                factors.swap_remove(i.max(j));
                factors[i.min(j)] = made;
            }
            let first = factors.iter().position(|&f| f == made);
            for (at, &factor) in factors.iter().enumerate().filter(|(at, _)| Some(*at) != first) {
                if !factors[..at].iter().enumerate().any(|(i, &f)| f == factor && Some(i) != first)
                {
                    joined.entry(factor).or_default().push(id);
                }
            }
        }
        for (factor, places) in joined {
            if places.len() > 1 {
                self.add((factor, made), places);
            }
        }
    }
}

/// Returns the count and the ranks in a key of the queue.
fn pair_of(key: u128) -> (usize, Rank, Rank) {
    ((u32::MAX - (key >> 64) as u32) as usize, (key >> 32) as Rank, key as Rank)
}

/// Returns whether a product contains a pair.
fn has_pair(factors: &[Rank], a: Rank, b: Rank) -> bool {
    let first = factors.iter().position(|&f| f == a);
    first.is_some_and(|i| other_position(factors, b, i).is_some())
}

/// Returns the first position of a factor, except one.
fn other_position(factors: &[Rank], wanted: Rank, except: usize) -> Option<usize> {
    (0..factors.len()).find(|&i| factors[i] == wanted && i != except)
}

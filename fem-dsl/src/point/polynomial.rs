//! Equality of two scalars as polynomials: sums of products, independent of brackets.
//!
//! Nodes other than sums, products and powers are indeterminates; a quotient is a product with the denominator's
//! reciprocal. A choice between a value and 0 is the value times an indicator, which is its own square. Expansion stops at a number of terms, beyond which equality is not claimed.

use super::scalars::Scalars;
use super::traverse::reachable;
use super::{Binary, Node, NodeId, Unary};
use std::collections::BTreeMap;

/// An indeterminate, or (`true`) its reciprocal: the two do not cancel, because of 0. Of a condition the indicator, or
/// (`true`) that of its opposite.
type Unknown = (NodeId, bool);

/// Indeterminates with their powers, ordered.
type Monomial = Vec<(Unknown, i32)>;

/// Monomials with their coefficients.
type Polynomial = BTreeMap<Monomial, f64>;

/// Longest expanded polynomial.
const MOST_TERMS: usize = 128;

/// Expands nodes of one graph, each once.
pub(super) struct Expansion<'a> {
    scalars: &'a Scalars,
    known: BTreeMap<NodeId, Option<Polynomial>>,
}

impl<'a> Expansion<'a> {
    pub(super) fn new(scalars: &'a Scalars) -> Self {
        Self { scalars, known: BTreeMap::new() }
    }

    /// Returns whether the two are the same polynomial, up to rounding of the coefficients; `false` if they are too
    /// long to decide.
    pub(super) fn equal(&mut self, a: NodeId, b: NodeId) -> bool {
        if a == b {
            return true;
        }
        for id in reachable(&self.scalars.graph, &[a, b]) {
            if !self.known.contains_key(&id) {
                let polynomial = self.expand(id).filter(|terms| terms.len() <= MOST_TERMS);
                self.known.insert(id, polynomial);
            }
        }
        match (&self.known[&a], &self.known[&b]) {
            (Some(left), Some(right)) => same(left, right),
            _ => false,
        }
    }

    fn expand(&self, id: NodeId) -> Option<Polynomial> {
        let of = |a: NodeId| self.known[&a].as_ref();
        match self.scalars.node(id) {
            Node::Constant(number) => Some(BTreeMap::from([(Vec::new(), number.get())])),
            Node::Unary(Unary::Neg, a) => Some(scaled(of(a)?, -1.0)),
            Node::Binary(Binary::Add, a, b) => Some(sum(of(a)?, of(b)?, 1.0)),
            Node::Binary(Binary::Sub, a, b) => Some(sum(of(a)?, of(b)?, -1.0)),
            Node::Binary(Binary::Mul, a, b) => self.product(of(a)?, of(b)?),
            Node::Binary(Binary::Div, a, b) => {
                let reciprocal = BTreeMap::from([(vec![((b, true), 1)], 1.0)]);
                self.product(of(a)?, &reciprocal)
            }
            Node::Powi(a, n @ 2..=4) => {
                let base = of(a)?;
                (1..n).try_fold(base.clone(), |power, _| self.product(&power, base))
            }
            Node::Select(c, a, b) if self.is_zero(b) || self.is_zero(a) => {
                let opposite = self.is_zero(a);
                let indicator = BTreeMap::from([(vec![((c, opposite), 1)], 1.0)]);
                self.product(of(if opposite { b } else { a })?, &indicator)
            }
            Node::Powi(a, n) => Some(BTreeMap::from([(vec![((a, false), n)], 1.0)])),
            _ => Some(BTreeMap::from([(vec![((id, false), 1)], 1.0)])),
        }
    }

    fn is_zero(&self, id: NodeId) -> bool {
        matches!(self.scalars.node(id), Node::Constant(number) if number.get() == 0.0)
    }

    fn is_condition(&self, id: NodeId) -> bool {
        use Node::{And, Compare, Not, Or};
        matches!(self.scalars.node(id), Compare(..) | And(..) | Or(..) | Not(..))
    }

    fn product(&self, a: &Polynomial, b: &Polynomial) -> Option<Polynomial> {
        if a.len() * b.len() > MOST_TERMS * 4 {
            return None;
        }
        let mut result = Polynomial::new();
        for (left, c) in a {
            for (right, d) in b {
                let mut powers: BTreeMap<Unknown, i32> = left.iter().copied().collect();
                for &(unknown, power) in right {
                    *powers.entry(unknown).or_insert(0) += power;
                }
                let indicators = powers.iter_mut().filter(|((id, _), _)| self.is_condition(*id));
                indicators.for_each(|(_, power)| *power = 1);
                *result.entry(powers.into_iter().collect()).or_insert(0.0) += c * d;
            }
        }
        Some(result)
    }
}

fn scaled(a: &Polynomial, factor: f64) -> Polynomial {
    a.iter().map(|(monomial, c)| (monomial.clone(), c * factor)).collect()
}

fn sum(a: &Polynomial, b: &Polynomial, sign: f64) -> Polynomial {
    let mut sum = a.clone();
    for (monomial, c) in b {
        *sum.entry(monomial.clone()).or_insert(0.0) += sign * c;
    }
    sum
}

fn same(a: &Polynomial, b: &Polynomial) -> bool {
    let keys = a.keys().chain(b.keys());
    let of = |side: &Polynomial, key: &Monomial| side.get(key).copied().unwrap_or(0.0);
    let largest = a.values().chain(b.values()).fold(0.0_f64, |most, c| most.max(c.abs()));
    let rounding = 64.0 * f64::EPSILON * largest;
    keys.into_iter().all(|key| (of(a, key) - of(b, key)).abs() <= rounding)
}

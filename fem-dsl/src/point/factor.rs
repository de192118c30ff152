//! Factoring of sums: p a + p b = p (a + b), over whole sums at once.
//!
//! A sum is flattened through the sums that are used nowhere else, and equal terms are counted. Then the factor common
//! to most terms is repeatedly factored out. The inner sums are separate sums, so that the next round goes deeper. A
//! round without savings is undone.

use super::count::operation_count;
use super::products::LONGEST;
use super::products::MOST_EQUAL;
use super::scalars::Scalars;
use super::traverse::{reachable, uses};
use super::{Binary, Node, NodeId, Unary};
use crate::arena::IdMap;
use std::collections::BTreeMap;

/// The same values with fewer operations, and the new roots.
pub(super) struct FactoredGraph {
    pub(super) scalars: Scalars,
    pub(super) moved: IdMap<NodeId, NodeId>,
}

/// Rounds of factoring; each goes one level of brackets deeper.
const ROUNDS: usize = 6;

/// Approximate number of nodes for all rounds together: forms of thousands of terms have fewer rounds.
const NODES: usize = 60_000;

/// Factors the sums on which `roots` depend.
pub(super) fn factor(scalars: &Scalars, roots: &[NodeId]) -> FactoredGraph {
    let order = reachable(&scalars.graph, roots);
    let rounds = (NODES / order.len().max(1)).clamp(1, ROUNDS);
    let identity = order.into_iter().map(|id| (id, id)).collect();
    let mut best = FactoredGraph { scalars: scalars.clone(), moved: identity };
    let mut roots = roots.to_vec();
    let mut weight = operation_count(&best.scalars.graph, &roots).weight();
    for _ in 0..rounds {
        let (next, moved) = round(&best.scalars, &roots);
        let next_roots: Vec<NodeId> = roots.iter().map(|root| moved[root]).collect();
        let next_weight = operation_count(&next.graph, &next_roots).weight();
        if next_weight >= weight {
            break;
        }
        best.moved =
            best.moved.iter().filter_map(|(from, to)| Some((from, *moved.get(to)?))).collect();
        best.scalars = next;
        (roots, weight) = (next_roots, next_weight);
    }
    best
}

fn round(old: &Scalars, roots: &[NodeId]) -> (Scalars, IdMap<NodeId, NodeId>) {
    let order = reachable(&old.graph, roots);
    let uses = uses(&old.graph, &order, roots);
    let mut new = Scalars::default();
    let mut moved = IdMap::new();
    for &id in &order {
        let value = match old.node(id) {
            Node::Binary(Binary::Add | Binary::Sub, ..) => {
                let terms = terms(old, &uses, &moved, id);
                sum(&mut new, terms)
            }
            node => new.rebuild(node, |operand| moved[&operand]),
        };
        moved.insert(id, value);
    }
    (new, moved)
}

/// A constant times a product.
#[derive(Clone, Debug, PartialEq)]
struct Term {
    coefficient: f64,
    factors: Vec<NodeId>,
}

impl Term {
    /// Removes one occurrence of a factor.
    fn remove(&mut self, factor: NodeId) {
        if let Some(at) = self.factors.iter().position(|&other| other == factor) {
            self.factors.remove(at);
        }
    }
}

/// Returns the terms of the sum `id`, in order, with their factors in the new graph.
fn terms(
    old: &Scalars,
    uses: &IdMap<NodeId, usize>,
    moved: &IdMap<NodeId, NodeId>,
    id: NodeId,
) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    let mut open = vec![(1.0, id, true)];
    while let Some((coefficient, id, open_sum)) = open.pop() {
        let open_sum = open_sum && terms.len() + open.len() < LONGEST;
        match old.node(id) {
            Node::Binary(op @ (Binary::Add | Binary::Sub), a, b) if open_sum => {
                let sign = if op == Binary::Add { coefficient } else { -coefficient };
                open.push((sign, b, uses[&b] == 1));
                open.push((coefficient, a, uses[&a] == 1));
            }
            Node::Unary(Unary::Neg, a) => open.push((-coefficient, a, open_sum && uses[&a] == 1)),
            Node::Binary(Binary::Mul, c, a) if old.value(c).is_some() => {
                let c = old.value(c).unwrap_or(1.0);
                let inside = open_sum && uses[&a] == 1;
                // Constants that overflow stay unfolded.
                if (coefficient * c).is_finite() && coefficient * c != 0.0 {
                    open.push((coefficient * c, a, inside));
                } else {
                    terms.push(Term { coefficient, factors: vec![moved[&id]] });
                }
            }
            _ => {
                let mut factors = factors(old, uses, id, open_sum);
                factors.iter_mut().for_each(|factor| *factor = moved[factor]);
                factors.sort_unstable();
                terms.push(Term { coefficient, factors });
            }
        }
    }
    terms
}

/// Returns the factors of a product that is used nowhere else.
fn factors(old: &Scalars, uses: &IdMap<NodeId, usize>, id: NodeId, own: bool) -> Vec<NodeId> {
    let mut factors = Vec::new();
    let mut open = vec![(id, own)];
    while let Some((id, own)) = open.pop() {
        let own = own && factors.len() + open.len() < LONGEST;
        match old.node(id) {
            Node::Binary(Binary::Mul, a, b) if own => {
                open.extend([(a, uses[&a] == 1), (b, uses[&b] == 1)]);
            }
            Node::Powi(a, n @ 2..=MOST_EQUAL) if own => factors.extend((0..n).map(|_| a)),
            _ => factors.push(id),
        }
    }
    factors
}

/// Builds Σ terms in factored form.
fn sum(new: &mut Scalars, terms: Vec<Term>) -> NodeId {
    let mut rest: Vec<Term> = Vec::with_capacity(terms.len());
    let mut places: BTreeMap<Vec<NodeId>, usize> = BTreeMap::new();
    for term in terms {
        match places.get(&term.factors).map(|&place| &mut rest[place]) {
            Some(other) if (other.coefficient + term.coefficient).is_finite() => {
                other.coefficient += term.coefficient;
                continue;
            }
            Some(_) => {}
            None => {
                places.insert(term.factors.clone(), rest.len());
            }
        }
        rest.push(term);
    }
    rest.retain(|term| term.coefficient != 0.0);
    let mut counts = Counts::default();
    rest.iter().for_each(|term| counts.add(new, term));
    while let Some(common) = most_common(new, &rest, &counts) {
        let has = |term: &Term| match common {
            CommonFactor::Factor(factor) => term.factors.contains(&factor),
            CommonFactor::Constant(c) => constant(new, term) == Some(c),
        };
        let (inside, outside): (Vec<_>, Vec<_>) =
            std::mem::take(&mut rest).into_iter().enumerate().partition(|(_, term)| has(term));
        let place = inside[0].0;
        inside.iter().for_each(|(_, term)| counts.remove(new, term));
        let mut inside: Vec<Term> = inside.into_iter().map(|(_, term)| term).collect();
        let (mut factors, mut coefficient) = (Vec::new(), 1.0);
        match common {
            // With all further factors common to the same terms.
            CommonFactor::Factor(factor) => {
                let mut next = Some(factor);
                while let Some(factor) = next {
                    factors.push(factor);
                    inside.iter_mut().for_each(|term| term.remove(factor));
                    let mut of_first = inside[0].factors.iter().copied();
                    next = of_first.find(|f| inside.iter().all(|term| term.factors.contains(f)));
                }
            }
            CommonFactor::Constant(c) => {
                coefficient = c;
                inside.iter_mut().for_each(|term| term.coefficient = term.coefficient.signum());
            }
        }
        factors.push(plain_sum(new, inside));
        factors.sort_unstable();
        let group = Term { coefficient, factors };
        counts.add(new, &group);
        let at = outside.iter().take_while(|(index, _)| *index < place).count();
        rest = outside.into_iter().map(|(_, term)| term).collect();
        rest.insert(at, group);
    }
    plain_sum(new, rest)
}

#[derive(Clone, Copy)]
enum CommonFactor {
    Factor(NodeId),
    Constant(f64),
}

/// Returns the magnitude of a coefficient that costs a multiplication.
fn constant(new: &Scalars, term: &Term) -> Option<f64> {
    let number = term.factors.iter().all(|&factor| new.value(factor).is_some());
    let c = term.coefficient.abs();
    (c != 1.0 && !number).then_some(c)
}

/// The number of terms of a sum that contain each removable factor, in the order of the factors.
#[derive(Default)]
struct Counts(Vec<(NodeId, usize)>);

impl Counts {
    fn add(&mut self, new: &Scalars, term: &Term) {
        each_factor(new, term, |factor| {
            match self.0.binary_search_by_key(&factor, |&(known, _)| known) {
                Ok(at) => self.0[at].1 += 1,
                Err(at) => self.0.insert(at, (factor, 1)),
            }
        });
    }

    fn remove(&mut self, new: &Scalars, term: &Term) {
        each_factor(new, term, |factor| {
            if let Ok(at) = self.0.binary_search_by_key(&factor, |&(known, _)| known) {
                self.0[at].1 -= 1;
            }
        });
    }

    /// Returns the factor of most terms, the first of several, if at least two terms have it.
    fn most(&self) -> Option<NodeId> {
        let none = (None, 1);
        let more = |best, &(factor, count): &(NodeId, usize)| match best {
            (_, most) if count > most => (Some(factor), count),
            _ => best,
        };
        self.0.iter().fold(none, more).0
    }
}

/// Calls `each` with every removable factor of a term, once.
fn each_factor(new: &Scalars, term: &Term, mut each: impl FnMut(NodeId)) {
    // A term that is a single factor would become 1, which saves nothing.
    if term.factors.len() == 1 {
        return;
    }
    let mut before = None;
    for &factor in &term.factors {
        if before != Some(factor) && new.value(factor).is_none() {
            each(factor);
        }
        before = Some(factor);
    }
}

/// Returns the factor common to most terms, if at least two have it; a factor before a constant.
fn most_common(new: &Scalars, terms: &[Term], counts: &Counts) -> Option<CommonFactor> {
    if let Some(factor) = counts.most() {
        return Some(CommonFactor::Factor(factor));
    }
    let mut magnitudes: BTreeMap<u64, usize> = BTreeMap::new();
    for c in terms.iter().filter_map(|term| constant(new, term)) {
        *magnitudes.entry(c.to_bits()).or_insert(0) += 1;
    }
    let twice = |c: &f64| magnitudes.get(&c.to_bits()).is_some_and(|&count| count > 1);
    terms.iter().filter_map(|term| constant(new, term)).find(twice).map(CommonFactor::Constant)
}

fn plain_sum(new: &mut Scalars, terms: Vec<Term>) -> NodeId {
    let mut sum = new.constant(0.0);
    for term in terms {
        let mut factors = term.factors.into_iter();
        let first = factors.next().unwrap_or_else(|| new.constant(1.0));
        let product = factors.fold(first, |product, factor| new.mul(product, factor));
        let coefficient = new.constant(term.coefficient.abs());
        let product = new.mul(coefficient, product);
        // The sign belongs to the sum: a difference that occurs elsewhere stays unchanged.
        sum = if term.coefficient < 0.0 { new.sub(sum, product) } else { new.add(sum, product) };
    }
    sum
}

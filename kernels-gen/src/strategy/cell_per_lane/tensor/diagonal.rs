//! The diagonal of the Jacobian on tensor cells, sum-factorised.
//!
//! ```text
//! J_ii = Σ_q  gg_ab ∂_a φ_i ∂_b φ_i + (gv_a + vg_a) φ_i ∂_a φ_i + vv φ_i φ_i
//! ```
//!
//! and likewise for the pairs of parts in the list of a block with second derivatives.
//!
//! Hanging nodes are recomputed one by one, with the functions of their parents ([`crate::lower::hanging::zones`]).
//!
//! Each coefficient is integrated against products of two 1D tables: B², B B', B'², B B'' and so on.

use super::{ElementVector, Tensor};
use crate::kir::LocalId;
use crate::lower::contract::{Matrix, contract};
use crate::lower::ends::squared;
use crate::lower::factors::Factors;
use crate::lower::hanging::HangingFlags;
use crate::lower::hanging::zones::{Basis, zones};
use crate::lower::lowering::{Lowering, repeat};
use crate::lower::stored::{Block, Blocks, CoefficientIndex, PartValues};
use fem_dsl::point::{Part, Side};

/// One coefficient: its index among the values of a point, its multiplicity, and the parts of the two factors.
struct Term {
    number: usize,
    factor: f64,
    parts: (Part, Part),
}

fn terms(
    blocks: &Blocks,
    (block, indices): &(Block, Vec<CoefficientIndex>),
    dim: usize,
) -> Vec<Term> {
    let mut terms = Vec::new();
    let mut push = |factor: f64, parts| {
        let CoefficientIndex { number, is_reversed } = indices[terms.len()];
        let factor = if is_reversed { -factor } else { factor };
        terms.push(Term { number, factor, parts });
    };
    for ((test, trial), factor) in blocks.multiplicities(block) {
        push(factor, (test, trial));
    }
    if !block.gg.is_empty() {
        let symmetric = block.symmetric();
        for a in 0..dim {
            for b in if symmetric { a } else { 0 }..dim {
                let factor = if symmetric && a != b { 2.0 } else { 1.0 };
                push(factor, (Part::Derivative(a), Part::Derivative(b)));
            }
        }
    }
    for part in [&block.gv, &block.vg] {
        if !part.is_empty() {
            for a in 0..dim {
                push(1.0, (Part::Derivative(a), Part::Value));
            }
        }
    }
    if block.vv.is_some() {
        push(1.0, (Part::Value, Part::Value));
    }
    terms
}

pub(super) fn lower(s: &mut Lowering<'_>, tensor: &Tensor) {
    let coefficients = s.coefficients(tensor.q_all());
    tensor.each_row_point(s);
    let blocks = &s.facts.blocks;
    for result in tensor.results() {
        let (factors, nodal) = (&result.factors, result.arrays.nodal);
        let nodes = factors.n(tensor.dim - 1) * tensor.nodal_plane(factors);
        for (component, row) in result.rows.clone().enumerate() {
            let pair = blocks.pairs.iter().find(|(test, _, _)| *test == row);
            let terms = pair.map_or_else(Vec::new, |&(_, _, block)| {
                terms(blocks, &blocks.blocks[block], tensor.dim)
            });
            let to = component * nodes;
            if terms.is_empty() {
                s.b.clear(nodal, to, nodes);
            }
            for (order, term) in terms.iter().enumerate() {
                integrate(s, (tensor, result), coefficients, term, to, order > 0);
            }
        }
        if s.facts.result_hangs(result.field) {
            hanging(s, tensor, result, coefficients);
        }
    }
    tensor.scatter(s);
}

/// Computes the diagonal at hanging nodes.
fn hanging(s: &mut Lowering<'_>, tensor: &Tensor, result: &ElementVector, coefficients: LocalId) {
    s.comment_on("hanging nodes of", result.field);
    let (dim, q) = (tensor.dim, tensor.q);
    let words = HangingFlags::new(s, Side::Inside);
    let points = tensor.line.points();
    let lines = &result.factors.lines[..dim];
    let bases: Vec<Basis> =
        lines.iter().map(|&line| Basis::new(s, line, &points, "points")).collect();
    let bases: Vec<&Basis> = bases.iter().collect();
    let nodes = tensor.nodes(&result.factors, result.arrays.nodal, result.rows.len());
    let blocks = &s.facts.blocks;
    for zone in zones(dim, result.factors.lines) {
        zone.each(s, words, &mut |s, node| {
            let place = nodes.place(&node.at);
            for (c, row) in result.rows.clone().enumerate() {
                let at = place.plus(c * nodes.length);
                let own = s.b.load(nodes.array, at.clone());
                let kept = s.b.fma_neg(node.hangs, own, own);
                s.b.store(nodes.array, at.clone(), kept);
                let pairs: Vec<usize> =
                    blocks.pairs.iter().filter(|pair| pair.0 == row).map(|pair| pair.2).collect();
                if pairs.is_empty() {
                    continue;
                }
                let outer = if dim == 3 { q } else { 1 };
                repeat(s, "z", outer, false, |s, z| {
                    repeat(s, "y", q, false, |s, y| {
                        repeat(s, "x", q, false, |s, x| {
                            let points = [&x, &y, &z];
                            let (value, gradient) = node.basis(&mut s.b, &bases, &points[..dim]);
                            let point = &(&z.times(q) + &y).times(q) + &x;
                            let mut sum = s.b.constant(0.0);
                            for &block in &pairs {
                                let read = |number: usize| {
                                    s.b.load(coefficients, point.plus(number * tensor.q_all()))
                                };
                                let pulled = blocks.reread(block, read);
                                let (value, gradient) = (Some(value), &gradient[..]);
                                let own = PartValues { value, gradient, second: &[] };
                                sum = squared(&mut s.b, &pulled, [own; 2], sum);
                            }
                            let own = s.b.load(nodes.array, at.clone());
                            let sum = s.b.fma(node.hangs, sum, own);
                            s.b.store(nodes.array, at.clone(), sum);
                        });
                    });
                });
            }
        });
    }
}

/// Returns the 1D table of a direction, as n × q: a product of φ, φ' or φ''.
fn table(tensor: &Tensor, factors: &Factors, term: &Term, direction: usize) -> Matrix {
    let orders = [term.parts.0, term.parts.1].map(|part| part.along(direction));
    crate::lower::ends::table_of(factors.lines[direction], tensor.line, orders)
}

fn integrate(
    s: &mut Lowering<'_>,
    (tensor, result): (&Tensor, &ElementVector),
    coefficients: LocalId,
    term: &Term,
    to: usize,
    add: bool,
) {
    let (dim, q, columns) = (tensor.dim, tensor.q, tensor.columns());
    let (factors, nodal) = (&result.factors, result.arrays.nodal);
    let (n, layers, plane) = (factors.n(0), factors.n(dim - 1), tensor.nodal_plane(factors));
    let even_odd = s.facts.plan.even_odd;
    let from = term.number * tensor.q_all();
    let last = s.b.local("diagonal_last", layers * columns);
    let scaled = {
        let mut matrix = table(tensor, factors, term, dim - 1);
        matrix.entries.iter_mut().for_each(|entry| *entry *= term.factor);
        matrix
    };
    s.b.repeat("column", columns, false, |b, column| {
        let input = b.load_line(coefficients, &column.plus(from), columns, q);
        let output = contract(b, &scaled, &input, None, even_odd);
        b.store_line(last, &column, columns, &output);
    });
    let first = table(tensor, factors, term, 0);
    let rows = if dim == 3 { factors.n(1) } else { 1 };
    let layer = s.b.local("diagonal_layer", rows * q);
    let middle = table(tensor, factors, term, 1);
    repeat(s, "k", layers, false, |s, k| {
        if dim == 3 {
            s.b.repeat("i", q, false, |b, i| {
                let input = b.load_line(last, &(&k.times(q * q) + &i), q, q);
                let output = contract(b, &middle, &input, None, even_odd);
                b.store_line(layer, &i, q, &output);
            });
        }
        s.b.repeat("j", rows, false, |b, j| {
            let input = if dim == 3 {
                b.load_line(layer, &j.times(q), 1, q)
            } else {
                b.load_line(last, &k.times(q), 1, q)
            };
            let start = (&k.times(plane) + &j.times(n)).plus(to);
            let onto = add.then(|| b.load_line(nodal, &start, 1, n));
            let output = contract(b, &first, &input, onto.as_deref(), even_odd);
            b.store_line(nodal, &start, 1, &output);
        });
    });
}

//! Diagonal of an integral over facets of tensor cells, node by node.

use super::{ElementVector, Facet};
use crate::element::LineBasis;
use crate::kir::{Entries, Index, LocalId, TableId, ValueId};
use crate::lower::contract::Matrix;
use crate::lower::ends::squared;
use crate::lower::facet_line::{FacetLine, half, times};
use crate::lower::hanging::HangingFlags;
use crate::lower::hanging::zones::{Basis, zones};
use crate::lower::lowering::{Lowering, repeat};
use crate::lower::stored::PartValues;
use fem_dsl::point::Part;

impl Facet {
    /// Returns the values and the derivatives of a line's nodes at its points, as tables `[point][node]`; second ones if
    /// they are needed.
    fn tables(&self, s: &mut Lowering<'_>, line: &FacetLine) -> Vec<TableId> {
        let degree = line.n - 1;
        let flat = |matrix: &Matrix| {
            let rows = 0..matrix.rows;
            let entries = rows.flat_map(|q| (0..matrix.columns).map(move |i| matrix.at(q, i)));
            Entries::Real(entries.collect())
        };
        let half = if line.is_larger { "half_" } else { "" };
        let words = [("values", 0), ("slopes", 1), ("bends", 2)];
        let count = if s.facts.blocks.has_second() { 3 } else { 2 };
        let table = |s: &mut Lowering<'_>, (word, order): (&str, usize)| {
            s.b.table(&format!("{half}line{degree}_{word}"), flat(line.of_order(order)))
        };
        words[..count].iter().map(|&of| table(s, of)).collect()
    }

    /// Adds r_b += Σ coefficients · φ_b φ_b at the point of a line's points.
    pub(super) fn diagonal(
        &self,
        s: &mut Lowering<'_>,
        outcome: &ElementVector,
        nodal: LocalId,
        at: [&Index; 2],
    ) {
        let (n, dim) = (outcome.line.n, self.dim);
        let plane = self.plane(&outcome.line);
        let coefficients = s.coefficients(1);
        let tables = self.tables(s, &outcome.line);
        let (blocks, rows) = (&s.facts.blocks, s.facts.rows_of(outcome.field));
        let outer = if dim == 3 { n } else { 1 };
        repeat(s, "k", outer, false, |s, k| {
            repeat(s, "j", n, false, |s, j| {
                let entry = |point: &Index, node: &Index| &point.times(n) + node;
                let of = |s: &mut Lowering<'_>, table: TableId, axis: usize| {
                    let node = if axis == 0 { &j } else { &k };
                    s.b.load_table(table, entry(at[axis], node))
                };
                // φ and its derivatives along the facet, without the factor of ξ₀.
                let along: Vec<Vec<ValueId>> = (0..dim - 1)
                    .map(|axis| tables.iter().map(|&table| of(s, table, axis)).collect())
                    .collect();
                let product = |s: &mut Lowering<'_>, part: Part| {
                    let of = |axis: usize| along[axis][part.along(axis + 1)];
                    let mut product = of(0);
                    for axis in 1..dim - 1 {
                        product = s.b.mul(product, of(axis));
                    }
                    product
                };
                let value = product(s, Part::Value);
                let tangential: Vec<ValueId> =
                    (1..dim).map(|axis| product(s, Part::Derivative(axis))).collect();
                let second: Vec<(Part, ValueId)> = if tables.len() > 2 {
                    let parts = Part::of_order(2, dim).into_iter();
                    parts.map(|part| (part, product(s, part))).collect()
                } else {
                    Vec::new()
                };
                for i in 0..n {
                    let slope = s.b.constant(outcome.line.slopes[i]);
                    let normal = s.b.mul(slope, value);
                    let end = outcome.line.ends[i];
                    let mut gradient = vec![normal];
                    for &t in &tangential {
                        gradient.push(times(&mut s.b, end, t));
                    }
                    let value = times(&mut s.b, end, value);
                    let across = [end, outcome.line.slopes[i], outcome.line.bends[i]];
                    let second: Vec<ValueId> = second
                        .iter()
                        .map(|&(part, along)| times(&mut s.b, across[part.along(0)], along))
                        .collect();
                    for &(row, _, block) in blocks.pairs.iter().filter(|p| rows.contains(&p.0)) {
                        let read = |number: usize| s.b.load(coefficients, Index::from(number));
                        let pulled = blocks.reread(block, read);
                        let start = (row - rows.start) * n * plane + i;
                        let place = (&k.times(n * n) + &j.times(n)).plus(start);
                        let sum = s.b.load(nodal, place.clone());
                        let (gradient, second) = (&gradient[..], &second[..]);
                        let own = PartValues { value: Some(value), gradient, second };
                        let sum = squared(&mut s.b, &pulled, [own; 2], sum);
                        s.b.store(nodal, place, sum);
                    }
                }
            });
        });
    }

    /// Computes the same for hanging nodes, whose sums follow those of all nodes.
    pub(super) fn hanging_diagonal(
        &self,
        s: &mut Lowering<'_>,
        outcome: &ElementVector,
        nodal: LocalId,
        at: [&Index; 2],
    ) {
        let (n, dim, words) = (outcome.line.n, self.dim, HangingFlags::new(s, outcome.side));
        let nodes = LineBasis::Nodal(outcome.line.nodes);
        let along = match outcome.line.is_larger {
            false => Basis::new(s, nodes, &self.points.points(), "points"),
            true => Basis::new(s, nodes, &half(self.points), "half_points"),
        };
        let across = Basis::new(s, nodes, &[0.0], "facet");
        let coefficients = s.coefficients(1);
        let (blocks, rows) = (&s.facts.blocks, s.facts.rows_of(outcome.field));
        let length = n * self.plane(&outcome.line);
        for zone in zones(dim, [nodes; 3]) {
            zone.each(s, words, &mut |s, node| {
                let start = Index::from(0);
                let (bases, points) = ([&across, &along, &along], [&start, at[0], at[1]]);
                let (value, gradient) = node.basis(&mut s.b, &bases[..dim], &points[..dim]);
                for &(row, _, block) in blocks.pairs.iter().filter(|p| rows.contains(&p.0)) {
                    let read = |number: usize| s.b.load(coefficients, Index::from(number));
                    let pulled = blocks.reread(block, read);
                    let [i, j, k] = &node.at;
                    let place = &(&k.times(n * n) + &j.times(n)) + i;
                    let place = place.plus((row - rows.start + rows.len()) * length);
                    let zero = s.b.constant(0.0);
                    let own = PartValues { value: Some(value), gradient: &gradient, second: &[] };
                    let own = squared(&mut s.b, &pulled, [own; 2], zero);
                    let sum = s.b.load(nodal, place.clone());
                    let sum = s.b.fma(node.hangs, own, sum);
                    s.b.store(nodal, place, sum);
                }
            });
        }
    }

    /// Replaces the results of hanging nodes by their own sums.
    pub(super) fn take_hanging(
        &self,
        s: &mut Lowering<'_>,
        outcome: &ElementVector,
        array: LocalId,
    ) {
        let (n, words) = (outcome.line.n, HangingFlags::new(s, outcome.side));
        let (components, length) =
            (s.facts.components(outcome.field), n * self.plane(&outcome.line));
        for zone in zones(self.dim, [outcome.line.nodes.into(); 3]) {
            zone.each(s, words, &mut |s, node| {
                let [i, j, k] = &node.at;
                let place = &(&k.times(n * n) + &j.times(n)) + i;
                for c in 0..components {
                    let own = s.b.load(array, place.plus(c * length));
                    let hanging = s.b.load(array, place.plus((components + c) * length));
                    let kept = s.b.fma_neg(node.hangs, own, own);
                    let sum = s.b.add(kept, hanging);
                    s.b.store(array, place.plus(c * length), sum);
                }
            });
        }
    }
}

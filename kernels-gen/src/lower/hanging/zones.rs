//! The basis functions of cells with hanging nodes, which the diagonal is made of.
//!
//! A function that belongs to a node of the parent is, on the child, again a product of functions of each axis: φ_i of the
//! child, or along an axis in which its node is interpolated ψ_i = Σ_j A_ji φ_j, the parent's own φ_i seen from the child.
//! Which of both it is depends on the vertex, edge or face that the node lies in, so that a cell's nodes come apart in
//! zones in which all are alike.
//!
//! ```text
//! J_ii = Σ_q Σ_ab c_ab(q) ∂_a φ̃_i(q) ∂_b φ̃_i(q)      φ̃_i(q) = Π_d (φ_i + w⁻_d (ψ⁻_i − φ_i) + w⁺_d (ψ⁺_i − φ_i))(q_d)
//! ```
//!
//! with weights of 0 or 1 for each lane.

use super::{Words, of_parent};
use crate::abi::hanging::{corner, others, side};
use crate::element::{LinePoints, LineTable};
use crate::kir::build::Builder;
use crate::kir::{Condition, Entries, Index, TableId, ValueId};
use crate::lower::lowering::{Lowering, repeat};
use std::ops::Range;

/// The nodes inside a vertex, an edge or a face of a cell.
pub(crate) struct Zone {
    /// The places of its nodes along each axis.
    nodes: [Range<usize>; 3],
    /// For each axis along which its nodes may be interpolated the bit that says so.
    bits: [Option<u32>; 3],
    /// Bits of which any says that its nodes hang: they are interpolated along all axes of a face or an edge or along none.
    any: Vec<u32>,
}

/// The zones of a cell in `dim` dimensions with so many nodes a direction, but for its inside; those without nodes are left
/// out.
pub(crate) fn zones(dim: usize, n: usize) -> Vec<Zone> {
    let part = |code: usize| match code {
        0 => 0..1,
        1 => 1..n - 1,
        _ => n - 1..n,
    };
    let zone = |code: usize| {
        let parts = [code % 3, code / 3 % 3, code / 9];
        let bit = |axis: usize| {
            let ends: Vec<Option<usize>> =
                others(axis, dim).map(|other| [Some(0), None, Some(1)][parts[other]]).collect();
            match ends[..] {
                [Some(a), Some(b)] => Some(corner(axis, a, b)),
                [Some(a), None] | [Some(a)] => Some(side(axis, 0, a)),
                [None, Some(b)] => Some(side(axis, 1, b)),
                _ => None,
            }
        };
        let mut bits = [None; 3];
        (0..dim).for_each(|axis| bits[axis] = bit(axis));
        let inside = (0..dim).find(|&axis| parts[axis] == 1);
        let any = match inside {
            Some(axis) => bits[axis].into_iter().collect(),
            None => bits.iter().flatten().copied().collect(),
        };
        let nodes = [0, 1, 2].map(|axis| if axis < dim { part(parts[axis]) } else { 0..1 });
        Zone { nodes, bits, any }
    };
    let all = (0..3usize.pow(dim as u32)).map(zone);
    all.filter(|zone| zone.nodes.iter().all(|nodes| !nodes.is_empty()) && !zone.any.is_empty())
        .collect()
}

/// Functions of one axis at points of it: those of the child, and what the parent's differ by on the lower and on the upper
/// child.
pub(crate) struct Basis {
    n: usize,
    /// `[part][of whom]`, each `[point][node]`.
    tables: [[TableId; 3]; 2],
}

impl Basis {
    /// Of the nodes of a line, at points of [0, 1]; `name` is that of the points.
    pub(crate) fn new(s: &mut Lowering<'_>, nodes: LinePoints, points: &[f64], name: &str) -> Self {
        let (n, own) = (nodes.count(), LineTable::at(nodes, points));
        let part = |q: usize, i: usize, derived: bool| {
            if derived { own.derivative(q, i) } else { own.value(q, i) }
        };
        let tables = [false, true].map(|derived| {
            let word = if derived { "slopes" } else { "values" };
            [None, Some(false), Some(true)].map(|up| {
                let parents = up.map(|up| of_parent(nodes, up));
                let entry = |q: usize, i: usize| match &parents {
                    None => part(q, i, derived),
                    Some(a) => {
                        let psi: f64 = (0..n).map(|j| a.at(j, i) * part(q, j, derived)).sum();
                        psi - part(q, i, derived)
                    }
                };
                let at = (0..points.len()).flat_map(|q| (0..n).map(move |i| (q, i)));
                let entries = at.map(|(q, i)| entry(q, i)).collect();
                let of = ["own", "lower", "upper"][up.map_or(0, |up| 1 + usize::from(up))];
                s.b.table(&format!("{name}{}_{word}_{of}", n - 1), Entries::Real(entries))
            })
        });
        Self { n, tables }
    }

    /// Value and derivative of a node's function at a point, as the weights of both children say.
    fn at(
        &self,
        b: &mut Builder,
        weights: Option<[ValueId; 2]>,
        point: &Index,
        node: &Index,
    ) -> [ValueId; 2] {
        let at = &point.times(self.n) + node;
        self.tables.map(|[own, lower, upper]| {
            let mut value = b.load_table(own, at.clone());
            for (weight, table) in weights.into_iter().flatten().zip([lower, upper]) {
                let entry = b.load_table(table, at.clone());
                value = b.fma(weight, entry, value);
            }
            value
        })
    }
}

/// A node of a zone: its places, whether it hangs in the lane, 1 or 0, and the weights along each axis.
pub(crate) struct Hanging {
    pub(crate) at: [Index; 3],
    pub(crate) hangs: ValueId,
    weights: [Option<[ValueId; 2]>; 3],
}

impl Hanging {
    /// Value and derivatives of its function, at a point of each axis.
    pub(crate) fn basis(
        &self,
        b: &mut Builder,
        bases: &[&Basis],
        points: &[&Index],
    ) -> (ValueId, Vec<ValueId>) {
        let dim = bases.len();
        let factors: Vec<[ValueId; 2]> = (0..dim)
            .map(|axis| bases[axis].at(b, self.weights[axis], points[axis], &self.at[axis]))
            .collect();
        let product = |b: &mut Builder, derived: Option<usize>| {
            let of = |axis: usize| factors[axis][usize::from(derived == Some(axis))];
            (1..dim).fold(of(0), |product, axis| b.mul(product, of(axis)))
        };
        let value = product(b, None);
        (value, (0..dim).map(|axis| product(b, Some(axis))).collect())
    }
}

impl Zone {
    /// Calls `body` with each of its nodes, where they hang in some cell of the batch; a vertex always.
    pub(crate) fn each(
        &self,
        s: &mut Lowering<'_>,
        words: Words,
        body: &mut dyn FnMut(&mut Lowering<'_>, &Hanging),
    ) {
        s.b.open_when();
        let hangs = self.any.iter().fold(None, |any, &bit| {
            let own = words.flag(&mut s.b, bit);
            Some(match any {
                None => own,
                // a + b − a b
                Some(any) => {
                    let sum = s.b.add(any, own);
                    let both = s.b.mul(any, own);
                    s.b.sub(sum, both)
                }
            })
        });
        let weights = [0, 1, 2].map(|axis| {
            let bit = self.bits[axis]?;
            let of = |up| words.flag_of_child(&mut s.b, bit, axis, up);
            Some([false, true].map(of))
        });
        if let Some(hangs) = hangs {
            self.nodes_each(s, &mut |s, at| body(s, &Hanging { at, hangs, weights }));
        }
        s.b.close_when(match self.any[..] {
            [bit] => vec![Condition::Bit(words.all, bit)],
            _ => Vec::new(),
        });
    }

    fn nodes_each(
        &self,
        s: &mut Lowering<'_>,
        body: &mut dyn FnMut(&mut Lowering<'_>, [Index; 3]),
    ) {
        let [first, second, third] = &self.nodes;
        repeat(s, "k", third.len(), false, |s, k| {
            repeat(s, "j", second.len(), false, |s, j| {
                repeat(s, "i", first.len(), false, |s, i| {
                    let at = [i.plus(first.start), j.plus(second.start), k.plus(third.start)];
                    body(s, at);
                });
            });
        });
    }
}

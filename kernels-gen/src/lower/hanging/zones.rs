//! The basis functions of cells with hanging nodes, for the diagonal.
//!
//! The basis function of a parent's node is, on the child, a sum of products of one-dimensional functions. Along an
//! axis in which its node is interpolated, the child's φ_i is replaced by the parent's function seen from the child,
//! ψ_i = Σ_j A_ji φ_j, a change by δ = ψ − φ. The change occurs along a hanging line and over a hanging face only. It
//! depends on the vertex, edge or face of the node, so that a cell's nodes are partitioned into zones of equal
//! structure.
//!
//! ```text
//! J_ii = Σ_q Σ_ab c_ab(q) ∂_a φ̃_i(q) ∂_b φ̃_i(q)      δ = ψ − φ
//! φ̃_i = φ φ φ + Σ_d w_d δ_d φ φ + Σ_f w_f φ_f δ δ     w_d: the line along d hangs, w_f: the face with normal f does
//! ```
//!
//! with weights of 0 or 1 for each lane.

use super::lines::bit_of;
use super::{HangingFlags, of_parent};
use crate::abi::hanging::{others, side};
use crate::element::LineBasis;
use crate::kir::build::Builder;
use crate::kir::{Condition, Entries, Index, TableId, ValueId};
use crate::lower::lowering::{Lowering, repeat};
use std::ops::Range;

/// The nodes inside a vertex, an edge or a face of a cell.
pub(crate) struct Zone {
    /// The positions of its nodes along each axis.
    nodes: [Range<usize>; 3],
    /// For each axis along which its nodes may be interpolated, the corresponding bit.
    bits: [Option<u32>; 3],
    /// For each axis that is the normal of a face with its nodes, the bit of a hanging face.
    faces: [Option<u32>; 3],
    /// Bits of which any indicates hanging nodes: these are interpolated along all axes of a face or an edge or along
    /// none.
    any: Vec<u32>,
}

/// Returns the zones of a cell in `dim` dimensions with these functions along each axis, without its interior; zones
/// without nodes are omitted.
pub(crate) fn zones(dim: usize, lines: [LineBasis; 3]) -> Vec<Zone> {
    let part = |axis: usize, code: usize| {
        let n = lines[axis].count();
        match (code, lines[axis].is_closed()) {
            (0, true) => 0..1,
            (1, true) => 1..n - 1,
            (_, true) => n - 1..n,
            // Functions of integrals are those of no end.
            (1, false) => 0..n,
            (_, false) => 0..0,
        }
    };
    let zone = |code: usize| {
        let parts = [code % 3, code / 3 % 3, code / 9];
        let end = |axis: usize| [Some(0), None, Some(1)][parts[axis]];
        let bit = |axis: usize| bit_of(axis, &others(axis, dim).map(end).collect::<Vec<_>>());
        // The first axis along the face, whose other axes include the normal.
        let face = |normal: usize| {
            let along = others(normal, dim).next()?;
            let number = others(along, dim).position(|other| other == normal)?;
            Some(side(along, number, end(normal)?))
        };
        let (mut bits, mut faces) = ([None; 3], [None; 3]);
        (0..dim).for_each(|axis| bits[axis] = bit(axis));
        (0..dim).filter(|_| dim == 3).for_each(|normal| faces[normal] = face(normal));
        let inside = (0..dim).find(|&axis| parts[axis] == 1);
        let any = match inside {
            Some(axis) => bits[axis].into_iter().collect(),
            None => bits.iter().flatten().copied().collect(),
        };
        let nodes = [0, 1, 2].map(|axis| if axis < dim { part(axis, parts[axis]) } else { 0..1 });
        Zone { nodes, bits, faces, any }
    };
    let all = (0..3usize.pow(dim as u32)).map(zone);
    all.filter(|zone| zone.nodes.iter().all(|nodes| !nodes.is_empty()) && !zone.any.is_empty())
        .collect()
}

/// One-dimensional functions at points: those of the child, and the differences of the parent's on the lower and on the
/// upper child.
pub(crate) struct Basis {
    n: usize,
    /// `[part][child's or difference]`, each `[point][node]`.
    tables: [[TableId; 3]; 2],
}

impl Basis {
    /// Tabulates functions at points of [0, 1]; `name` is that of the points.
    pub(crate) fn new(s: &mut Lowering<'_>, basis: LineBasis, points: &[f64], name: &str) -> Self {
        let (n, own) = (basis.count(), basis.table_at(points));
        let part = |q: usize, i: usize, derived: bool| {
            if derived { own.derivative(q, i) } else { own.value(q, i) }
        };
        let tables = [false, true].map(|derived| {
            let word = if derived { "slopes" } else { "values" };
            [None, Some(false), Some(true)].map(|up| {
                let parents = up.map(|up| of_parent(basis, up));
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
                let degree = basis.points().count() - 1;
                let kind = if basis.is_closed() { "" } else { "_integrals" };
                s.b.table(&format!("{name}{degree}{kind}_{word}_{of}"), Entries::Real(entries))
            })
        });
        Self { n, tables }
    }

    /// Returns value and derivative at a point of a node's own function, and of its difference on the current child.
    fn at(
        &self,
        b: &mut Builder,
        halves: Option<[ValueId; 2]>,
        point: &Index,
        node: &Index,
    ) -> Factor {
        let at = &point.times(self.n) + node;
        let own = self.tables.map(|[own, ..]| b.load_table(own, at.clone()));
        let differs = halves.map(|halves| {
            self.tables.map(|[_, lower, upper]| {
                let [lower, upper] = [lower, upper].map(|table| b.load_table(table, at.clone()));
                let part = b.mul(halves[0], lower);
                b.fma(halves[1], upper, part)
            })
        });
        Factor { own, differs }
    }
}

/// Value and derivative of one-dimensional functions.
struct Factor {
    own: [ValueId; 2],
    /// The difference; `None` along an axis in which a node is never interpolated.
    differs: Option<[ValueId; 2]>,
}

/// A node of a zone: its position, and the lane's hanging flags, 1 or 0.
pub(crate) struct HangingNode {
    pub(crate) at: [Index; 3],
    /// The flag of the node.
    pub(crate) hangs: ValueId,
    /// The flags of the line along each axis, and of the face with it as its normal.
    lines: [Option<ValueId>; 3],
    faces: [Option<ValueId>; 3],
    /// The flags of the lower and the upper child along each axis.
    halves: [Option<[ValueId; 2]>; 3],
}

impl HangingNode {
    /// Returns value and derivatives of its function, at a point of each axis.
    pub(crate) fn basis(
        &self,
        b: &mut Builder,
        bases: &[&Basis],
        points: &[&Index],
    ) -> (ValueId, Vec<ValueId>) {
        let dim = bases.len();
        let factors: Vec<Factor> = (0..dim)
            .map(|axis| bases[axis].at(b, self.halves[axis], points[axis], &self.at[axis]))
            .collect();
        let value = self.sum(b, &factors, None);
        (value, (0..dim).map(|axis| self.sum(b, &factors, Some(axis))).collect())
    }

    /// Returns the sum of products, differentiated along an axis.
    fn sum(&self, b: &mut Builder, factors: &[Factor], derived: Option<usize>) -> ValueId {
        let dim = factors.len();
        // The axes of a product with the difference instead of the node's own function.
        let product = |b: &mut Builder, differing: &dyn Fn(usize) -> bool| {
            let of = |axis: usize| {
                let Factor { own, differs } = &factors[axis];
                let parts = differs.as_ref().filter(|_| differing(axis)).unwrap_or(own);
                parts[usize::from(derived == Some(axis))]
            };
            (1..dim).fold(of(0), |product, axis| b.mul(product, of(axis)))
        };
        let mut sum = product(b, &|_| false);
        for axis in 0..dim {
            if let Some(weight) = self.lines[axis] {
                let along = product(b, &|other| other == axis);
                sum = b.fma(weight, along, sum);
            }
            if let Some(weight) = self.faces[axis] {
                let over = product(b, &|other| other != axis);
                sum = b.fma(weight, over, sum);
            }
        }
        sum
    }
}

impl Zone {
    /// Calls `body` for each of its nodes, if they hang in some cell of the batch; for a vertex always.
    pub(crate) fn each(
        &self,
        s: &mut Lowering<'_>,
        words: HangingFlags,
        body: &mut dyn FnMut(&mut Lowering<'_>, &HangingNode),
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
        let mut flag = |bit: Option<u32>| bit.map(|bit| words.flag(&mut s.b, bit));
        let (lines, faces) = (self.bits.map(&mut flag), self.faces.map(&mut flag));
        let halves = [0, 1, 2].map(|axis| {
            self.bits[axis]?;
            Some([false, true].map(|up| words.child(&mut s.b, axis, up)))
        });
        if let Some(hangs) = hangs {
            self.nodes_each(s, &mut |s, at| {
                body(s, &HangingNode { at, hangs, lines, faces, halves })
            });
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

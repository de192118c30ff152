//! The diagonal of the Jacobian on tensor cells: which coefficients are integrated against what.
//!
//! ```text
//! J_ii = Σ_q  gg_ab ∂_a φ_i ∂_b φ_i + (gv_a + vg_a) φ_i ∂_a φ_i + vv φ_i φ_i
//! ```
//!
//! Each product of two factors is one of 1D tables, in every direction φ², φ φ' or φ'²; coefficients of
//! the same product are added before they are integrated.

use super::lowering::Lowering;
use super::point::{Evaluate, pulled_blocks};
use crate::element::{LinePoints, LineTable};
use crate::kir::{Index, ValueId};
use crate::lower::contract::Matrix;
use crate::lower::jacobian::AtPoint;
use crate::lower::stored::{Block, Blocks, Pulled};

/// The directions in which the two factors of a product are derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Product(Option<usize>, Option<usize>);

impl Product {
    /// How many of the factors are derived in a direction.
    pub(crate) fn derived(self, direction: usize) -> usize {
        [self.0, self.1].into_iter().filter(|&axis| axis == Some(direction)).count()
    }

    fn is_in(self, block: &Block) -> bool {
        match self {
            Self(Some(_), Some(_)) => !block.gg.is_empty(),
            Self(None, None) => block.vv.is_some(),
            Self(..) => !block.gv.is_empty() || !block.vg.is_empty(),
        }
    }

    /// Its coefficient.
    fn of(self, s: &mut Lowering<'_>, pulled: &Pulled) -> ValueId {
        let zero = s.b.constant(0.0);
        match self {
            Self(Some(a), Some(b)) if pulled.gg.is_empty() || a == b => {
                pulled.gg.get(a).map_or(zero, |row| row[b])
            }
            Self(Some(a), Some(b)) => s.b.add(pulled.gg[a][b], pulled.gg[b][a]),
            Self(Some(a), None) | Self(None, Some(a)) => {
                let of = |part: &[ValueId]| part.get(a).copied().unwrap_or(zero);
                s.b.add(of(&pulled.gv), of(&pulled.vg))
            }
            Self(None, None) => pulled.vv.unwrap_or(zero),
        }
    }
}

/// The products that any of the blocks has a coefficient for.
pub(crate) fn products(blocks: &Blocks, dim: usize) -> Vec<Product> {
    let pairs = (0..dim).flat_map(|a| (a..dim).map(move |b| Product(Some(a), Some(b))));
    let singles = (0..dim).map(|a| Product(Some(a), None));
    let all = pairs.chain(singles).chain([Product(None, None)]);
    all.filter(|product| blocks.blocks.iter().any(|(block, _)| product.is_in(block))).collect()
}

/// The coefficients of the products at a point, for the components of all fields.
pub(crate) fn coefficients(
    s: &mut Lowering<'_>,
    products: &[Product],
    at: &AtPoint,
    point: &Index,
    evaluate: &mut Evaluate<'_>,
) -> Vec<Vec<ValueId>> {
    let pulled = pulled_blocks(s, at, point, evaluate);
    let blocks: Vec<Vec<ValueId>> = pulled
        .iter()
        .map(|pulled| products.iter().map(|product| product.of(s, pulled)).collect())
        .collect();
    let zero = s.b.constant(0.0);
    let of = |row: usize| {
        let pair = s.facts.blocks.pairs.iter().find(|(test, _, _)| *test == row);
        pair.map_or_else(|| vec![zero; products.len()], |&(_, _, block)| blocks[block].clone())
    };
    (0..s.facts.rows()).map(of).collect()
}

/// The 1D table of the nodes of a line against the points, n × q, where so many of the factors are derived.
pub(crate) fn table(nodes: LinePoints, points: LinePoints, derived: usize) -> Matrix {
    let line = LineTable::new(nodes, points);
    let factor = |derived: bool, q: usize, i: usize| {
        if derived { line.derivative(q, i) } else { line.value(q, i) }
    };
    let entry = |i: usize, q: usize| factor(derived > 0, q, i) * factor(derived > 1, q, i);
    Matrix::from_fn(nodes.count(), points.count(), entry)
}

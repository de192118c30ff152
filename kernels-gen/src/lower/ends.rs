//! The last step of a kernel: values at a point → contributions to the basis functions.
//!
//! ```text
//! element vector   r_b  = Σ_q φ_b f0 + ∇φ_b · f1
//! diagonal         J_bb = Σ_q ∇φ_b · gg ∇φ_b + (gv + vg) · φ_b ∇φ_b + vv φ_b²
//! ```
//!
//! On tensor cells the diagonal is integrated product by product. Each product of two factors is one of 1D tables, in
//! every direction φ², φ φ' or φ'²; coefficients of equal products are added before integration.

use super::facts::KernelFacts;
use super::jacobian::PointGeometry;
use super::lowering::{Evaluate, Lowering};
use super::point::pulled_blocks;
use super::stored::{Block, Blocks, PartValues, PulledBlock, TestFactors, act};
use crate::element::{LineBasis, LinePoints};
use crate::kir::build::Builder;
use crate::kir::{Index, ValueId};
use crate::lower::contract::Matrix;
use crate::plan::Task;
use fem_dsl::point::Part;

/// Returns the tested values at a point: the component, among those of all fields, and the part of each.
pub(crate) fn tested_parts(facts: &KernelFacts<'_>) -> Vec<(usize, Part)> {
    let mut numbers = Vec::new();
    if !matches!(facts.plan.task, Task::Residual | Task::Action | Task::Restrict) {
        return numbers;
    }
    for row in 0..facts.rows() {
        let (value, gradient) = facts.tested(row);
        let axes = if gradient { 0..facts.form.dim } else { 0..0 };
        let parts = value.then_some(Part::Value).into_iter().chain(axes.map(Part::Derivative));
        numbers.extend(parts.map(|part| (row, part)));
    }
    numbers
}

impl TestFactors {
    /// Returns the factor of a part of a basis function, if any.
    pub(crate) fn part(&self, part: Part) -> Option<ValueId> {
        match part {
            Part::Value => self.value,
            Part::Derivative(axis) => self.gradient.get(axis).copied(),
            Part::Second(..) => unreachable!("strategies of several threads have none"),
            Part::Exterior(_) => unreachable!("the pull-back replaces exterior derivatives"),
        }
    }

    /// Computes `onto + φ f0 + ∇φ · f1 + ∇∇φ : f2` for a basis function whose parts are requested individually.
    pub(crate) fn against(
        &self,
        s: &mut Lowering<'_>,
        onto: ValueId,
        mut basis: impl FnMut(&mut Lowering<'_>, Part) -> ValueId,
    ) -> ValueId {
        let mut sum = onto;
        if let Some(value) = self.value {
            let factor = basis(s, Part::Value);
            sum = s.b.fma(factor, value, sum);
        }
        for (axis, &flux) in self.gradient.iter().enumerate() {
            let factor = basis(s, Part::Derivative(axis));
            sum = s.b.fma(factor, flux, sum);
        }
        if !self.second.is_empty() {
            for (part, &flux) in Part::of_order(2, s.facts.form.dim).into_iter().zip(&self.second) {
                let factor = basis(s, part);
                sum = s.b.fma(factor, flux, sum);
            }
        }
        sum
    }
}

/// Computes `onto` plus a basis function's diagonal entry, from one block of coefficients and the function's test and
/// trial component.
pub(crate) fn squared(
    b: &mut Builder,
    pulled: &PulledBlock,
    [test, trial]: [PartValues<'_>; 2],
    onto: ValueId,
) -> ValueId {
    let mut tested = TestFactors::default();
    act(b, pulled, trial, &mut tested);
    let mut sum = onto;
    if let (Some(flux), Some(value)) = (tested.value, test.value) {
        sum = b.fma(value, flux, sum);
    }
    let (gradient, second) = (test.gradient.iter(), test.second.iter());
    let pairs = gradient.zip(&tested.gradient).chain(second.zip(&tested.second));
    for (&slope, &flux) in pairs {
        sum = b.fma(slope, flux, sum);
    }
    sum
}

/// The directions in which the two factors of a product are differentiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Product(Option<usize>, Option<usize>);

impl Product {
    /// Returns the number of factors that are differentiated in a direction.
    pub(crate) fn derived(self, direction: usize) -> usize {
        [self.0, self.1].into_iter().filter(|&axis| axis == Some(direction)).count()
    }

    /// Returns the pairs of parts, of test and trial function, whose coefficients it has.
    fn parts(self) -> [(Part, Part); 2] {
        let part = |axis: Option<usize>| axis.map_or(Part::Value, Part::Derivative);
        let (one, other) = (part(self.0), part(self.1));
        [(one, other), (other, one)]
    }

    fn is_in(self, block: &Block) -> bool {
        if block.is_pulled() {
            return self.parts().iter().any(|parts| block.listed.contains_key(parts));
        }
        match self {
            Self(Some(_), Some(_)) => !block.gg.is_empty(),
            Self(None, None) => block.vv.is_some(),
            Self(..) => !block.gv.is_empty() || !block.vg.is_empty(),
        }
    }

    /// Computes its coefficient.
    fn of(self, s: &mut Lowering<'_>, pulled: &PulledBlock) -> ValueId {
        let zero = s.b.constant(0.0);
        if !pulled.listed.is_empty() {
            let [own, exchanged] = self.parts();
            let mut all = vec![own];
            all.extend((own != exchanged).then_some(exchanged));
            let terms = all.into_iter().filter_map(|parts| pulled.entry(parts));
            return terms.fold(zero, |sum, term| s.b.add(sum, term));
        }
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

/// Returns the products for which any of the blocks has a coefficient.
pub(crate) fn products(blocks: &Blocks, dim: usize) -> Vec<Product> {
    let pairs = (0..dim).flat_map(|a| (a..dim).map(move |b| Product(Some(a), Some(b))));
    let singles = (0..dim).map(|a| Product(Some(a), None));
    let all = pairs.chain(singles).chain([Product(None, None)]);
    all.filter(|product| blocks.blocks.iter().any(|(block, _)| product.is_in(block))).collect()
}

/// Computes the coefficients of the products at a point, for the components of all fields.
pub(crate) fn coefficients(
    s: &mut Lowering<'_>,
    products: &[Product],
    at: &PointGeometry,
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

/// Returns the 1D table of the nodes of a line against the points, n × q, with this many differentiated factors.
pub(crate) fn table(nodes: LinePoints, points: LinePoints, derived: usize) -> Matrix {
    table_of(nodes, points, [usize::from(derived > 0), usize::from(derived > 1)])
}

/// Returns the same for two factors with these orders of derivatives.
pub(crate) fn table_of(
    basis: impl Into<LineBasis>,
    points: LinePoints,
    orders: [usize; 2],
) -> Matrix {
    let line = basis.into().table(points);
    let entry = |i: usize, q: usize| line.entry(orders[0], q, i) * line.entry(orders[1], q, i);
    Matrix::from_fn(line.nodes, points.count(), entry)
}

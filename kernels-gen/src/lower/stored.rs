//! Coefficients of the Jacobian at a quadrature point, pulled back to the reference cell.
//!
//! With K_ai = ∂ξ_a/∂x_i and the weight ω = w |det J|, the blocks of one pair of components are
//!
//! ```text
//! gg_ab = ω Σ_ij K_ai g3_ij K_bj    gv_a = ω Σ_i K_ai g2_i    vg_b = ω Σ_j g1_j K_bj    vv = ω g0
//! ```
//!
//! They contain everything that the Jacobian's action needs of geometry, parameters and u: 6 reals per point for any
//! scalar diffusion in 3D. Pairs of components with the same block share it.

use super::graph::LoweredValues;
use super::jacobian::PointGeometry;
use crate::kir::build::Builder;
use crate::kir::{Unary, ValueId};
use fem_dsl::point::{Integral, NodeId, Part, PointForm, Side, Slot};
use std::collections::BTreeMap;

/// The coefficients of one pair of components.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Block {
    /// g3\[i\]\[j\]: test derivative i, trial derivative j.
    pub(crate) gg: BTreeMap<(usize, usize), NodeId>,
    /// g2\[i\]: test derivative i, trial value.
    pub(crate) gv: BTreeMap<usize, NodeId>,
    /// g1\[j\]: test value, trial derivative j.
    pub(crate) vg: BTreeMap<usize, NodeId>,
    /// g0: values.
    pub(crate) vv: Option<NodeId>,
    /// The sides of test and trial component, which differ in the map of gradients.
    pub(crate) sides: [Side; 2],
}

impl Block {
    /// Returns whether gg is symmetric because both entries are the same graph node.
    pub(crate) fn symmetric(&self) -> bool {
        let equal =
            |(&(i, j), node): (&(usize, usize), &NodeId)| self.gg.get(&(j, i)) == Some(node);
        self.sides[0] == self.sides[1] && self.gg.iter().all(equal)
    }

    /// Returns κ, if gg = κ I.
    fn isotropic(&self, dim: usize) -> Option<NodeId> {
        let first = *self.gg.get(&(0, 0))?;
        let holds = self.gg.len() == dim && (0..dim).all(|i| self.gg.get(&(i, i)) == Some(&first));
        holds.then_some(first)
    }

    /// Returns the reals per point of the block.
    pub(crate) fn numbers(&self, dim: usize) -> usize {
        let gg = match (self.gg.is_empty(), self.symmetric()) {
            (true, _) => 0,
            (false, true) => dim * (dim + 1) / 2,
            (false, false) => dim * dim,
        };
        gg + if self.gv.is_empty() { 0 } else { dim }
            + if self.vg.is_empty() { 0 } else { dim }
            + usize::from(self.vv.is_some())
    }
}

/// All blocks of an integral and their users.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blocks {
    dim: usize,
    /// The distinct blocks and the position of their first value.
    pub(crate) blocks: Vec<(Block, usize)>,
    /// (test row, trial row, index of the block): rows are the components of all fields, one field after another.
    pub(crate) pairs: Vec<(usize, usize, usize)>,
    /// Values per point.
    pub(crate) numbers: usize,
}

/// Returns the blocks of one of a form's integrals; `keep` selects pairs of a test and a trial slot.
pub(crate) fn blocks(
    form: &PointForm,
    integral: &Integral,
    keep: impl Fn(Slot, Slot) -> bool,
) -> Blocks {
    let dim = form.dim;
    let row = |slot: Slot| form.row(slot.field, slot.component);
    let of_pairs = integral.region.is_interior();
    let side = |row: usize| match of_pairs && row >= form.rows() / 2 {
        true => Side::Outside,
        false => Side::Inside,
    };
    let mut by_pair = BTreeMap::<(usize, usize), Block>::new();
    for coefficient in &integral.jacobian {
        let (test, trial) = (coefficient.test, coefficient.trial);
        if !keep(test, trial) {
            continue;
        }
        let pair = (row(test), row(trial));
        let block = by_pair.entry(pair).or_default();
        block.sides = [pair.0, pair.1].map(side);
        match (test.part, trial.part) {
            (Part::Derivative(i), Part::Derivative(j)) => {
                block.gg.insert((i, j), coefficient.value);
            }
            (Part::Derivative(i), Part::Value) => {
                block.gv.insert(i, coefficient.value);
            }
            (Part::Value, Part::Derivative(j)) => {
                block.vg.insert(j, coefficient.value);
            }
            (Part::Value, Part::Value) => block.vv = Some(coefficient.value),
        }
    }
    let mut result = Blocks { dim, blocks: Vec::new(), pairs: Vec::new(), numbers: 0 };
    for ((test, trial), block) in by_pair {
        let known = result.blocks.iter().position(|(other, _)| *other == block);
        let index = known.unwrap_or_else(|| {
            let first = result.numbers;
            result.numbers += block.numbers(dim);
            result.blocks.push((block, first));
            result.blocks.len() - 1
        });
        result.pairs.push((test, trial, index));
    }
    result
}

/// The values of one block, pulled back, as matrices; absent parts are empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct PulledBlock {
    /// gg\[a\]\[b\].
    pub(crate) gg: Vec<Vec<ValueId>>,
    /// gv\[a\].
    pub(crate) gv: Vec<ValueId>,
    /// vg\[b\].
    pub(crate) vg: Vec<ValueId>,
    /// vv.
    pub(crate) vv: Option<ValueId>,
}

impl Blocks {
    /// Returns the graph nodes of the blocks.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self
            .blocks
            .iter()
            .flat_map(|(block, _)| {
                block.gg.values().chain(block.gv.values()).chain(block.vg.values()).chain(&block.vv)
            })
            .copied()
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Pulls a block back at a point.
    pub(crate) fn pull(
        &self,
        b: &mut Builder,
        block: &Block,
        at: &PointGeometry,
        values: &LoweredValues,
    ) -> PulledBlock {
        let value = |node: &NodeId| values.get(*node).expect("a coefficient should be lowered");
        let zero = b.constant(0.0);
        let dim = self.dim;
        let scales = Scales::new(b, at);
        let mut pulled = PulledBlock::default();
        let [of_test, of_trial] = block.sides.map(|side| at.of(side));
        if !block.gg.is_empty() {
            pulled.gg = vec![vec![zero; dim]; dim];
            let isotropic = block.isotropic(dim).map(|node| value(&node));
            let scale = match isotropic {
                Some(kappa) => b.mul(scales.gradient_gradient, kappa),
                None => scales.gradient_gradient,
            };
            // flux[b][i] = Σ_j g3_ij K_bj, or K_b itself if g3 is a multiple of I.
            let flux: Vec<Vec<ValueId>> = (0..dim)
                .map(|column| {
                    let row = of_trial[column].clone();
                    if isotropic.is_some() {
                        return row;
                    }
                    (0..dim)
                        .map(|i| {
                            (0..dim).fold(zero, |sum, j| match block.gg.get(&(i, j)) {
                                Some(node) => b.fma(value(node), row[j], sum),
                                None => sum,
                            })
                        })
                        .collect()
                })
                .collect();
            let symmetric = block.symmetric();
            for a in 0..dim {
                for column in 0..dim {
                    if symmetric && column < a {
                        pulled.gg[a][column] = pulled.gg[column][a];
                        continue;
                    }
                    let sum =
                        (0..dim).fold(zero, |sum, i| b.fma(of_test[a][i], flux[column][i], sum));
                    pulled.gg[a][column] = b.mul(scale, sum);
                }
            }
        }
        let vector = |b: &mut Builder, k: &[Vec<ValueId>], entries: &BTreeMap<usize, NodeId>| {
            if entries.is_empty() {
                return Vec::new();
            }
            (0..dim)
                .map(|a| {
                    let sum = entries
                        .iter()
                        .fold(zero, |sum, (&i, node)| b.fma(k[a][i], value(node), sum));
                    b.mul(scales.gradient_value, sum)
                })
                .collect()
        };
        pulled.gv = vector(b, of_test, &block.gv);
        pulled.vg = vector(b, of_trial, &block.vg);
        pulled.vv = block.vv.as_ref().map(|node| b.mul(scales.value_value, value(node)));
        pulled
    }

    /// Returns the values of a pulled-back block in storage order.
    pub(crate) fn numbers_of(&self, block: &Block, pulled: &PulledBlock) -> Vec<ValueId> {
        let mut numbers = Vec::new();
        for (a, row) in pulled.gg.iter().enumerate() {
            let from = if block.symmetric() { a } else { 0 };
            numbers.extend(&row[from..]);
        }
        numbers.extend(&pulled.gv);
        numbers.extend(&pulled.vg);
        numbers.extend(pulled.vv);
        numbers
    }

    /// Reverses [`Blocks::numbers_of`]; `load` supplies the values in order.
    pub(crate) fn of_numbers(
        &self,
        block: &Block,
        mut load: impl FnMut() -> ValueId,
    ) -> PulledBlock {
        let dim = self.dim;
        let mut pulled = PulledBlock::default();
        if !block.gg.is_empty() {
            let symmetric = block.symmetric();
            for a in 0..dim {
                let row = (0..dim).map(|column| {
                    if symmetric && column < a { pulled.gg[column][a] } else { load() }
                });
                let row: Vec<ValueId> = row.collect();
                pulled.gg.push(row);
            }
        }
        if !block.gv.is_empty() {
            pulled.gv = (0..dim).map(|_| load()).collect();
        }
        if !block.vg.is_empty() {
            pulled.vg = (0..dim).map(|_| load()).collect();
        }
        pulled.vv = block.vv.map(|_| load());
        pulled
    }
}

/// Factors that turn cofactor rows and a bare weight into K and ω.
struct Scales {
    value_value: ValueId,
    gradient_value: ValueId,
    gradient_gradient: ValueId,
}

impl Scales {
    fn new(b: &mut Builder, at: &PointGeometry) -> Self {
        let Some(det) = at.det else {
            let weight = at.weight;
            return Self { value_value: weight, gradient_value: weight, gradient_gradient: weight };
        };
        let reciprocal = b.reciprocal(det);
        let size = b.unary(Unary::Abs, det);
        let value_value = b.mul(at.weight, size);
        let gradient_value = b.mul(value_value, reciprocal);
        let gradient_gradient = b.mul(gradient_value, reciprocal);
        Self { value_value, gradient_value, gradient_gradient }
    }
}

/// The factors of a test function and its reference gradient, for one component of a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestFactors {
    /// Factor of φ.
    pub(crate) value: Option<ValueId>,
    /// Factors of ∂φ/∂ξ_a; empty without any.
    pub(crate) gradient: Vec<ValueId>,
}

/// Adds a pulled block's action on one trial component to one test component.
pub(crate) fn act(
    b: &mut Builder,
    pulled: &PulledBlock,
    value: Option<ValueId>,
    gradient: &[ValueId],
    onto: &mut TestFactors,
) {
    let zero = b.constant(0.0);
    let dim = pulled.gg.len().max(pulled.gv.len());
    for a in 0..dim {
        let mut sum = onto.gradient.get(a).copied().unwrap_or(zero);
        if let Some(row) = pulled.gg.get(a) {
            for (&g, &d) in row.iter().zip(gradient) {
                sum = b.fma(g, d, sum);
            }
        }
        if let (Some(&g), Some(value)) = (pulled.gv.get(a), value) {
            sum = b.fma(g, value, sum);
        }
        match onto.gradient.get_mut(a) {
            Some(slot) => *slot = sum,
            None => onto.gradient.push(sum),
        }
    }
    let mut sum = onto.value.unwrap_or(zero);
    let mut any = onto.value.is_some();
    for (&g, &d) in pulled.vg.iter().zip(gradient) {
        sum = b.fma(g, d, sum);
        any = true;
    }
    if let (Some(g), Some(value)) = (pulled.vv, value) {
        sum = b.fma(g, value, sum);
        any = true;
    }
    if any {
        onto.value = Some(sum);
    }
}

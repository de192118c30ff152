//! Coefficients of the Jacobian at a quadrature point, pulled back to the reference cell.
//!
//! With K_ai = ∂ξ_a/∂x_i and the weight ω = w |det J|, the blocks of one pair of components are
//!
//! ```text
//! gg_ab = ω Σ_ij K_ai g3_ij K_bj    gv_a = ω Σ_i K_ai g2_i    vg_b = ω Σ_j g1_j K_bj    vv = ω g0
//! ```
//!
//! They contain everything that the Jacobian's action needs of geometry, parameters and u: 6 reals per point for any
//! scalar diffusion in 3D. Pairs of components with the same block share it. A block with second derivatives is a list:
//! with T the map of reference parts p to parts P in physical space,
//!
//! ```text
//! entry_pq = ω Σ_PQ T_Pp G_PQ T_Qq
//! ```
//!
//! A block of two components of reference functions is a list, too. Its coefficients are pulled back already; those that
//! are the same graph node, up to a sign, are one value in all blocks.

use super::graph::LoweredValues;
use super::jacobian::{PointGeometry, Scales, identity};
use crate::kir::build::Builder;
use crate::kir::{Unary, ValueId};
use fem_dsl::point::{Binary, Integral, Node, NodeId, Part, PointForm, Side, Slot};
use std::collections::{BTreeMap, BTreeSet};

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
    /// All coefficients by test and trial part, if any is of second derivatives or if both components have derivatives
    /// along reference axes; those above are empty then.
    pub(crate) listed: BTreeMap<(Part, Part), NodeId>,
    /// The sides of test and trial component, which differ in the map of gradients.
    pub(crate) sides: [Side; 2],
    /// True for the test and the trial component if its derivatives are along reference axes already.
    pub(crate) referenced: [bool; 2],
}

impl Block {
    /// Returns whether all coefficients are pulled back already.
    pub(crate) fn is_pulled(&self) -> bool {
        self.referenced == [true; 2]
    }

    /// Moves the coefficients from the list to matrices and vectors, unless it stays a list.
    fn sort(&mut self) {
        if self.is_pulled() || self.has_second(0) || self.has_second(1) {
            return;
        }
        for ((test, trial), value) in std::mem::take(&mut self.listed) {
            match (test, trial) {
                (Part::Derivative(i), Part::Derivative(j)) => {
                    self.gg.insert((i, j), value);
                }
                (Part::Derivative(i), _) => {
                    self.gv.insert(i, value);
                }
                (_, Part::Derivative(j)) => {
                    self.vg.insert(j, value);
                }
                _ => self.vv = Some(value),
            }
        }
    }

    /// Returns whether derivatives of test and trial function are mapped alike, so that exchanged entries are equal.
    fn is_alike(&self) -> bool {
        self.sides[0] == self.sides[1] && self.referenced[0] == self.referenced[1]
    }

    /// Returns whether gg is symmetric because both entries are the same graph node.
    pub(crate) fn symmetric(&self) -> bool {
        let equal =
            |(&(i, j), node): (&(usize, usize), &NodeId)| self.gg.get(&(j, i)) == Some(node);
        self.is_alike() && self.gg.iter().all(equal)
    }

    /// Returns whether the coefficient of each listed pair of parts and that of the exchanged pair are one graph node.
    fn lists_symmetric(&self) -> bool {
        let equal = |(&(test, trial), node): (&(Part, Part), &NodeId)| {
            self.listed.get(&(trial, test)) == Some(node)
        };
        self.is_alike() && self.listed.iter().all(equal)
    }

    /// Returns whether second derivatives of the test (0) or the trial function (1) occur.
    pub(crate) fn has_second(&self, of: usize) -> bool {
        self.listed.keys().any(|&(test, trial)| [test, trial][of].order() == 2)
    }

    /// Returns whether derivatives of the test (0) or the trial function (1) occur.
    pub(crate) fn derived(&self, of: usize) -> bool {
        self.parts(of, false)[1..].contains(&true)
    }

    /// Returns the orders of reference derivatives that occur, of the test (0) or the trial function (1).
    pub(crate) fn parts(&self, of: usize, bent: bool) -> [bool; 3] {
        let (own, other) = if of == 0 { (&self.gv, &self.vg) } else { (&self.vg, &self.gv) };
        let mut parts =
            [self.vv.is_some() || !other.is_empty(), !self.gg.is_empty() || !own.is_empty(), false];
        for &(test, trial) in self.listed.keys() {
            let order = [test, trial][of].order();
            parts[order] = true;
            parts[1] |= order == 2 && bent;
        }
        parts
    }

    /// Returns the pairs of reference parts with an entry in the list; of a symmetric block one of two equal ones.
    pub(crate) fn entries(&self, dim: usize, bent: bool) -> Vec<(Part, Part)> {
        let mut entries = BTreeSet::new();
        if self.is_pulled() {
            entries.extend(self.listed.keys().copied());
        }
        for &(test, trial) in self.listed.keys().filter(|_| !self.is_pulled()) {
            for of_test in reached(test, dim, bent) {
                let trials = reached(trial, dim, bent).into_iter();
                entries.extend(trials.map(|of_trial| (of_test, of_trial)));
            }
        }
        let symmetric = self.lists_symmetric();
        entries.into_iter().filter(|(test, trial)| !symmetric || test <= trial).collect()
    }

    /// Returns κ, if gg = κ I.
    fn isotropic(&self, dim: usize) -> Option<NodeId> {
        let first = *self.gg.get(&(0, 0))?;
        let holds = self.gg.len() == dim && (0..dim).all(|i| self.gg.get(&(i, i)) == Some(&first));
        holds.then_some(first)
    }

    /// Returns the reals per point of the block.
    pub(crate) fn numbers(&self, dim: usize, bent: bool) -> usize {
        if !self.listed.is_empty() {
            return self.entries(dim, bent).len();
        }
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

/// The index of a coefficient of a block, and its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CoefficientIndex {
    /// Its index among the values of a point.
    pub(crate) number: usize,
    /// True if the value there has the opposite sign.
    pub(crate) is_reversed: bool,
}

/// All blocks of an integral and their users.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blocks {
    dim: usize,
    /// True if the map of a cell has second derivatives.
    bent: bool,
    /// The distinct blocks and the indices of their values.
    pub(crate) blocks: Vec<(Block, Vec<CoefficientIndex>)>,
    /// (test row, trial row, index of the block): rows are the components of all fields, one field after another.
    pub(crate) pairs: Vec<(usize, usize, usize)>,
    /// Values per point.
    pub(crate) numbers: usize,
}

/// Returns the reference parts that a part in physical space contains.
fn reached(part: Part, dim: usize, bent: bool) -> Vec<Part> {
    let mut parts = Part::of_order(part.order(), dim);
    if bent && part.order() == 2 {
        parts.extend(Part::of_order(1, dim));
    }
    parts
}

/// Returns the blocks of one of a form's integrals; `keep` selects pairs of a test and a trial slot. `bent`: the map of a
/// cell has second derivatives. `is_referenced`: derivatives of a field are along reference axes already.
pub(crate) fn blocks(
    form: &PointForm,
    integral: &Integral,
    bent: bool,
    is_referenced: impl Fn(usize) -> bool,
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
        block.referenced = [test.field, trial.field].map(&is_referenced);
        block.listed.insert((test.part, trial.part), coefficient.value);
    }
    let mut result = Blocks { dim, bent, blocks: Vec::new(), pairs: Vec::new(), numbers: 0 };
    let mut pulled = BTreeMap::new();
    for ((test, trial), mut block) in by_pair {
        block.sort();
        let known = result.blocks.iter().position(|(other, _)| *other == block);
        let index = known.unwrap_or_else(|| {
            let indices = match block.is_pulled() {
                true => {
                    let entries = block.entries(dim, bent).into_iter();
                    let keys = entries.map(|parts| unsigned(integral, block.listed[&parts]));
                    keys.map(|(key, is_reversed)| {
                        let (number, own) = *pulled.entry(key).or_insert_with(|| {
                            result.numbers += 1;
                            (result.numbers - 1, is_reversed)
                        });
                        CoefficientIndex { number, is_reversed: is_reversed != own }
                    })
                    .collect()
                }
                false => {
                    let first = result.numbers;
                    result.numbers += block.numbers(dim, bent);
                    let index = |number| CoefficientIndex { number, is_reversed: false };
                    (first..result.numbers).map(index).collect()
                }
            };
            result.blocks.push((block, indices));
            result.blocks.len() - 1
        });
        result.pairs.push((test, trial, index));
    }
    result
}

/// The size of a constant factor, and the rest: a node, or a difference in the order of its nodes.
type UnsignedKey = (u64, NodeId, Option<NodeId>);

/// Returns a key that a node shares with its negative, and whether it is the negative: c x and −c x, or x − y and y − x.
fn unsigned(integral: &Integral, node: NodeId) -> (UnsignedKey, bool) {
    let nodes = integral.graph.nodes();
    let (factor, rest) = match nodes[node] {
        Node::Unary(Unary::Neg, of) => (-1.0, of),
        Node::Binary(Binary::Mul, factor, of) => match nodes[factor] {
            Node::Constant(number) => (number.get(), of),
            _ => (1.0, node),
        },
        _ => (1.0, node),
    };
    let size = factor.abs().to_bits();
    match nodes[rest] {
        Node::Binary(Binary::Sub, x, y) if y < x => ((size, y, Some(x)), factor > 0.0),
        Node::Binary(Binary::Sub, x, y) => ((size, x, Some(y)), factor < 0.0),
        _ => ((size, rest, None), factor < 0.0),
    }
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
    /// Entries by test and trial part, of a block that is a list. One of two equal entries stands for both.
    pub(crate) listed: Vec<((Part, Part), ValueId)>,
    /// True for each listed entry that is the opposite of its value; empty if none is.
    reversed: Vec<bool>,
    /// True if each listed entry is also that of the exchanged parts.
    symmetric: bool,
    dim: usize,
}

impl PulledBlock {
    /// Returns the listed entry of a test and a trial part, if there is one.
    pub(crate) fn entry(&self, (test, trial): (Part, Part)) -> Option<ValueId> {
        let is = |parts: (Part, Part)| {
            parts == (test, trial) || (self.symmetric && parts == (trial, test))
        };
        self.listed.iter().find(|(parts, _)| is(*parts)).map(|&(_, value)| value)
    }
}

impl Blocks {
    /// Returns whether second derivatives occur.
    pub(crate) fn has_second(&self) -> bool {
        self.blocks.iter().any(|(block, _)| block.has_second(0) || block.has_second(1))
    }

    /// Returns the listed entries of a block with the number of equal ones: 2 where one stands for both.
    pub(crate) fn multiplicities(&self, block: &Block) -> Vec<((Part, Part), f64)> {
        let symmetric = block.lists_symmetric();
        let entries = block.entries(self.dim, self.bent).into_iter();
        entries
            .map(|(test, trial)| {
                let twice = symmetric && test != trial;
                ((test, trial), if twice { 2.0 } else { 1.0 })
            })
            .collect()
    }

    /// Returns the graph nodes of the blocks.
    pub(crate) fn nodes(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self
            .blocks
            .iter()
            .flat_map(|(block, _)| {
                let matrices = block.gg.values().chain(block.gv.values()).chain(block.vg.values());
                matrices.chain(&block.vv).chain(block.listed.values())
            })
            .copied()
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Returns the entries of a block that is pulled back already, by test and trial part; none of others.
    pub(crate) fn pulled_entries(&self, block: usize) -> Vec<((Part, Part), CoefficientIndex)> {
        let (block, indices) = &self.blocks[block];
        if !block.is_pulled() {
            return Vec::new();
        }
        let symmetric = block.lists_symmetric();
        let entries = block.entries(self.dim, self.bent).into_iter().zip(indices);
        entries
            .flat_map(|((test, trial), &index)| {
                let exchanged = (symmetric && test != trial).then_some(((trial, test), index));
                [((test, trial), index)].into_iter().chain(exchanged)
            })
            .collect()
    }

    /// Returns the values of a point from those of all its blocks.
    pub(crate) fn values(&self, pulled: &[PulledBlock]) -> Vec<ValueId> {
        let mut values = vec![None; self.numbers];
        for (pulled, (block, indices)) in pulled.iter().zip(&self.blocks) {
            for (value, index) in self.numbers_of(block, pulled).into_iter().zip(indices) {
                if !index.is_reversed {
                    values[index.number].get_or_insert(value);
                }
            }
        }
        values.into_iter().map(|value| value.expect("each value should have an index")).collect()
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
        if block.is_pulled() {
            let weight = Scales::new(b, at).value_value;
            let entries = block.entries(self.dim, self.bent).into_iter();
            let listed =
                entries.map(|parts| (parts, b.mul(weight, value(&block.listed[&parts])))).collect();
            let (symmetric, dim) = (block.lists_symmetric(), self.dim);
            return PulledBlock { listed, symmetric, dim, ..PulledBlock::default() };
        }
        if !block.listed.is_empty() {
            return self.pull_list(b, block, at, &value);
        }
        let zero = b.constant(0.0);
        let dim = self.dim;
        let scales = Scales::new(b, at);
        let mut pulled = PulledBlock::default();
        let axes = block.referenced.contains(&true).then(|| identity(b, dim));
        let map = |of: usize| match &axes {
            Some(axes) if block.referenced[of] => &axes[..],
            _ => at.of(block.sides[of]),
        };
        let (of_test, of_trial) = (map(0), map(1));
        // The weight of so many derivatives along physical axes.
        let scale_of = |mapped: [bool; 2]| match mapped.iter().filter(|&&mapped| mapped).count() {
            0 => scales.value_value,
            1 => scales.gradient_value,
            _ => scales.gradient_gradient,
        };
        let [tested, tried] = block.referenced.map(|referenced| !referenced);
        if !block.gg.is_empty() {
            pulled.gg = vec![vec![zero; dim]; dim];
            let isotropic = block.isotropic(dim).map(|node| value(&node));
            let scale = match isotropic {
                Some(kappa) => b.mul(scale_of([tested, tried]), kappa),
                None => scale_of([tested, tried]),
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
        let vector = |b: &mut Builder,
                      (k, scale): (&[Vec<ValueId>], ValueId),
                      entries: &BTreeMap<usize, NodeId>| {
            if entries.is_empty() {
                return Vec::new();
            }
            (0..dim)
                .map(|a| {
                    let sum = entries
                        .iter()
                        .fold(zero, |sum, (&i, node)| b.fma(k[a][i], value(node), sum));
                    b.mul(scale, sum)
                })
                .collect()
        };
        pulled.gv = vector(b, (of_test, scale_of([tested, false])), &block.gv);
        pulled.vg = vector(b, (of_trial, scale_of([false, tried])), &block.vg);
        pulled.vv = block.vv.as_ref().map(|node| b.mul(scales.value_value, value(node)));
        pulled
    }

    /// Pulls a block with second derivatives back at a point.
    fn pull_list(
        &self,
        b: &mut Builder,
        block: &Block,
        at: &PointGeometry,
        value: &dyn Fn(&NodeId) -> ValueId,
    ) -> PulledBlock {
        let [tests, trials] = [0, 1].map(|of| {
            let parts: BTreeSet<Part> =
                block.listed.keys().map(|&(test, trial)| [test, trial][of]).collect();
            let map = |part| (part, at.parts_of(b, block.sides[of], part));
            parts.into_iter().map(map).collect::<BTreeMap<Part, Vec<(Part, ValueId)>>>()
        });
        // Σ_Q G_PQ T_Qq
        let mut halves: BTreeMap<(Part, Part), ValueId> = BTreeMap::new();
        for (&(test, trial), node) in &block.listed {
            for &(part, factor) in &trials[&trial] {
                let sum = match halves.get(&(test, part)) {
                    Some(&sum) => b.fma(value(node), factor, sum),
                    None => b.mul(value(node), factor),
                };
                halves.insert((test, part), sum);
            }
        }
        let zero = b.constant(0.0);
        let mut listed = Vec::new();
        for (of_test, of_trial) in block.entries(self.dim, self.bent) {
            let mut sum = zero;
            for (test, parts) in &tests {
                let factor = parts.iter().find(|(part, _)| *part == of_test);
                if let (Some(&(_, factor)), Some(&half)) = (factor, halves.get(&(*test, of_trial)))
                {
                    sum = b.fma(factor, half, sum);
                }
            }
            listed.push(((of_test, of_trial), b.mul(at.weight, sum)));
        }
        let (symmetric, dim) = (block.lists_symmetric(), self.dim);
        PulledBlock { listed, symmetric, dim, ..PulledBlock::default() }
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
        numbers.extend(pulled.listed.iter().map(|(_, value)| value));
        numbers
    }

    /// Reverses [`Blocks::numbers_of`]; `read` takes the index of a value among those of a point.
    pub(crate) fn reread(
        &self,
        block: usize,
        mut read: impl FnMut(usize) -> ValueId,
    ) -> PulledBlock {
        let (block, indices) = &self.blocks[block];
        let mut next = indices.iter();
        let mut load = || read(next.next().expect("a value should have an index").number);
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
        let entries = block.entries(dim, self.bent).into_iter();
        pulled.listed = entries.map(|parts| (parts, load())).collect();
        if indices.iter().any(|index| index.is_reversed) {
            pulled.reversed = indices.iter().map(|index| index.is_reversed).collect();
        }
        (pulled.symmetric, pulled.dim) = (block.lists_symmetric(), dim);
        pulled
    }
}

/// The factors of a test function and its reference derivatives, for one component of a result.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestFactors {
    /// Factor of φ.
    pub(crate) value: Option<ValueId>,
    /// Factors of ∂φ/∂ξ_a; empty without any.
    pub(crate) gradient: Vec<ValueId>,
    /// Factors of ∂²φ/∂ξ_a∂ξ_b, a ≤ b in ascending order; empty without any.
    pub(crate) second: Vec<ValueId>,
}

impl TestFactors {
    /// Adds to the factor of a part.
    pub(crate) fn add(
        &mut self,
        b: &mut Builder,
        dim: usize,
        part: Part,
        term: (ValueId, ValueId),
    ) {
        let place = self.place(b, dim, part);
        *place = b.fma(term.0, term.1, *place);
    }

    /// Returns the factor of a part, 0 at first.
    pub(crate) fn place(&mut self, b: &mut Builder, dim: usize, part: Part) -> &mut ValueId {
        let zero = b.constant(0.0);
        match part {
            Part::Value => self.value.get_or_insert(zero),
            Part::Derivative(axis) => {
                self.gradient.resize(dim, zero);
                &mut self.gradient[axis]
            }
            Part::Second(..) => {
                let parts = Part::of_order(2, dim);
                self.second.resize(parts.len(), zero);
                let at = parts.iter().position(|&known| known == part);
                &mut self.second[at.expect("a part of this dimension")]
            }
            Part::Exterior(_) => unreachable!("the pull-back replaces exterior derivatives"),
        }
    }
}

/// The value and the reference derivatives of a component, or of a basis function.
#[derive(Clone, Copy)]
pub(crate) struct PartValues<'v> {
    pub(crate) value: Option<ValueId>,
    pub(crate) gradient: &'v [ValueId],
    /// Second derivatives, a ≤ b in ascending order.
    pub(crate) second: &'v [ValueId],
}

impl PartValues<'_> {
    /// Returns a part, if it is known.
    pub(crate) fn get(&self, part: Part, dim: usize) -> Option<ValueId> {
        match part {
            Part::Value => self.value,
            Part::Derivative(axis) => self.gradient.get(axis).copied(),
            Part::Second(..) => {
                let at = Part::of_order(2, dim).iter().position(|&known| known == part)?;
                self.second.get(at).copied()
            }
            Part::Exterior(_) => unreachable!("the pull-back replaces exterior derivatives"),
        }
    }
}

/// Adds a pulled block's action on one trial component to one test component.
pub(crate) fn act(
    b: &mut Builder,
    pulled: &PulledBlock,
    of: PartValues<'_>,
    onto: &mut TestFactors,
) {
    let PartValues { value, gradient, .. } = of;
    for (number, &((test, trial), entry)) in pulled.listed.iter().enumerate() {
        let mut add = |test: Part, value: ValueId| {
            let place = onto.place(b, pulled.dim, test);
            *place = match pulled.reversed.get(number) {
                Some(true) => b.fma_neg(entry, value, *place),
                _ => b.fma(entry, value, *place),
            };
        };
        if let Some(value) = of.get(trial, pulled.dim) {
            add(test, value);
        }
        let twice = pulled.symmetric && test != trial;
        if let Some(value) = of.get(test, pulled.dim).filter(|_| twice) {
            add(trial, value);
        }
    }
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

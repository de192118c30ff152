//! Hanging nodes of a cell that a lane or thread processes alone: DoFs of its parent's faces and edges → values at its
//! own nodes, and the transpose. See [`crate::abi::hanging`] for the words that describe the constraints.
//!
//! ```text
//! along each axis, on each line that hangs:   u_i += Σ_j (A − 1)_ij u_j      A⁻_ij = φ_j(ξ_i / 2)   A⁺_ij = φ_j((1 + ξ_i) / 2)
//! ```
//!
//! Components of vector-valued functions have the matrices of integrals along their open axes, and lines on sides of
//! their closed ones.
//!
//! Lanes weight their contributions by 0 or 1, and a batch skips interpolations that none of its cells needs.

pub(crate) mod lines;
pub(crate) mod zones;

use super::facts::{KernelFacts, QuantitySource};
use super::lowering::Lowering;
use crate::abi::Role;
use crate::abi::hanging::{corner, lower, others, side, upper};
use crate::element::{Element, LineBasis};
use crate::kir::build::Builder;
use crate::kir::{
    ArgumentId, Condition, Entries, Index, Integer, LocalId, TableId, ValueId, VarId,
};
use crate::lower::contract::Matrix;
use crate::plan::Task;
use fem_dsl::point::Side;

/// Largest number of rows of unrolled matrices.
const WRITTEN_OUT: usize = 4;

impl KernelFacts<'_> {
    /// Returns whether hanging nodes occur in anything that is read or written.
    pub(crate) fn anything_hangs(&self) -> bool {
        let read = self.quantities.iter().any(|own| self.hangs(own.source, own.element));
        let matrix = self.plan.task == Task::Matrix;
        let fields = if matrix { (0..self.form.fields.len()).collect() } else { self.results() };
        read || fields.into_iter().any(|field| self.result_hangs(field))
    }

    /// Returns whether the Jacobian's coefficients at all points are kept: on quadrilaterals and hexahedra, for element matrices, and for
    /// the diagonal of vector-valued functions on facets of cells with hanging nodes.
    pub(crate) fn keeps_coefficients(&self) -> bool {
        let (tensor, facets) = (self.elements.cell.is_factorised(), self.on_facets());
        let of_parents = self.elements.are_vector_valued() && self.anything_hangs();
        tensor && !facets || self.plan.task == Task::Matrix || facets && of_parents
    }

    /// Returns whether a field can have hanging nodes.
    pub(crate) fn result_hangs(&self, field: usize) -> bool {
        self.hangs(QuantitySource::Direction(field), self.elements.fields[field])
    }

    /// Returns whether a quantity can have hanging nodes: DoFs of continuous elements can; data has values at all
    /// nodes.
    pub(crate) fn hangs(&self, source: QuantitySource, element: Element) -> bool {
        let unknown = matches!(source, QuantitySource::State(_) | QuantitySource::Direction(_));
        let resolves = self.plan.hanging && self.plan.task != Task::StoredProduct;
        resolves && unknown && element.is_continuous()
    }
}

/// Returns A⁻ or A⁺ of the functions along a line.
pub(crate) fn of_parent(basis: LineBasis, up: bool) -> Matrix {
    let n = basis.count();
    Matrix { rows: n, columns: n, entries: basis.of_parent(up) }
}

/// The private array of a cell's nodes, component by component.
#[derive(Clone, Copy)]
pub(crate) struct Nodes {
    pub(crate) array: LocalId,
    /// The functions along each axis.
    pub(crate) lines: [LineBasis; 3],
    pub(crate) components: usize,
    pub(crate) dim: usize,
    /// Strides between nodes along each axis.
    pub(crate) strides: [usize; 3],
    /// The extent of one component.
    pub(crate) length: usize,
    /// The side of the cell, of two at a facet.
    pub(crate) side: Side,
}

/// The hanging-node words of the cells of the current batch, on a side.
#[derive(Clone, Copy)]
pub(crate) struct HangingFlags {
    masks: ArgumentId,
    sides: usize,
    side: Side,
    /// The word of the whole batch.
    pub(crate) all: VarId,
}

impl HangingFlags {
    pub(crate) fn new(s: &mut Lowering<'_>, side: Side) -> Self {
        let (masks, all) = (s.arguments[&Role::Hanging], s.arguments[&Role::Hang]);
        let sides = s.facts.sides();
        let words = Self::words(&s.b, sides, side);
        Self { masks, sides, side, all: s.b.integer("hang", Integer::Element(all, words)) }
    }

    /// Returns the place of the words of the current batch.
    fn words(b: &Builder, sides: usize, side: Side) -> Index {
        Index::from(b.batch()).times(sides).plus(side as usize)
    }

    /// Returns a bit of the lane's cell, as 1 or 0.
    pub(crate) fn flag(self, b: &mut Builder, bit: u32) -> ValueId {
        b.flag(self.masks, Self::words(b, self.sides, self.side), bit)
    }

    /// Returns 1 for the upper (or lower) child along an axis, else 0.
    pub(crate) fn child(self, b: &mut Builder, axis: usize, up: bool) -> ValueId {
        let above = self.flag(b, upper(axis));
        if up {
            return above;
        }
        let one = b.constant(1.0);
        b.sub(one, above)
    }
}

/// Parallel lines of nodes that hang together.
struct ParallelLines {
    bit: u32,
    /// The first node of the first line, and the stride between lines.
    start: usize,
    step: usize,
    count: usize,
}

impl Nodes {
    /// Returns all lines along an axis that may hang.
    fn lines(&self, axis: usize) -> Vec<ParallelLines> {
        let n = |axis: usize| self.lines[axis].count();
        let end = |axis: usize, up: usize| up * (n(axis) - 1) * self.strides[axis];
        let is_closed = |axis: &usize| self.lines[*axis].is_closed();
        let mut lines = Vec::new();
        let others: Vec<usize> = others(axis, self.dim).collect();
        // Functions that are open across a side have no line on it.
        for (number, &other) in others.iter().enumerate().filter(|(_, other)| is_closed(other)) {
            let (first, step, count) = match others.get(1 - number) {
                Some(along) if is_closed(along) => {
                    (self.strides[*along], self.strides[*along], n(*along) - 2)
                }
                Some(&along) => (0, self.strides[along], n(along)),
                None => (0, 0, 1),
            };
            for up in (0..2).filter(|_| count > 0) {
                let start = end(other, up) + first;
                lines.push(ParallelLines { bit: side(axis, number, up), start, step, count });
            }
        }
        if let [first, second] = others[..]
            && is_closed(&first)
            && is_closed(&second)
        {
            for ends in 0..4 {
                let (a, b) = (ends & 1, ends >> 1);
                let start = end(first, a) + end(second, b);
                lines.push(ParallelLines { bit: corner(axis, a, b), start, step: 0, count: 1 });
            }
        }
        lines
    }

    /// Returns the position of a node of the first component.
    pub(crate) fn place(&self, at: &[Index; 3]) -> Index {
        let axes = at.iter().zip(self.strides).take(self.dim);
        axes.fold(Index::default(), |place, (at, stride)| &place + &at.times(stride))
    }

    /// Interpolates the parent's values to the hanging nodes, or with `back` adds their results to the parent's.
    pub(crate) fn resolve(&self, s: &mut Lowering<'_>, back: bool) {
        let words = HangingFlags::new(s, self.side);
        let tables: Vec<_> = (0..self.dim)
            .map(|axis| [false, true].map(|up| self.table(&mut s.b, axis, up, back)))
            .collect();
        let unroll = self.length <= s.facts.unroll();
        for (axis, up) in (0..self.dim).flat_map(|axis| [(axis, false), (axis, true)]) {
            s.b.open_when();
            let child = words.child(&mut s.b, axis, up);
            let matrix = &tables[axis][usize::from(up)];
            for lines in self.lines(axis) {
                s.b.open_when();
                let own = words.flag(&mut s.b, lines.bit);
                let weight = s.b.mul(own, child);
                s.b.repeat("c", self.components, unroll, |b, c| {
                    b.repeat("line", lines.count, unroll, |b, line| {
                        let start = &c.times(self.length) + &line.times(lines.step);
                        self.line(b, &start.plus(lines.start), axis, matrix, weight);
                    });
                });
                s.b.close_when(vec![Condition::Bit(words.all, lines.bit)]);
            }
            let half = if up { upper(axis) } else { lower(axis) };
            s.b.close_when(vec![Condition::Bit(words.all, half)]);
        }
    }

    /// Returns A − 1 along an axis, or its transpose.
    fn table(&self, b: &mut Builder, axis: usize, up: bool, back: bool) -> (Matrix, TableId) {
        let basis = self.lines[axis];
        let matrix = of_parent(basis, up);
        let matrix = if back { matrix.transposed() } else { matrix };
        let n = basis.count();
        let matrix = Matrix::from_fn(n, n, |i, j| matrix.at(i, j) - f64::from(u8::from(i == j)));
        let name = format!(
            "hanging{}{}_{}{}",
            basis.points().count() - 1,
            if basis.is_closed() { "" } else { "_integrals" },
            if up { "upper" } else { "lower" },
            if back { "_back" } else { "" }
        );
        let table = b.table(&name, Entries::Real(matrix.entries.clone()));
        (matrix, table)
    }

    /// Interpolates one line in place.
    fn line(
        &self,
        b: &mut Builder,
        start: &Index,
        axis: usize,
        (matrix, table): &(Matrix, TableId),
        weight: ValueId,
    ) {
        let (n, stride) = (self.lines[axis].count(), self.strides[axis]);
        let values = b.load_line(self.array, start, stride, n);
        let entry = |b: &mut Builder, i: Index, own: Option<ValueId>| {
            let mut sum = b.constant(0.0);
            for (j, &value) in values.iter().enumerate() {
                let factor = b.load_table(*table, i.times(n).plus(j));
                sum = b.fma(factor, value, sum);
            }
            let place = start + &i.times(stride);
            let own = own.unwrap_or_else(|| b.load(self.array, place.clone()));
            let sum = b.fma(weight, sum, own);
            b.store(self.array, place, sum);
        };
        if n > WRITTEN_OUT {
            b.repeat("i", n, false, |b, i| entry(b, i, None));
            return;
        }
        for (i, &own) in values.iter().enumerate() {
            if (0..n).any(|j| matrix.at(i, j) != 0.0) {
                entry(b, Index::from(i), Some(own));
            }
        }
    }
}

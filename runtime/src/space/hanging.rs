//! Values at hanging nodes: interpolation from the degrees of freedom to all nodes of all cells.
//!
//! A cell with hanging nodes references the degrees of freedom of its parent's faces and edges instead of its own
//! ([`kernels_gen::abi::hanging`]). Kernels interpolate on the fly. This module interpolates for output and evaluation:
//! hanging nodes become nodes of their own, appended to the others.

use super::Space;
use crate::mesh::hanging::bits;
use kernels_gen::abi::hanging::upper;
use kernels_gen::element::{Element, LineBasis};
use std::borrow::Cow;
use std::rc::Rc;

/// Interpolation at the hanging nodes of a cell, by its hanging word.
pub(crate) struct HangingInterpolation {
    /// For each node, the bits of a hanging word that mark it as hanging.
    bits: Vec<u32>,
    /// For each axis, the lines of nodes along it that may hang.
    lines: [Vec<HangingLine>; 3],
}

/// Nodes along an axis that hang together.
struct HangingLine {
    /// The bit of a hanging word that marks them.
    bit: u32,
    nodes: Vec<usize>,
    /// A⁻ and A⁺.
    tables: Rc<[Vec<f64>; 2]>,
}

/// The degrees of freedom of an element, or of a component of its functions: products over the axes.
struct TensorBasis {
    lines: [LineBasis; 3],
    /// The index and the lattice of each.
    dofs: Vec<(usize, [usize; 3])>,
}

impl TensorBasis {
    /// Returns the end of an axis at which a function of a lattice is, if any.
    fn end(&self, axis: usize, at: usize) -> Option<usize> {
        let line = self.lines[axis];
        match at {
            _ if !line.is_closed() => None,
            0 => Some(0),
            at if at + 1 == line.count() => Some(1),
            _ => None,
        }
    }

    /// Returns those of an element.
    fn of(element: Element) -> Option<Vec<Self>> {
        let Some(whitney) = element.whitney() else {
            let lines = element.lines().filter(|_| element.is_continuous())?;
            let nodes = element.lagrange()?.nodes();
            let dofs = nodes.iter().map(|node| node.lattice).enumerate().collect();
            return Some(vec![Self { lines, dofs }]);
        };
        let dofs = whitney.dofs();
        let component = |a: usize| {
            let lines = Element::Component(whitney, a).lines()?;
            let own = dofs.iter().enumerate().filter(|(_, dof)| dof.component == a);
            Some(Self { lines, dofs: own.map(|(i, dof)| (i, dof.lattice)).collect() })
        };
        (0..whitney.cell().dim()).map(component).collect()
    }

    /// Returns the lines along an axis that may hang.
    fn hanging_lines(&self, axis: usize, dim: usize) -> Vec<HangingLine> {
        let basis = self.lines[axis];
        let tables = Rc::new([false, true].map(|up| basis.of_parent(up)));
        let first = self.dofs.iter().filter(|(_, lattice)| lattice[axis] == 0);
        let of = |&(_, at): &(usize, [usize; 3])| {
            let node = |i: usize| {
                let mut at = at;
                at[axis] = i;
                self.dofs.iter().find(|(_, lattice)| *lattice == at).map_or(0, |(node, _)| *node)
            };
            // The line lies between the ends of its own axis.
            let ends = |own: usize| if own == axis { None } else { self.end(own, at[own]) };
            let bit = own_bit([0, 1, 2].map(ends), axis, dim);
            let nodes = (0..basis.count()).map(node).collect();
            HangingLine { bit, nodes, tables: Rc::clone(&tables) }
        };
        first.map(of).filter(|line| line.bit != 0).collect()
    }
}

impl HangingInterpolation {
    /// Creates the interpolation for an element on quadrilaterals or hexahedra.
    pub(crate) fn new(element: Element) -> Option<Self> {
        let (dim, products) = (element.cell().dim(), TensorBasis::of(element)?);
        let mut marks = vec![0; element.count()];
        for product in &products {
            for &(node, at) in &product.dofs {
                marks[node] = bits([0, 1, 2].map(|axis| product.end(axis, at[axis])), dim);
            }
        }
        let along = |axis: usize| {
            let own = products.iter().filter(|_| axis < dim);
            own.flat_map(|product| product.hanging_lines(axis, dim)).collect()
        };
        Some(Self { bits: marks, lines: [along(0), along(1), along(2)] })
    }

    /// Returns what a cell of a space reads for a node, with weights.
    pub(crate) fn read(&self, space: &Space, cell: usize, node: usize) -> Vec<(usize, f64)> {
        let word = space.hanging.as_ref().map_or(0, |words| words[cell]);
        if self.bits[node] & word == 0 {
            return vec![(node, 1.0)];
        }
        let mut weights = vec![0.0; self.bits.len()];
        weights[node] = 1.0;
        self.resolve(word, 1, &mut weights, true);
        weights.into_iter().enumerate().filter(|(_, weight)| *weight != 0.0).collect()
    }

    /// Returns the hanging nodes of a cell.
    pub(crate) fn hanging(&self, word: u32) -> impl Iterator<Item = usize> {
        (0..self.bits.len()).filter(move |&node| self.bits[node] & word != 0)
    }

    /// Interpolates the parent's values, `[node][component]`, in place; with `back`, applies the transpose.
    pub(crate) fn resolve(&self, word: u32, components: usize, values: &mut [f64], back: bool) {
        for (axis, lines) in self.lines.iter().enumerate() {
            for HangingLine { nodes: line, tables, .. } in
                lines.iter().filter(|line| word & line.bit != 0)
            {
                let (n, table) = (line.len(), &tables[(word >> upper(axis) & 1) as usize]);
                for component in 0..components {
                    let read: Vec<f64> =
                        line.iter().map(|&node| values[node * components + component]).collect();
                    for (i, &node) in line.iter().enumerate() {
                        let weight =
                            |j: usize| if back { table[j * n + i] } else { table[i * n + j] };
                        let sum = read.iter().enumerate().map(|(j, u)| weight(j) * u).sum();
                        values[node * components + component] = sum;
                    }
                }
            }
        }
    }
}

/// Returns the bit of the lines along an axis, for given ends of the other axes.
fn own_bit(ends: [Option<usize>; 3], axis: usize, dim: usize) -> u32 {
    // Entities between the ends of all other axes have only this bit.
    let all = bits(ends, dim);
    all & 0xff << (3 + 8 * axis)
}

impl Space {
    /// Returns the space with hanging nodes as separate, appended nodes, and the values there; the space itself if
    /// nothing hangs.
    pub fn resolved<'a>(&'a self, values: &'a [f64]) -> (Cow<'a, Space>, Cow<'a, [f64]>) {
        let own = || (Cow::Borrowed(self), Cow::Borrowed(values));
        let Some(words) = &self.hanging else { return own() };
        let Some(interpolation) = HangingInterpolation::new(self.element) else { return own() };
        let (mut space, mut all) = (self.clone(), values.to_vec());
        let components = self.components;
        (space.hanging, space.runs) = (None, None);
        let mut local = vec![0.0; self.nodes_per_cell * components];
        for (cell, &word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
            self.gather(cell, values, &mut local);
            let reversed = self.cell_signs(cell);
            interpolation.resolve(word, components, &mut local, false);
            let nodes = &mut space.nodes[cell * self.nodes_per_cell..][..self.nodes_per_cell];
            for node in interpolation.hanging(word) {
                nodes[node] = space.n_nodes as u32;
                space.n_nodes += 1;
                let sign = if reversed.get(node) == Some(&true) { -1.0 } else { 1.0 };
                all.extend(local[node * components..][..components].iter().map(|u| sign * u));
            }
        }
        (Cow::Owned(space), Cow::Owned(all))
    }

    /// Applies the transposed interpolation: maps values at the nodes of a cell, `[node][component]`, to the degrees of
    /// freedom that it references.
    pub(crate) fn resolve_back(&self, cell: usize, components: usize, values: &mut [f64]) {
        let word = self.hanging.as_ref().map_or(0, |words| words[cell]);
        if word == 0 {
            return;
        }
        if let Some(interpolation) = HangingInterpolation::new(self.element) {
            interpolation.resolve(word, components, values, true);
        }
    }

    /// Returns whether nodes hang.
    pub(crate) fn hangs(&self) -> bool {
        self.hanging.as_ref().is_some_and(|words| words.iter().any(|word| *word != 0))
    }

    /// Returns the interpolation at hanging nodes, if any hangs.
    pub(crate) fn hanging_interpolation(&self) -> Option<HangingInterpolation> {
        self.hanging.as_ref()?;
        HangingInterpolation::new(self.element)
    }

    /// Gathers the values that a cell references, `[node][component]`, with the signs that the cell sees.
    fn gather(&self, cell: usize, values: &[f64], into: &mut [f64]) {
        let components = self.components;
        for (into, &node) in into.chunks_exact_mut(components).zip(self.cell_nodes(cell)) {
            into.copy_from_slice(&values[node as usize * components..][..components]);
        }
        let reversed = self.cell_signs(cell).iter();
        for (value, _) in into.iter_mut().zip(reversed).filter(|(_, reversed)| **reversed) {
            *value = -*value;
        }
    }

    /// Returns for each node of each cell, of the mesh or beyond it, whether it hangs; `None` if none does.
    pub(crate) fn hanging_nodes(&self) -> Option<impl Fn(usize, usize) -> bool + Sync> {
        let own = self.hanging.as_ref()?;
        let beyond = self.beyond.iter().flat_map(|beyond| &beyond.words);
        let words: Vec<u32> = own.iter().chain(beyond).copied().collect();
        let bits = HangingInterpolation::new(self.element)?.bits;
        Some(move |cell: usize, node: usize| words[cell] & bits[node] != 0)
    }
}

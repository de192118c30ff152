//! Values at hanging nodes: unknowns of a space → values at all nodes of all cells.
//!
//! A cell with hanging nodes has the unknowns of its parent's faces and edges in the place of its own
//! ([`kernels_gen::abi::hanging`]). Kernels interpolate in passing; here it is done for whoever looks at values: nodes that
//! hang become nodes of their own, behind all others.

use super::Space;
use crate::mesh::hanging::bits;
use kernels_gen::abi::hanging::upper;
use kernels_gen::element::{Lagrange, line_of_parent};
use std::borrow::Cow;

/// What hangs of the nodes of a cell, by what hangs of the cell.
pub(crate) struct Interpolation {
    /// For each node the bits of a word of which any says that it hangs.
    bits: Vec<u32>,
    /// For each axis the lines of nodes along it that may hang, with the bit that says so.
    lines: [Vec<(u32, Vec<usize>)>; 3],
    /// A⁻ and A⁺.
    tables: [Vec<f64>; 2],
}

impl Interpolation {
    /// For an element on quadrilaterals or hexahedra.
    pub(crate) fn new(element: Lagrange) -> Option<Self> {
        let (dim, degree) = (element.cell().dim(), element.degree());
        let line = element.line().filter(|_| element.is_continuous())?;
        let end = |at: usize| match at {
            0 => Some(0),
            at if at == degree => Some(1),
            _ => None,
        };
        let nodes = element.nodes();
        let bits_of = nodes.iter().map(|node| bits(node.lattice.map(end), dim)).collect();
        let along = |axis: usize| {
            if axis >= dim {
                return Vec::new();
            }
            let first = nodes.iter().filter(|node| node.lattice[axis] == 0);
            let of = |at: [usize; 3]| {
                let node = |i: usize| {
                    let mut at = at;
                    at[axis] = i;
                    nodes.iter().position(|node| node.lattice == at).unwrap_or(0)
                };
                // The line is between the ends of its own axis.
                let ends = [0, 1, 2].map(|own| if own == axis { None } else { end(at[own]) });
                (own_bit(ends, axis, dim), (0..=degree).map(node).collect())
            };
            let lines = first.map(|node| of(node.lattice));
            lines.filter(|(bit, _): &(u32, Vec<usize>)| *bit != 0).collect()
        };
        let tables = [false, true].map(|up| line_of_parent(line, up));
        Some(Self { bits: bits_of, lines: [along(0), along(1), along(2)], tables })
    }

    /// The nodes of a cell that hang.
    pub(crate) fn hanging(&self, word: u32) -> impl Iterator<Item = usize> {
        (0..self.bits.len()).filter(move |&node| self.bits[node] & word != 0)
    }

    /// Interpolates what was read of the parent, `[node][component]`, in place, or with `back` gives it what its nodes got.
    pub(crate) fn resolve(&self, word: u32, components: usize, values: &mut [f64], back: bool) {
        for (axis, lines) in self.lines.iter().enumerate() {
            let table = &self.tables[(word >> upper(axis) & 1) as usize];
            for (_, line) in lines.iter().filter(|(bit, _)| word & bit != 0) {
                let n = line.len();
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

/// The bit of the lines along an axis at these ends of the others.
fn own_bit(ends: [Option<usize>; 3], axis: usize, dim: usize) -> u32 {
    // What lies between the ends of all other axes' lines has no bit but this one.
    let all = bits(ends, dim);
    all & 0xff << (3 + 8 * axis)
}

impl Space {
    /// The space in which nodes that hang are nodes of their own, behind the others, with the values there; itself where
    /// nothing hangs.
    pub fn resolved<'a>(&'a self, values: &'a [f64]) -> (Cow<'a, Space>, Cow<'a, [f64]>) {
        let own = || (Cow::Borrowed(self), Cow::Borrowed(values));
        let Some(words) = &self.hanging else { return own() };
        let Some(interpolation) = Interpolation::new(self.element) else { return own() };
        let (mut space, mut all) = (self.clone(), values.to_vec());
        let components = self.components;
        (space.hanging, space.runs) = (None, None);
        let mut local = vec![0.0; self.nodes_per_cell * components];
        for (cell, &word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
            self.gather(cell, values, &mut local);
            interpolation.resolve(word, components, &mut local, false);
            let nodes = &mut space.nodes[cell * self.nodes_per_cell..][..self.nodes_per_cell];
            for node in interpolation.hanging(word) {
                nodes[node] = space.n_nodes as u32;
                space.n_nodes += 1;
                all.extend_from_slice(&local[node * components..][..components]);
            }
        }
        (Cow::Owned(space), Cow::Owned(all))
    }

    /// What the nodes of a cell have, `[node][component]` → what the unknowns that it reads get of it.
    pub(crate) fn resolve_back(&self, cell: usize, components: usize, values: &mut [f64]) {
        let word = self.hanging.as_ref().map_or(0, |words| words[cell]);
        if let Some(interpolation) = Interpolation::new(self.element).filter(|_| word != 0) {
            interpolation.resolve(word, components, values, true);
        }
    }

    /// What a cell reads, `[node][component]`.
    fn gather(&self, cell: usize, values: &[f64], into: &mut [f64]) {
        let components = self.components;
        for (into, &node) in into.chunks_exact_mut(components).zip(self.cell_nodes(cell)) {
            into.copy_from_slice(&values[node as usize * components..][..components]);
        }
    }

    /// For each node of a cell whether it hangs, if any does.
    pub(super) fn hanging_nodes(&self) -> Option<impl Fn(usize, usize) -> bool + Sync> {
        let words = self.hanging.clone()?;
        let bits = Interpolation::new(self.element)?.bits;
        Some(move |cell: usize, node: usize| words[cell] & bits[node] != 0)
    }
}

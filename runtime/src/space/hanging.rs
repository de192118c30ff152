//! Values at hanging nodes: interpolation from the degrees of freedom to all nodes of all cells.
//!
//! A cell with hanging nodes references the degrees of freedom of its parent's faces and edges instead of its own
//! ([`kernels_gen::abi::hanging`]). Kernels interpolate on the fly. This module interpolates for output and evaluation:
//! hanging nodes become nodes of their own, appended to the others.

use super::Space;
use crate::mesh::hanging::bits;
use kernels_gen::abi::hanging::upper;
use kernels_gen::element::{Lagrange, line_of_parent};
use std::borrow::Cow;

/// Interpolation at the hanging nodes of a cell, by its hanging word.
pub(crate) struct HangingInterpolation {
    /// For each node, the bits of a hanging word that mark it as hanging.
    bits: Vec<u32>,
    /// For each axis, the lines of nodes along it that may hang, with their bits.
    lines: [Vec<(u32, Vec<usize>)>; 3],
    /// A⁻ and A⁺.
    tables: [Vec<f64>; 2],
}

impl HangingInterpolation {
    /// Creates the interpolation for an element on quadrilaterals or hexahedra.
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
                // The line lies between the ends of its own axis.
                let ends = [0, 1, 2].map(|own| if own == axis { None } else { end(at[own]) });
                (own_bit(ends, axis, dim), (0..=degree).map(node).collect())
            };
            let lines = first.map(|node| of(node.lattice));
            lines.filter(|(bit, _): &(u32, Vec<usize>)| *bit != 0).collect()
        };
        let tables = [false, true].map(|up| line_of_parent(line, up));
        Some(Self { bits: bits_of, lines: [along(0), along(1), along(2)], tables })
    }

    /// Returns the hanging nodes of a cell.
    pub(crate) fn hanging(&self, word: u32) -> impl Iterator<Item = usize> {
        (0..self.bits.len()).filter(move |&node| self.bits[node] & word != 0)
    }

    /// Interpolates the parent's values, `[node][component]`, in place; with `back`, applies the transpose.
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
        let Some(interpolation) = self.element.lagrange().and_then(HangingInterpolation::new)
        else {
            return own();
        };
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

    /// Applies the transposed interpolation: maps values at the nodes of a cell, `[node][component]`, to the degrees of
    /// freedom that it references.
    pub(crate) fn resolve_back(&self, cell: usize, components: usize, values: &mut [f64]) {
        let word = self.hanging.as_ref().map_or(0, |words| words[cell]);
        if word == 0 {
            return;
        }
        if let Some(interpolation) = self.element.lagrange().and_then(HangingInterpolation::new) {
            interpolation.resolve(word, components, values, true);
        }
    }

    /// Gathers the values that a cell references, `[node][component]`.
    fn gather(&self, cell: usize, values: &[f64], into: &mut [f64]) {
        let components = self.components;
        for (into, &node) in into.chunks_exact_mut(components).zip(self.cell_nodes(cell)) {
            into.copy_from_slice(&values[node as usize * components..][..components]);
        }
    }

    /// Returns for each node of each cell, of the mesh or beyond it, whether it hangs; `None` if none does.
    pub(crate) fn hanging_nodes(&self) -> Option<impl Fn(usize, usize) -> bool + Sync> {
        let own = self.hanging.as_ref()?;
        let beyond = self.beyond.iter().flat_map(|beyond| &beyond.words);
        let words: Vec<u32> = own.iter().chain(beyond).copied().collect();
        let bits = HangingInterpolation::new(self.element.lagrange()?)?.bits;
        Some(move |cell: usize, node: usize| words[cell] & bits[node] != 0)
    }
}

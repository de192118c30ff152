//! Triangles and tetrahedra divided red: vertices of cells and tagged facets, level by level.
//!
//! Each vertex of a finer mesh is a pair (a, b), a ≤ b, of vertices of the coarser one: the middle of their edge, or one
//! of them. Numbered in the lexicographic order of these pairs the vertices of each child ascend in the order of
//! [`super::children`], so that all cells agree on the direction of their edges and faces on each level.

use super::children::pairs;
use crate::mesh::{Cell, MeshError, index};
use crate::parallel::*;

/// Simplices by their vertices, which ascend, and tagged facets.
pub(super) struct Simplices {
    pub(super) cell: Cell,
    pub(super) n_vertices: usize,
    pub(super) vertices: Vec<u32>,
    /// The facets under each tag, each by its vertices.
    pub(super) facets: Vec<Vec<[u32; 4]>>,
}

impl Simplices {
    /// Each divided once.
    pub(super) fn divided(&self) -> Result<Self, MeshError> {
        let corners = self.cell.vertex_count();
        let edges = self.cell.entities(1);
        let pair = |a: u32, b: u32| u64::from(a) << 32 | u64::from(b);
        let mut keys: Vec<u64> =
            (0..self.n_vertices as u32).map(|vertex| pair(vertex, vertex)).collect();
        for cell in self.vertices.chunks_exact(corners) {
            keys.extend(edges.iter().map(|edge| pair(cell[edge[0]], cell[edge[1]])));
        }
        keys.par_sort_unstable();
        keys.dedup();
        index(keys.len(), "points")?;
        // INVARIANT: all pairs that are asked for are edges of cells, or vertices.
        let number = |a: u32, b: u32| keys.binary_search(&pair(a, b)).unwrap_or_default() as u32;
        let children = pairs(self.cell);
        let mut vertices = vec![0; self.vertices.len() * children.len()];
        let below = vertices.par_chunks_mut(corners * children.len());
        below.zip(self.vertices.par_chunks(corners)).each(|(below, cell)| {
            for (child, pairs) in below.chunks_exact_mut(corners).zip(children) {
                for (vertex, [a, b]) in child.iter_mut().zip(*pairs) {
                    *vertex = number(cell[*a], cell[*b]);
                }
            }
        });
        let facets = self.facets.iter().map(|facets| {
            let each = facets.iter().flat_map(|facet| self.parts(facet, number));
            each.collect()
        });
        let facets = facets.collect();
        Ok(Self { cell: self.cell, n_vertices: keys.len(), vertices, facets })
    }

    /// The parts of a facet whose vertices ascend.
    fn parts(&self, facet: &[u32; 4], number: impl Fn(u32, u32) -> u32) -> Vec<[u32; 4]> {
        let [a, b, c, none] = *facet;
        if self.cell.dim() == 2 {
            let middle = number(a, b);
            return vec![[number(a, a), middle, none, none], [middle, number(b, b), none, none]];
        }
        let of = |[i, j]: [usize; 2]| number([a, b, c][i], [a, b, c][j]);
        let child = |child: &&[[usize; 2]]| [of(child[0]), of(child[1]), of(child[2]), none];
        pairs(Cell::Triangle).iter().map(child).collect()
    }
}

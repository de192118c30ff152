//! Red refinement of triangles and tetrahedra: vertices of cells and tagged facets, level by level.
//!
//! Each vertex of the finer mesh is a pair {a, b} of coarse vertices: the midpoint of their edge, or one vertex. If the
//! vertices of each cell ascend in some global order, the lexicographic order of the pairs has the same property for
//! the children of [`super::children`]. Cells therefore agree on the direction of edges and faces on all levels, for
//! any vertex numbers.

use super::children::pairs;
use crate::mesh::distributed::SharedEntityCollector;
use crate::mesh::refined::{Descendants, RefinedMesh};
use crate::mesh::{Cell, Facet, Mesh, MeshError, index};
use crate::support::parallel::*;
use std::sync::Arc;

/// Simplices with consistently directed edges and faces, and tagged facets.
pub(super) struct Simplices {
    pub(super) cell: Cell,
    pub(super) n_vertices: usize,
    pub(super) vertices: Vec<u32>,
    /// The facets of each tag, by their vertices.
    pub(super) facets: Vec<Vec<[u32; 4]>>,
}

impl Simplices {
    /// Refines each simplex once.
    pub(super) fn divided(&self) -> Result<Self, MeshError> {
        let corners = self.cell.vertex_count();
        let edges = self.cell.entities(1);
        let pair = |a: u32, b: u32| u64::from(a.min(b)) << 32 | u64::from(a.max(b));
        let mut keys: Vec<u64> =
            (0..self.n_vertices as u32).map(|vertex| pair(vertex, vertex)).collect();
        for cell in self.vertices.chunks_exact(corners) {
            keys.extend(edges.iter().map(|edge| pair(cell[edge[0]], cell[edge[1]])));
        }
        keys.par_sort_unstable();
        keys.dedup();
        index(keys.len(), "points")?;
        // INVARIANT: all requested pairs are edges of cells, or vertices.
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

    /// Returns the children of a facet.
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

/// Returns the vertices of a descendant, by its number, after `times` refinements of a simplex. Barycentric coordinates
/// in units of 2^−times.
fn corners(cell: Cell, times: usize, number: usize) -> [[u32; 4]; 4] {
    let unit = |vertex: usize| [0, 1, 2, 3].map(|c| if c == vertex { 1 << times } else { 0 });
    let mut corners = [0, 1, 2, 3].map(unit);
    for place in (0..times).rev() {
        let child = pairs(cell)[number >> (cell.dim() * place) & ((1 << cell.dim()) - 1)];
        let before = corners;
        for (corner, &[a, b]) in corners.iter_mut().zip(child) {
            *corner = [0, 1, 2, 3].map(|c| (before[a][c] + before[b][c]) / 2);
        }
    }
    corners
}

/// Returns for each set of vertices of a simplex (a bit set) the entity with these vertices: dimension and number.
fn entities(cell: Cell) -> [(usize, usize); 16] {
    let mut all = [(0, 0); 16];
    for dim in 0..=cell.dim() {
        for (local, vertices) in cell.entities(dim).iter().enumerate() {
            let set: usize = vertices.iter().map(|&vertex| 1 << vertex).sum();
            all[set] = (dim, local);
        }
    }
    all
}

impl Mesh {
    /// Sets the shared entities of a mesh part of simplices after `times` refinements, and the cell counts of facets on
    /// its boundary. All cells list the vertices of an entity of the part in one order, which defines the positions of
    /// midpoints on it.
    pub(super) fn inherit_red(&mut self, times: usize) {
        let Some(RefinedMesh { coarse, cells: Descendants::Uniform { numbers, .. }, .. }) =
            self.refined_from()
        else {
            return;
        };
        let (coarse, numbers) = (Arc::clone(coarse), numbers.clone());
        let Some(cut) = coarse.cut() else { return };
        let (cell, trees) = (self.cell(), coarse.topology());
        let (all, mut facets) = (entities(cell), Vec::new());
        let mut inherited = SharedEntityCollector::new(cut, trees);
        for (own, &number) in numbers.iter().enumerate() {
            let tree = number as usize >> (cell.dim() * times);
            if !inherited.is_shared(trees, tree) {
                continue;
            }
            let within = number as usize & ((1 << (cell.dim() * times)) - 1);
            let corners = corners(cell, times, within);
            for dim in 0..cell.dim() {
                let locals = cell.entities(dim).iter().zip(self.topology().of_cell(dim, own));
                for (local, (vertices, &number)) in locals.enumerate() {
                    let sum = |c: usize| vertices.iter().map(|&vertex| corners[vertex][c]).sum();
                    let middle: [u32; 4] = [0, 1, 2, 3].map(sum);
                    let set = (0..4).filter(|&c| middle[c] > 0).map(|c| 1 << c).sum::<usize>();
                    let (of, on) = all[set];
                    if of == cell.dim() {
                        continue;
                    }
                    let mut at = [0; 3];
                    let along = cell.entities(of)[on].iter().map(|&vertex| middle[vertex]);
                    at.iter_mut().zip(along).for_each(|(at, along)| *at = along);
                    let entity = trees.of_cell(of, tree)[on];
                    inherited.add(dim, number, (of, entity), at);
                    if [dim, of] == [cell.dim() - 1; 2] {
                        let facet = Facet { cell: own as u32, local: local as u8 };
                        facets.push((facet, trees.facets().n_cells(entity as usize)));
                    }
                }
            }
        }
        let shared = inherited.shared();
        self.count_facets(facets);
        self.descend(times, numbers, shared);
    }
}

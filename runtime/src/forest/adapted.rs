//! The mesh of a forest's leaves, with hanging nodes where leaves of two levels meet.
//!
//! A leaf takes the map of its tree, as [`super::descent`] has it, but for what hangs: there its nodes lie on the face or
//! edge of its parent, which is the coarser neighbour's own, so that both sides have one surface. Unknowns see the
//! parent's entities in the place of those that hang ([`super::entities`]). Leaves of one level are [`Mesh::refined`].

use super::descent::Descent;
use super::entities::{Frames, Leaves};
use super::refined::{RefineError, chained, corner_nodes, geometry};
use super::{FINEST, Forest, Mask};
use crate::mesh::hanging::Hanging;
use crate::mesh::refined::{Divided, Refined};
use crate::mesh::{Facet, Mesh, Parts, Topology};
use crate::space::nodes_of_cells;
use kernels_gen::abi::hanging::word;
use kernels_gen::element::Lagrange;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Forest {
    /// The mesh of the leaves of a balanced forest of the cells of `coarse`. Cells inherit tags and what comes from files;
    /// [`Mesh::leaves`] says which leaf each is.
    ///
    /// # Errors
    ///
    /// More than indices can number, cells that fold when they are divided.
    pub fn mesh(&self, coarse: &Arc<Mesh>) -> Result<Mesh, RefineError> {
        let keys = self.leaves();
        let layout = self.coarse().layout;
        let corners: Vec<[u32; 3]> = keys.iter().map(|&key| layout.corner(key)).collect();
        let (masks, dim) = (self.masks(), coarse.dim());
        let words: Vec<u32> = match masks.iter().all(|mask| mask.is_free()) {
            true => Vec::new(),
            false => masks.iter().map(|mask| word_of(*mask, dim)).collect(),
        };
        let leaves = Leaves { keys, corners: &corners, words: &words };
        let numbered = leaves.vertices(&Frames::new(coarse.topology()));
        let element = geometry(coarse)?;
        let own = Topology::new(coarse.cell(), numbered.n_vertices, numbered.vertices)?;
        let (mut nodes, count) = nodes_of_cells(&own, element);
        let mut points = vec![[f64::NAN; 3]; count];
        let mut descent = Descent::new(coarse, element);
        let mut path = Vec::with_capacity(FINEST as usize);
        for (leaf, &key) in keys.iter().enumerate() {
            path.clear();
            path.extend(layout.path(key));
            let word = words.get(leaf).copied().unwrap_or(0);
            let places = descent.nodes_of_leaf(key.tree(), &path, word);
            for (&node, place) in nodes[leaf * element.count()..].iter().zip(&*places) {
                points[node as usize] = *place;
            }
        }
        let outside = self.outside(coarse, &corners);
        let facets = facets(coarse, &element, &nodes, &outside);
        let order = chained(coarse.cell(), &element, &mut nodes, keys.len());
        let mut rank = vec![0u32; order.len()];
        (0..).zip(&order).for_each(|(cell, &leaf)| rank[leaf as usize] = cell);
        let in_order = |facet: &Facet| Facet { cell: rank[facet.cell as usize], ..*facet };
        let cells = self.cell_tags(coarse, &rank);
        let negative = coarse.mirrored();
        let negative: Vec<bool> =
            order.iter().map(|&leaf| negative[keys[leaf as usize].tree() as usize]).collect();
        let parts = Parts { points, nodes, facets, cells, ..Parts::default() };
        let keys: Vec<_> = order.iter().map(|&leaf| keys[leaf as usize]).collect();
        let hanging = if words.is_empty() && !coarse.is_periodic() {
            None
        } else {
            let corners: Vec<_> = order.iter().map(|&leaf| corners[leaf as usize]).collect();
            let words: Vec<u32> = if words.is_empty() {
                words
            } else {
                order.iter().map(|&leaf| words[leaf as usize]).collect()
            };
            let leaves = Leaves { keys: &keys, corners: &corners, words: &words };
            let connectivity = leaves.connectivity(&Frames::new(coarse.connectivity()))?;
            let mut surface: Vec<Facet> = outside
                .iter()
                .filter(|own| own.of_boundary)
                .map(|own| in_order(&own.facet))
                .collect();
            surface.sort_unstable();
            Some((words, connectivity, surface))
        };
        let refined = Refined {
            coarse: Arc::clone(coarse),
            divided: Divided::Leaves { layout, keys, leaves: order },
            seen: Vec::new(),
        };
        let mut mesh = Mesh::of_descendants(parts, &negative, refined)?;
        if let Some((words, connectivity, surface)) = hanging {
            mesh.hang(Hanging { words, surface }, connectivity, coarse.periodic_sides());
        }
        Ok(mesh)
    }

    /// The facets of leaves on facets of the mesh that have a tag or are of one cell.
    fn outside(&self, coarse: &Mesh, corners: &[[u32; 3]]) -> Vec<Outside> {
        let topology = coarse.topology();
        let (cell, facets) = (coarse.cell(), topology.facets());
        let each = cell.facets().len();
        let mut kind = vec![Kind::default(); coarse.n_cells() * each];
        for (place, kind) in kind.iter_mut().enumerate() {
            let entity = facets.of_cell(place / each)[place % each] as usize;
            kind.of_boundary = facets.n_cells(entity) == 1;
        }
        for facet in coarse.facet_tags().values().flatten() {
            kind[facet.cell as usize * each + usize::from(facet.local)].is_tagged = true;
        }
        let mut all = Vec::new();
        for (leaf, (&key, corner)) in self.leaves().iter().zip(corners).enumerate() {
            let last = super::key::UNITS - (super::key::UNITS >> key.level());
            for local in 0..each {
                let at = if local % 2 == 0 { 0 } else { last };
                let kind = kind[key.tree() as usize * each + local];
                if corner[local / 2] == at && (kind.of_boundary || kind.is_tagged) {
                    let facet = Facet { cell: leaf as u32, local: local as u8 };
                    all.push(Outside { facet, tree: key.tree(), of_boundary: kind.of_boundary });
                }
            }
        }
        all
    }

    /// The tags of cells, inherited; `rank` is the cell of each leaf.
    fn cell_tags(&self, coarse: &Mesh, rank: &[u32]) -> BTreeMap<String, Vec<u32>> {
        let inherited = |tagged: &Vec<u32>| {
            let mut holds = vec![false; coarse.n_cells()];
            tagged.iter().for_each(|&cell| holds[cell as usize] = true);
            let cells = self.leaves().iter().zip(rank);
            let cells = cells.filter(|(key, _)| holds[key.tree() as usize]);
            let mut cells: Vec<u32> = cells.map(|(_, &cell)| cell).collect();
            cells.sort_unstable();
            cells
        };
        coarse.cell_tags().iter().map(|(tag, cells)| (tag.clone(), inherited(cells))).collect()
    }
}

/// The parts of tagged facets, by their vertices.
fn facets(
    coarse: &Mesh,
    element: &Lagrange,
    nodes: &[u32],
    outside: &[Outside],
) -> BTreeMap<String, Vec<[u32; 4]>> {
    let (locals, corners) = (coarse.cell().facets(), corner_nodes(element));
    let vertices = |facet: Facet| {
        let all = &nodes[facet.cell as usize * element.count()..];
        let mut vertices = [u32::MAX; 4];
        let local = locals[usize::from(facet.local)];
        vertices.iter_mut().zip(local).for_each(|(vertex, &v)| *vertex = all[corners[v]]);
        vertices
    };
    let tagged = |tagged: &Vec<Facet>| {
        let of = |own: &&Outside| {
            tagged.binary_search(&Facet { cell: own.tree, local: own.facet.local }).is_ok()
        };
        outside.iter().filter(of).map(|own| vertices(own.facet)).collect()
    };
    coarse.facet_tags().iter().map(|(tag, facets)| (tag.clone(), tagged(facets))).collect()
}

/// What a facet of the mesh is.
#[derive(Clone, Copy, Default)]
struct Kind {
    is_tagged: bool,
    of_boundary: bool,
}

/// A facet of a leaf that lies on one of its tree.
struct Outside {
    facet: Facet,
    tree: u32,
    /// Whether it is one of one cell.
    of_boundary: bool,
}

/// What kernels read of a mask.
fn word_of(mask: Mask, dim: usize) -> u32 {
    let (faces, edges) =
        ([0, 1, 2].map(|axis| mask.face(axis)), [0, 1, 2].map(|axis| mask.edge(axis)));
    word(mask.child(), faces, edges, dim)
}

//! Mesh of the leaves of a forest, with hanging nodes between leaves of different levels.
//!
//! A leaf uses the map of its tree ([`super::descent`]), except on hanging entities. There its nodes lie on the
//! parent's face or edge, which is that of the coarser neighbour, so that both sides share one surface. The
//! connectivity of the degrees of freedom replaces hanging entities by those of the parent ([`super::entities`]). A
//! forest of one level gives [`Mesh::refined`].

use super::descent::Descent;
use super::entities::{EntityFrames, LeafArrays};
use super::key::{KeyLayout, UNITS};
use super::nodes::geometry;
use super::{CellKey, ChildMaps, FINEST, Forest, ForestError, HangingMask};
use crate::mesh::distributed::{PartInterface, SharedEntity, SharedEntityCollector};
use crate::mesh::hanging::HangingEntities;
use crate::mesh::nodes::nodes_of_cells;
use crate::mesh::order::chain_order;
use crate::mesh::refined::{Descendants, LeafMesh, RefinedMesh};
use crate::mesh::{Facet, Mesh, MeshError, Topology};
use crate::support::parallel::*;
use kernels_gen::abi::hanging::word;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Forest {
    /// Builds the mesh of the leaves of a balanced forest over the cells of `coarse`. Cells inherit tags and file data;
    /// [`Mesh::leaves`] gives the leaf of each cell.
    ///
    /// # Errors
    ///
    /// A mesh other than that of the forest, an unbalanced forest, an index overflow, or folded child cells.
    pub fn mesh(&self, coarse: &Arc<Mesh>) -> Result<Mesh, ForestError> {
        let (cell, expected) = (self.coarse().cell(), self.coarse().n_trees());
        if (coarse.cell(), coarse.n_cells()) != (cell, expected) {
            let found = coarse.n_cells();
            return Err(ForestError::Another { cell, expected, found });
        }
        self.expect_balance()?;
        if coarse.cut().is_some() && self.times().is_none() {
            return Err(ForestError::Part);
        }
        let words = self.words(coarse.dim());
        let words = words.as_deref();
        let mut chosen = LeafMeshBuilder::new(coarse, self.coarse().layout, self.leaves(), words)?;
        let mut shared = None;
        if let (Some(cut), Some(times)) = (coarse.cut(), self.times()) {
            chosen.synchronise()?;
            shared = Some((chosen.inherit(cut), chosen.order.clone(), times));
        }
        let order = chosen.order.clone();
        let mut mesh = chosen.mesh(order)?;
        if let Some((shared, numbers, times)) = shared {
            mesh.descend(times, numbers, shared);
        }
        Ok(mesh)
    }

    /// Returns the hanging word of each leaf of a balanced forest, for kernels; `None` if nothing hangs.
    pub(super) fn words(&self, dim: usize) -> Option<Vec<u32>> {
        let masks = self.masks();
        let hangs = masks.iter().any(|mask| !mask.is_free());
        hangs.then(|| masks.into_iter().map(|mask| word_of(mask, dim)).collect())
    }

    /// Returns the common level of all leaves, 0 without leaves; `None` if they differ.
    fn times(&self) -> Option<usize> {
        let level = self.leaves().first().map_or(0, |leaf| leaf.level());
        let same = self.leaves().iter().all(|leaf| leaf.level() == level);
        same.then_some(level as usize)
    }
}

/// Mesh of selected leaves under construction.
pub(super) struct LeafMeshBuilder<'a> {
    coarse: &'a Arc<Mesh>,
    layout: KeyLayout,
    /// The leaf of each cell.
    pub(super) order: Vec<u32>,
    /// The key of each cell.
    keys: Vec<CellKey>,
    corners: Vec<[u32; 3]>,
    words: Option<Vec<u32>>,
    points: Vec<[f64; 3]>,
    nodes: Vec<u32>,
    outside: Vec<TreeFacet>,
    pub(super) topology: Topology,
    /// The connectivity of the degrees of freedom, if it differs from the topology.
    pub(super) connectivity: Option<Topology>,
}

impl<'a> LeafMeshBuilder<'a> {
    /// Starts with ascending leaves of the cells of `coarse`, and their hanging words if anything hangs anywhere.
    ///
    /// # Errors
    ///
    /// An index overflow.
    pub(super) fn new(
        coarse: &'a Arc<Mesh>,
        layout: KeyLayout,
        leaves: &[CellKey],
        words: Option<&[u32]>,
    ) -> Result<Self, ForestError> {
        let frames = EntityFrames::new(coarse.topology());
        let corners: Vec<[u32; 3]> =
            leaves.par_iter().with_min_len(1024).map(|&key| layout.corner(key)).listed();
        let own = LeafArrays { keys: leaves, corners: &corners, words: &[] };
        let (vertices, n_vertices) = own.vertices(&frames);
        // Cells are the leaves in another order.
        let order = chain_order(coarse.cell(), &vertices, (0..leaves.len() as u32).collect());
        let along = || order.iter().map(|&leaf| leaf as usize);
        let keys: Vec<CellKey> = along().map(|leaf| leaves[leaf]).collect();
        let words: Option<Vec<u32>> = words.map(|words| along().map(|leaf| words[leaf]).collect());
        let vertices = renumbered(&vertices, n_vertices, &order, coarse.cell().vertex_count());
        let corners: Vec<[u32; 3]> = along().map(|leaf| corners[leaf]).collect();
        let of_words = words.as_deref().unwrap_or_default();
        let cells = LeafArrays { keys: &keys, corners: &corners, words: of_words };
        let topology = Topology::new(coarse.cell(), n_vertices, vertices)?;
        let (points, nodes) = points(coarse, &topology, &cells, &order, layout)?;
        let outside = outside(coarse, &cells);
        let mut own = Self {
            coarse,
            layout,
            order,
            keys,
            corners,
            words,
            points,
            nodes,
            outside,
            topology,
            connectivity: None,
        };
        if own.words.is_some() || coarse.is_periodic() {
            own.connect()?;
        }
        Ok(own)
    }

    /// Returns the cells, as leaves.
    pub(super) fn cells(&self) -> LeafArrays<'_> {
        let words = self.words.as_deref().unwrap_or_default();
        LeafArrays { keys: &self.keys, corners: &self.corners, words }
    }

    /// Numbers the entities of the degrees of freedom.
    fn connect(&mut self) -> Result<(), ForestError> {
        let frames = EntityFrames::new(self.coarse.connectivity());
        self.connectivity = Some(self.cells().connectivity(&frames)?);
        Ok(())
    }

    /// Ensures that processes agree on the directions of entities on edges and faces of trees.
    ///
    /// # Errors
    ///
    /// An index overflow.
    pub(super) fn synchronise(&mut self) -> Result<(), ForestError> {
        match self.connectivity.is_none() && !self.coarse.connectivity().is_oriented() {
            true => self.connect(),
            false => Ok(()),
        }
    }

    /// Returns the shared entities of the leaves of a mesh part.
    fn inherit(&mut self, cut: &PartInterface) -> [Vec<SharedEntity>; 3] {
        let coarse = self.coarse;
        let words = self.words.as_deref().unwrap_or_default();
        let cells = LeafArrays { keys: &self.keys, corners: &self.corners, words };
        count_facets(coarse.topology(), &cells, &mut self.topology);
        if let Some(connectivity) = &mut self.connectivity {
            count_facets(coarse.connectivity(), &cells, connectivity);
        }
        let mut inherited = SharedEntityCollector::new(cut, coarse.connectivity());
        let numbers = self.connectivity.as_ref().unwrap_or(&self.topology);
        cells.inherit(&EntityFrames::new(coarse.connectivity()), &mut inherited, numbers);
        inherited.shared()
    }

    /// Finishes the mesh; `leaves` are the leaf numbers of its cells.
    ///
    /// # Errors
    ///
    /// A child cell is folded.
    pub(super) fn mesh(self, leaves: Vec<u32>) -> Result<Mesh, ForestError> {
        let Self { coarse, layout, keys, words, points, nodes, outside, topology, .. } = self;
        let parts = LeafMesh {
            points,
            nodes,
            facets: facet_tags(coarse, &outside),
            cells: coarse.inherited_tags(keys.iter().map(|key| key.tree() as usize)),
            topology,
        };
        let refined = RefinedMesh {
            coarse: Arc::clone(coarse),
            cells: Descendants::Forest { layout, keys, leaves },
            seen: Vec::new(),
        };
        let mut mesh = Mesh::of_leaves(parts, refined)?;
        if let Some(connectivity) = self.connectivity {
            let on_boundary = outside.iter().filter(|own| own.of_boundary);
            let surface = on_boundary.map(|own| own.facet).collect();
            mesh.hang(HangingEntities { words, surface }, connectivity, coarse.periodic_sides());
        }
        Ok(mesh)
    }
}

/// Sets the number of cells of facets on tree facets to that of the tree facet, including other processes.
fn count_facets(trees: &Topology, cells: &LeafArrays<'_>, topology: &mut Topology) {
    for (cell, (&key, corner)) in cells.keys.iter().zip(cells.corners).enumerate() {
        let last = UNITS - (UNITS >> key.level());
        for local in 0..trees.cell().facets().len() {
            if corner[local / 2] == if local % 2 == 0 { 0 } else { last } {
                let of_tree = trees.facet_entity(Facet { cell: key.tree(), local: local as u8 });
                let facet = Facet { cell: cell as u32, local: local as u8 };
                topology.count_facet(facet, trees.facets().n_cells(of_tree as usize));
            }
        }
    }
}

/// Renumbers vertices by first touch in another cell order.
fn renumbered(vertices: &[u32], count: usize, order: &[u32], each: usize) -> Vec<u32> {
    let (mut numbers, mut next) = (vec![u32::MAX; count], 0);
    let own = order.iter().flat_map(|&leaf| &vertices[leaf as usize * each..][..each]);
    let number = |&vertex: &u32| {
        let number = &mut numbers[vertex as usize];
        if *number == u32::MAX {
            *number = next;
            next += 1;
        }
        *number
    };
    own.map(number).collect()
}

/// Returns the geometry nodes, vertices first, and the connectivity.
fn points(
    coarse: &Mesh,
    topology: &Topology,
    cells: &LeafArrays<'_>,
    order: &[u32],
    layout: KeyLayout,
) -> Result<(Vec<[f64; 3]>, Vec<u32>), MeshError> {
    let element = geometry(coarse)?;
    let (nodes, count) = nodes_of_cells(topology, element);
    let mut cell_of = vec![0u32; order.len()];
    (0..).zip(order).for_each(|(cell, &leaf)| cell_of[leaf as usize] = cell);
    let mut points = vec![[0.0; 3]; count];
    let mut descent = Descent::new(coarse, element, &ChildMaps::new(coarse.cell()));
    let mut path = Vec::with_capacity(FINEST as usize);
    // In leaf order, so that most of the path is reused.
    for cell in cell_of.into_iter().map(|cell| cell as usize) {
        let key = cells.keys[cell];
        path.clear();
        path.extend(layout.path(key));
        let word = cells.words.get(cell).copied().unwrap_or(0);
        let places = descent.nodes_of_leaf(key.tree(), &path, word);
        for (&node, place) in nodes[cell * element.count()..].iter().zip(&*places) {
            points[node as usize] = *place;
        }
    }
    coarse.place(&mut points);
    Ok((points, nodes))
}

/// Returns the facets of cells on facets of the mesh that are tagged or on the boundary, ascending.
fn outside(coarse: &Mesh, cells: &LeafArrays<'_>) -> Vec<TreeFacet> {
    let facets = coarse.topology().facets();
    let each = coarse.cell().facets().len();
    let mut kind = vec![FacetKind::default(); coarse.n_cells() * each];
    for (place, kind) in kind.iter_mut().enumerate() {
        let entity = facets.of_cell(place / each)[place % each] as usize;
        kind.of_boundary = facets.n_cells(entity) == 1;
    }
    for facet in coarse.facet_tags().values().flatten() {
        kind[facet.cell as usize * each + usize::from(facet.local)].is_tagged = true;
    }
    let mut all = Vec::new();
    for (cell, (&key, corner)) in cells.keys.iter().zip(cells.corners).enumerate() {
        let last = UNITS - (UNITS >> key.level());
        for local in 0..each {
            let at = if local % 2 == 0 { 0 } else { last };
            let kind = kind[key.tree() as usize * each + local];
            if corner[local / 2] == at && (kind.of_boundary || kind.is_tagged) {
                let facet = Facet { cell: cell as u32, local: local as u8 };
                all.push(TreeFacet { facet, tree: key.tree(), of_boundary: kind.of_boundary });
            }
        }
    }
    all
}

/// Returns the inherited facet tags.
fn facet_tags(coarse: &Mesh, outside: &[TreeFacet]) -> BTreeMap<String, Vec<Facet>> {
    let tagged = |tagged: &Vec<Facet>| {
        let of = |own: &&TreeFacet| {
            tagged.binary_search(&Facet { cell: own.tree, local: own.facet.local }).is_ok()
        };
        outside.iter().filter(of).map(|own| own.facet).collect()
    };
    coarse.facet_tags().iter().map(|(tag, facets)| (tag.clone(), tagged(facets))).collect()
}

/// Properties of a facet of the mesh.
#[derive(Clone, Copy, Default)]
struct FacetKind {
    is_tagged: bool,
    of_boundary: bool,
}

/// A facet of a leaf on a facet of its tree.
struct TreeFacet {
    facet: Facet,
    tree: u32,
    /// True on the boundary.
    of_boundary: bool,
}

/// Returns the hanging word of a mask, for kernels.
fn word_of(mask: HangingMask, dim: usize) -> u32 {
    let (faces, edges) =
        ([0, 1, 2].map(|axis| mask.face(axis)), [0, 1, 2].map(|axis| mask.edge(axis)));
    word(mask.child(), faces, edges, dim)
}

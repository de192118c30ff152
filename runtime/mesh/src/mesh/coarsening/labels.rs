//! Tags as set numbers: for each cell and each facet the number of its set of tags, for fast comparison.
//!
//! ```text
//! 0 = {}        the set of a cell = previous set ∪ {tag}, for each tag in turn
//! ```

use super::patches::Patches;
use crate::mesh::{Cell, Mesh};
use std::collections::{BTreeMap, HashMap};

/// Numbered sets of tags.
struct TagSets {
    /// The tag numbers of each set.
    all: Vec<Vec<u32>>,
    known: HashMap<(u32, u32), u32>,
}

impl TagSets {
    fn new() -> Self {
        Self { all: vec![Vec::new()], known: HashMap::new() }
    }

    /// Returns the number of a set extended by one tag.
    fn with(&mut self, set: u32, tag: u32) -> u32 {
        *self.known.entry((set, tag)).or_insert_with(|| {
            let mut own = self.all[set as usize].clone();
            own.push(tag);
            self.all.push(own);
            self.all.len() as u32 - 1
        })
    }
}

/// Tag sets of cells and facets.
pub(super) struct TagLabels {
    sets: [TagSets; 2],
    /// The set of each cell; empty without cell tags.
    cells: Vec<u32>,
    /// The set of each facet.
    facets: Vec<u32>,
}

impl TagLabels {
    pub(super) fn new(mesh: &Mesh) -> Self {
        let mut sets = [TagSets::new(), TagSets::new()];
        let (mut cells, mut facets) = (Vec::new(), Vec::new());
        for (tag, tagged) in (0..).zip(mesh.cell_tags().values()) {
            cells.resize(mesh.n_cells(), 0);
            for &cell in tagged {
                let set = &mut cells[cell as usize];
                *set = sets[0].with(*set, tag);
            }
        }
        for (tag, tagged) in (0..).zip(mesh.facet_tags().values()) {
            facets.resize(mesh.topology().facets().len(), 0);
            for &facet in tagged {
                let set: &mut u32 = &mut facets[mesh.topology().facet_entity(facet) as usize];
                *set = sets[1].with(*set, tag);
            }
        }
        Self { sets, cells, facets }
    }

    /// Creates labels without tags.
    pub(super) fn none() -> Self {
        Self { sets: [TagSets::new(), TagSets::new()], cells: Vec::new(), facets: Vec::new() }
    }

    /// Returns the set of a cell.
    pub(super) fn cell(&self, cell: usize) -> u32 {
        self.cells.get(cell).copied().unwrap_or(0)
    }

    /// Returns the set of a facet.
    pub(super) fn facet(&self, facet: u32) -> u32 {
        self.facets.get(facet as usize).copied().unwrap_or(0)
    }

    /// Returns whether any facet has a tag.
    pub(super) fn has_facets(&self) -> bool {
        !self.facets.is_empty()
    }

    /// Returns the tags of coarse facets, by their vertices in the fine mesh, and of coarse cells.
    pub(super) fn coarse(
        &self,
        mesh: &Mesh,
        patches: &Patches,
    ) -> (BTreeMap<String, Vec<[u32; 4]>>, BTreeMap<String, Vec<u32>>) {
        let each = mesh.cell().vertex_count();
        let mut cells = vec![Vec::new(); mesh.cell_tags().len()];
        let mut facets = vec![Vec::new(); mesh.facet_tags().len()];
        for (number, first) in patches.firsts(each).enumerate() {
            for &tag in &self.sets[0].all[self.cell(first as usize) as usize] {
                cells[tag as usize].push(number as u32);
            }
        }
        let local = mesh.cell().facets();
        for patch in 0..patches.count(each) {
            for facet in 0..if self.has_facets() { local.len() } else { 0 } {
                let set = self.facet(patches.facet(mesh, patch, facet, local[facet][0]));
                for &tag in &self.sets[1].all[set as usize] {
                    facets[tag as usize].push(vertices(mesh, patches, patch, facet));
                }
            }
        }
        let facets = mesh.facet_tags().keys().cloned().zip(facets).collect();
        (facets, mesh.cell_tags().keys().cloned().zip(cells).collect())
    }
}

/// Returns the vertices of a coarse facet.
fn vertices(mesh: &Mesh, patches: &Patches, patch: usize, facet: usize) -> [u32; 4] {
    let mut vertices = [u32::MAX; 4];
    let cell: Cell = mesh.cell();
    for (vertex, &corner) in vertices.iter_mut().zip(cell.facets()[facet]) {
        *vertex = patches.vertex(mesh, patch, corner, corner);
    }
    // Both cells of a facet list it; the order must agree.
    vertices.sort_unstable();
    vertices
}

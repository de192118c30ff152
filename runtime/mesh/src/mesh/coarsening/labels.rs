//! Tags as set numbers: for each cell and each facet the number of its set of tags, for fast comparison.
//!
//! ```text
//! 0 = {}        the set of a cell = previous set ∪ {tag}, for each tag in turn
//! ```

use crate::mesh::Mesh;
use std::collections::HashMap;

/// Numbered sets of tags.
pub(super) struct TagSets {
    /// The tag numbers of each set.
    pub(super) all: Vec<Vec<u32>>,
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
    /// Those of cells, and of facets.
    pub(super) sets: [TagSets; 2],
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

    /// Returns whether any cell has a tag.
    pub(super) fn has_cells(&self) -> bool {
        !self.cells.is_empty()
    }

    /// Returns whether any facet has a tag.
    pub(super) fn has_facets(&self) -> bool {
        !self.facets.is_empty()
    }
}

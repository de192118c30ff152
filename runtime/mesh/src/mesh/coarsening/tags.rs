//! Tags of the coarse mesh.

use super::labels::TagLabels;
use super::patches::Patches;
use crate::mesh::{Cell, Mesh};
use std::collections::BTreeMap;

impl TagLabels {
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

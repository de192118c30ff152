//! Patches of a generated grid in closed form.
//!
//! ```text
//! the patch of cell (i, j, k): (⌊i/2⌋, ⌊j/2⌋, ⌊k/2⌋)        its number there: the parities of i, j and k
//! ```

use super::child_position::ChildPosition;
use super::labels::TagLabels;
use super::patches::Patches;
use crate::mesh::{Mesh, SourceOrder, order};

impl Patches {
    /// Returns the patches that the search finds in a grid with even numbers of cells; `None` for other meshes, and
    /// where tags end inside of a patch or cells have some.
    pub(super) fn of_grid(mesh: &Mesh, labels: &TagLabels) -> Option<Self> {
        let SourceOrder::Grid(cells) = mesh.order_of_source else { return None };
        let (dim, each) = (mesh.dim(), 1 << mesh.dim());
        let even = cells[..dim].iter().all(|n| n % 2 == 0);
        if !mesh.cell().is_tensor() || !even || labels.has_cells() {
            return None;
        }
        let order = order::brick_order(cells);
        let index =
            |[i, j, k]: [u32; 3]| (k as usize * cells[1] + j as usize) * cells[0] + i as usize;
        let mut cell_at = vec![0; order.len()];
        (0u32..).zip(&order).for_each(|(cell, &place)| cell_at[index(place)] = cell);
        // The cell of the same patch on other sides along the axes in `bits`.
        let across = |place: [u32; 3], bits: usize| {
            cell_at[index([0, 1, 2].map(|a| place[a] ^ (bits >> a & 1) as u32))]
        };
        let facets = mesh.topology().facets();
        let labelled = (0..facets.len()).filter(|_| labels.has_facets());
        for facet in labelled.filter(|&facet| labels.facet(facet as u32) != 0) {
            let (cell, local) = facets.first_cell(facet);
            let others = (1..each).filter(|bits| bits >> (local / 2) & 1 == 0);
            let same = |other: u32| {
                labels.facet(facets.of_cell(other as usize)[local]) == labels.facet(facet as u32)
            };
            if facets.n_cells(facet) != 1 || !others.map(|bits| across(order[cell], bits)).all(same)
            {
                return None;
            }
        }
        let own: Vec<ChildPosition> =
            (0..each).map(|child| ChildPosition::new(child, [0, 1, 2], child as u8, dim)).collect();
        let mut children = Vec::with_capacity(order.len());
        let mut places = Vec::with_capacity(order.len());
        for (cell, &place) in (0..).zip(&order) {
            let parity: usize = (0..dim).map(|a| (place[a] as usize & 1) << a).sum();
            if (1..each).all(|bits| across(place, bits) > cell) {
                children.extend((0..each).map(|child| across(place, child ^ parity)));
                places.extend_from_slice(&own);
            }
        }
        Some(Self { children, places })
    }
}

#[cfg(test)]
mod tests {
    use super::super::links::FacetLinks;
    use super::*;

    fn assert_found(mesh: &Mesh) {
        let labels = TagLabels::new(mesh);
        let grid = Patches::of_grid(mesh, &labels).expect("patches of a grid");
        let links = FacetLinks::new(mesh, &labels);
        let found = Patches::find(mesh, &links, &labels).unwrap_or_else(|why| panic!("{why:?}"));
        assert_eq!(grid.children, found.children);
        assert!(grid.places == found.places);
    }

    fn grid<const N: usize>(cells: [usize; N]) -> Mesh {
        Mesh::cube(N).cells(cells).build().expect("a grid")
    }

    #[test]
    fn a_grid_has_the_patches_that_the_search_finds() {
        for cells in [[2, 2], [6, 4], [34, 2]] {
            assert_found(&grid(cells));
        }
        for cells in [[2, 2, 2], [8, 6, 4], [10, 2, 20]] {
            assert_found(&grid(cells));
        }
    }

    #[test]
    fn odd_grids_and_tags_inside_of_patches_are_searched() {
        let refused = |mesh: &Mesh| Patches::of_grid(mesh, &TagLabels::new(mesh)).is_none();
        assert!(refused(&grid([3, 4])));
        let mut part = grid([4, 4]);
        part.tag_boundary("part", |points| points.iter().all(|x| x[0] == 0.0 && x[1] < 0.3));
        assert!(refused(&part));
        let mut half = grid([4, 4]);
        half.tag_boundary("half", |points| points.iter().all(|x| x[0] == 0.0 && x[1] < 0.6));
        assert_found(&half);
        let mut tagged = grid([4, 4]);
        tagged.tag_cells("left", |x| x[0] < 0.5);
        assert!(refused(&tagged));
    }
}

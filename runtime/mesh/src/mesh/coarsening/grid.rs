//! Patches of a generated grid in closed form.
//!
//! ```text
//! the patch of cell (i, j, k): (⌊i/2⌋, ⌊j/2⌋, ⌊k/2⌋)        its number there: the parities of i, j and k
//! ```

use super::child_position::ChildPosition;
use super::labels::TagLabels;
use super::patches::Patches;
use crate::mesh::first_places::FirstPlaceRanks;
use crate::mesh::{Mesh, SourceOrder, order};
use crate::support::parallel::*;
use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;

/// Smallest number of cells per thread.
const GRAIN: usize = 1 << 10;

/// Places of the cells of a grid.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GridPlaces {
    /// The number of cells in each direction.
    cells: [usize; 3],
    /// The place of each cell.
    of: Vec<[u32; 3]>,
}

impl GridPlaces {
    /// Returns the places of a grid, or of the patches of one.
    fn of_mesh(mesh: &Mesh) -> Option<Cow<'_, Self>> {
        match &mesh.order_of_source {
            SourceOrder::Grid(cells) => {
                let of = order::brick_order(*cells);
                Some(Cow::Owned(Self { cells: *cells, of }))
            }
            SourceOrder::CoarseGrid(places) => Some(Cow::Borrowed(places)),
            SourceOrder::Native | SourceOrder::Listed(_) | SourceOrder::Refined(_) => None,
        }
    }

    /// Returns the index of a place: x fastest, then y, then z.
    fn index(&self, [i, j, k]: [u32; 3]) -> usize {
        (k as usize * self.cells[1] + j as usize) * self.cells[0] + i as usize
    }
}

impl Patches {
    /// Returns the patches that the search finds in a grid with even numbers of cells, and their places; `None` for other
    /// meshes, and where tags end inside of a patch or cells have some.
    pub(super) fn of_grid(mesh: &Mesh, labels: &TagLabels) -> Option<(Self, GridPlaces)> {
        let grid = GridPlaces::of_mesh(mesh)?;
        let (dim, each) = (mesh.dim(), 1 << mesh.dim());
        let even = grid.cells[..dim].iter().all(|n| n % 2 == 0);
        if !mesh.cell().is_tensor() || !even || labels.has_cells() {
            return None;
        }
        let n_cells = grid.of.len();
        let cell_at = filled_atomics(n_cells, 0);
        let places = grid.of.par_iter().enumerate().with_min_len(GRAIN);
        places.each(|(cell, place)| cell_at[grid.index(*place)].store(cell as u32, Relaxed));
        let cell_at = plain_numbers(cell_at);
        // The cell of the same patch on other sides along the axes in `bits`.
        let across = |place: [u32; 3], bits: usize| {
            cell_at[grid.index([0, 1, 2].map(|a| place[a] ^ (bits >> a & 1) as u32))]
        };
        let facets = mesh.topology().facets();
        let is_tagged_as_a_whole = |facet: usize| {
            let label = labels.facet(facet as u32);
            let (cell, local) = facets.first_cell(facet);
            let mut others = (1..each).filter(|bits| bits >> (local / 2) & 1 == 0);
            let same = |bits| {
                let other = across(grid.of[cell], bits) as usize;
                labels.facet(facets.of_cell(other)[local]) == label
            };
            label == 0 || facets.n_cells(facet) == 1 && others.all(same)
        };
        let n_labelled = if labels.has_facets() { facets.len() } else { 0 };
        if !(0..n_labelled).into_par_iter().with_min_len(GRAIN).holds(is_tagged_as_a_whole) {
            return None;
        }
        let firsts = FirstPlaceRanks::new([n_cells, 1], |cell, _| {
            (1..each).all(|bits| across(grid.of[cell], bits) > cell as u32)
        });
        let children = firsts.listed(each, |cell, children| {
            let place = grid.of[cell];
            let parity: usize = (0..dim).map(|a| (place[a] as usize & 1) << a).sum();
            (0..).zip(children).for_each(|(child, own)| *own = across(place, child ^ parity));
        });
        let of = firsts.listed(1, |cell, own| own[0] = grid.of[cell].map(|x| x / 2));
        let mut cells = grid.cells;
        cells[..dim].iter_mut().for_each(|n| *n /= 2);
        let own: Vec<ChildPosition> =
            (0..each).map(|child| ChildPosition::new(child, [0, 1, 2], child as u8, dim)).collect();
        let places = own.repeat(of.len());
        Some((Self { children, places }, GridPlaces { cells, of }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::links::FacetLinks;
    use super::*;

    fn assert_found(mesh: &Mesh) {
        let labels = TagLabels::new(mesh);
        let (grid, _) = Patches::of_grid(mesh, &labels).expect("patches of a grid");
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
        for cells in [[2, 2], [6, 4], [34, 2], [68, 20]] {
            assert_found(&grid(cells));
        }
        for cells in [[2, 2, 2], [8, 6, 4], [10, 2, 20]] {
            assert_found(&grid(cells));
        }
    }

    #[test]
    fn coarsened_grids_are_grids() {
        let assert_coarser = |mut mesh: Mesh, times| {
            for _ in 0..times {
                mesh = Mesh::clone(&mesh.coarsened().expect("patches").mesh);
                assert_found(&mesh);
            }
        };
        assert_coarser(grid([68, 20]), 1);
        assert_coarser(grid([16, 24]), 2);
        assert_coarser(grid([16, 8, 24]), 2);
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

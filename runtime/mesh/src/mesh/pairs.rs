//! Facet connectivity: [`FacetPair`]s of neighbouring cells, and the facets of the boundary.
//!
//! A facet of [`Mesh::connectivity`] belongs to two cells, or to one cell and the children whose facets hang on it:
//! their connectivity contains the parent's facet, which that cell owns. In such a pair the child comes first, with
//! half or a quarter of the other's facet. Its position in the facet's frame follows from its child index, whose axes
//! are the parent's, and from its orientation relative to the parent's facet.
//!
//! On a subdomain, facets shared with other processes are [`OpenFacet`] and belong to neither list.

#[cfg(test)]
mod tests;

use super::views::FacetViews;
use super::{Facet, Mesh, MeshError, Topology};
use fem_dsl::point::InteriorFacets;
use kernels_gen::abi::hanging::{others, parts};
use std::collections::BTreeSet;

/// One side of a facet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FacetSide {
    /// The cell.
    pub cell: u32,
    /// The facet's number within the cell.
    pub local: u8,
}

/// Two neighbouring cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FacetPair {
    /// Sides; the child first, if there is one.
    pub sides: [FacetSide; 2],
    /// Position of the first side's facet in the second's, as halves along the axes of the facet's frame (bits); `None`
    /// if both are equal.
    pub child: Option<u8>,
}

/// The second cell of a pair, in the facet coordinates of the first one, which is rotated so that the facet is ξ₀ = 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenSide {
    /// Orientation of the second one, rotated likewise: [`kernels_gen::element::Cell::oriented`].
    pub orientation: u8,
    /// The half of its facet, along the axes of the first one (bits); `None` if it is the whole one.
    pub half: Option<u8>,
}

/// Two cells at a facet, of which the first one is the inside: the facet's normal points to the other one, the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellPair {
    /// Inside and outside; a child is the inside.
    pub sides: [FacetSide; 2],
    /// The outside, seen from the inside.
    pub seen: SeenSide,
}

/// Returns the pairs of cells at the facets of a mesh, in the order of their insides. On a subdomain, facets shared
/// with other processes are absent.
pub fn cell_pairs(mesh: &Mesh) -> Vec<CellPair> {
    selected(mesh, |pair| Some(*pair))
}

/// Returns the pairs of cells of an integral over facets between cells.
///
/// # Errors
///
/// A mesh without one of the tags; one with hanging nodes, or a part of one.
pub fn interior(mesh: &Mesh, facets: &InteriorFacets) -> Result<Vec<CellPair>, MeshError> {
    if mesh.hanging().is_some() {
        return Err(MeshError::Between { what: "cells of different size meet" });
    }
    if mesh.cut().is_some() {
        return Err(MeshError::Between { what: "cells are divided among processes" });
    }
    match facets {
        InteriorFacets::All => Ok(cell_pairs(mesh)),
        InteriorFacets::Under(tags) => {
            let tagged: BTreeSet<Facet> = mesh.facets_under(tags)?.into_iter().collect();
            let is_tagged =
                |&FacetSide { cell, local }: &FacetSide| tagged.contains(&Facet { cell, local });
            Ok(selected(mesh, |pair| pair.sides.iter().any(is_tagged).then_some(*pair)))
        }
        InteriorFacets::Between(tags) => {
            let [from, to] = [&tags[0], &tags[1]].map(|tag| mesh.cells_under([tag]));
            let (from, to) = (from?, to?);
            let is_between = |sides: [FacetSide; 2]| {
                from.binary_search(&sides[0].cell).is_ok()
                    && to.binary_search(&sides[1].cell).is_ok()
            };
            Ok(selected(mesh, |pair| {
                let [first, second] = pair.sides;
                let turned = FacetPair { sides: [second, first], ..*pair };
                [*pair, turned].into_iter().find(|pair| is_between(pair.sides))
            }))
        }
    }
}

/// Returns the pairs that `select` keeps, with the inside first, in the order of their insides.
fn selected(mesh: &Mesh, select: impl Fn(&FacetPair) -> Option<FacetPair>) -> Vec<CellPair> {
    let views = FacetViews::new(mesh.cell());
    let all = FacetConnectivity::new(mesh, &views);
    let pair = |pair: FacetPair| CellPair { sides: pair.sides, seen: all.seen(&views, &pair) };
    let mut pairs: Vec<CellPair> = all.pairs.iter().filter_map(select).map(pair).collect();
    pairs.sort_by_key(|pair| (pair.sides[0].cell, pair.sides[0].local));
    pairs
}

/// A cell at a facet shared with other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFacet {
    /// Index among the shared facets of the mesh.
    pub place: u32,
    /// The cell and its facet.
    pub side: FacetSide,
    /// Child index, like that of the first side of a [`FacetPair`].
    pub child: Option<u8>,
}

/// All facets of a mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FacetConnectivity {
    /// Facets between two cells.
    pub pairs: Vec<FacetPair>,
    /// Facets of one cell only.
    pub boundary: Vec<Facet>,
    /// Sorted by index.
    pub open: Vec<OpenFacet>,
    /// View of each cell on each of its facets, `[cell][facet]`.
    pub views: Vec<u8>,
    /// Number of facets per cell.
    locals: usize,
}

impl FacetConnectivity {
    /// Returns the view of a cell on one of its facets.
    pub fn view(&self, cell: usize, local: usize) -> u8 {
        self.views[cell * self.locals + local]
    }

    /// Returns how the second cell of a pair is seen from the first.
    pub fn seen(&self, views: &FacetViews, pair: &FacetPair) -> SeenSide {
        let [first, second] = pair.sides.map(|FacetSide { cell, local }| {
            let local = usize::from(local);
            (local, self.view(cell as usize, local))
        });
        let half = pair.child.map(|child| views.half(first.1, child));
        SeenSide { orientation: views.between(first, second), half }
    }

    /// Finds all facets of a mesh.
    pub fn new(mesh: &Mesh, views: &FacetViews) -> Self {
        let (topology, facet) = (mesh.connectivity(), mesh.dim() - 1);
        let mut places = Vec::new();
        if let Some(cut) = mesh.cut() {
            places.resize(topology.facets().len(), NONE);
            for (place, shared) in (0..).zip(cut.shared(facet)) {
                places[shared.number as usize] = place;
            }
        }
        Self::of(topology, mesh.hanging(), &places, views)
    }

    /// Finds all facets from the hanging-node words of the cells, and the index of each facet among the shared ones.
    pub fn of(
        topology: &Topology,
        hanging: Option<&[u32]>,
        places: &[u32],
        views: &FacetViews,
    ) -> Self {
        let (dim, locals) = (topology.cell().dim(), topology.cell().facets().len());
        let word = |cell: usize| hanging.map_or(0, |words| words[cell]);
        // Child index of a cell with a facet that is part of its entity.
        let child = |side: FacetSide| {
            let (number, faces, _) = parts(word(side.cell as usize), dim);
            let (axis, far) = (usize::from(side.local / 2), usize::from(side.local % 2));
            let hangs = word(side.cell as usize) != 0 && faces[axis] && number >> axis & 1 == far;
            let along = || others(axis, dim).enumerate();
            let own = || along().map(|(bit, other)| (number >> other & 1) << bit).sum::<usize>();
            hangs.then(own)
        };
        let mut all = Self { locals, ..Self::default() };
        let each = |cell: usize| (0..locals).map(move |local| (cell, local));
        all.views = (0..topology.n_cells())
            .flat_map(each)
            .map(|(cell, local)| views.of(topology, cell, local))
            .collect();
        for (facet, sides) in SideLists::new(topology).each().enumerate() {
            let whole: Vec<FacetSide> =
                sides.iter().copied().filter(|&s| child(s).is_none()).collect();
            for &side in sides {
                let (Some(own), Some(&coarse)) = (child(side), whole.first()) else { continue };
                let view = all.view(side.cell as usize, usize::from(side.local));
                let child = Some(views.child(view, own));
                all.pairs.push(FacetPair { sides: [side, coarse], child });
            }
            let place = places.get(facet).copied().filter(|place| *place != NONE);
            if let Some(place) = place {
                let open = |&side: &FacetSide| {
                    let view = all.view(side.cell as usize, usize::from(side.local));
                    OpenFacet { place, side, child: child(side).map(|own| views.child(view, own)) }
                };
                let own: Vec<OpenFacet> = sides.iter().map(open).collect();
                all.open.extend(own);
            }
            match whole[..] {
                [FacetSide { cell, local }] if sides.len() == 1 && place.is_none() => {
                    all.boundary.push(Facet { cell, local });
                }
                [first, second, ..] => {
                    all.pairs.push(FacetPair { sides: [first, second], child: None });
                }
                _ => {}
            }
        }
        all.open.sort_by_key(|open| open.place);
        all
    }
}

/// Marks an absent index.
const NONE: u32 = u32::MAX;

/// Sides of each facet, ordered by cell.
struct SideLists {
    /// Offset of each facet's sides, and the end of the last.
    starts: Vec<usize>,
    sides: Vec<FacetSide>,
}

impl SideLists {
    fn new(topology: &Topology) -> Self {
        let facets = topology.facets();
        let all = || {
            (0..topology.n_cells()).flat_map(|cell| {
                let own = facets.of_cell(cell).iter().enumerate();
                own.map(move |(local, &facet)| (facet as usize, cell as u32, local as u8))
            })
        };
        let mut starts = vec![0; facets.len() + 1];
        all().for_each(|(facet, _, _)| starts[facet + 1] += 1);
        for facet in 0..facets.len() {
            starts[facet + 1] += starts[facet];
        }
        let mut sides = vec![FacetSide { cell: 0, local: 0 }; starts[facets.len()]];
        let mut next = starts.clone();
        for (facet, cell, local) in all() {
            sides[next[facet]] = FacetSide { cell, local };
            next[facet] += 1;
        }
        Self { starts, sides }
    }

    /// Iterates over facets.
    fn each(&self) -> impl Iterator<Item = &[FacetSide]> {
        self.starts.windows(2).map(|ends| &self.sides[ends[0]..ends[1]])
    }
}

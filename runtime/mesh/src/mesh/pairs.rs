//! Facet connectivity: [`FacetPair`]s of neighbouring cells, and the facets of the boundary.
//!
//! A facet of [`Mesh::connectivity`] belongs to two cells, or to one cell and the children whose facets hang on it:
//! their connectivity contains the parent's facet, which that cell owns. In such a pair the child comes first, with
//! half or a quarter of the other's facet. Its position in the facet's frame follows from its child index, whose axes
//! are the parent's, and from its orientation relative to the parent's facet.
//!
//! On a subdomain, facets shared with other processes are [`OpenFacet`] and belong to neither list.

mod beyond;
#[cfg(test)]
mod tests;

pub use beyond::CellsBeyond;
pub(crate) use beyond::KnownCellsBeyond;

use super::views::FacetViews;
use super::{Facet, Mesh, MeshError, Topology};
use fem_dsl::point::{InteriorFacets, Side};
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

/// Two cells at a facet, of which the first one is the inside: the facet's normal points to the other one, the outside.
///
/// Both are rotated so that the facet is ξ₀ = 0, and oriented so that they have the same facet coordinates. Where one is
/// larger, the facet is the smaller one's, whose points (ξ₁, ξ₂) are (ξ₁, ξ₂) / 2 in the larger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellPair {
    /// Inside and outside; the smaller one is the inside, unless an integral names the sides.
    pub sides: [FacetSide; 2],
    /// Orientations of both: [`kernels_gen::element::Cell::oriented`].
    pub orientations: [u8; 2],
    /// The larger one, of which the facet is a part.
    pub larger: Option<Side>,
}

impl CellPair {
    /// Returns the pair with the sides exchanged.
    fn exchanged(self) -> Self {
        let ([a, b], [o, p]) = (self.sides, self.orientations);
        let larger = self.larger.map(Side::other);
        Self { sides: [b, a], orientations: [p, o], larger }
    }
}

/// Returns the pairs of cells at the facets of a mesh, in the order of their insides. On a part, facets shared with other
/// processes are pairs of one of them. Collective.
pub fn cell_pairs(mesh: &Mesh) -> Vec<CellPair> {
    selected(mesh, Some)
}

/// Returns the pairs of cells of an integral over facets between cells. Collective on a part.
///
/// # Errors
///
/// A mesh without one of the tags.
pub fn interior(mesh: &Mesh, facets: &InteriorFacets) -> Result<Vec<CellPair>, MeshError> {
    match facets {
        InteriorFacets::All => Ok(cell_pairs(mesh)),
        InteriorFacets::Under(tags) => {
            let tagged: BTreeSet<Facet> = mesh.facets_under(tags)?.into_iter().collect();
            let is_tagged =
                |&FacetSide { cell, local }: &FacetSide| tagged.contains(&Facet { cell, local });
            Ok(selected(mesh, |pair| pair.sides.iter().any(is_tagged).then_some(pair)))
        }
        InteriorFacets::Within(tags) => {
            let cells = members(mesh, &mesh.cells_under(tags)?);
            let is_in = |side: &FacetSide| cells[side.cell as usize];
            Ok(selected(mesh, |pair| pair.sides.iter().all(is_in).then_some(pair)))
        }
        InteriorFacets::Between(tags) => {
            let [from, to] = [&tags[0], &tags[1]].map(|tag| mesh.cells_under([tag]));
            let [from, to] = [from?, to?].map(|cells| members(mesh, &cells));
            let is_between =
                |sides: [FacetSide; 2]| from[sides[0].cell as usize] && to[sides[1].cell as usize];
            Ok(selected(mesh, |pair| {
                [pair, pair.exchanged()].into_iter().find(|pair| is_between(pair.sides))
            }))
        }
    }
}

/// Returns whether each cell, and each one beyond a part, is among some of the cells. Collective on a part.
pub fn members(mesh: &Mesh, cells: &[u32]) -> Vec<bool> {
    let mut values = vec![0.0; mesh.n_cells()];
    cells.iter().for_each(|&cell| values[cell as usize] = 1.0);
    if let (Some(cut), Some(beyond)) = (mesh.cut(), mesh.beyond()) {
        beyond.append(cut, 1, &mut values);
    }
    values.into_iter().map(|value| value > 0.0).collect()
}

/// Returns the pairs that `select` keeps, with the inside first, in the order of their insides.
fn selected(mesh: &Mesh, select: impl Fn(CellPair) -> Option<CellPair> + Copy) -> Vec<CellPair> {
    let views = FacetViews::new(mesh.cell());
    let all = FacetConnectivity::new(mesh, &views);
    let pairs = all.pairs.iter().filter_map(|pair| select(all.oriented(views, pair)));
    let beyond = mesh.beyond().into_iter().flat_map(CellsBeyond::pairs).copied();
    let mut pairs: Vec<CellPair> = pairs.chain(beyond.filter_map(select)).collect();
    pairs.sort_by_key(|pair| (pair.sides[0].cell, pair.sides[0].local));
    pairs
}

/// Orients two cells with these views of their facet; the facet of the first is a part of the second's if it is a child's.
pub(super) fn oriented(
    views: FacetViews,
    sides: [FacetSide; 2],
    [first, second]: [u8; 2],
    child: Option<u8>,
) -> CellPair {
    let [own, other] = sides.map(|side| usize::from(side.local));
    let orientation = views.between((own, first), (other, second));
    let orientations = match child {
        None => [0, orientation],
        Some(child) => views.lowest_half(views.half(first, child), orientation),
    };
    CellPair { sides, orientations, larger: child.map(|_| Side::Outside) }
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

    /// Gives the facets of the boundary the view of the rotated cell, as integrals over them have.
    pub fn rotate_boundary(&mut self, views: FacetViews) {
        for &Facet { cell, local } in &self.boundary {
            self.views[cell as usize * self.locals + usize::from(local)] = views.turned();
        }
    }

    /// Orients both cells of a pair, the first of which is the inside.
    pub fn oriented(&self, views: FacetViews, pair: &FacetPair) -> CellPair {
        let frame = |side: FacetSide| self.view(side.cell as usize, usize::from(side.local));
        oriented(views, pair.sides, pair.sides.map(frame), pair.child)
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

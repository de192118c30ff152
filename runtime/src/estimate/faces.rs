//! Facet connectivity: [`FacetPair`]s of neighbouring cells, and the facets of the boundary.
//!
//! A facet of [`Mesh::connectivity`] belongs to two cells, or to one cell and the children whose facets hang on it:
//! their connectivity contains the parent's facet, which that cell owns. In such a pair the child comes first, with
//! half or a quarter of the other's facet. Its position in the facet's frame follows from its child index, whose axes
//! are the parent's, and from its orientation relative to the parent's facet.
//!
//! On a subdomain, facets shared with other processes are [`OpenFacet`] and belong to neither list.

use super::views::FacetViews;
use crate::mesh::{Facet, Mesh, Topology};
use kernels_gen::abi::hanging::{others, parts};

/// One side of a facet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FacetSide {
    pub(super) cell: u32,
    pub(super) local: u8,
}

/// Two neighbouring cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FacetPair {
    /// Sides; the child first, if there is one.
    pub(super) sides: [FacetSide; 2],
    /// Position of the first side's facet in the second's, as halves along the axes of the facet's frame (bits); `None`
    /// if both are equal.
    pub(super) child: Option<u8>,
}

/// A cell at a facet shared with other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenFacet {
    /// Index among the shared facets of the mesh.
    pub(super) place: u32,
    pub(super) side: FacetSide,
    /// Child index, like that of the first side of a [`FacetPair`].
    pub(super) child: Option<u8>,
}

/// All facets of a mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FacetConnectivity {
    pub(super) pairs: Vec<FacetPair>,
    pub(super) boundary: Vec<Facet>,
    /// Sorted by index.
    pub(super) open: Vec<OpenFacet>,
    /// View of each cell on each of its facets, `[cell][facet]`.
    pub(super) views: Vec<u8>,
    /// Number of facets per cell.
    locals: usize,
}

impl FacetConnectivity {
    /// Returns the view of a cell on one of its facets.
    pub(super) fn view(&self, cell: usize, local: usize) -> u8 {
        self.views[cell * self.locals + local]
    }

    pub(super) fn new(mesh: &Mesh, views: &FacetViews) -> Self {
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
    pub(super) fn of(
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

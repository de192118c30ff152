//! Coarsening of quadrilateral and hexahedral meshes of any origin: each cell of the result is a patch of 2^d cells.
//!
//! ```text
//! the corner of a cell that is even along all axes: e, d bits      the parity of vertex v: v ⊕ e
//! child j of a patch, with axis a on the patch axis A(a):          x_A(a) = (j_A(a) + ξ_a) / 2, or with 1 − ξ_a
//! ```
//!
//! The incidence of cells decides whether they form such patches ([`patches`]); those of a generated grid are known
//! ([`grid`]). Vertices of a coarse cell are fine
//! vertices, to the bit; the maps of its children give its other nodes ([`nodes`]). A coarse cell inherits the axes of
//! its first child, the one with the least number, and is ordered by it. It has the tags that all of its children have,
//! likewise its facets. If tags end inside a coarse cell or facet, there is no coarser mesh ([`labels`]).

mod child_position;
mod grid;
mod labels;
mod links;
mod nodes;
mod patches;
mod tags;

use super::assemble::{Conformity, assemble};
use super::measure::JacobianSign;
use super::periodic::PeriodicError;
use super::{AffineMap, CellOrdering, EntityCounts, Mesh, MeshError, SourceOrder};
use crate::support::memory::{InsufficientMemory, MemoryBudget};
use child_position::ChildPosition;
pub(crate) use grid::GridPlaces;
use labels::TagLabels;
use links::FacetLinks;
use patches::{Patches, Refusal};
use std::sync::Arc;
use thiserror::Error;

/// Reason for the absence of a coarser mesh.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CoarseningError {
    /// Triangles and tetrahedra without a recorded uniform refinement.
    #[error(
        "triangles and tetrahedra have a coarser mesh only where they came of it by uniform refinement"
    )]
    Simplices,
    /// Hanging nodes.
    #[error("nodes hang in the mesh: its cells are of different levels")]
    HangingNodes,
    /// Too few cells for all processes.
    #[error("a coarser mesh would have too few cells for all processes")]
    TooFewCells,
    /// The number of cells is not a multiple of the patch size.
    #[error("{cells} cells are no multiple of {each}")]
    Count {
        /// The number of cells.
        cells: usize,
        /// The number of cells of a patch.
        each: usize,
    },
    /// Cells that form no patches.
    #[error("the cells near ({}) form no patches of {each}", .at.map(|x| format!("{x:.6}")).join(", "))]
    Patches {
        /// The centre of such a cell.
        at: [f64; 3],
        /// The number of cells of a patch.
        each: usize,
    },
    /// Cells that meet only in a vertex or an edge, with different roles in their patches.
    #[error(
        "cells that touch in vertices or edges alone form patches that do not fit together there"
    )]
    Contact,
    /// Tags on only some cells or facet parts of a patch.
    #[error("tags of cells or facets end inside of a patch near ({})", .at.map(|x| format!("{x:.6}")).join(", "))]
    Tags {
        /// The centre of one of its cells.
        at: [f64; 3],
    },
    /// Invalid coarse cells, such as inverted ones, or too many.
    #[error("coarser cells: {0}")]
    Mesh(#[from] MeshError),
    /// Periodic sides without a match on the coarser mesh.
    #[error("coarser sides: {0}")]
    Periodic(#[from] PeriodicError),
    /// Too few complete families of leaves in a forest.
    #[error(
        "too few cells are of whole families: {coarser} of {cells} would be left when each of these becomes one"
    )]
    Families {
        /// The number of cells.
        cells: usize,
        /// The number of cells of the coarser mesh.
        coarser: usize,
    },
    /// Leaves that form no mesh.
    #[error("coarser leaves: {0}")]
    Forest(String),
    /// Insufficient memory.
    #[error(transparent)]
    Memory(#[from] InsufficientMemory),
}

/// A coarser mesh, and the position of the fine cells in its cells.
#[derive(Clone, Debug, PartialEq)]
pub struct CoarsenedMesh {
    /// The coarser mesh.
    pub mesh: Arc<Mesh>,
    /// The cells of the finer mesh, `[coarse cell][child]`. On tensor cells, bit a of the child number is its side of
    /// the coarse cell's axis a; on simplices the order is that of red refinement. An unrefined cell is the first
    /// child; the others are 2³² − 1.
    pub children: Vec<u32>,
    /// For each child, the index in `maps` of the map from its reference cell to that of its parent.
    pub places: Vec<u16>,
    /// The distinct maps.
    pub maps: Vec<AffineMap>,
}

impl CoarsenedMesh {
    /// Returns the number of children per cell.
    pub fn each(&self) -> usize {
        1 << self.mesh.dim()
    }

    /// Returns the fine cells of a coarse cell: all children, or the cell itself if it is unrefined.
    pub fn children_of(&self, cell: usize) -> &[u32] {
        let own = &self.children[cell * self.each()..(cell + 1) * self.each()];
        if own[1..].iter().all(|&child| child == u32::MAX) { &own[..1] } else { own }
    }

    /// Returns the map of a child's reference cell to that of its coarse cell.
    pub fn map(&self, cell: usize, child: usize) -> &AffineMap {
        &self.maps[usize::from(self.places[cell * self.each() + child])]
    }

    /// Collects the maps that occur, in order of first occurrence. Keys are small integers.
    pub(crate) fn with_maps(
        mesh: Arc<Mesh>,
        children: Vec<u32>,
        keys: impl Iterator<Item = u32>,
        map: impl Fn(u32) -> AffineMap,
    ) -> Self {
        let (mut known, mut maps) = (Vec::new(), Vec::<AffineMap>::new());
        let place = |key: u32| {
            if known.len() <= key as usize {
                known.resize(key as usize + 1, u16::MAX);
            }
            let known = &mut known[key as usize];
            if *known == u16::MAX {
                let map = map(key);
                *known = maps.iter().position(|own| *own == map).unwrap_or(maps.len()) as u16;
                if usize::from(*known) == maps.len() {
                    maps.push(map);
                }
            }
            *known
        };
        let places = keys.map(place).collect();
        Self { mesh, children, places, maps }
    }
}

impl Mesh {
    /// Coarsens a mesh of squares or cubes whose cells form patches.
    pub(crate) fn of_patches(&self) -> Result<CoarsenedMesh, CoarseningError> {
        let each = self.cell.vertex_count();
        if !self.cell.is_tensor() {
            return Err(CoarseningError::Simplices);
        }
        if self.hanging().is_some() {
            return Err(CoarseningError::HangingNodes);
        }
        if !self.n_cells().is_multiple_of(each) {
            return Err(CoarseningError::Count { cells: self.n_cells(), each });
        }
        self.check_room_to_coarsen()?;
        let labels = TagLabels::new(self);
        let at = |cell: u32| self.centre(cell as usize);
        let (patches, grid) = match Patches::of_grid(self, &labels) {
            Some((patches, grid)) => (patches, Some(grid)),
            None => {
                let links = FacetLinks::new(self, &labels);
                let found = Patches::find(self, &links, &labels);
                let found = found.map_err(|refusal| match refusal {
                    Refusal::Patches(cell) => CoarseningError::Patches { at: at(cell), each },
                    Refusal::Tags(cell) => CoarseningError::Tags { at: at(cell) },
                })?;
                (found, None)
            }
        };
        let mut mesh = self.coarse(&patches, &labels)?;
        let Patches { children, places } = patches;
        if let Some(grid) = grid {
            mesh.order_of_source = SourceOrder::CoarseGrid(Box::new(grid));
        }
        let keys = places.iter().map(|place| u32::from(place.key()));
        let map = |key: u32| ChildPosition::of(key as u16).map(self.dim());
        Ok(CoarsenedMesh::with_maps(Arc::new(mesh), children, keys, map))
    }

    /// Builds the mesh of the patches.
    fn coarse(&self, patches: &Patches, labels: &TagLabels) -> Result<Mesh, CoarseningError> {
        let mut parts = nodes::nodes(self, patches)?;
        (parts.facets, parts.cells) = labels.coarse(self, patches);
        let firsts = patches.firsts(self.cell.vertex_count());
        let negative: Vec<bool> = self.mirrored_of(firsts.map(|cell| cell as usize));
        let (arrange, sign) = (CellOrdering::Original, JacobianSign::Negative(&negative));
        let mut mesh =
            assemble(self.cell, self.order, parts, arrange, sign, Conformity::Conforming)?;
        mesh.spheres = self.spheres.clone();
        mesh.skeleton = self.skeleton.clone();
        if self.is_periodic() {
            mesh.make_periodic(self.periodic_sides())?;
        }
        // Refining the coarse mesh can only produce entities of the fine one: equal numbers mean the same entities.
        let counts = |mesh: &Mesh| {
            [mesh.topology(), mesh.connectivity()].map(|t| EntityCounts::seen(mesh, t))
        };
        if counts(&mesh).map(|counts| counts.refined(1)) != counts(self) {
            return Err(CoarseningError::Contact);
        }
        Ok(mesh)
    }

    /// Checks that memory suffices for the data of cells and facets, and for the coarser mesh.
    fn check_room_to_coarsen(&self) -> Result<(), InsufficientMemory> {
        let (cells, facets) = (self.n_cells() as f64, self.topology.facets().len() as f64);
        let sides = self.cell.facets().len() as f64;
        let labels = if self.facet_tags.is_empty() { 0.0 } else { 4.0 * facets };
        let own = cells * (5.0 * sides + 16.0) + 8.0 * facets + labels;
        let mut counts = EntityCounts::of(self);
        counts.entities = counts.entities.map(|count| count / self.cell.vertex_count() as u64);
        let points = 32.0 * self.points.len() as f64;
        let what = || format!("a mesh coarser than {cells} cells ({})", self.cell.name());
        MemoryBudget::check(what, own + points + counts.bytes() + counts.bytes_of_making())
    }
}

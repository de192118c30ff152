//! Refined mesh parts: each process refines its own cells; no process needs the whole mesh.
//!
//! Entities on a shared vertex, edge or face are shared by the same processes. Their positions in its frame, which all
//! cells agree on, define a common order. The whole mesh, for files and pictures, is built on demand.

use super::{PartInterface, SharedEntity};
use crate::mesh::generate::Generator;
use crate::mesh::periodic::PeriodicError;
use crate::mesh::{Facet, Mesh, Topology};
use std::sync::{Arc, OnceLock};

/// Cells of a part of a refined mesh.
#[derive(Clone, Debug)]
pub(super) struct RefinedCells {
    /// The part that was refined.
    coarse: Arc<Mesh>,
    /// The number of refinements.
    times: usize,
    /// For each cell, its number among all descendants of that part, where those of one cell are consecutive.
    numbers: Vec<u32>,
    /// The generator of the whole mesh, if any.
    generator: Option<Generator>,
    whole: OnceLock<Result<WholeMeshEmbedding, PeriodicError>>,
}

/// The whole mesh, and the numbers of a part's cells in it.
#[derive(Clone, Debug)]
pub struct WholeMeshEmbedding {
    pub(crate) mesh: Arc<Mesh>,
    pub(crate) cells: Vec<u32>,
}

impl PartialEq for RefinedCells {
    fn eq(&self, other: &Self) -> bool {
        let own = |of: &Self| (of.times, Arc::clone(&of.coarse));
        own(self) == own(other)
            && self.numbers == other.numbers
            && self.generator == other.generator
    }
}

impl RefinedCells {
    /// Returns the number of cells of all parts.
    pub(super) fn cells_in_all(&self) -> usize {
        self.coarse.cells_in_all() << (self.coarse.dim() * self.times)
    }

    pub(super) fn whole(&self) -> Result<&WholeMeshEmbedding, PeriodicError> {
        self.whole.get_or_init(|| self.make_whole()).as_ref().map_err(Clone::clone)
    }

    /// Builds the mesh as on one process.
    fn make_whole(&self) -> Result<WholeMeshEmbedding, PeriodicError> {
        if let Some(generator) = &self.generator {
            let mut mesh = generator.mesh()?;
            if mesh.periodic_sides() != self.coarse.periodic_sides() {
                mesh.make_periodic(self.coarse.periodic_sides())?;
            }
            let cells = generator.cells(&self.coarse, self.times, self.numbers.iter().copied())?;
            return Ok(WholeMeshEmbedding { mesh: Arc::new(mesh), cells });
        }
        let above = match self.coarse.cut() {
            Some(cut) => {
                WholeMeshEmbedding { mesh: Arc::clone(cut.whole()?), cells: cut.cells()?.to_vec() }
            }
            None => WholeMeshEmbedding {
                mesh: Arc::clone(&self.coarse),
                cells: (0..self.coarse.n_cells() as u32).collect(),
            },
        };
        let mut mesh = above.mesh.divided_on(self.times)?;
        if mesh.periodic_sides() != above.mesh.periodic_sides() {
            mesh.make_periodic(above.mesh.periodic_sides())?;
        }
        let each = 1u32 << (mesh.dim() * self.times);
        let (roots, cell_of) = (above.mesh.descendants(), mesh.by_descendants());
        let cells = self.numbers.iter().map(|&number| {
            let root = roots[above.cells[(number / each) as usize] as usize];
            cell_of[(root * each + number % each) as usize]
        });
        let cells = cells.collect();
        Ok(WholeMeshEmbedding { mesh: Arc::new(mesh), cells })
    }
}

impl Mesh {
    /// Sets the generator of the whole mesh of a refined part.
    pub(crate) fn be_made_by(&mut self, generator: Generator) {
        let Some(cut) = &mut self.cut else { return };
        if let super::CellOrigin::Refined(own) = &mut Arc::make_mut(cut).origin {
            own.generator = Some(generator);
        }
    }

    /// Sets the number of cells of facets, including those of other processes.
    pub(crate) fn count_facets(&mut self, facets: Vec<(Facet, u8)>) {
        facets.into_iter().for_each(|(facet, cells)| self.topology.count_facet(facet, cells));
    }

    /// Marks the mesh as a part that was refined `times` times.
    pub(crate) fn descend(
        &mut self,
        times: usize,
        numbers: Vec<u32>,
        shared: [Vec<SharedEntity>; 3],
    ) {
        let Some(coarse) = self.refined_from().map(|refined| Arc::clone(&refined.coarse)) else {
            return;
        };
        let Some(group) = coarse.cut().map(|cut| Arc::clone(&cut.group)) else { return };
        let (generator, whole) = (None, OnceLock::new());
        let origin = RefinedCells { coarse, times, numbers, generator, whole };
        self.cut = Some(Arc::new(PartInterface {
            group,
            shared,
            origin: super::CellOrigin::Refined(origin),
        }));
    }
}

/// Collects the shared vertices, edges and faces of a refined part.
pub(crate) struct SharedEntityCollector<'a> {
    cut: &'a PartInterface,
    /// For each entity of the coarser part, by dimension, its index among the shared ones.
    places: [Vec<u32>; 3],
    /// By dimension: the carrier of each entity, and its number.
    found: [Vec<(Carrier, u32)>; 3],
}

/// The shared entity of the coarser part that contains an entity (dimension, index), and the position in its frame.
type Carrier = (u8, u32, [u32; 3]);

/// Not shared.
const NONE: u32 = u32::MAX;

impl<'a> SharedEntityCollector<'a> {
    /// Creates the collector for a coarser part with this connectivity.
    pub(crate) fn new(cut: &'a PartInterface, connectivity: &Topology) -> Self {
        let dim = connectivity.cell().dim();
        let places = std::array::from_fn(|of| {
            let mut places = vec![NONE; if of < dim { connectivity.count(of) } else { 0 }];
            (0..).zip(cut.shared(of)).for_each(|(place, own)| places[own.number as usize] = place);
            places
        });
        Self { cut, places, found: Default::default() }
    }

    /// Returns whether a cell of the coarser part touches other processes.
    pub(crate) fn is_shared(&self, connectivity: &Topology, cell: usize) -> bool {
        // Shared edges and faces have shared vertices.
        connectivity.vertices(cell).iter().any(|&vertex| self.places[0][vertex as usize] != NONE)
    }

    /// Adds an entity by dimension and number, at a position on an entity of the coarser part.
    pub(crate) fn add(
        &mut self,
        dim: usize,
        number: u32,
        (of, entity): (usize, u32),
        at: [u32; 3],
    ) {
        let place = self.places.get(of).and_then(|places| places.get(entity as usize));
        if let Some(&place) = place.filter(|place| **place != NONE) {
            self.found[dim].push(((of as u8, place, at), number));
        }
    }

    /// Returns the shared entities, in one order for all processes.
    pub(crate) fn shared(self) -> [Vec<SharedEntity>; 3] {
        let cut = self.cut;
        self.found.map(|mut found| {
            found.sort_unstable();
            found.dedup();
            let entity = |((of, place, _), number): (Carrier, u32)| SharedEntity {
                number,
                ranks: cut.shared(usize::from(of))[place as usize].ranks.clone(),
            };
            found.into_iter().map(entity).collect()
        })
    }
}

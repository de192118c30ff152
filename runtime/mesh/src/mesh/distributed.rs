//! Distributed meshes: each process owns a part of the cells, and knows the entities that it shares with others
//! ([`PartInterface`]).
//!
//! A part is a segment of the space-filling curve, or a region of space ([`mod@partitioning`]); cells with hanging
//! nodes have weight 2. Entities of a part are numbered by first touch. Orientations and cell counts of entities are
//! those of the whole mesh: all processes order the nodes of an edge or face alike, and no interface facet counts as
//! boundary.
//!
//! The coarsest mesh with enough cells for each process is distributed. Finer cells follow their ancestors, so that
//! transfer between the meshes is local to each process.
//!
//! A process refines its part locally ([`refined_part`]). Parts of a forest are created from its leaves, which all
//! processes know ([`PartSource`]).

mod fiduccia_mattheyses;
mod partitioning;
mod refined_part;

pub(crate) use partitioning::deal;
pub(crate) use refined_part::{SharedEntityCollector, WholeMeshEmbedding};

use super::generate::ComputationalPoints;
use super::measure::Affinity;
use super::periodic::PeriodicError;
use super::{CoarsenedMesh, CoarseningError, Facet, Mesh, Topology, hanging};
use crate::processes::{ProcessGroup, Reduction, total};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

/// Minimal number of cells per process on the coarsest distributed mesh.
pub const LEAST: usize = 8;

/// Interface of a mesh part with other parts.
#[derive(Clone, Debug)]
pub struct PartInterface {
    group: Arc<dyn ProcessGroup>,
    /// The shared vertices, edges and faces of the connectivity. Any two processes list their common ones in the same
    /// order.
    shared: [Vec<SharedEntity>; 3],
    origin: CellOrigin,
}

/// Origin of the cells of a part.
#[derive(Clone, Debug)]
enum CellOrigin {
    /// Cells of a whole mesh, by their numbers there, ascending.
    Subset(WholeMesh, Vec<u32>),
    /// Descendants of the cells of a coarser part.
    Refined(refined_part::RefinedCells),
    /// Cells of a mesh that is not stored as a whole, by the dealer's numbers.
    Generated(GeneratedCells),
}

/// Cells of a mesh that is not stored as a whole.
#[derive(Clone, Debug)]
struct GeneratedCells {
    by: Arc<dyn PartSource>,
    numbers: Vec<u32>,
    whole: OnceLock<Result<WholeMeshEmbedding, PeriodicError>>,
}

/// Source of mesh parts whose whole mesh need not exist on any process.
pub trait PartSource: Debug + Send + Sync {
    /// Returns the number of cells of all parts.
    fn n_cells(&self) -> usize;

    /// Returns the whole mesh as on one process, and the numbers in it of the given cells.
    fn whole(&self, numbers: &[u32]) -> Result<WholeMeshEmbedding, PeriodicError>;

    /// Returns the part of the coarser mesh whose cells are the parents of the given cells.
    fn coarsened(
        &self,
        numbers: &[u32],
        group: &Arc<dyn ProcessGroup>,
    ) -> Result<CoarsenedMesh, CoarseningError>;

    /// Enables a downcast to the concrete type.
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl PartialEq for GeneratedCells {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.by, &other.by) && self.numbers == other.numbers
    }
}

impl GeneratedCells {
    fn whole(&self) -> Result<&WholeMeshEmbedding, PeriodicError> {
        let make = || self.by.whole(&self.numbers);
        self.whole.get_or_init(make).as_ref().map_err(Clone::clone)
    }
}

impl PartialEq for CellOrigin {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Subset(_, own), Self::Subset(_, cells)) => own == cells,
            (Self::Refined(own), Self::Refined(other)) => own == other,
            (Self::Generated(own), Self::Generated(other)) => own == other,
            _ => false,
        }
    }
}

/// A whole mesh, and the rank of each of its cells.
#[derive(Clone, Debug)]
struct WholeMesh {
    mesh: Arc<Mesh>,
    rank_of: Arc<Vec<u32>>,
    /// The next coarser mesh.
    coarser: Option<Arc<(CoarsenedMesh, WholeMesh)>>,
}

/// An entity that several parts share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedEntity {
    /// Its number in this part.
    pub number: u32,
    /// The ranks that share it, ascending.
    pub ranks: Box<[u32]>,
}

impl PartialEq for PartInterface {
    fn eq(&self, other: &Self) -> bool {
        let place = |cut: &Self| (cut.group.rank(), cut.group.size());
        place(self) == place(other) && self.shared == other.shared && self.origin == other.origin
    }
}

impl PartInterface {
    /// Returns the process group.
    pub fn group(&self) -> &Arc<dyn ProcessGroup> {
        &self.group
    }

    /// Returns the shared entities of a dimension, in one order for all processes.
    pub fn shared(&self, dim: usize) -> &[SharedEntity] {
        self.shared.get(dim).map_or(&[], Vec::as_slice)
    }

    /// Returns the whole mesh as on one process. For a refined part it is built on the first call, on each calling
    /// process, and kept as long as the part.
    ///
    /// # Errors
    ///
    /// The mesh is too large for one process.
    pub fn whole(&self) -> Result<&Arc<Mesh>, PeriodicError> {
        match &self.origin {
            CellOrigin::Subset(whole, _) => Ok(&whole.mesh),
            CellOrigin::Refined(own) => Ok(&own.whole()?.mesh),
            CellOrigin::Generated(own) => Ok(&own.whole()?.mesh),
        }
    }

    /// Returns the numbers of the part's cells in the whole mesh.
    ///
    /// # Errors
    ///
    /// Those of [`Self::whole`].
    pub fn cells(&self) -> Result<&[u32], PeriodicError> {
        match &self.origin {
            CellOrigin::Subset(_, cells) => Ok(cells),
            CellOrigin::Refined(own) => Ok(&own.whole()?.cells),
            CellOrigin::Generated(own) => Ok(&own.whole()?.cells),
        }
    }

    /// Returns the number of cells of all parts.
    fn cells_in_all(&self) -> usize {
        match &self.origin {
            CellOrigin::Subset(whole, _) => whole.mesh.n_cells(),
            CellOrigin::Refined(own) => own.cells_in_all(),
            CellOrigin::Generated(own) => own.by.n_cells(),
        }
    }

    /// Returns the dealer, and its numbers for the cells of this part, if the whole mesh is not stored.
    pub fn dealer(&self) -> Option<(&Arc<dyn PartSource>, &[u32])> {
        match &self.origin {
            CellOrigin::Generated(own) => Some((&own.by, &own.numbers)),
            CellOrigin::Subset(..) | CellOrigin::Refined(_) => None,
        }
    }

    /// Returns whether the part was refined locally from a coarser part.
    pub(crate) fn is_refined(&self) -> bool {
        matches!(self.origin, CellOrigin::Refined(_))
    }

    /// Returns the coarser part whose cells are the parents of these, if the cells are some of a whole mesh.
    pub(crate) fn coarsened(&self) -> Result<CoarsenedMesh, CoarseningError> {
        if let CellOrigin::Generated(own) = &self.origin {
            return own.by.coarsened(&own.numbers, &self.group);
        }
        let CellOrigin::Subset(whole, cells) = &self.origin else {
            return Err(CoarseningError::TooFewCells);
        };
        let Some(coarser) = &whole.coarser else { return Err(CoarseningError::TooFewCells) };
        let mut place = vec![u32::MAX; whole.mesh.n_cells()];
        for (number, &cell) in cells.iter().enumerate() {
            place[cell as usize] = number as u32;
        }
        let (coarsened, whole) = &**coarser;
        let mesh = whole.part(&self.group);
        let (mut children, mut places, each) = (Vec::new(), Vec::new(), coarsened.each());
        for cell in whole.own(&self.group) {
            let range = cell as usize * each..(cell as usize + 1) * each;
            let own = coarsened.children[range.clone()].iter();
            children
                .extend(own.map(|&child| place.get(child as usize).copied().unwrap_or(u32::MAX)));
            places.extend_from_slice(&coarsened.places[range]);
        }
        Ok(CoarsenedMesh { mesh: Arc::new(mesh), children, places, maps: coarsened.maps.clone() })
    }
}

impl WholeMesh {
    /// Returns the cells of this process, ascending.
    fn own(&self, group: &Arc<dyn ProcessGroup>) -> impl Iterator<Item = u32> {
        let rank = group.rank() as u32;
        let own = self.rank_of.iter().zip(0..).filter(move |(of, _)| **of == rank);
        own.map(|(_, cell)| cell)
    }

    /// Returns the mesh part of this process.
    fn part(&self, group: &Arc<dyn ProcessGroup>) -> Mesh {
        self.of_cells(self.own(group).collect(), group)
    }
}

/// Error of a prediction for more processes than cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "of {processes} processes some would have nothing to do: there are only {cells} cells\n\
     help: ask for fewer, or refine the mesh"
)]
pub struct TooFewCells {
    /// The number of processes.
    pub processes: usize,
    /// The number of cells.
    pub cells: usize,
}

impl Mesh {
    /// Returns the mesh part of this process. With more processes than cells the last parts are empty; with one process
    /// it is the mesh itself.
    pub fn part(self: Arc<Self>, group: &Arc<dyn ProcessGroup>) -> Arc<Mesh> {
        if group.size() == 1 {
            return self;
        }
        Arc::new(self.dealt(group.size()).part(group))
    }

    /// Returns the number of uniform refinements, out of `times`, before the mesh is distributed; the rest is done part
    /// by part. It is the smallest that gives all processes some cells. Simplices with periodic sides or spheres are
    /// fully refined before: both need all sides or all faces.
    pub(crate) fn divided_before(&self, times: usize, processes: usize, periodic: bool) -> usize {
        let is_tensor = self.cell().is_tensor();
        if processes == 1 || !is_tensor && (periodic || !self.spheres.is_empty()) {
            return times;
        }
        let cells = |before: usize| self.n_cells().saturating_mul(1 << (self.dim() * before));
        (0..times).find(|&before| cells(before) >= LEAST * processes).unwrap_or(times)
    }

    /// Returns the part of this process for given ranks, one per cell. The part has no coarser meshes.
    ///
    /// # Panics
    ///
    /// The number of ranks is not the number of cells, or a rank is not in the group.
    pub fn part_by(
        self: &Arc<Self>,
        rank_of: Vec<u32>,
        group: &Arc<dyn ProcessGroup>,
    ) -> Arc<Mesh> {
        let known = rank_of.iter().all(|&rank| (rank as usize) < group.size());
        assert!(known && rank_of.len() == self.n_cells(), "each cell should have a process");
        let (mesh, rank_of) = (Arc::clone(self), Arc::new(rank_of));
        Arc::new(WholeMesh { mesh, rank_of, coarser: None }.part(group))
    }

    /// Returns the rank of each cell, as in [`Self::part`].
    ///
    /// # Errors
    ///
    /// There are more processes than cells.
    pub fn ranks(self: &Arc<Self>, processes: usize) -> Result<Arc<Vec<u32>>, TooFewCells> {
        let cells = self.n_cells();
        if cells < processes {
            return Err(TooFewCells { processes, cells });
        }
        Ok(Arc::clone(self).dealt(processes).rank_of)
    }

    /// Distributes the mesh and its coarser meshes.
    fn dealt(self: Arc<Self>, processes: usize) -> WholeMesh {
        let cells = self.n_cells();
        let mut chain: Vec<CoarsenedMesh> = Vec::new();
        loop {
            let last = chain.last().map_or(&self, |coarser| &coarser.mesh);
            let least = (LEAST * processes) << self.dim();
            match last.coarsened() {
                Ok(coarser) if last.n_cells() >= least => chain.push(coarser),
                _ => break,
            }
        }
        let weight = |cell: usize| 1 + u32::from(self.hanging().is_some_and(|all| all[cell] != 0));
        let mut weights: Vec<u32> = (0..cells).map(weight).collect();
        for coarser in &chain {
            let of = |cell: usize| -> u32 {
                coarser.children_of(cell).iter().map(|&child| weights[child as usize]).sum()
            };
            weights = (0..coarser.mesh.n_cells()).map(of).collect();
        }
        let dealt = chain.last().map_or(&self, |coarser| &coarser.mesh);
        let mut rank_of = deal(dealt, &weights, processes);
        let mut coarser = None;
        while let Some(last) = chain.pop() {
            let finer = chain.last().map_or(cells, |own| own.mesh.n_cells());
            let mut of_children = vec![0u32; finer];
            for (cell, &rank) in rank_of.iter().enumerate() {
                let children = last.children_of(cell).iter();
                children.for_each(|&child| of_children[child as usize] = rank);
            }
            let (mesh, own) =
                (Arc::clone(&last.mesh), std::mem::replace(&mut rank_of, of_children));
            let whole = WholeMesh { mesh, rank_of: Arc::new(own), coarser };
            coarser = Some(Arc::new((last, whole)));
        }
        WholeMesh { mesh: self, rank_of: Arc::new(rank_of), coarser }
    }
}

impl WholeMesh {
    /// Returns the part with some cells, ascending.
    fn of_cells(&self, cells: Vec<u32>, group: &Arc<dyn ProcessGroup>) -> Mesh {
        let (whole, rank_of, own) = (&*self.mesh, &self.rank_of[..], &cells[..]);
        let (topology, entities) = whole.topology.of_cells(own);
        let joined = whole.joined.as_ref().map(|joined| joined.of_cells(own));
        let connected = joined.as_ref().map_or(&entities, |(_, entities)| entities);
        let shared = std::array::from_fn(|dim| {
            let whole = whole.connectivity();
            let is_below = dim < whole.cell().dim();
            let rank = group.rank() as u32;
            if is_below { shared(whole, dim, rank_of, rank, &connected[dim]) } else { Vec::new() }
        });
        let mut place = vec![u32::MAX; whole.n_cells()];
        for (number, &cell) in own.iter().enumerate() {
            place[cell as usize] = number as u32;
        }
        let of_facets = |facets: &Vec<Facet>| -> Vec<Facet> {
            let here = |facet: &Facet| {
                let cell = place[facet.cell as usize];
                (cell != u32::MAX).then_some(Facet { cell, local: facet.local })
            };
            facets.iter().filter_map(here).collect()
        };
        let of_cells = |cells: &Vec<u32>| -> Vec<u32> {
            let here = cells.iter().map(|&cell| place[cell as usize]);
            here.filter(|&cell| cell != u32::MAX).collect()
        };
        let (points, nodes, which) = whole.geometry_of(own, &entities[0]);
        let plain = whole.plain.as_ref().map(|plain| {
            let points = which.iter().map(|&point| plain.points[point as usize]).collect();
            Box::new(ComputationalPoints { points, world: plain.world.clone() })
        });
        let hanging = whole.hanging.as_ref().map(|all| hanging::HangingEntities {
            words: all
                .words
                .as_ref()
                .map(|words| own.iter().map(|&cell| words[cell as usize]).collect()),
            surface: of_facets(&all.surface),
        });
        let tagged = |(tag, facets): (&String, _)| (tag.clone(), of_facets(facets));
        Mesh {
            cell: whole.cell,
            order: whole.order,
            points,
            nodes,
            nodes_per_cell: whole.nodes_per_cell,
            facet_tags: whole.facet_tags.iter().map(tagged).collect(),
            cell_tags: whole
                .cell_tags
                .iter()
                .map(|(tag, all)| (tag.clone(), of_cells(all)))
                .collect(),
            skeleton: whole.skeleton.clone(),
            topology,
            periodic: whole.periodic.clone(),
            joined: joined.map(|(joined, _)| Box::new(joined)),
            notes: [&whole.notes[..], idle(whole.n_cells(), group.size()).as_slice()].concat(),
            spheres: whole.spheres.clone(),
            order_of_source: super::SourceOrder::Native,
            equispaced: whole.equispaced,
            hanging,
            affine: Affinity::default(),
            beyond: Default::default(),
            plain,
            cut: Some(Arc::new(PartInterface {
                group: Arc::clone(group),
                shared,
                origin: CellOrigin::Subset(self.clone(), cells),
            })),
        }
    }
}

impl Mesh {
    /// Marks the mesh as the part with the dealer's cells `numbers`, and sets its shared entities.
    pub(crate) fn be_dealt_by(
        &mut self,
        by: Arc<dyn PartSource>,
        numbers: Vec<u32>,
        shared: [Vec<SharedEntity>; 3],
        group: &Arc<dyn ProcessGroup>,
    ) {
        self.notes.extend(idle(by.n_cells(), group.size()));
        let origin = CellOrigin::Generated(GeneratedCells { by, numbers, whole: OnceLock::new() });
        self.cut = Some(Arc::new(PartInterface { group: Arc::clone(group), shared, origin }));
    }
}

/// Returns a note if there are more processes than cells.
fn idle(cells: usize, processes: usize) -> Option<String> {
    let none = processes.checked_sub(cells).filter(|none| *none > 0)?;
    Some(format!("{none} of {processes} processes have no cell: the mesh has {cells}"))
}

impl Mesh {
    /// Returns the geometry nodes of some cells, vertices first: points, renumbered connectivity, and the old number of
    /// each point.
    fn geometry_of(&self, cells: &[u32], vertices: &[u32]) -> (Vec<[f64; 3]>, Vec<u32>, Vec<u32>) {
        let mut numbers = vec![u32::MAX; self.points.len()];
        let mut which = Vec::new();
        for &vertex in vertices {
            numbers[vertex as usize] = which.len() as u32;
            which.push(vertex);
        }
        let mut nodes = Vec::with_capacity(cells.len() * self.nodes_per_cell);
        for &cell in cells {
            for &node in self.cell_nodes(cell as usize) {
                let number = &mut numbers[node as usize];
                if *number == u32::MAX {
                    *number = which.len() as u32;
                    which.push(node);
                }
                nodes.push(*number);
            }
        }
        let points = which.iter().map(|&point| self.points[point as usize]).collect();
        (points, nodes, which)
    }

    /// Returns the interface with the parts of other processes, if the mesh is a part.
    pub fn cut(&self) -> Option<&Arc<PartInterface>> {
        self.cut.as_ref()
    }

    /// Returns the number of cells of all parts.
    pub fn cells_in_all(&self) -> usize {
        self.cut.as_ref().map_or(self.n_cells(), |cut| cut.cells_in_all())
    }

    /// Sums over all parts.
    pub fn sum_in_all(&self, sums: &mut [f64]) {
        self.reduce_in_all(Reduction::Sum, sums);
    }

    /// Reduces over all parts.
    pub fn reduce_in_all(&self, how: Reduction, numbers: &mut [f64]) {
        if let Some(cut) = &self.cut {
            cut.group.reduce(how, numbers);
        }
    }

    /// Returns the bounding box of all parts: lower and upper corner.
    pub fn bounding_box_of_all(&self) -> ([f64; 3], [f64; 3]) {
        let (mut from, mut to) = self.bounding_box();
        self.reduce_in_all(Reduction::Least, &mut from);
        self.reduce_in_all(Reduction::Largest, &mut to);
        (from, to)
    }

    /// Returns the point of the first process that has one.
    pub fn first_in_all(&self, own: Option<[f64; 3]>) -> Option<[f64; 3]> {
        let Some(cut) = &self.cut else { return own };
        let bytes = own.map_or_else(Vec::new, |own| own.map(f64::to_le_bytes).concat());
        let all = cut.group.gather(&bytes);
        let first = all.iter().find(|bytes| !bytes.is_empty())?;
        let mut place = [0.0; 3];
        for (x, bytes) in place.iter_mut().zip(first.chunks(8)) {
            *x = f64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        Some(place)
    }

    /// Returns the sum of a count over all parts.
    pub fn in_all(&self, own: usize) -> usize {
        self.cut.as_ref().map_or(own, |cut| total(&*cut.group, own))
    }
}

/// Returns the entities of a dimension that this process shares. `own` are its entities, by their numbers in the whole
/// mesh.
fn shared(
    whole: &Topology,
    dim: usize,
    rank_of: &[u32],
    rank: u32,
    own: &[u32],
) -> Vec<SharedEntity> {
    // The smallest and the largest rank of each entity.
    let mut ends: Vec<[u32; 2]> = vec![[u32::MAX, 0]; whole.count(dim)];
    for (cell, &rank) in rank_of.iter().enumerate() {
        for &entity in whole.of_cell(dim, cell) {
            let [first, last] = &mut ends[entity as usize];
            (*first, *last) = ((*first).min(rank), (*last).max(rank));
        }
    }
    let mut found: BTreeMap<u32, (u32, Vec<u32>)> = BTreeMap::new();
    for (number, &entity) in own.iter().enumerate() {
        let [first, last] = ends[entity as usize];
        if first != last {
            found.insert(entity, (number as u32, Vec::new()));
        }
    }
    for (cell, &rank) in rank_of.iter().enumerate() {
        for entity in whole.of_cell(dim, cell) {
            if let Some((_, ranks)) = found.get_mut(entity)
                && !ranks.contains(&rank)
            {
                ranks.push(rank);
            }
        }
    }
    let entity = |(number, mut ranks): (u32, Vec<u32>)| {
        ranks.sort_unstable();
        assert!(ranks.contains(&rank), "a process should have its own entities");
        SharedEntity { number, ranks: ranks.into() }
    };
    found.into_values().map(entity).collect()
}

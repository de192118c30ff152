//! Meshes in parts, one a process: a whole mesh → the cells of this process, and what of their vertices, edges and faces is
//! others' too ([`Cut`]).
//!
//! Each process has a piece of the curve along which cells come, or of the space that they fill ([`mod@deal`]); cells with hanging nodes
//! count twice. A part numbers everything by first touch, as a mesh of its own does. What it takes from the whole is how each
//! entity is seen and of how many cells it is: so all processes have the nodes of an edge or face in one order, and no facet
//! between processes is taken for one of the boundary.
//!
//! Where there are coarser meshes, the last of them that has some cells for each process is what is dealt out, and finer cells
//! go with those that they are of: each process can then go from mesh to mesh by itself.
//!
//! A part of a mesh that is to be refined is refined by its process alone ([`descended`]); parts of a forest, of which all processes know the
//! leaves, are made of these ([`Dealer`]).

mod deal;
mod descended;
mod smooth;

pub(crate) use deal::deal;
pub(crate) use descended::{InWhole, Inherited};

use super::generate::Plain;
use super::periodic::PeriodicError;
use super::{Coarsened, Facet, Mesh, NotCoarser, Topology, hanging, places};
use crate::processes::{Group, Reduce, total};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

/// Cells that each process has at least of the coarsest mesh that is dealt out.
pub(crate) const LEAST: usize = 8;

/// What a part of a mesh has in common with others.
#[derive(Clone, Debug)]
pub struct Cut {
    group: Arc<dyn Group>,
    /// The shared vertices, edges and faces of the connectivity: those that two processes have are in one order at both.
    shared: [Vec<Entity>; 3],
    origin: Origin,
}

/// Where the cells of a part come from.
#[derive(Clone, Debug)]
enum Origin {
    /// Some of a whole mesh, by their numbers there, ascending.
    Dealt(Whole, Vec<u32>),
    /// Parts of those of a coarser part.
    Descended(descended::Descended),
    /// Some of those of a mesh that nobody has made, by the numbers that who deals them out gives them.
    Made(Made),
}

/// Cells of a mesh that nobody has made.
#[derive(Clone, Debug)]
struct Made {
    by: Arc<dyn Dealer>,
    numbers: Vec<u32>,
    whole: OnceLock<Result<InWhole, PeriodicError>>,
}

/// Who deals out cells of a mesh that no process need have.
pub(crate) trait Dealer: Debug + Send + Sync {
    /// Cells of all parts.
    fn n_cells(&self) -> usize;

    /// The mesh as one process has it, and which of its cells those with some numbers are.
    fn whole(&self, numbers: &[u32]) -> Result<InWhole, PeriodicError>;

    /// The part of the coarser mesh whose cells have those with some numbers for children.
    fn coarsened(&self, numbers: &[u32], group: &Arc<dyn Group>) -> Result<Coarsened, NotCoarser>;

    /// For those who know what it is.
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl PartialEq for Made {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.by, &other.by) && self.numbers == other.numbers
    }
}

impl Made {
    fn whole(&self) -> Result<&InWhole, PeriodicError> {
        let make = || self.by.whole(&self.numbers);
        self.whole.get_or_init(make).as_ref().map_err(Clone::clone)
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dealt(_, own), Self::Dealt(_, cells)) => own == cells,
            (Self::Descended(own), Self::Descended(other)) => own == other,
            (Self::Made(own), Self::Made(other)) => own == other,
            _ => false,
        }
    }
}

/// A whole mesh, and which process has which of its cells.
#[derive(Clone, Debug)]
struct Whole {
    mesh: Arc<Mesh>,
    rank_of: Arc<Vec<u32>>,
    /// The next coarser one.
    coarser: Option<Arc<(Coarsened, Whole)>>,
}

/// An entity that several parts have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// Its number in this part.
    pub number: u32,
    /// The processes that have it, ascending.
    pub ranks: Box<[u32]>,
}

impl PartialEq for Cut {
    fn eq(&self, other: &Self) -> bool {
        let place = |cut: &Self| (cut.group.rank(), cut.group.size());
        place(self) == place(other) && self.shared == other.shared && self.origin == other.origin
    }
}

impl Cut {
    /// The processes.
    pub fn group(&self) -> &Arc<dyn Group> {
        &self.group
    }

    /// The shared entities of a dimension, in one order for all processes.
    pub fn shared(&self, dim: usize) -> &[Entity] {
        self.shared.get(dim).map_or(&[], Vec::as_slice)
    }

    /// The whole mesh, as one process has it. Of a part that was refined it is made when it is first asked for, by each process that does,
    /// and kept as long as the part is.
    ///
    /// # Errors
    ///
    /// A mesh that is too large for one process.
    pub fn whole(&self) -> Result<&Arc<Mesh>, PeriodicError> {
        match &self.origin {
            Origin::Dealt(whole, _) => Ok(&whole.mesh),
            Origin::Descended(own) => Ok(&own.whole()?.mesh),
            Origin::Made(own) => Ok(&own.whole()?.mesh),
        }
    }

    /// The cells of the part, by their numbers in the whole mesh.
    ///
    /// # Errors
    ///
    /// Those of [`Self::whole`].
    pub fn cells(&self) -> Result<&[u32], PeriodicError> {
        match &self.origin {
            Origin::Dealt(_, cells) => Ok(cells),
            Origin::Descended(own) => Ok(&own.whole()?.cells),
            Origin::Made(own) => Ok(&own.whole()?.cells),
        }
    }

    /// Cells of all parts.
    fn cells_in_all(&self) -> usize {
        match &self.origin {
            Origin::Dealt(whole, _) => whole.mesh.n_cells(),
            Origin::Descended(own) => own.cells_in_all(),
            Origin::Made(own) => own.by.n_cells(),
        }
    }

    /// Who deals out the cells, and the numbers that it gives to those of this part, if they are of a mesh that nobody has made.
    pub(crate) fn dealer(&self) -> Option<(&Arc<dyn Dealer>, &[u32])> {
        match &self.origin {
            Origin::Made(own) => Some((&own.by, &own.numbers)),
            Origin::Dealt(..) | Origin::Descended(_) => None,
        }
    }

    /// Whether the cells are parts of those of a coarser part.
    pub(crate) fn is_refined(&self) -> bool {
        matches!(self.origin, Origin::Descended(_))
    }

    /// The part of the coarser mesh whose cells have these for children, where these are some of a whole mesh.
    pub(crate) fn coarsened(&self) -> Result<Coarsened, NotCoarser> {
        if let Origin::Made(own) = &self.origin {
            return own.by.coarsened(&own.numbers, &self.group);
        }
        let Origin::Dealt(whole, cells) = &self.origin else { return Err(NotCoarser::Cut) };
        let Some(coarser) = &whole.coarser else { return Err(NotCoarser::Cut) };
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
        Ok(Coarsened { mesh: Arc::new(mesh), children, places, maps: coarsened.maps.clone() })
    }
}

impl Whole {
    /// The numbers of the cells of this process, ascending.
    fn own(&self, group: &Arc<dyn Group>) -> impl Iterator<Item = u32> {
        let rank = group.rank() as u32;
        let own = self.rank_of.iter().zip(0..).filter(move |(of, _)| **of == rank);
        own.map(|(_, cell)| cell)
    }

    /// The cells of this process.
    fn part(&self, group: &Arc<dyn Group>) -> Mesh {
        self.of_cells(self.own(group).collect(), group)
    }
}

/// Why nothing is foretold of so many processes: some would have no cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "of {processes} processes some would have nothing to do: there are only {cells} cells\n\
     help: ask for fewer, or refine the mesh"
)]
pub struct TooFewCells {
    /// Processes.
    pub processes: usize,
    /// Cells.
    pub cells: usize,
}

impl Mesh {
    /// The cells of this process, none at the last ones of more processes than cells; the mesh itself where there is one process.
    pub fn part(self: Arc<Self>, group: &Arc<dyn Group>) -> Arc<Mesh> {
        if group.size() == 1 {
            return self;
        }
        Arc::new(self.dealt(group.size()).part(group))
    }

    /// How often a mesh that is to be divided so many times is divided before parts of it are dealt out to so many processes, each of
    /// which divides its own from there on: until all have some. Simplices with periodic sides, or on spheres, are divided before: sides are
    /// joined where all of them are known, and which edges lie on a sphere is known where all its faces are.
    pub(crate) fn divided_before(&self, times: usize, processes: usize, periodic: bool) -> usize {
        let is_tensor = self.cell().is_tensor();
        if processes == 1 || !is_tensor && (periodic || !self.spheres.is_empty()) {
            return times;
        }
        let cells = |before: usize| self.n_cells().saturating_mul(1 << (self.dim() * before));
        (0..times).find(|&before| cells(before) >= LEAST * processes).unwrap_or(times)
    }

    /// The cells that this process has where each cell's process is given, in the order of the cells. Coarser meshes are not dealt out, so
    /// that the part has none. There must be a process for each cell, one of the group.
    ///
    /// # Panics
    ///
    /// Where there is not.
    pub fn part_by(self: &Arc<Self>, rank_of: Vec<u32>, group: &Arc<dyn Group>) -> Arc<Mesh> {
        let known = rank_of.iter().all(|&rank| (rank as usize) < group.size());
        assert!(known && rank_of.len() == self.n_cells(), "each cell should have a process");
        let (mesh, rank_of) = (Arc::clone(self), Arc::new(rank_of));
        Arc::new(Whole { mesh, rank_of, coarser: None }.part(group))
    }

    /// Which of so many processes has each cell, in the order of the cells, as [`Self::part`] deals them out.
    ///
    /// # Errors
    ///
    /// More processes than cells, of which nothing would be learnt.
    pub fn ranks(self: &Arc<Self>, processes: usize) -> Result<Arc<Vec<u32>>, TooFewCells> {
        let cells = self.n_cells();
        if cells < processes {
            return Err(TooFewCells { processes, cells });
        }
        Ok(Arc::clone(self).dealt(processes).rank_of)
    }

    /// The cells of each of so many processes, here and on the coarser meshes.
    fn dealt(self: Arc<Self>, processes: usize) -> Whole {
        let cells = self.n_cells();
        let mut chain: Vec<Coarsened> = Vec::new();
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
            let whole = Whole { mesh, rank_of: Arc::new(own), coarser };
            coarser = Some(Arc::new((last, whole)));
        }
        Whole { mesh: self, rank_of: Arc::new(rank_of), coarser }
    }
}

impl Whole {
    /// Some cells, ascending.
    fn of_cells(&self, cells: Vec<u32>, group: &Arc<dyn Group>) -> Mesh {
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
            Box::new(Plain { points, world: plain.world.clone() })
        });
        let hanging = whole.hanging.as_ref().map(|all| hanging::Hanging {
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
            order_of_source: places::Order::Own,
            equispaced: whole.equispaced,
            hanging,
            plain,
            cut: Some(Arc::new(Cut {
                group: Arc::clone(group),
                shared,
                origin: Origin::Dealt(self.clone(), cells),
            })),
        }
    }
}

impl Mesh {
    /// Says that the cells are some, by these numbers, of a mesh that is dealt out without being made, and what others share of them.
    pub(crate) fn be_dealt_by(
        &mut self,
        by: Arc<dyn Dealer>,
        numbers: Vec<u32>,
        shared: [Vec<Entity>; 3],
        group: &Arc<dyn Group>,
    ) {
        self.notes.extend(idle(by.n_cells(), group.size()));
        let origin = Origin::Made(Made { by, numbers, whole: OnceLock::new() });
        self.cut = Some(Arc::new(Cut { group: Arc::clone(group), shared, origin }));
    }
}

/// What should be known where there are more processes than cells.
fn idle(cells: usize, processes: usize) -> Option<String> {
    let none = processes.checked_sub(cells).filter(|none| *none > 0)?;
    Some(format!("{none} of {processes} processes have no cell: the mesh has {cells}"))
}

impl Mesh {
    /// The geometry nodes of some cells, the vertices first, in their new numbers, and which points of the mesh these are.
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

    /// What this part of a mesh has in common with those of other processes, if it is one.
    pub fn cut(&self) -> Option<&Arc<Cut>> {
        self.cut.as_ref()
    }

    /// Cells of all parts.
    pub fn cells_in_all(&self) -> usize {
        self.cut.as_ref().map_or(self.n_cells(), |cut| cut.cells_in_all())
    }

    /// Makes the sums of each part sums over all.
    pub fn sum_in_all(&self, sums: &mut [f64]) {
        self.reduce_in_all(Reduce::Sum, sums);
    }

    /// Makes numbers of each part those of all.
    pub fn reduce_in_all(&self, how: Reduce, numbers: &mut [f64]) {
        if let Some(cut) = &self.cut {
            cut.group.reduce(how, numbers);
        }
    }

    /// The smallest box with all points of all parts: its lower and its upper corner.
    pub fn bounding_box_of_all(&self) -> ([f64; 3], [f64; 3]) {
        let (mut from, mut to) = self.bounding_box();
        self.reduce_in_all(Reduce::Least, &mut from);
        self.reduce_in_all(Reduce::Largest, &mut to);
        (from, to)
    }

    /// The place that the first process has which has one.
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

    /// The sum over all parts of something that each counts.
    pub fn in_all(&self, own: usize) -> usize {
        self.cut.as_ref().map_or(own, |cut| total(&*cut.group, own))
    }
}

/// The entities of a dimension of the whole mesh that a process shares; `own` are its entities, by their numbers there.
fn shared(whole: &Topology, dim: usize, rank_of: &[u32], rank: u32, own: &[u32]) -> Vec<Entity> {
    // The first and the last process that has an entity.
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
        Entity { number, ranks: ranks.into() }
    };
    found.into_values().map(entity).collect()
}

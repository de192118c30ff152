//! Relation of a refined mesh to its coarse mesh, for data and geometry.

use super::assemble::{Conformity, assemble};
use super::generate::DomainMap;
use super::key::{CellKey, KeyLayout};
use super::measure::JacobianSign;
use super::measure::mean;
use super::periodic::PeriodicError;
use super::shape::CellShape;
use super::source_order::DataRows;
use super::{
    CellOrdering, EntityCounts, Facet, Mesh, MeshData, MeshError, SourceOrder, Topology, measure,
    seams,
};
use crate::support::parallel::*;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The coarse mesh, and the descent of the fine cells.
#[derive(Clone, Debug, PartialEq)]
pub struct RefinedMesh {
    /// The coarse mesh.
    pub coarse: Arc<Mesh>,
    /// The descent of the fine cells.
    pub cells: Descendants,
    /// For bisected simplices with ascending vertices: the position of each vertex in the descendant as created by its
    /// parent.
    pub seen: Vec<[u8; 4]>,
}

/// Descent of the cells of a finer mesh from those of a coarser one.
#[derive(Clone, Debug, PartialEq)]
pub enum Descendants {
    /// `times` uniform refinements. A cell's number counts all descendants; those of one coarse cell are consecutive.
    Uniform {
        /// The number of refinements.
        times: usize,
        /// The number of each cell.
        numbers: Vec<u32>,
    },
    /// Leaves of trees: the coarse cell of each, and an opaque position in it, which ascends with the leaf number.
    Leaves {
        /// The coarse cell of each.
        parents: Vec<u32>,
        /// The position of each in its tree.
        places: Vec<u128>,
    },
    /// Leaves of a forest: the key of each, and its leaf number.
    Forest {
        /// The layout of the keys.
        layout: KeyLayout,
        /// The key of each.
        keys: Vec<CellKey>,
        /// The leaf number of each.
        leaves: Vec<u32>,
    },
}

impl RefinedMesh {
    /// Returns the number of cells.
    fn n_cells(&self) -> usize {
        match &self.cells {
            Descendants::Uniform { numbers, .. } => numbers.len(),
            Descendants::Leaves { parents, .. } => parents.len(),
            Descendants::Forest { keys, .. } => keys.len(),
        }
    }

    /// Returns the coarse cell of a cell, and a number that identifies the position in it.
    pub fn place(&self, cell: usize) -> (usize, u128) {
        match &self.cells {
            Descendants::Uniform { times, numbers } => {
                let (each, number) = (1 << (self.coarse.dim() * times), numbers[cell] as usize);
                (number / each, (number % each) as u128)
            }
            Descendants::Leaves { parents, places } => (parents[cell] as usize, places[cell]),
            Descendants::Forest { keys, .. } => (keys[cell].tree() as usize, keys[cell].place()),
        }
    }

    /// Returns for each cell its parent in the coarser mesh.
    pub fn parents(&self) -> impl Iterator<Item = usize> {
        (0..self.n_cells()).map(|cell| self.place(cell).0)
    }

    /// Returns the rows of data that has one for each cell: those of a coarse cell follow one another.
    pub(super) fn rows(&self) -> Vec<DataRows> {
        let own = |rows: DataRows| {
            let mut order: Vec<u32> = (0..self.n_cells() as u32).collect();
            order.par_sort_unstable_by_key(|&cell| {
                let (parent, place) = self.place(cell as usize);
                (rows.of[parent], place)
            });
            let mut of = vec![0; order.len()];
            (0..).zip(&order).for_each(|(row, &cell)| of[cell as usize] = row);
            DataRows { count: of.len(), of }
        };
        // Where elements of other dimensions are counted, or cells were cut, a row has no descendants of its own.
        let all = self.coarse.cell_rows().into_iter();
        all.filter(|rows| rows.count == self.coarse.n_cells()).map(own).collect()
    }
}

/// A mesh of leaves, without its origin. Vertices are the first points, by first touch.
pub(crate) struct LeafMesh {
    pub(crate) points: Vec<[f64; 3]>,
    pub(crate) nodes: Vec<u32>,
    pub(crate) facets: BTreeMap<String, Vec<Facet>>,
    pub(crate) cells: BTreeMap<String, Vec<u32>>,
    pub(crate) topology: Topology,
}

impl Mesh {
    /// Builds the mesh of the leaves of a forest, which conforms as its trees do.
    ///
    /// # Errors
    ///
    /// A child cell is folded.
    pub(crate) fn of_leaves(leafy: LeafMesh, refined: RefinedMesh) -> Result<Mesh, MeshError> {
        let coarse = Arc::clone(&refined.coarse);
        let shape = CellShape::new(coarse.cell, coarse.order)?;
        let LeafMesh { points, nodes, facets, cells, topology } = leafy;
        let mirrored = coarse.mirrored();
        let negative: Vec<bool> = refined.parents().map(|parent| mirrored[parent]).collect();
        let parts = MeshData { points, nodes, ..MeshData::default() };
        let affine = measure::check_cells(&shape, &parts, JacobianSign::Negative(&negative))?;
        Ok(Mesh {
            cell: coarse.cell,
            order: coarse.order,
            points: parts.points,
            nodes: parts.nodes,
            nodes_per_cell: shape.nodes,
            facet_tags: facets,
            cell_tags: cells,
            skeleton: coarse.skeleton.clone(),
            topology,
            periodic: Vec::new(),
            joined: None,
            notes: coarse.notes.clone(),
            spheres: coarse.spheres.clone(),
            order_of_source: SourceOrder::Refined(Box::new(refined)),
            equispaced: false,
            hanging: None,
            affine,
            beyond: Default::default(),
            plain: None,
            cut: None,
        })
    }

    /// Builds a mesh of descendants, which agree on the direction of edges and faces. The marked cells have negative
    /// determinants.
    pub(crate) fn of_descendants(
        parts: MeshData,
        negative: &[bool],
        refined: RefinedMesh,
    ) -> Result<Mesh, MeshError> {
        let coarse = &refined.coarse;
        let (cell, order, spheres) = (coarse.cell, coarse.order, coarse.spheres.clone());
        let (sign, joined) = (JacobianSign::Negative(negative), Conformity::Oriented);
        let mut mesh = assemble(cell, order, parts, CellOrdering::Original, sign, joined)?;
        let coarse = &refined.coarse;
        let is_new = |note: &&String| !note.contains(seams::TOLD);
        mesh.notes.splice(0..0, coarse.notes.iter().filter(is_new).cloned());
        mesh.skeleton = coarse.skeleton.clone();
        mesh.spheres = spheres;
        mesh.order_of_source = SourceOrder::Refined(Box::new(refined));
        Ok(mesh)
    }

    /// Returns for each cell its number among the leaves of the forest or bisection; `None` for other meshes.
    pub fn leaves(&self) -> Option<Cow<'_, [u32]>> {
        match &self.refined_from()?.cells {
            Descendants::Forest { leaves, .. } => Some(Cow::Borrowed(leaves)),
            Descendants::Leaves { parents, .. } => Some((0..parents.len() as u32).collect()),
            Descendants::Uniform { .. } => None,
        }
    }

    /// Returns the cell tags that children inherit; `parents` is the parent of each child.
    pub(crate) fn inherited_tags(
        &self,
        parents: impl Iterator<Item = usize> + Clone,
    ) -> BTreeMap<String, Vec<u32>> {
        let mut all = BTreeMap::new();
        for (tag, tagged) in &self.cell_tags {
            let mut holds = vec![false; self.n_cells()];
            tagged.iter().for_each(|&cell| holds[cell as usize] = true);
            let cells = (0..).zip(parents.clone()).filter(|(_, parent)| holds[*parent]);
            all.insert(tag.clone(), cells.map(|(cell, _)| cell).collect());
        }
        all
    }

    /// Replaces the tags.
    pub(crate) fn with_tags(
        mut self,
        facets: BTreeMap<String, Vec<Facet>>,
        cells: BTreeMap<String, Vec<u32>>,
    ) -> Self {
        (self.facet_tags, self.cell_tags) = (facets, cells);
        self
    }

    /// Returns the mesh that was refined uniformly to this one, and the number of refinements.
    fn divided_from(&self) -> Option<(&Arc<Mesh>, usize)> {
        let refined = self.refined_from()?;
        let Descendants::Uniform { times, .. } = refined.cells else { return None };
        Some((&refined.coarse, times))
    }

    /// Returns for each cell its number among all descendants of the uniformly refined mesh, where those of one cell
    /// are consecutive. Its own number without refinement.
    pub(crate) fn descendants(&self) -> Cow<'_, [u32]> {
        match self.refined_from().map(|refined| &refined.cells) {
            Some(Descendants::Uniform { numbers, .. }) => Cow::Borrowed(numbers),
            _ => (0..self.n_cells() as u32).collect(),
        }
    }

    /// Returns the cells in the order of [`Self::descendants`].
    pub(crate) fn by_descendants(&self) -> Vec<u32> {
        let mut cells = vec![0; self.n_cells()];
        (0..).zip(&*self.descendants()).for_each(|(cell, &number)| cells[number as usize] = cell);
        cells
    }

    /// Refines `times` more times, directly from the mesh that this one was refined from.
    pub(crate) fn divided_on(&self, times: usize) -> Result<Mesh, PeriodicError> {
        Ok(match self.divided_from() {
            Some((first, before)) => Mesh::clone(first).refined(before + times)?,
            None => self.clone().refined(times)?,
        })
    }

    /// Returns the origin of a refined mesh.
    pub fn refined_from(&self) -> Option<&RefinedMesh> {
        match &self.order_of_source {
            SourceOrder::Refined(refined) => Some(refined),
            SourceOrder::Native
            | SourceOrder::Grid(_)
            | SourceOrder::CoarseGrid(_)
            | SourceOrder::Listed(_) => None,
        }
    }

    /// Returns the map of the generator, for a mesh that is refined in its computational domain.
    pub(crate) fn world(&self) -> Option<&DomainMap> {
        self.plain.as_ref().map(|plain| &plain.world)
    }

    /// Returns the points for refinement: those of the computational domain, if there is one.
    pub(crate) fn plain_points(&self) -> &[[f64; 3]] {
        self.plain.as_ref().map_or(&self.points, |plain| &plain.points)
    }

    /// Returns the mean of a cell's vertices in the computational domain.
    pub(crate) fn plain_centre(&self, cell: usize) -> [f64; 3] {
        mean(self.plain_points(), self.vertices(cell))
    }

    /// Checks that the generator's map folds no cell.
    ///
    /// # Errors
    ///
    /// The first folded cell.
    pub(crate) fn check_placed(&self) -> Result<(), MeshError> {
        if self.plain.is_none() {
            return Ok(());
        }
        let shape = CellShape::new(self.cell, self.order)?;
        let (points, nodes) = (self.points.clone(), self.nodes.clone());
        let parts = MeshData { points, nodes, ..MeshData::default() };
        measure::check_cells(&shape, &parts, JacobianSign::Negative(&self.mirrored()))?;
        Ok(())
    }

    /// Maps refined points from the computational to the physical domain.
    pub(crate) fn place(&self, points: &mut [[f64; 3]]) {
        if let Some(world) = self.world() {
            points.par_iter_mut().each(|point| *point = world.place(*point));
        }
    }

    /// Returns the tags whose facets lie on spheres about the origin, with the radii.
    pub(crate) fn spheres(&self) -> &[(String, f64)] {
        &self.spheres
    }
}

impl EntityCounts {
    /// Returns the counts after `times` uniform refinements.
    pub fn refined(self, times: usize) -> Self {
        let mut entities = self.entities;
        for _ in 0..times {
            entities = divided(self.cell.is_tensor(), entities, self.cell.dim());
        }
        Self { entities, ..self }
    }

    /// Checks that 32-bit indices can number the nodes and entities of all cells.
    ///
    /// # Errors
    ///
    /// [`MeshError::TooLarge`].
    pub fn check_indices(&self) -> Result<(), MeshError> {
        let count = |what: &'static str, count: u64| {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            super::index(count, what).map(drop)
        };
        let vertices = self.cell.vertex_count();
        let nodes = kernels_gen::element::Lagrange::continuous(self.cell, self.order)
            .map_or(vertices, |element| element.count());
        count("cells", self.cells())?;
        let each = nodes.max(self.cell.entities(1).len()) as u64;
        count("cell nodes", self.cells().saturating_mul(each))
    }
}

/// Vertices, edges, faces and cells after one uniform refinement.
fn divided(is_tensor: bool, [v, e, f, c]: [u64; 4], dim: usize) -> [u64; 4] {
    let sum = |terms: &[(u64, u64)]| {
        terms.iter().fold(0u64, |sum, (n, count)| sum.saturating_add(n.saturating_mul(*count)))
    };
    match (is_tensor, dim) {
        (true, _) => [
            sum(&[(1, v), (1, e), (1, f), (1, c)]),
            sum(&[(2, e), (4, f), (6, c)]),
            sum(&[(4, f), (12, c)]),
            sum(&[(8, c)]),
        ],
        (false, 2) => [sum(&[(1, v), (1, e)]), sum(&[(2, e), (3, f)]), sum(&[(4, f)]), 0],
        (false, _) => [
            sum(&[(1, v), (1, e)]),
            sum(&[(2, e), (3, f), (1, c)]),
            sum(&[(4, f), (8, c)]),
            sum(&[(8, c)]),
        ],
    }
}

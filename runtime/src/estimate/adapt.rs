//! Adaptive meshes: refinement and coarsening of marked cells.
//!
//! ```text
//! solve → estimate → mark → Adaptive::adapt → Adaptive::mesh → Adaptive::transfer → solve
//! ```
//!
//! Quadrilaterals and hexahedra are the leaves of a [`Forest`] with hanging nodes at level changes; triangles and
//! tetrahedra are bisected ([`Bisection`]). The steps can be used separately: a user's own rule may mark cells by any
//! criterion.
//!
//! ```
//! use runtime::estimate::adapt::AdaptiveMesh;
//! use runtime::mesh::{Cell, CellOrdering, Mesh, MeshData};
//!
//! let parts = MeshData {
//!     points: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]],
//!     nodes: vec![0, 1, 2, 3],
//!     ..MeshData::default()
//! };
//! let mut adaptive = AdaptiveMesh::new(Mesh::new(Cell::Quadrilateral, 1, parts, CellOrdering::Sorted)?)?;
//! for _ in 0..4 {
//!     let mesh = adaptive.mesh()?;
//!     // The cells at the origin are divided.
//!     let marked: Vec<bool> = (0..mesh.n_cells())
//!         .map(|cell| mesh.vertices(cell).iter().any(|&v| mesh.points()[v as usize] == [0.0; 3]))
//!         .collect();
//!     adaptive.adapt(&mesh, &marked, &[])?;
//! }
//! assert_eq!(adaptive.mesh()?.n_cells(), 13);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod projection;
mod simplices;

use crate::mesh::Mesh;
use crate::mesh::refine::bisect::{BisectError, Bisection};
use crate::mesh::refine::forest::{CellKey, DistributedForest, Forest, ForestError};
use crate::processes::ProcessGroup;
use crate::space::discretisation::Discretisation;
use crate::space::transfer::transfer;
use std::sync::Arc;

/// Reason why a mesh cannot be adapted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AdaptError {
    /// Failure for quadrilaterals or hexahedra.
    #[error(transparent)]
    Forest(#[from] ForestError),
    /// Failure for triangles or tetrahedra.
    #[error(transparent)]
    Bisect(#[from] BisectError),
    /// Marks of another mesh.
    #[error(
        "{found} marks do not fit {expected} cells\nhelp: mark the cells of the mesh that `Adaptive::mesh` gives now"
    )]
    Marks {
        /// Number of marks.
        found: usize,
        /// Number of cells.
        expected: usize,
    },
}

impl AdaptError {
    /// Returns whether a cell is at the finest level.
    pub(crate) fn is_finest(&self) -> bool {
        matches!(
            self,
            Self::Forest(ForestError::TooFine { .. }) | Self::Bisect(BisectError::TooFine { .. })
        )
    }
}

/// A mesh with its refinement hierarchy.
#[derive(Clone, Debug)]
pub struct AdaptiveMesh {
    coarse: Arc<Mesh>,
    cells: RefinementHierarchy,
}

/// Refinement method.
#[derive(Clone, Debug)]
enum RefinementHierarchy {
    /// Division into four or eight, with hanging nodes.
    Forest(Arc<Forest>),
    /// Bisection, without hanging nodes.
    Bisection(Box<Bisection>),
}

/// Result of an adaptation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptationResult {
    /// Number of marked cells that were divided; for simplices, number of bisections.
    pub refined: usize,
    /// Number of families merged into one cell.
    pub coarsened: usize,
    /// Number of cells afterwards, including divisions for balance or conformity.
    pub cells: usize,
}

impl AdaptiveMesh {
    /// Starts with the cells of a mesh, which are never coarsened.
    ///
    /// # Errors
    ///
    /// A mesh with cells that cannot be divided.
    pub fn new(mesh: impl Into<Arc<Mesh>>) -> Result<Self, AdaptError> {
        let coarse = mesh.into();
        let cells = match coarse.cell().is_tensor() {
            true => RefinementHierarchy::Forest(Arc::new(Forest::new(&coarse)?)),
            false => RefinementHierarchy::Bisection(Box::new(Bisection::new(&coarse)?)),
        };
        Ok(Self { coarse, cells })
    }

    /// Builds the mesh of the current cells.
    ///
    /// # Errors
    ///
    /// More entities than indices can address, cells that fold when divided.
    pub fn mesh(&self) -> Result<Mesh, AdaptError> {
        Ok(match &self.cells {
            RefinementHierarchy::Forest(forest) => forest.mesh(&self.coarse)?,
            RefinementHierarchy::Bisection(bisection) => bisection.mesh(&self.coarse)?,
        })
    }

    /// Builds this process's subdomain of the current mesh. For a forest, no process builds more than that, except for
    /// the coarsest level with enough cells for all; simplices are bisected redundantly.
    ///
    /// # Errors
    ///
    /// As for [`Self::mesh`].
    pub fn part(&self, group: &Arc<dyn ProcessGroup>) -> Result<Arc<Mesh>, AdaptError> {
        match &self.cells {
            RefinementHierarchy::Forest(forest) if group.size() > 1 => Ok(Arc::new(
                DistributedForest::new(&self.coarse, forest, group.size())?.part(group)?,
            )),
            _ => Ok(Arc::new(self.mesh()?).part(group)),
        }
    }

    /// Returns the initial mesh.
    pub fn coarse(&self) -> &Arc<Mesh> {
        &self.coarse
    }

    /// Returns the current number of cells.
    pub fn n_cells(&self) -> usize {
        match &self.cells {
            RefinementHierarchy::Forest(forest) => forest.n_leaves(),
            RefinementHierarchy::Bisection(bisection) => bisection.n_leaves(),
        }
    }

    /// Returns the number of divisions of the initial cell that lead to a leaf; for simplices, of all edges once.
    pub(crate) fn level(&self, leaf: usize) -> usize {
        match &self.cells {
            RefinementHierarchy::Forest(forest) => forest.leaves()[leaf].level() as usize,
            RefinementHierarchy::Bisection(bisection) => {
                (bisection.leaf(leaf).1.depth() as usize).div_ceil(self.coarse.dim())
            }
        }
    }

    /// Returns whether both have the same cells, of one initial mesh.
    pub(crate) fn has_same_cells(&self, other: &Self) -> bool {
        match (&self.cells, &other.cells) {
            (RefinementHierarchy::Forest(own), RefinementHierarchy::Forest(other)) => {
                own.leaves() == other.leaves()
            }
            (RefinementHierarchy::Bisection(own), RefinementHierarchy::Bisection(other)) => {
                let count = own.n_leaves();
                let key = |of: &Bisection, leaf| (of.leaf(leaf).0, of.leaf(leaf).1.bits());
                count == other.n_leaves()
                    && (0..count).all(|leaf| key(own, leaf) == key(other, leaf))
            }
            _ => false,
        }
    }

    /// Divides marked cells of the current mesh, and merges families with all cells marked for coarsening. Further
    /// cells are divided so that neighbours differ by one level at most, or that simplices are conforming. A cell
    /// marked for both is divided; an empty list marks nothing.
    ///
    /// # Errors
    ///
    /// Marks of another mesh, too many cells, or a cell at the maximum refinement level. The mesh is unchanged in this
    /// case.
    pub fn adapt(
        &mut self,
        mesh: &Mesh,
        refine: &[bool],
        coarsen: &[bool],
    ) -> Result<AdaptationResult, AdaptError> {
        let expected = self.n_cells();
        let leaves = mesh.leaves().filter(|leaves| leaves.len() == expected);
        let Some(leaves) = leaves else {
            return Err(AdaptError::Marks { found: mesh.n_cells(), expected });
        };
        for marks in [refine, coarsen] {
            if !marks.is_empty() && marks.len() != expected {
                return Err(AdaptError::Marks { found: marks.len(), expected });
            }
        }
        // Leaves have another order than cells.
        let (mut up, mut down) = (vec![false; expected], vec![false; expected]);
        for (cell, &leaf) in leaves.iter().enumerate() {
            let marked = |marks: &[bool]| marks.get(cell).copied().unwrap_or(false);
            up[leaf as usize] = marked(refine);
            down[leaf as usize] = marked(coarsen) && !marked(refine);
        }
        self.adapt_leaves(&up, &down)
    }

    /// Adapts with marks by leaf, as numbered by [`Mesh::leaves`]; no leaf is marked for both.
    pub(crate) fn adapt_leaves(
        &mut self,
        up: &[bool],
        down: &[bool],
    ) -> Result<AdaptationResult, AdaptError> {
        let mut cells = self.cells.clone();
        let (refined, coarsened) = match &mut cells {
            RefinementHierarchy::Forest(forest) => in_forest(Arc::make_mut(forest), up, down)?,
            RefinementHierarchy::Bisection(bisection) => by_bisection(bisection, up, down)?,
        };
        self.cells = cells;
        Ok(AdaptationResult { refined, coarsened, cells: self.n_cells() })
    }

    /// Transfers a function between two meshes of the hierarchy, from [`Self::mesh`]: interpolates the degrees of
    /// freedom `u` on `from` at the nodes of `to`. In cells merged from several, discontinuous functions are projected in L2
    /// of the reference cell. `None` if meshes or spaces do not match. Collective on subdomains.
    pub fn transfer(from: &Discretisation, u: &[f64], to: &Discretisation) -> Option<Vec<f64>> {
        if to.mesh.cell().is_tensor() {
            return transfer(from, u, to);
        }
        let (Some(old), Some(new)) = (from.on_whole().ok()?, to.on_whole().ok()?) else {
            return simplices::transfer(from, u, to);
        };
        let moved = simplices::transfer(&old, &from.gathered(&old, u)?, &new)?;
        Some(to.places_in(&new)?.into_iter().map(|place| moved[place]).collect())
    }
}

/// Returns the number of marked leaves divided, and of families merged.
fn in_forest(
    forest: &mut Forest,
    refine: &[bool],
    coarsen: &[bool],
) -> Result<(usize, usize), ForestError> {
    let marked = forest.leaves().iter().zip(refine).filter(|(_, marked)| **marked);
    let marked: Vec<CellKey> = marked.map(|(&key, _)| key).collect();
    let coarsened = match coarsen.contains(&true) {
        true => forest.coarsen(|leaf| coarsen[leaf]),
        false => 0,
    };
    let keys = forest.leaves().to_vec();
    let refined = forest.refine(|leaf| marked.binary_search(&keys[leaf]).is_ok())?;
    forest.balance()?;
    Ok((refined, coarsened))
}

/// Returns the number of bisections, and of those reversed.
fn by_bisection(
    bisection: &mut Bisection,
    refine: &[bool],
    coarsen: &[bool],
) -> Result<(usize, usize), BisectError> {
    let key = |bisection: &Bisection, leaf: usize| {
        let (cell, path) = bisection.leaf(leaf);
        (cell, path.bits())
    };
    let marked = (0..bisection.n_leaves()).filter(|&leaf| refine[leaf]);
    let mut marked: Vec<(usize, u128)> = marked.map(|leaf| key(bisection, leaf)).collect();
    marked.sort_unstable();
    let coarsened = match coarsen.contains(&true) {
        true => bisection.coarsen(|leaf| coarsen[leaf]),
        false => 0,
    };
    let holds: Vec<bool> = (0..bisection.n_leaves())
        .map(|leaf| marked.binary_search(&key(bisection, leaf)).is_ok())
        .collect();
    Ok((bisection.refine(|leaf| holds[leaf])?, coarsened))
}

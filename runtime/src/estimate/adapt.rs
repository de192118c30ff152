//! Meshes that are refined where a rule says so, and coarsened where another does: cells → marks → cells.
//!
//! ```text
//! solve → estimate → mark → Adaptive::adapt → Adaptive::mesh → Adaptive::transfer → solve
//! ```
//!
//! Quadrilaterals and hexahedra are the leaves of a [`Forest`], in which nodes hang where two levels meet; triangles and
//! tetrahedra are bisected ([`Bisection`]). The parts are there to be used one by one: a user's own rule marks cells by any
//! numbers.
//!
//! ```
//! use runtime::estimate::adapt::Adaptive;
//! use runtime::mesh::{Arrange, Cell, Mesh, Parts};
//!
//! let parts = Parts {
//!     points: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]],
//!     nodes: vec![0, 1, 2, 3],
//!     ..Parts::default()
//! };
//! let mut adaptive = Adaptive::new(Mesh::new(Cell::Quadrilateral, 1, parts, Arrange::Sorted)?)?;
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

mod simplices;

use crate::mesh::Mesh;
use crate::mesh::refine::bisect::{BisectError, Bisection};
use crate::mesh::refine::forest::{Dealt, Forest, ForestError, Key};
use crate::processes::Group;
use crate::space::discretisation::Discretisation;
use crate::space::transfer::transfer;
use std::sync::Arc;

/// Why a mesh cannot follow a rule.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AdaptError {
    /// Quadrilaterals or hexahedra.
    #[error(transparent)]
    Forest(#[from] ForestError),
    /// Triangles or tetrahedra.
    #[error(transparent)]
    Bisect(#[from] BisectError),
    /// Marks that are not of the cells that there are.
    #[error(
        "{found} marks do not fit {expected} cells\nhelp: mark the cells of the mesh that `Adaptive::mesh` gives now"
    )]
    Marks {
        /// How many marks there are.
        found: usize,
        /// How many cells there are.
        expected: usize,
    },
}

/// A mesh with all that can become of it.
#[derive(Clone, Debug)]
pub struct Adaptive {
    coarse: Arc<Mesh>,
    cells: Cells,
}

/// How cells are divided.
#[derive(Clone, Debug)]
enum Cells {
    /// In four or eight, with hanging nodes.
    Forest(Arc<Forest>),
    /// In two, without any.
    Bisection(Box<Bisection>),
}

/// What became of the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Cells that were divided because they were marked; of simplices all bisections.
    pub refined: usize,
    /// Families of cells that became one.
    pub coarsened: usize,
    /// Cells now, with those that balance or whole facets ask for.
    pub cells: usize,
}

impl Adaptive {
    /// Begins with the cells of a mesh, which are never made coarser than they are.
    ///
    /// # Errors
    ///
    /// A mesh whose cells cannot be divided so.
    pub fn new(mesh: impl Into<Arc<Mesh>>) -> Result<Self, AdaptError> {
        let coarse = mesh.into();
        let cells = match coarse.cell().is_tensor() {
            true => Cells::Forest(Arc::new(Forest::new(&coarse)?)),
            false => Cells::Bisection(Box::new(Bisection::new(&coarse)?)),
        };
        Ok(Self { coarse, cells })
    }

    /// The mesh of the cells that there are now.
    ///
    /// # Errors
    ///
    /// More than indices can number, cells that fold when they are divided.
    pub fn mesh(&self) -> Result<Mesh, AdaptError> {
        Ok(match &self.cells {
            Cells::Forest(forest) => forest.mesh(&self.coarse)?,
            Cells::Bisection(bisection) => bisection.mesh(&self.coarse)?,
        })
    }

    /// The cells of this process of the mesh that there is now. Of a forest nobody makes more than that but the
    /// coarsest of its coarser ones that has cells for all; simplices are bisected as a whole.
    ///
    /// # Errors
    ///
    /// Those of [`Self::mesh`].
    pub fn part(&self, group: &Arc<dyn Group>) -> Result<Arc<Mesh>, AdaptError> {
        match &self.cells {
            Cells::Forest(forest) if group.size() > 1 => {
                Ok(Arc::new(Dealt::new(&self.coarse, forest, group.size())?.part(group)?))
            }
            _ => Ok(Arc::new(self.mesh()?).part(group)),
        }
    }

    /// The mesh that it began with.
    pub fn coarse(&self) -> &Arc<Mesh> {
        &self.coarse
    }

    /// How many cells there are now.
    pub fn n_cells(&self) -> usize {
        match &self.cells {
            Cells::Forest(forest) => forest.n_leaves(),
            Cells::Bisection(bisection) => bisection.n_leaves(),
        }
    }

    /// Divides some cells of the mesh that there is now, and makes one of families all of whose cells may be coarsened;
    /// further cells are divided so that neighbours differ by one level at most, or that simplices meet in whole facets. A
    /// cell that is marked for both is divided; an empty list marks nothing.
    ///
    /// # Errors
    ///
    /// Marks of another mesh, too many cells, or one that was divided as often as keys can say. Nothing is changed then.
    pub fn adapt(
        &mut self,
        mesh: &Mesh,
        refine: &[bool],
        coarsen: &[bool],
    ) -> Result<Changed, AdaptError> {
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
        // Marks of cells → marks of leaves, which are sorted otherwise.
        let (mut up, mut down) = (vec![false; expected], vec![false; expected]);
        for (cell, &leaf) in leaves.iter().enumerate() {
            let marked = |marks: &[bool]| marks.get(cell).copied().unwrap_or(false);
            up[leaf as usize] = marked(refine);
            down[leaf as usize] = marked(coarsen) && !marked(refine);
        }
        self.adapt_leaves(&up, &down)
    }

    /// The same with marks for each leaf, as [`Mesh::leaves`] counts them, none of them for both.
    pub(crate) fn adapt_leaves(
        &mut self,
        up: &[bool],
        down: &[bool],
    ) -> Result<Changed, AdaptError> {
        let mut cells = self.cells.clone();
        let (refined, coarsened) = match &mut cells {
            Cells::Forest(forest) => in_forest(Arc::make_mut(forest), up, down)?,
            Cells::Bisection(bisection) => by_bisection(bisection, up, down)?,
        };
        self.cells = cells;
        Ok(Changed { refined, coarsened, cells: self.n_cells() })
    }

    /// The unknowns on `to`, a mesh that [`Self::mesh`] gave at some time, of the function that `u` is on another of them:
    /// at each node its value there. None where the meshes or spaces do not belong together. Of parts of meshes all processes call it.
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

/// How many leaves were divided because they were marked, and how many families became one.
fn in_forest(
    forest: &mut Forest,
    refine: &[bool],
    coarsen: &[bool],
) -> Result<(usize, usize), ForestError> {
    let marked = forest.leaves().iter().zip(refine).filter(|(_, marked)| **marked);
    let marked: Vec<Key> = marked.map(|(&key, _)| key).collect();
    let coarsened = match coarsen.contains(&true) {
        true => forest.coarsen(|leaf| coarsen[leaf]),
        false => 0,
    };
    let keys = forest.leaves().to_vec();
    let refined = forest.refine(|leaf| marked.binary_search(&keys[leaf]).is_ok())?;
    forest.balance()?;
    Ok((refined, coarsened))
}

/// How many simplices were bisected, and how many of such steps were taken back.
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

//! Meshes that are refined where a rule says so, and coarsened where another does: cells → marks → cells.
//!
//! ```text
//! solve → estimate → mark → Adaptive::adapt → Adaptive::mesh → Adaptive::transfer → solve
//! ```
//!
//! Quadrilaterals and hexahedra are the leaves of a [`Forest`], in which nodes hang where two levels meet. The parts are
//! there to be used one by one: a user's own rule marks cells by any numbers.
//!
//! ```
//! use runtime::adapt::Adaptive;
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

use crate::discretisation::Discretisation;
use crate::forest::{self, Forest, ForestError, Key, RefineError};
use crate::mesh::Mesh;
use std::sync::Arc;

/// A mesh with all that can become of it.
#[derive(Clone, Debug)]
pub struct Adaptive {
    coarse: Arc<Mesh>,
    forest: Forest,
}

/// What became of the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Cells that were divided because they were marked.
    pub refined: usize,
    /// Families of cells that became one.
    pub coarsened: usize,
    /// Cells now, with those that balance asks for.
    pub cells: usize,
}

impl Adaptive {
    /// Begins with the cells of a mesh, which are never made coarser than they are.
    ///
    /// # Errors
    ///
    /// A mesh whose cells cannot be divided so.
    pub fn new(mesh: impl Into<Arc<Mesh>>) -> Result<Self, ForestError> {
        let coarse = mesh.into();
        Ok(Self { forest: Forest::new(&coarse)?, coarse })
    }

    /// The mesh of the cells that there are now.
    ///
    /// # Errors
    ///
    /// More than indices can number, cells that fold when they are divided.
    pub fn mesh(&self) -> Result<Mesh, RefineError> {
        self.forest.mesh(&self.coarse)
    }

    /// The mesh that it began with.
    pub fn coarse(&self) -> &Arc<Mesh> {
        &self.coarse
    }

    /// The forest.
    pub fn forest(&self) -> &Forest {
        &self.forest
    }

    /// Divides some cells of the mesh that there is now, and makes one of families all of whose cells may be coarsened;
    /// further cells are divided so that neighbours differ by one level at most. Either list may be empty.
    ///
    /// # Errors
    ///
    /// Too many cells, or one that was divided as often as keys can say. Nothing is changed then.
    pub fn adapt(
        &mut self,
        mesh: &Mesh,
        refine: &[bool],
        coarsen: &[bool],
    ) -> Result<Changed, ForestError> {
        // Marks of cells → marks of leaves, which are sorted otherwise.
        let mut to_refine: Vec<Key> = Vec::new();
        let mut to_coarsen = vec![false; self.forest.n_leaves()];
        let leaves = mesh.leaves().filter(|leaves| leaves.len() == self.forest.n_leaves());
        for cell in 0..leaves.map_or(0, <[u32]>::len) {
            let leaf = leaves.map_or(cell, |leaves| leaves[cell] as usize);
            let marked = |marks: &[bool]| marks.get(cell).copied().unwrap_or(false);
            if marked(refine) {
                to_refine.push(self.forest.leaves()[leaf]);
            }
            to_coarsen[leaf] = marked(coarsen) && !marked(refine);
        }
        to_refine.sort_unstable();
        let mut forest = self.forest.clone();
        let coarsened =
            if coarsen.is_empty() { 0 } else { forest.coarsen(|leaf| to_coarsen[leaf]) };
        let keys = forest.leaves().to_vec();
        let refined = forest.refine(|leaf| to_refine.binary_search(&keys[leaf]).is_ok())?;
        forest.balance()?;
        self.forest = forest;
        Ok(Changed { refined, coarsened, cells: self.forest.n_leaves() })
    }

    /// The unknowns on `to`, a mesh that [`Self::mesh`] gave at some time, of the function that `u` is on another of them:
    /// at each node its value there. None where the meshes or spaces do not belong together.
    pub fn transfer(from: &Discretisation, u: &[f64], to: &Discretisation) -> Option<Vec<f64>> {
        forest::transfer(from, u, to)
    }
}

//! Coarser forests: every complete family is replaced by its parent, and the forest is balanced again.
//!
//! Cells are coarsened everywhere at once, so that each level covers the domain (global coarsening: Munch, Heister,
//! Prieto Saavedra and Kronbichler, "Efficient distributed matrix-free multigrid methods on locally refined meshes for
//! FEM computations", ACM Trans. Parallel Comput. 10, 2023, section 3). If most cells are unrefined trees, which cannot
//! be coarsened, the trees are first joined to patches, if possible: each tree becomes a child of a larger one.
//!
//! ```text
//! a leaf (corner x, size h) in child j of a patch:   corner (j + x') / 2, size h / 2, x' = x in the child's frame
//! ```

use super::adjacency::TreeAdjacency;
use super::{CellKey, ChildMaps, Forest, ForestError, KeyLayout};
use crate::mesh::key::{FINEST, UNITS};
use crate::mesh::refined::Descendants;
use crate::mesh::{AffineMap, CoarsenedMesh, CoarseningError, Mesh};
use crate::support::parallel::*;
use std::sync::Arc;

/// Largest useful ratio of the cell numbers of the coarser and the finer mesh.
const STALLED: f64 = 0.75;
/// No cell.
const NONE: u32 = u32::MAX;
/// Smallest number of cells per thread.
const GRAIN: usize = 1024;

/// The cells of a mesh as leaves of a forest.
pub(super) struct LeafCells {
    trees: Arc<Mesh>,
    layout: KeyLayout,
    /// The leaf of each cell.
    keys: Vec<CellKey>,
    /// The orientation of each cell in its leaf, an index into `turns`.
    turned: Vec<u16>,
    turns: Vec<AffineMap>,
}

impl From<ForestError> for CoarseningError {
    fn from(error: ForestError) -> Self {
        match error {
            ForestError::Mesh(error) => Self::Mesh(error),
            error => Self::Forest(error.to_string()),
        }
    }
}

impl LeafCells {
    /// Returns the leaves of a mesh made by a forest. `None` if all cells are unrefined trees, or if periodic sides
    /// have changed since.
    pub(super) fn of(mesh: &Mesh) -> Option<Self> {
        let refined = mesh.refined_from()?;
        let Descendants::Forest { layout, keys, .. } = &refined.cells else { return None };
        let divided = keys.iter().any(|key| key.level() > 0);
        let own = divided && refined.coarse.periodic_sides() == mesh.periodic_sides();
        own.then(|| Self {
            trees: Arc::clone(&refined.coarse),
            layout: *layout,
            keys: keys.clone(),
            turned: vec![0; keys.len()],
            turns: vec![AffineMap::IDENTITY],
        })
    }

    /// Returns the leaves of a forest, in its order.
    pub(super) fn of_forest(trees: &Arc<Mesh>, forest: &Forest) -> Self {
        Self {
            trees: Arc::clone(trees),
            layout: forest.coarse.layout,
            keys: forest.leaves.clone(),
            turned: vec![0; forest.n_leaves()],
            turns: vec![AffineMap::IDENTITY],
        }
    }

    /// Returns the coarser mesh, with joined trees if needed.
    ///
    /// # Errors
    ///
    /// Too few families, or leaves that form no valid mesh.
    pub(super) fn coarsened(self) -> Result<CoarsenedMesh, CoarseningError> {
        self.step()?.coarsened()
    }

    /// Returns the coarser forest, with joined trees if needed.
    ///
    /// # Errors
    ///
    /// Too few families.
    pub(super) fn step(self) -> Result<ForestCoarsening, CoarseningError> {
        match self.families() {
            Err(stalled @ CoarseningError::Families { .. }) => {
                let joined = self.in_patches().ok_or(stalled)?;
                joined.families().map(|(forest, places)| joined.to(forest, places))
            }
            found => found.map(|(forest, places)| self.to(forest, places)),
        }
    }

    fn to(self, forest: Forest, places: Vec<LeafPosition>) -> ForestCoarsening {
        let Self { trees, turned, turns, .. } = self;
        ForestCoarsening { trees, forest: Arc::new(forest), places, turned, turns }
    }

    /// Returns the same leaves in patches of the trees, if the trees form patches.
    fn in_patches(&self) -> Option<Self> {
        let patches = self.trees.coarsened().ok()?;
        if self.keys.iter().any(|key| key.level() == FINEST) {
            return None;
        }
        // The patch of each tree, and the index of its map into the patch.
        let mut of_tree = vec![(0u32, 0u16); self.trees.n_cells()];
        let places = patches.children.iter().zip(&patches.places).enumerate();
        for (place, (&tree, &map)) in places {
            of_tree[tree as usize] = ((place / patches.each()) as u32, map);
        }
        let key = |key: &CellKey| {
            let (patch, map) = of_tree[key.tree() as usize];
            let (map, corner) = (&patches.maps[usize::from(map)], self.layout.corner(*key));
            let size = UNITS >> key.level();
            // At most 31 bits, so that arithmetic is exact.
            let unit = f64::from(UNITS);
            let image = |shift: u32| map.at(&corner.map(|x| f64::from(x + shift) / unit));
            let (a, b) = (image(0), image(size));
            let lower = |axis: usize| (a[axis].min(b[axis]) * unit) as u32;
            let lower = [0, 1, 2].map(|axis| if axis < self.trees.dim() { lower(axis) } else { 0 });
            self.layout.key(patch, lower, key.level() + 1)
        };
        let keys = self.keys.par_iter().with_min_len(GRAIN).map(key).listed();
        let turned = self.keys.iter().map(|key| of_tree[key.tree() as usize].1).collect();
        let turns = patches.maps.iter().map(|map| self.turn(map)).collect();
        Some(Self { trees: patches.mesh, layout: self.layout, keys, turned, turns })
    }

    /// Returns the orientation of a child in its part of the patch.
    fn turn(&self, map: &AffineMap) -> AffineMap {
        let cell = self.trees.cell();
        let middle = map.at(&[0.5; 3]);
        let vertices = cell.vertices();
        let own = vertices.iter().map(|vertex| {
            let at = map.at(vertex);
            let along = |c: usize| 2.0 * at[c] - (2.0 * middle[c]).floor();
            [0, 1, 2].map(|c| if c < cell.dim() { along(c) } else { 0.0 })
        });
        AffineMap::onto(cell, &own.collect::<Vec<_>>())
    }

    /// Returns the forest after replacing complete families by their parents, and the position of each leaf in it.
    fn families(&self) -> Result<(Forest, Vec<LeafPosition>), CoarseningError> {
        let Self { trees, layout, keys, .. } = self;
        let mut leaves = keys.clone();
        leaves.par_sort_unstable();
        let mut forest = Forest { coarse: TreeAdjacency::new(trees.connectivity()), leaves };
        forest.coarsen(|_| true);
        forest.balance()?;
        let stalled = CoarseningError::Families { cells: keys.len(), coarser: forest.n_leaves() };
        if forest.n_leaves() as f64 > STALLED * keys.len() as f64 {
            return Err(stalled);
        }
        let place = |key: &CellKey| {
            if let Ok(leaf) = forest.leaves().binary_search(key) {
                return Some(LeafPosition { leaf: leaf as u32, child: None });
            }
            let leaf = forest.leaves().binary_search(&layout.parent(*key)).ok()?;
            let child = Some(layout.child_number(*key) as u8);
            Some(LeafPosition { leaf: leaf as u32, child })
        };
        let places = keys.par_iter().with_min_len(GRAIN).map(place);
        let places = places.listed().into_iter().collect::<Option<_>>().ok_or(stalled)?;
        Ok((forest, places))
    }
}

/// Position of a leaf in a coarser forest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeafPosition {
    /// The leaf of the coarser forest.
    pub(super) leaf: u32,
    /// The child number; `None` if both leaves are equal.
    child: Option<u8>,
}

/// Map from the leaves of a forest to those of a coarser one.
#[derive(Debug)]
pub(super) struct ForestCoarsening {
    /// The trees of the coarser forest.
    pub(super) trees: Arc<Mesh>,
    pub(super) forest: Arc<Forest>,
    /// The position of each leaf.
    pub(super) places: Vec<LeafPosition>,
    /// The orientation of each leaf.
    turned: Vec<u16>,
    turns: Vec<AffineMap>,
}

impl ForestCoarsening {
    /// Returns the mesh of the coarser forest, with the fine cells in leaf order as children.
    fn coarsened(&self) -> Result<CoarsenedMesh, CoarseningError> {
        let (trees, forest) = (&self.trees, &self.forest);
        // The coarse cell of each leaf.
        let mut cells: Vec<u32> = (0..forest.n_leaves() as u32).collect();
        // A mesh part has its own coarser meshes.
        let are_trees =
            trees.cut().is_some() && forest.leaves().iter().all(|leaf| leaf.level() == 0);
        if are_trees {
            trees.check_placed()?;
        }
        let mesh = if are_trees { Arc::clone(trees) } else { Arc::new(forest.mesh(trees)?) };
        if !are_trees {
            let numbers = mesh.leaves().unwrap_or_default();
            (0..).zip(&*numbers).for_each(|(cell, &leaf)| cells[leaf as usize] = cell);
        }
        Ok(self.between(mesh, |leaf| cells[leaf as usize], 0..self.places.len() as u32))
    }

    /// Returns the relation between a mesh of some coarse leaves and cells that are some of the finer leaves. `cell_of`
    /// gives the cell of a coarse leaf, `leaves` the leaf of each fine cell.
    pub(super) fn between(
        &self,
        mesh: Arc<Mesh>,
        cell_of: impl Fn(u32) -> u32,
        leaves: impl Iterator<Item = u32>,
    ) -> CoarsenedMesh {
        let (each, turns) = (self.forest.coarse.layout.children(), self.turns.len());
        let mut children = vec![NONE; mesh.n_cells() * each];
        let mut kinds = vec![0; children.len()];
        for (cell, leaf) in (0..).zip(leaves) {
            let LeafPosition { leaf: above, child } = self.places[leaf as usize];
            // The slot of a cell: the first for the same leaf, else that of the child.
            let place = cell_of(above) as usize * each + child.map_or(0, usize::from);
            let kind = child.map_or(0, |child| 1 + usize::from(child));
            children[place] = cell;
            kinds[place] = (kind * turns + usize::from(self.turned[leaf as usize])) as u32;
        }
        let own = ChildMaps::new(self.trees.cell());
        let map = |kind: u32| {
            let turn = &self.turns[kind as usize % turns];
            match kind as usize / turns {
                0 => *turn,
                child => own.child(child - 1).of(turn),
            }
        };
        CoarsenedMesh::with_maps(mesh, children, kinds.into_iter(), map)
    }
}

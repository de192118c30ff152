//! Coarser forests: the leaves of one → those that are left when every whole family becomes its parent, balanced again.
//!
//! All parts of the mesh lose their finest cells at once, so that each level has cells everywhere (global coarsening: Munch,
//! Heister, Prieto Saavedra and Kronbichler, "Efficient distributed matrix-free multigrid methods on locally refined meshes for
//! FEM computations", ACM Trans. Parallel Comput. 10, 2023, section 3). Where most cells are whole trees, of which nothing comes, the
//! trees are joined to patches first, if they form some: what was a tree is a child of a larger one.
//!
//! ```text
//! a leaf with the corner x and the size h in child j of a patch:     corner (j + x') / 2, size h / 2, with x' = x as the child is turned
//! ```

use super::coarse::Coarse;
use super::{Children, Forest, ForestError, Key, Layout};
use crate::mesh::key::{FINEST, UNITS};
use crate::mesh::refined::Descendants;
use crate::mesh::{Affine, Coarsened, Mesh, NotCoarser};
use crate::parallel::*;
use std::sync::Arc;

/// Cells of a coarser mesh for each of a finer one from which on it is not worth having.
const STALLED: f64 = 0.75;
/// No cell.
const NONE: u32 = u32::MAX;
/// Cells that are worth a thread.
const GRAIN: usize = 1024;

/// The cells of a mesh as leaves of a forest.
pub(super) struct Rooted {
    trees: Arc<Mesh>,
    layout: Layout,
    /// The leaf that each cell is.
    keys: Vec<Key>,
    /// How each cell is turned in its leaf: which of the maps from reference cell to reference cell.
    turned: Vec<u16>,
    turns: Vec<Affine>,
}

impl From<ForestError> for NotCoarser {
    fn from(error: ForestError) -> Self {
        match error {
            ForestError::Mesh(error) => Self::Mesh(error),
            error => Self::Forest(error.to_string()),
        }
    }
}

impl Rooted {
    /// Of a mesh that a forest has made; none where all cells are whole trees, or sides have become periodic since.
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
            turns: vec![Affine::IDENTITY],
        })
    }

    /// The coarser mesh, with joined trees where that is needed.
    ///
    /// # Errors
    ///
    /// Too few families, leaves that make no mesh.
    pub(super) fn coarsened(self) -> Result<Coarsened, NotCoarser> {
        match self.families() {
            Err(stalled @ NotCoarser::Families { .. }) => {
                self.in_patches().ok_or(stalled)?.families()
            }
            found => found,
        }
    }

    /// The same leaves in patches of the trees, if these form some.
    fn in_patches(&self) -> Option<Self> {
        let patches = self.trees.coarsened().ok()?;
        if self.keys.iter().any(|key| key.level() == FINEST) {
            return None;
        }
        // The patch of each tree, and which of the maps takes it there.
        let mut of_tree = vec![(0u32, 0u16); self.trees.n_cells()];
        let places = patches.children.iter().zip(&patches.places).enumerate();
        for (place, (&tree, &map)) in places {
            of_tree[tree as usize] = ((place / patches.each()) as u32, map);
        }
        let key = |key: &Key| {
            let (patch, map) = of_tree[key.tree() as usize];
            let (map, corner) = (&patches.maps[usize::from(map)], self.layout.corner(*key));
            let size = UNITS >> key.level();
            // Of no more than 31 bits, so that nothing is rounded.
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

    /// How a child is turned in the part of the patch where it lies.
    fn turn(&self, map: &Affine) -> Affine {
        let cell = self.trees.cell();
        let middle = map.at(&[0.5; 3]);
        let vertices = cell.vertices();
        let own = vertices.iter().map(|vertex| {
            let at = map.at(vertex);
            let along = |c: usize| 2.0 * at[c] - (2.0 * middle[c]).floor();
            [0, 1, 2].map(|c| if c < cell.dim() { along(c) } else { 0.0 })
        });
        Affine::onto(cell, &own.collect::<Vec<_>>())
    }

    /// The mesh of the parents of all whole families.
    fn families(&self) -> Result<Coarsened, NotCoarser> {
        let Self { trees, layout, keys, .. } = self;
        let mut leaves = keys.clone();
        leaves.par_sort_unstable();
        let mut forest = Forest { coarse: Coarse::new(trees.connectivity()), leaves };
        forest.coarsen(|_| true);
        forest.balance()?;
        let stalled = NotCoarser::Families { cells: keys.len(), coarser: forest.n_leaves() };
        if forest.n_leaves() as f64 > STALLED * keys.len() as f64 {
            return Err(stalled);
        }
        let each = layout.children();
        // The coarse cell that each leaf is.
        let mut cells: Vec<u32> = (0..forest.n_leaves() as u32).collect();
        // A part of a mesh has a coarser one of its own.
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
        // Where a cell is in the coarser mesh, `[coarse cell][child]`, and as what: itself, then it comes first, or a child.
        let place = |key: &Key| {
            if let Ok(leaf) = forest.leaves().binary_search(key) {
                return Some((cells[leaf] as usize * each, 0));
            }
            let leaf = forest.leaves().binary_search(&layout.parent(*key)).ok()?;
            let child = layout.child_number(*key);
            Some((cells[leaf] as usize * each + child, 1 + child))
        };
        let places = keys.par_iter().with_min_len(GRAIN).map(place);
        let places: Vec<(usize, usize)> =
            places.listed().into_iter().collect::<Option<_>>().ok_or(stalled)?;
        let (mut children, turns) = (vec![NONE; cells.len() * each], self.turns.len());
        let mut kinds = vec![0; children.len()];
        for (cell, &(place, kind)) in places.iter().enumerate() {
            children[place] = cell as u32;
            kinds[place] = (kind * turns + usize::from(self.turned[cell])) as u32;
        }
        let own = Children::new(trees.cell());
        let map = |kind: u32| {
            let turn = &self.turns[kind as usize % turns];
            match kind as usize / turns {
                0 => *turn,
                child => own.child(child - 1).of(turn),
            }
        };
        Ok(Coarsened::with_maps(mesh, children, kinds.into_iter(), map))
    }
}

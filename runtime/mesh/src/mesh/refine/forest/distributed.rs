//! Distributed forests: all processes know the leaves; each builds the mesh of its own, and the whole coarsest mesh.
//!
//! ```text
//! 24 bytes per leaf of the whole forest       key, hanging entities, process
//! ```
//!
//! The leaves of the coarsest forest with enough leaves for each process are distributed, and each process builds its
//! whole mesh. Leaves of finer forests follow their ancestors. Each vertex, edge and face has a position in the frame
//! of the tree entity that contains it ([`super::entities`]). Owners and order of shared entities therefore follow from
//! the leaves, without communication.

use super::entities::{EntityFrames, LeafArrays, SharedLeafEntity, common};
use super::families::{ForestCoarsening, LeafCells};
use super::key::UNITS;
use super::leaf_mesh::LeafMeshBuilder;
use super::uniform::RefineError;
use super::{CellKey, Forest, ForestError};
use crate::mesh::distributed::{LEAST, PartSource, SharedEntity, WholeMeshEmbedding, deal};
use crate::mesh::periodic::PeriodicError;
use crate::mesh::{CoarsenedMesh, CoarseningError, Facet, Mesh};
use crate::processes::ProcessGroup;
use std::any::Any;
use std::sync::Arc;

/// A forest whose leaves are distributed to processes.
#[derive(Debug)]
pub struct DistributedForest {
    trees: Arc<Mesh>,
    forest: Arc<Forest>,
    /// The hanging word of each leaf; `None` if nothing hangs.
    words: Option<Vec<u32>>,
    rank_of: Vec<u32>,
    coarser: Option<(ForestCoarsening, Arc<DistributedForest>)>,
}

/// No cell.
const NONE: u32 = u32::MAX;

impl DistributedForest {
    /// Distributes the leaves of a balanced forest to `processes` processes.
    ///
    /// # Errors
    ///
    /// A forest of another mesh, an unbalanced forest, or leaves that form no valid mesh.
    pub fn new(
        trees: &Arc<Mesh>,
        forest: &Arc<Forest>,
        processes: usize,
    ) -> Result<Arc<Self>, ForestError> {
        forest.expect_balance()?;
        let mut chain: Vec<ForestCoarsening> = Vec::new();
        let least = (LEAST * processes) << trees.dim();
        loop {
            let (trees, last) = last_of(&chain, trees, forest);
            if last.n_leaves() < least {
                break;
            }
            let Ok(step) = LeafCells::of_forest(trees, last).step() else { break };
            chain.push(step);
        }
        // An auxiliary coarse mesh may have folded cells although the requested mesh has none.
        let mesh = loop {
            let (trees, last) = last_of(&chain, trees, forest);
            match last.mesh(trees) {
                Ok(mesh) => break mesh,
                Err(error) => drop(chain.pop().ok_or(error)?),
            }
        };
        let words = forest.words(trees.dim());
        let hangs = |leaf: usize| words.as_ref().is_some_and(|words| words[leaf] != 0);
        let weight = |leaf: usize| 1 + u32::from(hangs(leaf));
        let mut weights: Vec<u32> = (0..forest.n_leaves()).map(weight).collect();
        for step in &chain {
            let mut coarser = vec![0; step.forest.n_leaves()];
            let all = step.places.iter().zip(&weights);
            all.for_each(|(place, weight)| coarser[place.leaf as usize] += weight);
            weights = coarser;
        }
        let rank_of = {
            let leaves = mesh.leaves().unwrap_or_default();
            let own: Vec<u32> = leaves.iter().map(|&leaf| weights[leaf as usize]).collect();
            let mut rank_of = vec![0; own.len()];
            let dealt = deal(&mesh, &own, processes);
            leaves.iter().zip(dealt).for_each(|(&leaf, rank)| rank_of[leaf as usize] = rank);
            rank_of
        };
        let level = |trees: &Arc<Mesh>, forest: &Arc<Forest>, words, rank_of, coarser| {
            let (trees, forest) = (Arc::clone(trees), Arc::clone(forest));
            Arc::new(Self { trees, forest, words, rank_of, coarser })
        };
        let (mut rank_of, mut coarser) = (rank_of, None);
        while let Some(step) = chain.pop() {
            let place = |place: &super::families::LeafPosition| rank_of[place.leaf as usize];
            let finer = step.places.iter().map(place).collect();
            let own = std::mem::replace(&mut rank_of, finer);
            let hangs = step.forest.words(trees.dim());
            let below = level(&step.trees, &step.forest, hangs, own, coarser.take());
            coarser = Some((step, below));
        }
        Ok(level(trees, forest, words, rank_of, coarser))
    }

    /// Returns the leaves.
    pub fn forest(&self) -> &Forest {
        &self.forest
    }

    /// Returns the rank of each leaf.
    pub fn rank_of(&self) -> &[u32] {
        &self.rank_of
    }

    /// Returns the mesh of the leaves of this process; [`Mesh::leaves`] gives their global numbers.
    ///
    /// # Errors
    ///
    /// An index overflow, or a folded child cell.
    pub fn part(self: &Arc<Self>, group: &Arc<dyn ProcessGroup>) -> Result<Mesh, ForestError> {
        let rank = group.rank() as u32;
        let (own, others): (Vec<u32>, Vec<u32>) =
            (0..self.rank_of.len() as u32).partition(|&leaf| self.rank_of[leaf as usize] == rank);
        let (keys, words) = self.of(&own);
        let mut chosen = LeafMeshBuilder::new(
            &self.trees,
            self.forest.coarse().layout,
            &keys,
            words.as_deref(),
        )?;
        chosen.synchronise()?;
        let shared = self.meet(&mut chosen, &own, others, rank);
        let numbers: Vec<u32> = chosen.order.iter().map(|&leaf| own[leaf as usize]).collect();
        let mut mesh = chosen.mesh(numbers.clone())?;
        mesh.be_dealt_by(Arc::clone(self) as Arc<dyn PartSource>, numbers, shared, group);
        Ok(mesh)
    }

    /// Returns the keys and the hanging words of some leaves.
    fn of(&self, leaves: &[u32]) -> (Vec<CellKey>, Option<Vec<u32>>) {
        let keys = leaves.iter().map(|&leaf| self.forest.leaves()[leaf as usize]).collect();
        let of = |words: &Vec<u32>| leaves.iter().map(|&leaf| words[leaf as usize]).collect();
        let words = self.words.as_ref().map(of);
        (keys, words)
    }

    /// Returns the shared entities of the cells of this process. It also sets the number of cells of shared facets.
    fn meet(
        &self,
        chosen: &mut LeafMeshBuilder<'_>,
        own: &[u32],
        mut others: Vec<u32>,
        rank: u32,
    ) -> [Vec<SharedEntity>; 3] {
        self.near(own, &mut others);
        let layout = self.forest.coarse().layout;
        let (keys, words) = self.of(&others);
        let words = words.unwrap_or_default();
        let corners: Vec<[u32; 3]> = keys.iter().map(|&key| layout.corner(key)).collect();
        let rank_of: Vec<u32> = others.iter().map(|&leaf| self.rank_of[leaf as usize]).collect();
        let dim = self.trees.dim();
        let beside = |words| LeafArrays { keys: &keys, corners: &corners, words };
        let frames = EntityFrames::new(self.trees.connectivity());
        let numbers = chosen.connectivity.as_ref().unwrap_or(&chosen.topology);
        let mut all =
            common(&frames, (&chosen.cells(), numbers), (&beside(&words), &rank_of), 0..dim);
        // Geometric facets, if the connectivity of the degrees of freedom differs.
        let plain = chosen.connectivity.is_some().then(|| {
            let frames = EntityFrames::new(self.trees.topology());
            let own = LeafArrays { words: &[], ..chosen.cells() };
            let facets = dim - 1..dim;
            common(&frames, (&own, &chosen.topology), (&beside(&[]), &rank_of), facets)
        });
        let facets: Vec<SharedLeafEntity> =
            all.iter().filter(|common| common.dim == dim - 1).cloned().collect();
        for common in plain.as_ref().unwrap_or(&facets) {
            chosen.topology.add_to_facet(facet_of(common), common.cells);
        }
        if let Some(connectivity) = &mut chosen.connectivity {
            for common in &facets {
                connectivity.add_to_facet(facet_of(common), common.cells);
            }
        }
        all.sort_by_key(|common| common.place);
        let mut shared: [Vec<SharedEntity>; 3] = Default::default();
        for SharedLeafEntity { dim, number, mut ranks, .. } in all {
            if !ranks.contains(&rank) {
                ranks.push(rank);
            }
            ranks.sort_unstable();
            shared[dim].push(SharedEntity { number, ranks: ranks.into() });
        }
        shared
    }

    /// Keeps only leaves that may touch given leaves: in or next to their trees, and in those trees near them.
    fn near(&self, own: &[u32], others: &mut Vec<u32>) {
        let connectivity = self.trees.connectivity();
        let mut touched = vec![false; connectivity.n_vertices()];
        // The bounding box of the leaves, or of their parents, in each tree.
        let mut boxes: Vec<Option<[[u32; 3]; 2]>> = vec![None; self.trees.n_cells()];
        for &leaf in own {
            let key = self.forest.leaves()[leaf as usize];
            let [low, high] = self.extent(key);
            match &mut boxes[key.tree() as usize] {
                Some([from, to]) => (0..3).for_each(|axis| {
                    from[axis] = from[axis].min(low[axis]);
                    to[axis] = to[axis].max(high[axis]);
                }),
                none => {
                    *none = Some([low, high]);
                    let vertices = connectivity.vertices(key.tree() as usize);
                    vertices.iter().for_each(|&vertex| touched[vertex as usize] = true);
                }
            }
        }
        let beside = |tree: usize| connectivity.vertices(tree).iter().any(|&v| touched[v as usize]);
        let beside: Vec<bool> = (0..self.trees.n_cells()).map(beside).collect();
        others.retain(|&leaf| {
            let key = self.forest.leaves()[leaf as usize];
            let tree = key.tree() as usize;
            let [low, high] = self.extent(key);
            let inside = boxes[tree].is_some_and(|[from, to]| {
                (0..3).all(|axis| low[axis] <= to[axis] && from[axis] <= high[axis])
            });
            // Neighbours through another tree, or across periodic sides, lie on a side of this tree.
            let mut axes = 0..self.trees.dim();
            beside[tree] && (inside || axes.any(|axis| low[axis] == 0 || high[axis] == UNITS))
        });
    }

    /// Returns the corners of a leaf's parent in its tree; hanging sides of the leaf belong to the parent.
    fn extent(&self, key: CellKey) -> [[u32; 3]; 2] {
        let layout = self.forest.coarse().layout;
        let key = if key.level() > 0 { layout.parent(key) } else { key };
        let (low, size) = (layout.corner(key), UNITS >> key.level());
        [low, low.map(|at| at + size)]
    }
}

/// Returns the last forest of a chain, and its trees.
fn last_of<'a>(
    chain: &'a [ForestCoarsening],
    trees: &'a Arc<Mesh>,
    forest: &'a Arc<Forest>,
) -> (&'a Arc<Mesh>, &'a Arc<Forest>) {
    chain.last().map_or((trees, forest), |step| (&step.trees, &step.forest))
}

fn facet_of(common: &SharedLeafEntity) -> Facet {
    Facet { cell: common.of.0, local: common.of.1 }
}

impl PartSource for DistributedForest {
    fn n_cells(&self) -> usize {
        self.forest.n_leaves()
    }

    fn whole(&self, numbers: &[u32]) -> Result<WholeMeshEmbedding, PeriodicError> {
        let mesh = self.forest.mesh(&self.trees).map_err(RefineError::from)?;
        let mut cell_of = vec![NONE; self.forest.n_leaves()];
        let leaves = mesh.leaves().unwrap_or_default();
        (0..).zip(&*leaves).for_each(|(cell, &leaf)| cell_of[leaf as usize] = cell);
        let cells = numbers.iter().map(|&number| cell_of[number as usize]).collect();
        drop(leaves);
        Ok(WholeMeshEmbedding { mesh: Arc::new(mesh), cells })
    }

    fn coarsened(
        &self,
        numbers: &[u32],
        group: &Arc<dyn ProcessGroup>,
    ) -> Result<CoarsenedMesh, CoarseningError> {
        let (step, coarser) = self.coarser.as_ref().ok_or(CoarseningError::TooFewCells)?;
        let mesh = coarser.part(group)?;
        let mut cell_of = vec![NONE; coarser.forest.n_leaves()];
        let leaves = mesh.leaves().unwrap_or_default();
        (0..).zip(&*leaves).for_each(|(cell, &leaf)| cell_of[leaf as usize] = cell);
        drop(leaves);
        let leaves = numbers.iter().copied();
        Ok(step.between(Arc::new(mesh), |leaf| cell_of[leaf as usize], leaves))
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

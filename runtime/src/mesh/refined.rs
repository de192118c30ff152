//! Meshes that came of others by refinement: what is known of the coarser one, for data and geometry.

use super::assemble::{Joined, Sign, assemble};
use super::places::{Order, Rows};
use super::{Arrange, Counts, Mesh, MeshError, Parts, seams};
use crate::forest::{Key, Layout};
use std::sync::Arc;

/// How the cells of a mesh were divided.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Divided {
    /// All alike.
    Alike {
        /// How often.
        times: usize,
        /// For each cell its number among the descendants of all cells of the coarser mesh, those of a cell one after
        /// another.
        descendants: Vec<u32>,
    },
    /// Into the leaves of a forest.
    Leaves {
        /// What their keys have in common.
        layout: Layout,
        /// The leaf that each cell is.
        keys: Vec<Key>,
        /// Its number among the leaves.
        leaves: Vec<u32>,
    },
}

/// The mesh that another was refined from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refined {
    pub(crate) coarse: Arc<Mesh>,
    /// Which parts of its cells the cells are.
    pub(crate) divided: Divided,
    /// Of simplices, whose vertices ascend: which vertex of the descendant, as it came of its parent, each vertex is.
    pub(crate) seen: Vec<[u8; 4]>,
}

impl Refined {
    /// For each cell that of the coarser mesh which it is a part of.
    pub(crate) fn parents(&self) -> Vec<u32> {
        match &self.divided {
            Divided::Alike { times, descendants } => {
                let each = each(&self.coarse, *times);
                descendants.iter().map(|&number| (number as usize / each) as u32).collect()
            }
            Divided::Leaves { keys, .. } => keys.iter().map(|key| key.tree()).collect(),
        }
    }

    /// The children that lead from the coarser mesh's cell to a cell.
    pub(crate) fn path(&self, cell: usize) -> Vec<usize> {
        match &self.divided {
            Divided::Alike { times, descendants } => {
                let number = descendants[cell] as usize % each(&self.coarse, *times);
                let children = 1usize << self.coarse.dim();
                (0..*times)
                    .rev()
                    .map(|place| number / children.pow(place as u32) % children)
                    .collect()
            }
            Divided::Leaves { layout, keys, .. } => layout.path(keys[cell]).collect(),
        }
    }

    /// The rows of data that has one for each cell: those of a coarse cell follow one another.
    pub(super) fn rows(&self) -> Vec<Rows> {
        let Divided::Alike { times, descendants } = &self.divided else {
            return vec![Rows::own(self.parents().len())];
        };
        let each = each(&self.coarse, *times);
        let own = |rows: Rows| {
            let row = |&number: &u32| {
                let (parent, child) = (number as usize / each, number as usize % each);
                (rows.of[parent] as usize * each + child) as u32
            };
            Rows { of: descendants.iter().map(row).collect(), count: rows.count * each }
        };
        // Where elements of other dimensions are counted, or cells were cut, a row has no descendants of its own.
        let all = self.coarse.cell_rows().into_iter();
        all.filter(|rows| rows.count == self.coarse.n_cells()).map(own).collect()
    }
}

/// The number of descendants of a cell that is divided so many times.
fn each(mesh: &Mesh, times: usize) -> usize {
    1 << (mesh.dim() * times)
}

impl Mesh {
    /// A mesh whose cells are descendants of those of a coarser one; those that are marked have negative determinants.
    pub(crate) fn of_descendants(
        parts: Parts,
        negative: &[bool],
        refined: Refined,
    ) -> Result<Mesh, MeshError> {
        let coarse = &refined.coarse;
        let (cell, order, spheres) = (coarse.cell, coarse.order, coarse.spheres.clone());
        let (sign, joined) = (Sign::Negative(negative), Joined::Facets);
        let mut mesh = assemble(cell, order, parts, Arrange::AsGiven, sign, joined)?;
        let told = |note: &&String| !note.contains(seams::TOLD);
        mesh.notes.splice(0..0, coarse.notes.iter().filter(told).cloned());
        mesh.spheres = spheres;
        mesh.order_of_source = Order::Refined(Box::new(refined));
        Ok(mesh)
    }

    /// For each cell its number among the leaves of the forest that the mesh is of; none for other meshes.
    pub fn leaves(&self) -> Option<&[u32]> {
        match &self.refined_from()?.divided {
            Divided::Leaves { leaves, .. } => Some(leaves),
            Divided::Alike { .. } => None,
        }
    }

    /// What it was refined from.
    pub(crate) fn refined_from(&self) -> Option<&Refined> {
        match &self.order_of_source {
            Order::Refined(refined) => Some(refined),
            Order::Own | Order::Grid(_) | Order::Listed(_) => None,
        }
    }

    /// The tags whose facets lie on spheres about the origin, with the radii.
    pub(crate) fn spheres(&self) -> &[(String, f64)] {
        &self.spheres
    }
}

impl Counts {
    /// With each cell divided so many times.
    pub fn refined(self, times: usize) -> Self {
        let mut entities = self.entities;
        for _ in 0..times {
            entities = divided(self.cell.is_tensor(), entities, self.cell.dim());
        }
        Self { entities, ..self }
    }

    /// Whether 32-bit indices can number what the mesh has, nodes of cells and their entities.
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

/// Vertices, edges, faces and cells when each cell is divided once.
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

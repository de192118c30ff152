//! Transfer between two meshes of the same trees: each cell is either contained in a cell of the other mesh or consists
//! of several of its cells.
//!
//! Both meshes list the leaves of a tree in traversal order, so one pass finds all pairs. The map of a cell into a
//! containing cell composes the child maps between both and the vertex permutations of the two cells. It is exact in
//! floating-point arithmetic.

use super::BisectError;
use super::path::CellPath;
use super::rule::{BisectionMaps, orders};
use crate::mesh::refine::forest::AffineMap;
use crate::mesh::refined::{Descendants, RefinedMesh};
use crate::mesh::{Cell, Mesh};
use std::ops::Range;

/// Origin of a cell in the other mesh.
#[derive(Clone, Debug, PartialEq)]
pub enum CellSource {
    /// Contained in a cell of the other mesh, or equal to it.
    Contained {
        /// The cell.
        cell: usize,
        /// The map between the reference cells.
        place: AffineMap,
    },
    /// The union of several cells of the other mesh.
    Union {
        /// The cells.
        cells: Range<usize>,
    },
}

/// The leaves of a mesh.
struct MeshLeaves {
    parents: Vec<u32>,
    paths: Vec<CellPath>,
    /// The position of each vertex in the leaf.
    seen: Vec<[u8; 4]>,
}

/// Transfer from one mesh to another of the same trees; each may be finer in some regions.
///
/// ```
/// use fem_mesh::mesh::refine::bisect::{Bisection, BisectionTransfer, CellSource};
/// use fem_mesh::mesh::{Cell, CellOrdering, Mesh, MeshData};
///
/// let parts = MeshData {
///     points: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
///     nodes: vec![0, 1, 2],
///     ..MeshData::default()
/// };
/// let mesh = Mesh::new(Cell::Triangle, 1, parts, CellOrdering::Original)?;
/// let mut bisection = Bisection::new(&mesh)?;
/// bisection.refine(|_| true)?;
/// let finer = bisection.mesh(&mesh)?;
/// let transfer = BisectionTransfer::new(&mesh, &finer)?;
/// assert!(matches!(transfer.source(1), CellSource::Contained { cell: 0, .. }));
/// assert_eq!(BisectionTransfer::new(&finer, &mesh)?.source(0), CellSource::Union { cells: 0..2 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BisectionTransfer {
    cell: Cell,
    steps: BisectionMaps,
    from: MeshLeaves,
    to: MeshLeaves,
    /// For each cell, the first and the last cell that it intersects.
    sources: Vec<[u32; 2]>,
}

impl BisectionTransfer {
    /// Creates the transfer between two meshes, each the initial mesh or one made by its bisection.
    ///
    /// # Errors
    ///
    /// The meshes have no common initial mesh.
    pub fn new(from: &Mesh, to: &Mesh) -> Result<Self, BisectError> {
        let cell = to.cell();
        let [from, to] = leaves(from, to).ok_or(BisectError::Unrelated)?;
        let (n, mut next) = (from.parents.len(), 0);
        let mut sources = Vec::with_capacity(to.parents.len());
        for own in 0..to.parents.len() {
            let first = next;
            if next > 0 && to.is_within(own, &from, next - 1) {
                sources.push([next as u32 - 1; 2]);
                continue;
            }
            match next < n && to.is_within(own, &from, next) {
                true => next += 1,
                false => {
                    while next < n && from.is_within(next, &to, own) {
                        next += 1;
                    }
                }
            }
            if next == first {
                return Err(BisectError::Unrelated);
            }
            sources.push([first as u32, next as u32 - 1]);
        }
        Ok(Self { cell, steps: BisectionMaps::new(cell), from, to, sources })
    }

    /// Returns the number of cells of the target mesh.
    pub fn n_cells(&self) -> usize {
        self.sources.len()
    }

    /// Returns the origin of a cell of the target mesh.
    pub fn source(&self, cell: usize) -> CellSource {
        let [first, last] = self.sources[cell].map(|cell| cell as usize);
        if first < last {
            return CellSource::Union { cells: first..last + 1 };
        }
        CellSource::Contained { cell: first, place: self.place(&self.to, cell, &self.from, first) }
    }

    /// Returns the map of the reference cell of a constituent cell to that of the target cell.
    pub fn part(&self, cell: usize, part: usize) -> AffineMap {
        self.place(&self.from, part, &self.to, cell)
    }

    /// Returns the map of a cell into one that contains it.
    fn place(
        &self,
        inner: &MeshLeaves,
        cell: usize,
        outer: &MeshLeaves,
        within: usize,
    ) -> AffineMap {
        let mut back = [0, 1, 2, 3];
        for (vertex, &of_leaf) in (0..).zip(&outer.seen[within]).take(self.cell.vertex_count()) {
            back[usize::from(of_leaf)] = vertex;
        }
        let below = inner.paths[cell].below(outer.paths[within].depth());
        let down = self.steps.place_of(below).seen(self.cell, inner.seen[cell]);
        AffineMap::IDENTITY.seen(self.cell, back).of(&down)
    }
}

impl MeshLeaves {
    /// Returns whether a leaf is contained in a leaf of another mesh.
    fn is_within(&self, leaf: usize, others: &Self, other: usize) -> bool {
        self.parents[leaf] == others.parents[other]
            && self.paths[leaf].leads_through(others.paths[other])
    }

    /// Returns an initial mesh.
    fn whole(count: usize) -> Self {
        let paths = vec![CellPath::whole(); count];
        Self { parents: (0..count as u32).collect(), paths, seen: vec![[0, 1, 2, 3]; count] }
    }

    fn of(refined: &RefinedMesh) -> Option<Self> {
        let Descendants::Leaves { parents, places } = &refined.cells else { return None };
        let paths = places.iter().map(|&bits| CellPath::from_bits(bits)).collect();
        Some(Self { parents: parents.clone(), paths, seen: refined.seen.clone() })
    }

    /// Returns the initial mesh of these leaves.
    fn roots(&self, cell: Cell) -> Self {
        let mut roots: Vec<(u32, CellPath)> =
            self.parents.iter().copied().zip(self.paths.iter().map(|path| path.root())).collect();
        roots.dedup();
        let orders = orders(cell);
        let seen = |&(_, path): &(u32, CellPath)| {
            let mut seen = [0, 1, 2, 3];
            for (of_leaf, &vertex) in (0..).zip(&orders[path.order()]) {
                seen[vertex] = of_leaf;
            }
            seen
        };
        Self {
            seen: roots.iter().map(seen).collect(),
            parents: roots.iter().map(|root| root.0).collect(),
            paths: roots.iter().map(|root| root.1).collect(),
        }
    }
}

/// Returns the leaves of two meshes of the same trees.
fn leaves(from: &Mesh, to: &Mesh) -> Option<[MeshLeaves; 2]> {
    let same = |a: &Mesh, b: &Mesh| {
        a.cell() == b.cell() && a.nodes() == b.nodes() && a.points() == b.points()
    };
    match (bisected(from), bisected(to)) {
        (Some(a), Some(b)) if same(&a.coarse, &b.coarse) => {
            Some([MeshLeaves::of(a)?, MeshLeaves::of(b)?])
        }
        (_, Some(b)) if same(from, &b.coarse) => {
            let leaves = MeshLeaves::of(b)?;
            Some([leaves.roots(from.cell()), leaves])
        }
        (Some(a), _) if same(&a.coarse, to) => {
            let leaves = MeshLeaves::of(a)?;
            let roots = leaves.roots(to.cell());
            Some([leaves, roots])
        }
        _ if same(from, to) && !to.cell().is_tensor() => {
            Some([MeshLeaves::whole(from.n_cells()), MeshLeaves::whole(to.n_cells())])
        }
        _ => None,
    }
}

/// Returns the origin of a bisected mesh of simplices.
fn bisected(mesh: &Mesh) -> Option<&RefinedMesh> {
    mesh.refined_from().filter(|refined| !refined.coarse.cell().is_tensor())
}

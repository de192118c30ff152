//! Predicted size of a mesh: from the numbers of cells, faces, edges and vertices to bytes.

use super::{Mesh, MeshError, Topology};
use crate::support::memory::MemoryBudget;
use kernels_gen::element::{Cell, Element, Lagrange};

/// Numbers of entities of a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityCounts {
    /// The kind of cell.
    pub cell: Cell,
    /// The order of the geometry.
    pub order: usize,
    /// Vertices, edges, faces and cells; in two dimensions cells are third, followed by 0.
    pub entities: [u64; 4],
}

impl EntityCounts {
    /// Counts an existing mesh.
    pub fn of(mesh: &Mesh) -> Self {
        Self::seen(mesh, mesh.topology())
    }

    /// Counts one of the topologies of a mesh.
    pub(super) fn seen(mesh: &Mesh, topology: &Topology) -> Self {
        let faces = topology.faces().len() as u64;
        let (vertices, edges) = (topology.n_vertices() as u64, topology.edges().len() as u64);
        let mut entities = [vertices, edges, faces, 0];
        entities[mesh.dim()] = mesh.n_cells() as u64;
        Self { cell: mesh.cell(), order: mesh.order(), entities }
    }

    /// Returns the counts of tensor cells, or of the simplices that they split into ([`super::generate`]).
    pub(super) fn split(cell: Cell, order: usize, tensor: [u64; 4]) -> Self {
        let [vertices, edges, faces, cells] = tensor;
        let entities = match cell {
            // Each square has one diagonal.
            Cell::Triangle => [vertices, edges.saturating_add(faces), 2 * faces, 0],
            // Each face and each cube has one diagonal; the six tetrahedra of a cube meet in six faces.
            Cell::Tetrahedron => [
                vertices,
                edges.saturating_add(faces).saturating_add(cells),
                faces.saturating_mul(2).saturating_add(cells.saturating_mul(6)),
                cells.saturating_mul(6),
            ],
            _ => tensor,
        };
        Self { cell, order, entities }
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> u64 {
        self.entities[self.cell.dim()]
    }

    /// Returns the number of nodes of an element on the mesh.
    pub fn nodes(&self, element: impl Into<Element>) -> f64 {
        let element = element.into();
        let of = |dim: usize| element.entity_count(dim) as f64 * self.entities[dim] as f64;
        (0..=self.cell.dim()).map(of).sum()
    }

    /// Bytes of the mesh: points, connectivity, and edge and face numbers.
    pub fn bytes(&self) -> f64 {
        let Ok(geometry) = Lagrange::continuous(self.cell, self.order) else { return 0.0 };
        let cells = self.cells() as f64;
        let each = geometry.count() + self.cell.vertex_count();
        let points = 24.0 * self.nodes(geometry);
        points
            + 4.0 * cells * each as f64
            + (1..self.cell.dim()).map(|d| self.numbered(d)).sum::<f64>()
    }

    /// Bytes of the edge or face numbers.
    fn numbered(&self, dim: usize) -> f64 {
        let locals = self.cell.entities(dim);
        let vertices = locals.first().map_or(0, |local| local.len());
        let places = 4.0 * self.cells() as f64 * locals.len() as f64;
        places + self.entities[dim] as f64 * (4 * vertices + 5) as f64
    }

    /// Checks that memory suffices for the mesh.
    ///
    /// # Errors
    ///
    /// [`MeshError::Memory`].
    pub fn check_room(&self) -> Result<(), MeshError> {
        let what = || format!("a mesh of {} cells ({})", self.cells(), self.cell.name());
        Ok(MemoryBudget::check(what, self.bytes() + self.bytes_of_making())?)
    }

    /// Returns the temporary bytes during numbering, in addition to the mesh: the buckets of the most numerous
    /// entities.
    pub fn bytes_of_making(&self) -> f64 {
        let places = |d: usize| 8.0 * self.cells() as f64 * self.cell.entities(d).len() as f64;
        let most = (1..self.cell.dim()).map(places).fold(0.0, f64::max);
        most + 8.0 * self.entities[0] as f64
    }
}

/// Vertices, edges, faces and cells of a grid with n × m × l cells.
pub(super) fn grid(dim: usize, [n, m, l]: [u64; 3]) -> [u64; 4] {
    let along = |a: u64, b: u64, c: u64| a.saturating_mul(b).saturating_mul(c);
    if dim == 1 {
        return [n + 1, n, 0, 0];
    }
    if dim == 2 {
        let edges = along(n, m + 1, 1).saturating_add(along(n + 1, m, 1));
        return [along(n + 1, m + 1, 1), edges, along(n, m, 1), 0];
    }
    let edges = [along(n, m + 1, l + 1), along(n + 1, m, l + 1), along(n + 1, m + 1, l)];
    let faces = [along(n, m, l + 1), along(n, m + 1, l), along(n + 1, m, l)];
    let sum = |all: [u64; 3]| all.into_iter().fold(0, u64::saturating_add);
    [along(n + 1, m + 1, l + 1), sum(edges), sum(faces), along(n, m, l)]
}

/// Vertices, edges, faces and cells of blocks that are split into `n` cells per direction.
pub(super) fn cut(blocks: [u64; 4], n: u64) -> [u64; 4] {
    let binomial = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 2, 1, 0], [1, 3, 3, 1]];
    let mut entities = [0u64; 4];
    for (of, &count) in blocks.iter().enumerate() {
        for (dim, entity) in entities.iter_mut().enumerate().take(of + 1) {
            // Entities inside a cube of dimension `of`: n per axis along the entity, n − 1 positions per other axis.
            let inside = n.pow(dim as u32) * (n - 1).pow((of - dim) as u32);
            *entity += count * binomial[of][dim] * inside;
        }
    }
    entities
}

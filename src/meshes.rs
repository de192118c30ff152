//! Meshes: generated, read from files, or made of your own arrays.
//!
//! ```
//! use weakform::meshes::{Cell, Mesh};
//!
//! let generated = Mesh::cube(3).cells([2, 2, 4]).build()?;
//! assert_eq!(generated.n_cells(), 16);
//!
//! // Two triangles, of which the first has a tag, with a tag on one side.
//! let points = vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]];
//! let own = Mesh::from_arrays(Cell::Triangle, points, vec![0, 1, 2, 1, 3, 2])
//!     .facets("left", &[[0, 2]])
//!     .cells("lower", &[0])
//!     .build()?;
//! assert_eq!(own.facet_tags()["left"].len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Mesh::read`] reads files of Gmsh, VTK, Abaqus and MFEM. [`mesh`](crate::mesh()) takes the text of the language.

use kernels_gen::element::Lagrange;
pub use runtime::mesh::generate::GenerateError;
use runtime::mesh::vtk_order::lattice;
pub use runtime::mesh::{
    ArrayMeshBuilder, Cell, CellCounts, LoadError, Mesh, MeshBuilder, MeshError,
};

/// Returns for each node of a cell in VTK's order its place in the order of the Lagrange nodes.
fn places(cell: Cell, order: usize) -> Option<Vec<usize>> {
    let own = Lagrange::continuous(cell, order).ok()?.lattice();
    lattice(cell, order).iter().map(|at| own.get(at).copied()).collect()
}

/// Converts the connectivity of cells from VTK's order of nodes to that of Lagrange nodes, which
/// [`Mesh::from_arrays`] takes; `None` if cells of this order do not have `per_cell` nodes.
///
/// ```
/// use weakform::meshes::{Cell, from_vtk};
///
/// let square = from_vtk(Cell::Quadrilateral, 1, 4, &[7, 8, 9, 6]);
/// assert_eq!(square, Some(vec![7, 8, 6, 9]));
/// assert_eq!(from_vtk(Cell::Quadrilateral, 2, 4, &[7, 8, 9, 6]), None);
/// ```
pub fn from_vtk(cell: Cell, order: usize, per_cell: usize, nodes: &[u32]) -> Option<Vec<u32>> {
    let places = places(cell, order).filter(|places| places.len() == per_cell)?;
    let mut nodes = nodes.to_vec();
    for cell in nodes.chunks_exact_mut(per_cell) {
        let given = cell.to_vec();
        places.iter().zip(given).for_each(|(&place, node)| cell[place] = node);
    }
    Some(nodes)
}

/// Returns the connectivity of a mesh with the nodes of each cell in VTK's order.
pub fn to_vtk(mesh: &Mesh) -> Vec<u32> {
    // INVARIANT: a mesh has the nodes of a Lagrange element.
    let places = places(mesh.cell(), mesh.order()).unwrap_or_default();
    let cells = (0..mesh.n_cells()).map(|cell| mesh.cell_nodes(cell));
    cells.flat_map(|nodes| places.iter().map(|&place| nodes[place])).collect()
}

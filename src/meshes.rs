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

pub use runtime::mesh::generate::GenerateError;
pub use runtime::mesh::{
    ArrayMeshBuilder, Cell, CellCounts, LoadError, Mesh, MeshBuilder, MeshError,
};

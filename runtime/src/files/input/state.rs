//! Exact coefficients of a field in a `.vtu`: stored in addition to the values at VTK's nodes.
//!
//! They are arrays of integers and reals in the FieldData, which every reader of the format accepts:
//!
//! | array | numbers |
//! | --- | --- |
//! | `weakform:mesh` | version 1, hash of the mesh, its cells, vertices, order |
//! | `weakform:u:space` | 1 where u is continuous, else 0; degree; components; nodes |
//! | `weakform:u:coefficients` | the coefficients of u, node by node |
//!
//! The node numbering of a space depends on the other fields of a problem. In files, nodes are ordered by first touch,
//! cell by cell in element order, which depends on the mesh and the element only.

use super::FileError;
use crate::mesh::Mesh;
use crate::mesh::read::vtk::data::{Association, VtuData};
use crate::mesh::read::vtk::numbers::ArrayValues;
use crate::space::Space;
use crate::support::fingerprint::Fingerprint;
use kernels_gen::element::Lagrange;

/// Prefix of the array names.
const NAME: &str = "weakform";

/// The version of the format.
const VERSION: i64 = 1;

/// Returns the array that identifies the mesh.
pub(crate) fn mesh_name() -> String {
    format!("{NAME}:mesh")
}

/// Returns the arrays of a field: its space and its coefficients.
pub(crate) fn names(field: &str) -> [String; 2] {
    ["space", "coefficients"].map(|what| format!("{NAME}:{field}:{what}"))
}

/// Returns the fields with stored coefficients.
pub(super) fn fields(data: &VtuData) -> impl Iterator<Item = &str> {
    data.arrays.iter().filter(|array| array.section == Association::File).filter_map(|array| {
        array.name.strip_prefix(NAME)?.strip_prefix(':')?.strip_suffix(":coefficients")
    })
}

/// Returns the description of a mesh in a file.
pub(crate) fn of_mesh(mesh: &Mesh) -> [i64; 5] {
    [
        VERSION,
        hash(mesh) as i64,
        mesh.n_cells() as i64,
        mesh.n_vertices() as i64,
        mesh.order() as i64,
    ]
}

/// Returns a hash of the mesh, including its order.
fn hash(mesh: &Mesh) -> u64 {
    let mut hash = Fingerprint::default();
    hash.text(mesh.cell().name());
    hash.mesh(mesh.nodes(), mesh.points());
    hash.number()
}

/// Returns the description of a field's space in a file.
pub(crate) fn of_space(space: &Space) -> [i64; 4] {
    let element = space.nodal();
    let continuous = i64::from(element.is_continuous());
    [continuous, element.degree() as i64, space.components() as i64, space.n_nodes() as i64]
}

/// Returns the nodes of a space in file order.
pub(crate) fn order(space: &Space) -> Vec<u32> {
    let mut seen = vec![false; space.n_nodes()];
    let first = |node: &u32| !std::mem::replace(&mut seen[*node as usize], true);
    space.nodes().iter().copied().filter(first).collect()
}

/// A field stored in a file.
pub(super) struct StoredField {
    pub(super) element: Lagrange,
    pub(super) components: usize,
    /// Coefficients by node, in file order.
    coefficients: Vec<f64>,
}

impl StoredField {
    /// Reads the coefficients of a field, if the file has them, and checks that its mesh is this one.
    pub(super) fn of(data: &VtuData, field: &str, mesh: &Mesh) -> Result<Option<Self>, FileError> {
        let [space, coefficients] = names(field);
        let of = |name: &str| data.array(Association::File, name)?.numbers.as_ref();
        let Some(numbers) = of(&coefficients) else { return Ok(None) };
        let whole = |name: &str| of(name).and_then(ArrayValues::whole).unwrap_or_default();
        let [version, hash, cells, vertices, order] = whole(&mesh_name())[..] else {
            return Err(FileError::Damaged { array: mesh_name() });
        };
        if version != VERSION {
            return Err(FileError::Version { found: version, known: VERSION });
        }
        let own = of_mesh(mesh);
        if own[1..] != [hash, cells, vertices, order] {
            let counts = [[cells, vertices, order], [own[2], own[3], own[4]]];
            return Err(FileError::OtherMesh { counts });
        }
        let [continuous, degree, components, nodes] = whole(&space)[..] else {
            return Err(FileError::Damaged { array: space });
        };
        let make = if continuous == 1 { Lagrange::continuous } else { Lagrange::discontinuous };
        let element = usize::try_from(degree).ok().and_then(|k| make(mesh.cell(), k).ok());
        let (Some(element), ArrayValues::Reals(all)) = (element, numbers) else {
            return Err(FileError::Damaged { array: space });
        };
        let components = usize::try_from(components).unwrap_or(0);
        let count = Space::count_of(mesh, element, components);
        if nodes != count as i64
            || components == 0
            || count.checked_mul(components) != Some(all.len())
        {
            return Err(FileError::Damaged { array: coefficients });
        }
        Ok(Some(Self { element, components, coefficients: all.clone() }))
    }

    /// Returns the coefficients in the numbering of a space with the same element.
    pub(super) fn numbered(&self, space: &Space) -> Vec<f64> {
        let mut values = vec![0.0; space.n_dofs()];
        let rows = self.coefficients.chunks_exact(self.components);
        for (node, row) in order(space).into_iter().zip(rows) {
            values[node as usize * self.components..][..self.components].copy_from_slice(row);
        }
        values
    }
}

//! Fields given by their values in each cell of the mesh → values at the nodes of a space, or on cells.

use super::{FileError, fit};
use crate::mesh::Mesh;
use crate::mesh::partition::Partition;
use crate::space::Space;
use fem_dsl::problem::CellField;
use kernels_gen::element::Lagrange;

/// Returns a field of a space by its values in each cell; `dofs` are those of the field.
pub(crate) fn cell_field(space: &Space, dofs: &[f64], origin: String) -> CellField {
    let (element, components) = (space.nodal(), space.components());
    let row = |&node: &u32| &dofs[node as usize * components..][..components];
    CellField {
        origin,
        continuous: element.is_continuous(),
        degree: element.degree(),
        components,
        values: space.nodes().iter().flat_map(row).copied().collect(),
    }
}

/// Returns the values of a field at the nodes of a space.
///
/// # Errors
///
/// A field of another mesh or shape, or a discontinuous one for a continuous space.
pub(crate) fn at_nodes(
    field: &CellField,
    mesh: &Mesh,
    space: &Space,
) -> Result<Vec<f64>, FileError> {
    let CellField { origin, continuous, degree, components, values } = field;
    let expected = space.components();
    if *components != expected {
        return Err(FileError::Components { found: *components, expected });
    }
    if space.nodal().is_continuous() && !continuous {
        return Err(FileError::Discontinuous { name: origin.clone(), degree: *degree });
    }
    let make = if *continuous { Lagrange::continuous } else { Lagrange::discontinuous };
    let element = make(mesh.cell(), *degree).ok();
    let element =
        element.filter(|element| values.len() == mesh.n_cells() * element.count() * components);
    let damaged = || FileError::Damaged { array: origin.clone() };
    let element = element.ok_or_else(damaged)?;
    let nodes: Vec<u32> = (0..(mesh.n_cells() * element.count()) as u32).collect();
    Ok(fit::interpolated(element, &nodes, values, space))
}

/// Returns the values of a field at the centres of the cells.
///
/// # Errors
///
/// A field of another mesh or shape.
pub(crate) fn on_cells(
    field: &CellField,
    mesh: &Mesh,
    partition: &Partition,
) -> Result<Vec<f64>, FileError> {
    let damaged = || FileError::Damaged { array: field.origin.clone() };
    let element = Lagrange::discontinuous(mesh.cell(), 0).map_err(|_| damaged())?;
    let space = Space::new(mesh, partition, element, field.components)?;
    let values = at_nodes(field, mesh, &space)?;
    let row = |&node: &u32| &values[node as usize * field.components..][..field.components];
    Ok(space.nodes().iter().flat_map(row).copied().collect())
}

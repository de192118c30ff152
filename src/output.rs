//! A state of a form on its mesh → a VTU file, with all fields and data that have a place there.

use fem_dsl::point::{Location, PointForm};
use runtime::discretisation::{AuxValues, Discretisation, Field};
use runtime::output::{CellField, Output, OutputError, PointField};
use std::path::Path;

/// Writes the fields, `u` being the unknowns of one after another, and the auxiliary data of a form for ParaView.
///
/// # Errors
///
/// The file cannot be written; there is no partial file then.
pub fn write_vtu<'a>(
    path: &Path,
    form: &'a PointForm,
    on: &'a Discretisation,
    u: &'a [f64],
) -> Result<(), OutputError> {
    let field = |(number, field): (usize, &'a Field)| {
        let space = &field.space;
        PointField {
            name: &form.fields[number].name,
            element: space.element(),
            nodes: space.nodes(),
            values: &u[on.dofs_of(number)],
            shape: form.fields[number].shape,
        }
    };
    let mut point_fields: Vec<PointField<'a>> = on.fields.iter().enumerate().map(field).collect();
    let mut cell_fields = Vec::new();
    for (aux, values) in form.aux.iter().zip(&on.aux) {
        match values {
            AuxValues::Nodes(space, values) => point_fields.push(PointField {
                name: &aux.name,
                element: space.element(),
                nodes: space.nodes(),
                values,
                shape: aux.shape,
            }),
            AuxValues::Cells(values) if aux.location == Location::Cells => {
                cell_fields.push(CellField { name: &aux.name, values, shape: aux.shape });
            }
            AuxValues::Cells(_) | AuxValues::Points(_) => {}
        }
    }
    let output = Output { mesh: &on.mesh, point_fields, cell_fields, time: None };
    runtime::output::write_vtu(path, &output)
}

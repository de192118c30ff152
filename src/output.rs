//! A state of a form on its mesh → a VTU file, with all fields and data that VTU can represent.
//!
//! The coefficients of the fields are stored in addition to their values at VTK's nodes, so that a solve can continue
//! from the file. Quantities that are constant in each cell, including fields and data of degree 0, are written as cell
//! data. With discontinuous fields of a higher degree, cells do not share points, so that jumps are preserved. Fields of
//! H(curl) and H(div) are discontinuous vectors, and their curl or divergence is written, too.

use fem_dsl::point::{Field as Named, Location, PointForm, Shape};
use kernels_gen::element::WhitneyFamily;
use runtime::files::output::{CellField, Output, OutputError, PointField, StateField};
use runtime::space::Space;
use runtime::space::discretisation::{AuxValues, Discretisation, Field};
use runtime::space::evaluate::{CellwiseField, cellwise, in_living_cells};
use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

/// Writes the fields and the auxiliary data of a form for ParaView; `u` contains the DoFs of the fields one after
/// another.
///
/// # Errors
///
/// The file cannot be written; no partial file is left.
pub fn write_vtu(
    path: &Path,
    form: &PointForm,
    on: &Discretisation,
    u: &[f64],
) -> Result<(), OutputError> {
    with_output(form, on, u, |output| runtime::files::output::write_vtu(path, output))
}

/// Writes the same in the format of the path's extension, which is VTU by default. Several processes write a file each:
/// for `NAME.vtu`, the first of two writes `NAME-0-of-2.vtu`, and `NAME.pvtu` refers to them. Collective over all
/// processes.
///
/// # Errors
///
/// A file cannot be written; the file that refers to them is then absent.
pub fn write_solution(
    path: &Path,
    form: &PointForm,
    on: &Discretisation,
    u: &[f64],
) -> Result<(), OutputError> {
    with_output(form, on, u, |output| runtime::files::output::write(path, output))
}

/// Writes a VTU file to any output stream.
///
/// # Errors
///
/// The stream is not writable.
pub fn write_vtu_to(
    out: &mut dyn Write,
    form: &PointForm,
    on: &Discretisation,
    u: &[f64],
) -> Result<(), OutputError> {
    with_output(form, on, u, |output| runtime::files::output::write_vtu_to(out, output))
}

/// Rejects DoFs of another discretisation.
fn fit(form: &PointForm, on: &Discretisation, u: &[f64]) -> Result<(), OutputError> {
    let counts =
        [("fields", form.fields.len(), on.fields.len()), ("entries", u.len(), on.n_dofs())];
    match counts.into_iter().find(|(_, found, expected)| found != expected) {
        Some((what, found, expected)) => {
            Err(OutputError::Field { name: form.name.clone(), what, found, expected })
        }
        None => Ok(()),
    }
}

/// Calls a function with all data of the file.
pub(crate) fn with_output<T, E: From<OutputError>>(
    form: &PointForm,
    on: &Discretisation,
    u: &[f64],
    work: impl FnOnce(&Output<'_>) -> Result<T, E>,
) -> Result<T, E> {
    fit(form, on, u)?;
    let own = on.fields.iter().enumerate();
    let own = own.map(|(number, field)| field.space.resolved(&u[on.dofs_of(number)]));
    let resolved: Vec<(Cow<'_, Space>, Cow<'_, [f64]>)> = own.collect();
    let (mut nodal, mut states): (Vec<Nodal<'_>>, Vec<StateField<'_>>) = Default::default();
    let mut cellwise: Vec<Nodal<'_>> = Vec::new();
    let mut of_parts: Vec<SampledField> = Vec::new();
    for (number, field) in on.fields.iter().enumerate() {
        let space = &field.space;
        let Named { name, shape, .. } = &form.fields[number];
        let values = &u[on.dofs_of(number)];
        let (at_nodes, resolved) = &resolved[number];
        if space.element().whitney().is_some() {
            let own = (&**name, *shape, &**at_nodes, &**resolved);
            match field.support {
                None => cellwise.push(own),
                Some(_) => {
                    let both = sampled(on, own)?.into_iter();
                    of_parts.extend(both.map(|of| of.of_living_cells(field)));
                }
            }
            continue;
        }
        match field.support {
            None => nodal.push((name, *shape, at_nodes, resolved)),
            Some(_) => of_parts.push(SampledField {
                name: name.clone(),
                shape: *shape,
                field: in_living_cells(field, (at_nodes, resolved)).map_err(OutputError::from)?,
            }),
        }
        // States of subdomains are never read.
        if on.mesh.cut().is_none() {
            states.push(StateField { name, space, values });
        }
    }
    let mut by_cell = Vec::new();
    for (aux, values) in form.aux.iter().zip(&on.aux) {
        match values {
            AuxValues::Nodes(space, values) if space.element().whitney().is_some() => {
                cellwise.push((&aux.name, aux.shape, space, values));
            }
            AuxValues::Nodes(space, values) => nodal.push((&aux.name, aux.shape, space, values)),
            AuxValues::Cells(values) if aux.location == Location::Cells => {
                by_cell.push((aux.name.as_str(), aux.shape, Cow::Borrowed(&**values)));
            }
            AuxValues::Cells(_) | AuxValues::Points(_) => {}
        }
    }
    let sampled: Vec<SampledField> = cellwise
        .into_iter()
        .map(|field| sampled(on, field))
        .collect::<Result<Vec<_>, _>>()?
        .concat();
    let sampled: Vec<SampledField> = of_parts.into_iter().chain(sampled).collect();
    let point_fields = sampled.iter().map(|of| PointField {
        name: &of.name,
        element: of.field.element,
        nodes: &of.field.nodes,
        values: &of.field.values,
        shape: of.shape,
    });
    let mut point_fields: Vec<PointField<'_>> = point_fields.collect();
    for (name, shape, space, values) in nodal {
        if space.element().degree() == 0 {
            by_cell.push((name, shape, Cow::Owned(cell_by_cell(space, values))));
            continue;
        }
        let (element, nodes) = (space.nodal(), space.nodes());
        point_fields.push(PointField { name, element, nodes, values, shape });
    }
    let cells = by_cell.iter();
    let cell_fields =
        cells.map(|(name, shape, values)| CellField { name, shape: *shape, values }).collect();
    work(&Output { mesh: &on.mesh, point_fields, cell_fields, states, time: None })
}

/// A field of vector-valued functions, or its exterior derivative, cell by cell.
#[derive(Clone)]
struct SampledField {
    name: String,
    shape: Shape,
    field: CellwiseField,
}

impl SampledField {
    /// The same with NaN where a field does not live.
    fn of_living_cells(self, field: &Field) -> Self {
        Self { field: self.field.of_living_cells(field), ..self }
    }
}

/// Returns a field of H(curl) or H(div) and its curl or divergence.
fn sampled(
    on: &Discretisation,
    (name, shape, space, values): Nodal<'_>,
) -> Result<Vec<SampledField>, OutputError> {
    let is_curl = space.element().whitney().is_some_and(|own| own.family() == WhitneyFamily::Curl);
    let [field, derivative] = cellwise(&on.mesh, space, values)?;
    let of = if is_curl { "curl" } else { "div" };
    let own = match derivative.components {
        1 => Shape::Scalar,
        several => Shape::Vector(several),
    };
    Ok(vec![
        SampledField { name: name.to_owned(), shape, field },
        SampledField { name: format!("{of}({name})"), shape: own, field: derivative },
    ])
}

/// Nodal data: a name, a shape, a space and the values of its nodes.
type Nodal<'a> = (&'a str, Shape, &'a Space, &'a [f64]);

/// Returns the values of a space of degree 0 in the order of the cells.
fn cell_by_cell(space: &Space, values: &[f64]) -> Vec<f64> {
    let components = space.components();
    let of = |&node: &u32| &values[node as usize * components..][..components];
    space.nodes().iter().flat_map(of).copied().collect()
}

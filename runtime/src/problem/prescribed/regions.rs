//! Data that is stated region by region: the cell of each point, and the statement that applies there.

use crate::problem::{DataError, RunError};
use crate::space::discretisation::Discretisation;
use fem_dsl::point::{Location, PointForm};
use fem_dsl::problem::Data;
use kernels_gen::plan::Elements;

/// Returns the cell of each point of auxiliary data; a node belongs to one of its cells.
pub(super) fn cells_of(
    index: usize,
    form: &PointForm,
    elements: &Elements,
    on: &Discretisation,
    points: usize,
) -> Result<Vec<u32>, RunError> {
    let each = match form.aux[index].location {
        Location::Cells => 1,
        Location::Points => elements.rule.count(),
        Location::Nodes(_) => {
            let element = elements.element_of_aux(index)?;
            let space = on.aux_space(element, form.aux[index].shape.components())?;
            let mut cells = vec![0; points];
            for cell in 0..on.mesh.n_cells() {
                space.cell_nodes(cell).iter().for_each(|&node| cells[node as usize] = cell as u32);
            }
            return Ok(cells);
        }
    };
    Ok((0..points).map(|point| (point / each) as u32).collect())
}

/// Evaluates data by region: the last statement about a cell applies.
pub(super) fn by_region(
    name: &str,
    on: &Discretisation,
    several: &[(usize, &Data)],
    cells: &[u32],
    value: impl Fn((usize, &Data)) -> Vec<f64>,
) -> Result<Vec<f64>, RunError> {
    const NONE: usize = usize::MAX;
    let mesh = &on.mesh;
    let mut chosen = vec![NONE; mesh.n_cells()];
    for (number, (_, data)) in several.iter().enumerate() {
        match &data.tags {
            None => chosen.fill(number),
            Some(tags) => {
                let cells = mesh.cells_under(tags)?;
                cells.iter().for_each(|&cell| chosen[cell as usize] = number);
            }
        }
    }
    if let Some(cell) = chosen.iter().position(|&number| number == NONE) {
        let of_cell = |(_, cells): &(&String, &Vec<u32>)| cells.contains(&(cell as u32));
        let tag = mesh.cell_tags().iter().find(of_cell).map(|(tag, _)| tag.clone());
        let (name, point) = (name.to_owned(), mesh.centre(cell));
        return Err(DataError::NoAuxInRegion { name, tag, point }.into());
    }
    let mut values: Vec<f64> = Vec::new();
    for (number, data) in several.iter().enumerate() {
        let own = value(*data);
        values.resize(own.len(), 0.0);
        let count = own.len() / cells.len().max(1);
        for (at, &cell) in cells.iter().enumerate() {
            if chosen[cell as usize] == number {
                let range = at * count..(at + 1) * count;
                values[range.clone()].copy_from_slice(&own[range]);
            }
        }
    }
    Ok(values)
}

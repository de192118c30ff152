//! Problem data from files, read once.
//!
//! Files refer to the whole mesh. Each process reads the whole file and extracts the values of its subdomain.

use super::{DataError, RunError};
use crate::files::input::{ArrayRequest, FileError, NodalValues, ParsedFile, cells};
use crate::mesh::Mesh;
use crate::mesh::partition::Partition;
use crate::space::discretisation::Discretisation;
use crate::space::{Space, SpaceError};
use fem_dsl::point::{Aux, Location};
use fem_dsl::problem::{CellField, FileArray, Problem, SolutionField, ValueSource};
use kernels_gen::plan::Elements;

/// Data of a problem from files, at the points that each statement needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileData {
    /// Nodal or cell values of each data statement.
    aux: Vec<Option<Vec<f64>>>,
}

/// Statement that reads a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileStatement {
    /// Auxiliary data, by index in [`Problem::aux`].
    Data(usize),
    /// The initial value of a field.
    Initial,
}

impl FileStatement {
    /// Returns the keyword of the statement.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Data(_) => "aux",
            Self::Initial => "initial",
        }
    }
}

impl FileData {
    /// Reads the files of a problem's data.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or belongs to another mesh.
    pub fn read(
        problem: &Problem,
        elements: &Elements,
        on: &Discretisation,
    ) -> Result<Self, RunError> {
        let mut aux = Vec::with_capacity(problem.aux.len());
        for (number, data) in problem.aux.iter().enumerate() {
            let own = &problem.form.aux[data.aux];
            let stored = match &data.value {
                ValueSource::File(stored) => stored,
                ValueSource::Cells(field) => {
                    aux.push(Some(of_cells(field, own, (data.aux, elements), on)?));
                    continue;
                }
                ValueSource::Solution(taken) => return Err(unsolved("aux", &own.name, taken)),
                ValueSource::Formula(_) => {
                    aux.push(None);
                    continue;
                }
            };
            let wanted = ArrayRequest::new(stored, &own.name, own.shape, whole(on)?);
            let attribute = |error| failed(FileStatement::Data(number), &own.name, stored, error);
            let found = wanted.read().map_err(attribute)?;
            aux.push(Some(match own.location {
                Location::Nodes(_) => {
                    let element = elements.element_of_aux(data.aux)?;
                    let components = own.shape.components();
                    let space = on.aux_space(element, components)?;
                    let of_whole = |mesh: &Mesh, partition: &Partition| {
                        Space::of_data(mesh, partition, element, components)
                    };
                    at_nodes(on, &space, of_whole, &found, attribute)?.values
                }
                Location::Cells | Location::Points => {
                    let values = found.on_cells().map_err(attribute)?;
                    match on.mesh.cut() {
                        None => values,
                        Some(cut) => {
                            let each = values.len() / cut.whole()?.n_cells().max(1);
                            let own = cut.cells()?.iter().map(|&cell| cell as usize * each);
                            own.flat_map(|first| &values[first..first + each]).copied().collect()
                        }
                    }
                }
            }));
        }
        Ok(Self { aux })
    }

    /// Returns the values of a data statement.
    pub(super) fn of_data(&self, number: usize) -> &[f64] {
        self.aux.get(number).and_then(Option::as_deref).unwrap_or_default()
    }
}

/// Returns the values of auxiliary data from a field in each cell.
fn of_cells(
    field: &CellField,
    own: &Aux,
    (index, elements): (usize, &Elements),
    on: &Discretisation,
) -> Result<Vec<f64>, RunError> {
    let values = match own.location {
        Location::Nodes(_) => {
            let space = on.aux_space(elements.element_of_aux(index)?, own.shape.components())?;
            cells::at_nodes(field, &on.mesh, &space)
        }
        Location::Cells | Location::Points => cells::on_cells(field, &on.mesh, &on.partition),
    };
    values.map_err(|error| of_solution(FileStatement::Data(index), &own.name, field, error))
}

/// Returns the error of a field that does not fit.
pub(super) fn of_solution(
    taker: FileStatement,
    name: &str,
    field: &CellField,
    source: FileError,
) -> RunError {
    let (name, path) = (name.to_owned(), field.origin.clone().into());
    DataError::File { taker, name, path, source: Box::new(source) }.into()
}

/// Returns the error of a command that does not solve the problem whose solution is data.
pub(super) fn unsolved(word: &str, name: &str, taken: &SolutionField) -> RunError {
    let SolutionField { problem, field, .. } = taken;
    RunError::Setting(format!(
        "`{word} {name}` is the solution of the problem `{problem}`, which is not solved here\n\
         help: write it to a file, `wf run --problem {problem} --output {problem}.vtu`, and give `file(\"{problem}.vtu\", \
         \"{field}\")`"
    ))
}

/// Returns the whole mesh, to which files refer.
///
/// # Errors
///
/// A mesh too large for one process.
pub(super) fn whole(on: &Discretisation) -> Result<&Mesh, RunError> {
    Ok(match on.mesh.cut() {
        Some(cut) => cut.whole()?,
        None => &on.mesh,
    })
}

/// Reads the values of a file at the nodes of a space; `of_whole` builds the same space on the whole mesh.
///
/// # Errors
///
/// An empty file, or one of another mesh.
pub(super) fn at_nodes(
    on: &Discretisation,
    space: &Space,
    of_whole: impl FnOnce(&Mesh, &Partition) -> Result<Space, SpaceError>,
    found: &ParsedFile<'_>,
    attribute: impl FnOnce(FileError) -> RunError,
) -> Result<NodalValues, RunError> {
    let Some(cut) = on.mesh.cut() else {
        return found.at_nodes(space, &on.partition).map_err(attribute);
    };
    let partition = Partition::new(cut.whole()?, 1.0);
    let all = of_whole(cut.whole()?, &partition)?;
    let NodalValues { values, note } = found.at_nodes(&all, &partition).map_err(attribute)?;
    let components = space.components();
    let mut own = vec![0.0; space.n_dofs()];
    for (own_cell, &whole_cell) in cut.cells()?.iter().enumerate() {
        let nodes = space.cell_nodes(own_cell).iter().zip(all.cell_nodes(whole_cell as usize));
        for (&node, &whole_node) in nodes {
            let (to, from) = (node as usize * components, whole_node as usize * components);
            own[to..to + components].copy_from_slice(&values[from..from + components]);
        }
    }
    Ok(NodalValues { values: own, note })
}

/// Returns the error of a file without values.
pub(super) fn failed(
    taker: FileStatement,
    name: &str,
    stored: &FileArray,
    source: FileError,
) -> RunError {
    let (name, path) = (name.to_owned(), stored.path.clone());
    DataError::File { taker, name, path, source: Box::new(source) }.into()
}

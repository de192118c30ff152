//! Data that a problem takes from files: read once, and then as good as a formula.

use super::RunError;
use crate::discretisation::Discretisation;
use crate::stored::{FileError, Wanted};
use fem_dsl::point::Location;
use fem_dsl::problem::{Problem, Stored, Values};
use kernels_gen::plan::Elements;

/// What a problem takes from files, at the sites of its data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Files {
    /// For each statement about data the values at its nodes or cells.
    aux: Vec<Option<Vec<f64>>>,
}

/// What is to have values from a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taker {
    /// Data, by the number of the statement in [`Problem::aux`].
    Data(usize),
    /// A field at the start.
    Initial,
}

impl Taker {
    /// The word that begins the statement.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Data(_) => "aux",
            Self::Initial => "initial",
        }
    }
}

impl Files {
    /// Reads the files of a problem's data.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is of another mesh.
    pub fn read(
        problem: &Problem,
        elements: &Elements,
        on: &Discretisation,
    ) -> Result<Self, RunError> {
        let mut aux = Vec::with_capacity(problem.aux.len());
        for (number, data) in problem.aux.iter().enumerate() {
            let Values::File(stored) = &data.value else {
                aux.push(None);
                continue;
            };
            let own = &problem.form.aux[data.aux];
            let wanted = Wanted::new(stored, &own.name, own.shape, &on.mesh);
            let told = |error| failed(Taker::Data(number), &own.name, stored, error);
            let found = wanted.read().map_err(told)?;
            aux.push(Some(match own.location {
                Location::Nodes(_) => {
                    let element = elements.element_of_aux(data.aux)?;
                    let space = on.aux_space(element, own.shape.components())?;
                    found.at_nodes(&space, &on.partition).map_err(told)?.values
                }
                Location::Cells | Location::Points => found.on_cells().map_err(told)?,
            }));
        }
        Ok(Self { aux })
    }

    /// The values of a statement about data.
    pub(super) fn of_data(&self, number: usize) -> &[f64] {
        self.aux.get(number).and_then(Option::as_deref).unwrap_or_default()
    }
}

/// The error that a file gives no values.
pub(super) fn failed(taker: Taker, name: &str, stored: &Stored, source: FileError) -> RunError {
    let (name, path) = (name.to_owned(), stored.path.clone());
    RunError::File { taker, name, path, source: Box::new(source) }
}

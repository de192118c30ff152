//! Files: text of the language → checked forms and problems.

use crate::errors::{diagnostic, raised};
use crate::form::Form;
use crate::problem::Problem;
use crate::watch::outside;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use weakform::ProblemFile;
use weakform::render::{Style, json, render};

/// The forms and problems of a text.
#[pyclass(frozen, module = "weakform._native")]
pub(crate) struct File(ProblemFile);

#[pymethods]
impl File {
    /// Compiles a text.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        let file = outside(py, || ProblemFile::parse(text))?;
        file.map(Self).map_err(|error| raised(py, error))
    }

    /// Reads and compiles a file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let file = outside(py, || ProblemFile::read(path))?;
        file.map(Self).map_err(|error| raised(py, error))
    }

    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    #[getter]
    fn forms(&self) -> Vec<&str> {
        self.0.forms()
    }

    #[getter]
    fn problems(&self) -> Vec<&str> {
        self.0.problems()
    }

    /// Returns the warnings as dictionaries.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        json(self.0.source(), self.0.warnings()).iter().map(|own| diagnostic(py, own)).collect()
    }

    /// Returns the warnings as text, with the underlined source.
    fn rendered_warnings(&self) -> String {
        render(self.0.source(), self.0.warnings(), Style::Plain).trim_end().to_owned()
    }

    fn form(&self, py: Python<'_>, name: &str) -> PyResult<Form> {
        self.0.form(name).map(Form).map_err(|error| raised(py, error))
    }

    fn problem(&self, py: Python<'_>, name: &str) -> PyResult<Problem> {
        let problem = self.0.problem(name).map_err(|error| raised(py, error))?;
        Ok(Problem::new(problem))
    }
}

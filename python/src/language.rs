//! Files and forms: text of the language → checked forms and problems.

use crate::errors::{diagnostic, raised};
use crate::problem::Problem;
use crate::values::dimensions;
use crate::watch::outside;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use weakform::render::{Style, json, render};
use weakform::{Emission, ProblemFile, Stage};

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

/// A form.
#[pyclass(frozen, module = "weakform._native")]
pub(crate) struct Form(pub(crate) weakform::Form);

#[pymethods]
impl Form {
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn text(&self) -> &str {
        self.0.text()
    }

    #[getter]
    fn documentation(&self) -> &str {
        self.0.documentation()
    }

    /// The dimensions in which the form is valid.
    #[getter]
    fn dimensions(&self) -> Vec<usize> {
        self.0.dimensions()
    }

    /// Returns names and shapes of fields, parameters and data in a dimension.
    fn names<'py>(&self, py: Python<'py>, dim: usize) -> PyResult<Bound<'py, PyDict>> {
        let form = self.0.point_form(dim).map_err(|error| raised(py, error))?;
        let all = PyDict::new(py);
        let fields = PyDict::new(py);
        for field in &form.fields {
            fields.set_item(&field.name, dimensions(field.shape))?;
        }
        let params = PyDict::new(py);
        for param in form.own_params() {
            params.set_item(&param.name, dimensions(param.shape))?;
        }
        let data = PyDict::new(py);
        for aux in form.own_aux() {
            data.set_item(&aux.name, dimensions(aux.shape))?;
        }
        all.set_item("fields", fields)?;
        all.set_item("params", params)?;
        all.set_item("data", data)?;
        Ok(all)
    }

    /// Returns the output of a stage of the compiler.
    fn emit(&self, py: Python<'_>, stage: &str, cell: &str, degree: usize) -> PyResult<String> {
        let invalid = |error: String| crate::errors::exception(py, "InvalidValue", (error,));
        let stage: Stage = match stage.parse() {
            Ok(stage) => stage,
            Err(error) => return Err(invalid(error)?),
        };
        let cell: weakform::Cell = match cell.parse() {
            Ok(cell) => cell,
            Err(error) => return Err(invalid(format!("{error}"))?),
        };
        let emission = Emission::new(cell, degree).stage(stage);
        let text = outside(py, || self.0.emit(&emission))?;
        text.map_err(|error| raised(py, error))
    }
}

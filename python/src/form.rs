//! Forms: their names, shapes, and the stages of the compiler.

use crate::errors::raised;
use crate::values::dimensions;
use crate::watch::outside;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weakform::{Emission, Stage};

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

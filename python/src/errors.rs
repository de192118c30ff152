//! Errors of the library → exceptions of `weakform._errors`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use weakform::render::JsonDiagnostic;
use weakform::{AdaptivityError, CallLanguage, Error, Form, RunError, SetupError, TimeError};

/// Converts an error to an exception.
pub(crate) fn raised(py: Python<'_>, error: Error) -> PyErr {
    raised_by(py, error, None, &[])
}

/// Converts an error of a solve to an exception; `form` names the fields of the state that it reached, and `residuals`
/// are the norms of its iterations.
pub(crate) fn raised_by(
    py: Python<'_>,
    error: Error,
    form: Option<&Form>,
    residuals: &[f64],
) -> PyErr {
    let text = error.message_in(CallLanguage::Python);
    let made = match error {
        Error::Function(error) => match error.downcast::<PyErr>() {
            Ok(own) => return *own,
            Err(_) => exception(py, "Error", (text,)),
        },
        Error::Language { source_text, diagnostics } => {
            let found = weakform::render::json(&source_text, &diagnostics);
            found
                .iter()
                .map(|found| diagnostic(py, found))
                .collect::<PyResult<Vec<_>>>()
                .and_then(|found| exception(py, "LanguageError", (text, found)))
        }
        Error::Mesh(_) => exception(py, "MeshError", (text,)),
        Error::Unknown { what, name, known } => {
            exception(py, "UnknownName", (text, what, name, known))
        }
        Error::Components { .. }
        | Error::Numbers { .. }
        | Error::Vector(_)
        | Error::Outside { .. }
        | Error::LoadNotFinite { .. }
        | Error::NoUnknown { .. } => exception(py, "InvalidValue", (text,)),
        Error::Run(error) => of_run(py, text, &error, form, residuals),
        Error::System(error) => of_run(py, text, &error, form, residuals),
        _ => exception(py, "Error", (text,)),
    };
    made.unwrap_or_else(|error| error)
}

/// Creates an exception of a class.
pub(crate) fn exception<'py>(
    py: Python<'py>,
    class: &str,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<PyErr> {
    let class = py.import("weakform._errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call1(arguments)?))
}

fn of_run(
    py: Python<'_>,
    text: String,
    error: &RunError,
    form: Option<&Form>,
    residuals: &[f64],
) -> PyResult<PyErr> {
    match error {
        RunError::Setup(error)
            if matches!(**error, SetupError::Mesh(_) | SetupError::Periodic(_)) =>
        {
            exception(py, "MeshError", (text,))
        }
        _ if failed_solve(error) => {
            let report = PyDict::new(py);
            report.set_item("iterations", residuals.len().saturating_sub(1))?;
            report.set_item("residuals", residuals.to_vec())?;
            exception(py, "NotConverged", (text, reached(py, error, form)?, report))
        }
        _ => exception(py, "Error", (text,)),
    }
}

/// Returns whether an error is that of a solve without a solution.
fn failed_solve(error: &RunError) -> bool {
    match error {
        RunError::Convergence(_) | RunError::Unconverged { .. } => true,
        RunError::Time(TimeError::Step { source, .. }) => failed_solve(source),
        RunError::Adaptivity(error) => match &**error {
            AdaptivityError::Interrupted(run) => failed_solve(&run.source),
            _ => false,
        },
        _ => false,
    }
}

/// Returns the state that a failed solve has reached, as a dictionary of the fields' values; `None` if there is none.
fn reached<'py>(
    py: Python<'py>,
    error: &RunError,
    form: Option<&Form>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let state = match error {
        RunError::Unconverged { reached, .. } => &**reached,
        RunError::Adaptivity(error) => match &**error {
            AdaptivityError::Interrupted(run) => &run.last,
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Some(form) = form.and_then(|form| form.point_form(state.on.mesh.dim()).ok()) else {
        return Ok(None);
    };
    let values = PyDict::new(py);
    for (index, field) in form.fields.iter().enumerate() {
        let own = state.on.dofs_of(index);
        let components = field.shape.components();
        values
            .set_item(&field.name, crate::memory::views::copied(py, &state.u[own], components)?)?;
    }
    Ok(Some(values))
}

/// Returns a diagnostic as a dictionary.
pub(crate) fn diagnostic<'py>(
    py: Python<'py>,
    found: &JsonDiagnostic,
) -> PyResult<Bound<'py, PyDict>> {
    let own = PyDict::new(py);
    own.set_item("code", found.code)?;
    own.set_item("severity", found.severity)?;
    own.set_item("message", &found.message)?;
    own.set_item("file", &found.file)?;
    own.set_item("line", found.line)?;
    own.set_item("column", found.column)?;
    let labels = PyList::empty(py);
    for label in &found.labels {
        let item = PyDict::new(py);
        item.set_item("line", label.line)?;
        item.set_item("column", label.column)?;
        item.set_item("end_line", label.end_line)?;
        item.set_item("end_column", label.end_column)?;
        item.set_item("text", &label.text)?;
        item.set_item("primary", label.primary)?;
        labels.append(item)?;
    }
    own.set_item("labels", labels)?;
    own.set_item("notes", &found.notes)?;
    own.set_item("help", &found.help)?;
    Ok(own)
}

/// The exception of a thread that panicked.
pub(crate) fn panicked() -> PyErr {
    PyRuntimeError::new_err("weakform: a thread of the solver has panicked; please report it")
}

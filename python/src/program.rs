//! The program `wf` inside the package, and settings of the process.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the program `wf` with these arguments, of which the first is its name, and returns the exit status.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let code = py.detach(|| wf_program::run_with(arguments));
    (0..=u8::MAX).find(|&status| ExitCode::from(status) == code).unwrap_or(1)
}

/// Sets the number of threads of later solves in this process, and returns the number that could be started.
#[pyfunction]
pub(crate) fn set_threads(py: Python<'_>, count: usize) -> PyResult<usize> {
    if count == 0 {
        return Err(PyValueError::new_err("at least one thread is needed"));
    }
    Ok(py.detach(|| weakform::set_threads(count)))
}

//! Values of settings: text → devices and words, with exceptions for wrong ones.

use crate::errors::{exception, raised};
use pyo3::prelude::*;
use std::str::FromStr;
use std::sync::Arc;
use weakform::{Backend, Device};

/// Opens a device by its name in Python, `cuda`, `cuda:0`, `opencl`, `opencl:pocl`; `None` for `cpu`.
pub(crate) fn opened(py: Python<'_>, name: &str) -> PyResult<Option<Arc<dyn Device>>> {
    let (backend, which) = name.split_once(':').map_or((name, None), |(a, b)| (a, Some(b)));
    let backend = match backend {
        "cpu" => return Ok(None),
        "cuda" => Backend::Cuda,
        "opencl" => Backend::OpenCl,
        _ => return Err(wrong(py, "device", name, "cpu, cuda, cuda:0, opencl or opencl:NAME")?),
    };
    let device = crate::watch::outside(py, || weakform::device(backend, which))?;
    device.map(Some).map_err(|error| raised(py, error))
}

/// Parses a setting.
pub(crate) fn parsed<T: FromStr>(py: Python<'_>, name: &str, value: &str) -> PyResult<T>
where
    T::Err: ToString,
{
    match value.parse() {
        Ok(value) => Ok(value),
        Err(error) => {
            let text = format!("`{name}` cannot be {value:?}: {}", error.to_string());
            Err(exception(py, "InvalidValue", (text,))?)
        }
    }
}

/// Returns the exception for a wrong value.
pub(crate) fn wrong(py: Python<'_>, name: &str, value: &str, valid: &str) -> PyResult<PyErr> {
    let text = format!("`{name}` cannot be {value:?}\nhelp: it is {valid}");
    exception(py, "InvalidValue", (text,))
}

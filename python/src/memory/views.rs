//! NumPy arrays: views of memory that a Python object owns, and copies.
//!

use numpy::ndarray::{ArrayView1, ArrayView2};
use numpy::{PyArray1, PyArray2, PyArrayMethods as _};
use pyo3::PyClass;
use pyo3::prelude::*;

/// An object whose numbers never move or change while it lives.
pub(crate) trait Constant: PyClass<Frozen = pyo3::pyclass::boolean_struct::True> {
    /// Returns some of its numbers.
    fn numbers(&self, part: &Part) -> &[f64];
}

/// A part of an object's numbers.
pub(crate) enum Part {
    All,
    Field(usize),
    Mode(usize, usize),
}

/// Returns a read-only view of numbers of an object: (nodes,) for one component, else (nodes, components).
pub(crate) fn view<'py, T: Constant + Sync>(
    owner: &Bound<'py, T>,
    part: &Part,
    components: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let numbers = owner.get().numbers(part);
    let base = owner.clone().into_any();
    let array = if components == 1 {
        let array = ArrayView1::from(numbers);
        // SAFETY: `owner` is the base object of the view and owns the numbers. A `Constant` object is frozen, and its
        // numbers neither move nor change while it lives.
        unsafe { PyArray1::borrow_from_array(&array, base) }.into_any()
    } else {
        let rows = numbers.len() / components.max(1);
        let array = ArrayView2::from_shape((rows, components), numbers)
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        // SAFETY: as above.
        unsafe { PyArray2::borrow_from_array(&array, base) }.into_any()
    };
    array.call_method1("setflags", (false,))?;
    Ok(array)
}

/// Returns a new array: (nodes,) for one component, else (nodes, components).
pub(crate) fn copied<'py>(
    py: Python<'py>,
    numbers: &[f64],
    components: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let array = PyArray1::from_slice(py, numbers);
    match components {
        1 => Ok(array.into_any()),
        n => Ok(array.reshape([numbers.len() / n.max(1), n])?.into_any()),
    }
}

/// Returns a new array of points, (points, 3).
pub(crate) fn points<'py>(py: Python<'py>, points: &[[f64; 3]]) -> PyResult<Bound<'py, PyAny>> {
    copied(py, points.as_flattened(), 3)
}

//! Values of reports and shapes → Python objects.

use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use weakform::{Origin, ReportValue, Shape};

/// Returns the dimensions of a shape: () for scalars, (n,) and (m, n).
pub(crate) fn dimensions(shape: Shape) -> Vec<usize> {
    match shape {
        Shape::Scalar => Vec::new(),
        Shape::Vector(n) => vec![n],
        Shape::Matrix(m, n) => vec![m, n],
    }
}

/// Returns a report: a float, an array of its shape, or for a line plot (points, values).
pub(crate) fn report<'py>(py: Python<'py>, value: &ReportValue) -> PyResult<Bound<'py, PyAny>> {
    match value {
        ReportValue::Value(Shape::Scalar, values) => values[0].into_bound_py_any(py),
        ReportValue::Value(shape, values) => {
            let array = numpy::PyArray1::from_slice(py, values).into_any();
            array.call_method1("reshape", (dimensions(*shape),))
        }
        ReportValue::Line(shape, line) => {
            let places: Vec<[f64; 3]> = line.iter().map(|(x, _)| *x).collect();
            let values: Vec<f64> = line.iter().flat_map(|(_, values)| values.clone()).collect();
            let values = crate::memory::views::copied(py, &values, shape.components())?;
            (crate::memory::views::points(py, &places)?, values).into_bound_py_any(py)
        }
    }
}

/// Returns the origin of kernels as a word.
pub(crate) fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::AheadOfTime => "ahead of time",
        Origin::Cache => "cache",
        Origin::Compiler => "compiler",
        Origin::Interpreter => "interpreter",
    }
}

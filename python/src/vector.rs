//! Vectors of degrees of freedom: NumPy arrays of the caller, and vectors that stay in the memory of a device.

use crate::errors::exception;
use crate::memory::capsule::{CPU, CUDA, Memory, Source, exported, take};
use crate::memory::views::copied;
use crate::watch::outside;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyAttributeError, PyBufferError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex, PoisonError};
use weakform::{DeviceError, Error};

/// A vector of a system, in the memory of its device.
#[pyclass(frozen, module = "weakform._native")]
#[derive(Clone)]
pub(crate) struct Vector(Arc<Mutex<weakform::Vector>>);

impl Vector {
    pub(crate) fn new(vector: weakform::Vector) -> Self {
        Self(Arc::new(Mutex::new(vector)))
    }

    /// Calls a function with the vector.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut weakform::Vector) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the memory, after all work on it. The vector keeps it in its place.
    fn memory(&self, py: Python<'_>) -> PyResult<Memory> {
        let found = self.with(|vector| {
            if let Some(entries) = vector.entries_mut::<f64>() {
                let (pointer, len) = (entries.as_mut_ptr() as u64, entries.len());
                return Ok(Some(Memory { pointer, device: (CPU, 0), len, stream: 0 }));
            }
            let Some((arithmetic, array)) = vector.array() else { return Ok(None) };
            let address = arithmetic.device().address(array)?;
            Ok::<_, DeviceError>(address.map(|own| Memory {
                pointer: own.pointer,
                device: (CUDA, own.number as i32),
                len: array.len(),
                stream: own.stream,
            }))
        });
        match found {
            Ok(Some(memory)) => Ok(memory),
            Ok(None) => Err(PyBufferError::new_err(
                "vectors of this device have no address for other libraries\nhelp: use `to_numpy` and `set`",
            )),
            Err(error) => Err(exception(py, "Error", (error.to_string(),))?),
        }
    }
}

#[pymethods]
impl Vector {
    fn __len__(&self) -> usize {
        self.with(|vector| vector.len())
    }

    /// Returns a copy of the entries, in the order of arrays.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let entries = outside(py, || self.with(|vector| vector.to_vec()))?;
        copied(py, &entries, 1)
    }

    /// Sets all entries, given in the order of arrays.
    fn set(&self, py: Python<'_>, entries: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        let entries = entries.as_slice()?;
        let len = self.with(|vector| vector.len());
        if entries.len() != len {
            let text = format!("the vector has {len} entries, but there are {}", entries.len());
            return Err(exception(py, "InvalidValue", (text,))?);
        }
        outside(py, || self.with(|vector| vector.set(entries)))
    }

    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        outside(py, || Self::new(self.with(|vector| vector.clone())))
    }

    fn norm(&self, py: Python<'_>) -> PyResult<f64> {
        outside(py, || self.with(|vector| vector.norm()))
    }

    /// The place of each entry in the memory of the device, whose order and length may differ from those of arrays.
    #[getter]
    fn places<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let places = py.detach(|| self.with(|vector| vector.places()));
        match places {
            Some(places) => PyArray1::from_iter(py, places.into_iter().map(|place| place as i64)),
            None => {
                PyArray1::from_iter(py, (0..self.with(|vector| vector.len())).map(|i| i as i64))
            }
        }
    }

    /// Returns the memory as a DLPack capsule, after all work on it.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        stream: Option<Bound<'_, PyAny>>,
        max_version: Option<Bound<'_, PyAny>>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        // The memory is ready on every stream, and every version reads the first format.
        let _ = (stream, max_version);
        let own = if copy == Some(true) { self.copy(py)? } else { self.clone() };
        let memory = own.memory(py)?;
        if dl_device.is_some_and(|device| device != memory.device) {
            return Err(PyBufferError::new_err("the vector is on another device"));
        }
        exported(py, memory, own)
    }

    /// Returns the type and the number of the device, as DLPack counts them.
    fn __dlpack_device__(&self, py: Python<'_>) -> PyResult<(i32, i32)> {
        Ok(self.memory(py)?.device)
    }

    /// The CUDA array interface, version 3.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let memory = self.memory(py)?;
        if memory.device.0 != CUDA {
            return Err(PyAttributeError::new_err("the vector is not on a CUDA device"));
        }
        let all = PyDict::new(py);
        all.set_item("shape", (memory.len,))?;
        all.set_item("typestr", "<f8")?;
        all.set_item("data", (memory.pointer, false))?;
        all.set_item("version", 3)?;
        all.set_item("stream", memory.stream)?;
        Ok(all)
    }

    /// Copies the entries of an object with `__dlpack__`: those on the same device in the order of its memory, those of
    /// the host in the order of arrays.
    fn take(&self, py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<()> {
        let memory = self.memory(py)?;
        let copy = |from: Source<'_>| self.with(|vector| from.copy_to(vector, memory));
        match take(py, source, memory, copy)? {
            Ok(()) => Ok(()),
            Err(text) => Err(exception(py, "InvalidValue", (text,))?),
        }
    }
}

/// A state argument: an array, or a vector.
#[derive(FromPyObject)]
pub(crate) enum State<'py> {
    Vector(Bound<'py, Vector>),
    Array(PyReadonlyArray1<'py, f64>),
}

/// The entries of an argument, which outlive the call.
#[derive(Clone)]
pub(crate) enum StateEntries {
    Array(Vec<f64>),
    Vector(Vector),
}

impl State<'_> {
    pub(crate) fn given(&self) -> PyResult<StateEntries> {
        Ok(match self {
            Self::Array(entries) => StateEntries::Array(entries.as_slice()?.to_vec()),
            Self::Vector(vector) => StateEntries::Vector(vector.get().clone()),
        })
    }
}

impl StateEntries {
    /// Returns the argument as a vector of a system.
    pub(crate) fn on(&self, system: &weakform::System) -> Result<weakform::Vector, Error> {
        match self {
            Self::Vector(vector) => Ok(vector.with(|vector| vector.clone())),
            Self::Array(entries) => {
                let (expected, found) = (system.dofs(), entries.len());
                if found != expected {
                    let name = "the state".to_owned();
                    return Err(Error::Numbers { name, expected, found });
                }
                let mut vector = system.vector();
                vector.set(entries);
                Ok(vector)
            }
        }
    }
}

//! DLPack: vectors as tensors of other libraries without a copy, and tensors of other libraries as entries.
//!
//! The structures are those of DLPack 0.8 (`dlpack.h`), which all versions of the protocol hand out on request.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::ffi::{CStr, c_void};
use std::sync::Arc;
use weakform::{DeviceError, Vector};

/// Name of a capsule with a tensor, and of one whose tensor was taken.
const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";

/// Types of devices.
pub(crate) const CPU: i32 = 1;
pub(crate) const CUDA: i32 = 2;

/// Code of floating-point numbers.
const FLOAT: u8 = 2;

#[repr(C)]
struct Device {
    kind: i32,
    number: i32,
}

#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    dimensions: i32,
    kind: DataType,
    shape: *mut i64,
    strides: *mut i64,
    offset: u64,
}

#[repr(C)]
struct ManagedTensor {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

/// The memory of numbers in double precision.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) pointer: u64,
    /// Type and number of the device.
    pub(crate) device: (i32, i32),
    /// Number of entries, on a device with its padding.
    pub(crate) len: usize,
    /// Handle of the stream that orders the work on it; 0 on the host.
    pub(crate) stream: u64,
}

/// An exported tensor: the owner of its memory, and the arrays of its description.
struct ExportedTensor<O> {
    managed: ManagedTensor,
    shape: [i64; 1],
    strides: [i64; 1],
    /// Keeps the memory.
    _owner: O,
}

/// Deletes an exported tensor.
unsafe extern "C" fn delete<O>(managed: *mut ManagedTensor) {
    // SAFETY: `exported` made the context from a box of this type, and the protocol calls the deleter once.
    drop(unsafe { Box::from_raw((*managed).context.cast::<ExportedTensor<O>>()) });
}

/// Deletes the tensor of a capsule that nobody took.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls it with the capsule that `exported` made; its name tells whether it still has the tensor.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast::<ManagedTensor>();
            if let Some(deleter) = managed.as_ref().and_then(|managed| managed.deleter) {
                deleter(managed);
            }
        }
    }
}

/// Returns a capsule with some memory, which `owner` keeps in its place.
pub(crate) fn exported<O: Send + 'static>(
    py: Python<'_>,
    memory: Memory,
    owner: O,
) -> PyResult<Py<PyAny>> {
    let (kind, number) = memory.device;
    let tensor = Tensor {
        data: memory.pointer as *mut c_void,
        device: Device { kind, number },
        dimensions: 1,
        kind: DataType { code: FLOAT, bits: 64, lanes: 1 },
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        offset: 0,
    };
    let deleter: unsafe extern "C" fn(*mut ManagedTensor) = delete::<O>;
    let managed = ManagedTensor { tensor, context: std::ptr::null_mut(), deleter: Some(deleter) };
    let shape = [memory.len as i64];
    let own =
        Box::into_raw(Box::new(ExportedTensor { managed, shape, strides: [1], _owner: owner }));
    // SAFETY: `own` was just made and is used by nobody else. Its box does not move, so that the pointers to its
    // fields stay valid until `delete` frees it.
    unsafe {
        (*own).managed.context = own.cast();
        (*own).managed.tensor.shape = (&raw mut (*own).shape).cast();
        (*own).managed.tensor.strides = (&raw mut (*own).strides).cast();
        let pointer = (&raw mut (*own).managed).cast::<c_void>();
        let capsule = ffi::PyCapsule_New(pointer, NAME.as_ptr(), Some(destroy));
        if capsule.is_null() {
            drop(Box::from_raw(own));
            return Err(PyErr::fetch(py));
        }
        Ok(Bound::from_owned_ptr(py, capsule).unbind())
    }
}

/// The tensor of another library.
pub(crate) struct Source<'a>(&'a Tensor);

/// Calls a function with the tensor of an object with `__dlpack__`, which is ready for use next to some memory, and
/// returns its result.
pub(crate) fn take(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    memory: Memory,
    copy: impl FnOnce(Source<'_>) -> Result<(), String>,
) -> PyResult<Result<(), String>> {
    let arguments = PyDict::new(py);
    let from: (i32, i32) = source.call_method0("__dlpack_device__")?.extract()?;
    if from.0 == CUDA && memory.stream != 0 {
        // The source makes our stream wait for its own.
        arguments.set_item("stream", memory.stream)?;
    }
    let capsule = source.call_method("__dlpack__", (), Some(&arguments))?;
    let capsule = capsule.cast_into::<PyCapsule>()?;
    // SAFETY: the capsule has this name, so its pointer is that of a tensor, which it owns until it is renamed.
    let managed = unsafe {
        ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr()).cast::<ManagedTensor>()
    };
    // SAFETY: a null pointer is an error of Python; the capsule keeps the tensor during this call.
    let Some(own) = (unsafe { managed.as_ref() }) else {
        return Err(PyErr::fetch(py));
    };
    let copied = copy(Source(&own.tensor));
    // SAFETY: the tensor is used once more, by its deleter, which the renamed capsule leaves to us.
    unsafe {
        ffi::PyCapsule_SetName(capsule.as_ptr(), USED.as_ptr());
        if let Some(deleter) = own.deleter {
            deleter(managed);
        }
    }
    Ok(copied)
}

impl Source<'_> {
    /// Copies the tensor into a vector with this memory: one of the host in the order of arrays, one on the same device
    /// in the order of the memory.
    pub(crate) fn copy_to(&self, vector: &mut Vector, memory: Memory) -> Result<(), String> {
        let from = self.0;
        let DataType { code, bits, lanes } = from.kind;
        if (code, bits, lanes) != (FLOAT, 64, 1) {
            return Err(format!(
                "the entries have the type ({code}, {bits} bits); expected float64"
            ));
        }
        if from.dimensions != 1 {
            return Err(format!("the tensor has {} dimensions; expected 1", from.dimensions));
        }
        // SAFETY: the protocol gives the shape as many entries as dimensions, and the strides too, or none.
        let (len, stride) = unsafe {
            let stride = if from.strides.is_null() { 1 } else { *from.strides };
            (usize::try_from(*from.shape).unwrap_or_default(), stride)
        };
        if stride != 1 && len > 1 {
            return Err(format!("the entries are {stride} apart; expected contiguous ones"));
        }
        let is_host = from.device.kind == CPU;
        let expected = if is_host { vector.len() } else { memory.len };
        if len != expected {
            return Err(format!("the tensor has {len} entries; expected {expected}"));
        }
        let pointer = from.data.cast::<u8>().wrapping_add(from.offset as usize);
        if is_host {
            // SAFETY: so many contiguous numbers lie there, and the tensor keeps them during this call.
            let entries = unsafe { std::slice::from_raw_parts(pointer.cast::<f64>(), len) };
            vector.set(entries);
            return Ok(());
        }
        let found = (from.device.kind, from.device.number);
        if found != memory.device {
            return Err(format!(
                "the tensor is on the device {found:?}, the vector on {:?}",
                memory.device
            ));
        }
        let device = vector.array().map(|(arithmetic, _)| Arc::clone(arithmetic.device()));
        let (Some(device), Some(array)) = (device, vector.array_mut()) else {
            return Err(DeviceError::Foreign.to_string());
        };
        // SAFETY: the tensor has so many bytes on this device, and its owner has made our stream wait for their writer.
        unsafe { device.write_from(array, pointer as u64, 8 * len) }
            .map_err(|error| error.to_string())
    }
}

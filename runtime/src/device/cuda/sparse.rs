//! Products with a sparse matrix by NVIDIA's cuSPARSE: how assembled operators are applied, and what others are measured against.
//!
//! From compressed rows on the GPU to y = A x in double precision, with the library's own choice of algorithm. Indices take 32
//! bits, as in any code that wants to be fast.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cudarc::cusparse::{result, sys};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};

use super::error::{CudaError, driver};
use super::record::Recorder;
use crate::device::interface::{Own, Owner};
use crate::device::{Array, DeviceError, SparseMatrix};

/// The type of the entries.
const REAL: sys::cudaDataType = sys::cudaDataType::CUDA_R_64F;
/// The type of rows and columns, counted from 0.
const INDEX: sys::cusparseIndexType_t = sys::cusparseIndexType_t::CUSPARSE_INDEX_32I;
const BASE: sys::cusparseIndexBase_t = sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO;
/// The matrix as it is, not transposed.
const AS_IS: sys::cusparseOperation_t = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
/// The library chooses.
const DEFAULT: sys::cusparseSpMVAlg_t = sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_ALG_DEFAULT;

/// The error of something that cuSPARSE refused.
fn refused(what: &str) -> impl Fn(result::CusparseError) -> CudaError + '_ {
    move |error| CudaError::Driver { what: what.to_owned(), error: format!("{:?}", error.0) }
}

/// A matrix in the memory of a GPU.
pub(super) struct Sparse {
    owner: Owner,
    stream: Arc<CudaStream>,
    recorder: Arc<Recorder>,
    handle: sys::cusparseHandle_t,
    matrix: sys::cusparseSpMatDescr_t,
    rows: usize,
    /// Starts, columns and values: what the descriptor points to.
    arrays: [Own; 3],
    /// The library's own room; made with the first product.
    buffer: CudaSlice<u8>,
}

/// An address as cuSPARSE takes it.
fn address(pointer: u64) -> *mut c_void {
    pointer as *mut c_void
}

impl Sparse {
    /// The square matrix with these starts, columns and values, which stay where they are; nothing where cuSPARSE is not
    /// installed, or the matrix has more entries than 32-bit indices number.
    pub(super) fn new(
        owner: Owner,
        (stream, recorder): (&Arc<CudaStream>, &Arc<Recorder>),
        rows: usize,
        arrays: [&Array; 3],
    ) -> Result<Option<Self>, DeviceError> {
        // SAFETY: looks for the library and loads it, no more.
        let present = unsafe { sys::is_culib_present() };
        let entries = arrays[2].len();
        let fits = i32::try_from(entries).is_ok() && i32::try_from(rows).is_ok();
        if !present || !fits || rows == 0 || entries == 0 {
            return Ok(None);
        }
        for array in arrays {
            array.memory::<CudaSlice<u8>>(owner)?;
        }
        let buffer = stream.alloc_zeros::<u8>(8).map_err(driver("reserve memory for cuSPARSE"))?;
        let handle = result::create().map_err(refused("begin with cuSPARSE"))?;
        let mut sparse = Self {
            owner,
            stream: Arc::clone(stream),
            recorder: Arc::clone(recorder),
            handle,
            matrix: ptr::null_mut(),
            rows,
            arrays: arrays.map(Array::own),
            buffer,
        };
        sparse.describe(arrays)?;
        sparse.make_room()?;
        Ok(Some(sparse))
    }

    /// Makes the descriptor.
    fn describe(&mut self, arrays: [&Array; 3]) -> Result<(), DeviceError> {
        let (rows, entries) = (self.rows as i64, arrays[2].len() as i64);
        let [starts, columns, values] =
            arrays.map(|array| array.memory::<CudaSlice<u8>>(self.owner));
        let (starts, _starts) = starts?.device_ptr(&self.stream);
        let (columns, _columns) = columns?.device_ptr(&self.stream);
        let (values, _values) = values?.device_ptr(&self.stream);
        // SAFETY: the stream lives as long as the handle; the three arrays live as long as the descriptor and have the
        // lengths and types that it is told.
        unsafe {
            sys::cusparseSetStream(self.handle, self.stream.cu_stream().cast())
                .result()
                .map_err(refused("choose a stream for cuSPARSE"))?;
            sys::cusparseCreateCsr(
                &mut self.matrix,
                rows,
                rows,
                entries,
                address(starts),
                address(columns),
                address(values),
                INDEX,
                INDEX,
                BASE,
                REAL,
            )
            .result()
            .map_err(refused("describe a matrix to cuSPARSE"))?;
        }
        Ok(())
    }

    /// Reserves what a product needs.
    fn make_room(&mut self) -> Result<(), CudaError> {
        let room = driver("reserve memory for cuSPARSE");
        let x = self.stream.alloc_zeros::<f64>(self.rows).map_err(&room)?;
        let mut y = self.stream.alloc_zeros::<f64>(self.rows).map_err(&room)?;
        let mut bytes = 0;
        {
            let (x, _x) = x.device_ptr(&self.stream);
            let (y, _y) = y.device_ptr_mut(&self.stream);
            self.with_vectors(x, y, |x, y, one, zero| {
                // SAFETY: the descriptors are those of this matrix and of vectors of its length.
                unsafe {
                    sys::cusparseSpMV_bufferSize(
                        self.handle,
                        AS_IS,
                        one,
                        self.matrix.cast_const(),
                        x,
                        zero,
                        y,
                        REAL,
                        DEFAULT,
                        &mut bytes,
                    )
                }
            })?;
        }
        self.buffer = self.stream.alloc_zeros::<u8>(bytes.max(8)).map_err(&room)?;
        Ok(())
    }

    /// Calls cuSPARSE with descriptors of two vectors, and with 1 and 0.
    fn with_vectors(
        &self,
        x: u64,
        y: u64,
        call: impl FnOnce(
            sys::cusparseConstDnVecDescr_t,
            sys::cusparseDnVecDescr_t,
            *const c_void,
            *const c_void,
        ) -> sys::cusparseStatus_t,
    ) -> Result<(), CudaError> {
        let (one, zero) = (1.0_f64, 0.0_f64);
        let describe = |pointer: u64| {
            let mut vector = ptr::null_mut();
            // SAFETY: the caller's vectors have as many entries as the matrix has rows.
            let made = unsafe {
                sys::cusparseCreateDnVec(&mut vector, self.rows as i64, address(pointer), REAL)
            };
            made.result().map(|()| vector).map_err(refused("describe a vector to cuSPARSE"))
        };
        let (x, y) = (describe(x)?, describe(y)?);
        let done = call(x.cast_const(), y, (&raw const one).cast(), (&raw const zero).cast());
        // SAFETY: both were just made, and nobody else knows them.
        unsafe {
            let _ = sys::cusparseDestroyDnVec(x.cast_const());
            let _ = sys::cusparseDestroyDnVec(y.cast_const());
        }
        done.result().map_err(refused("multiply with cuSPARSE"))
    }
}

// SAFETY: a handle of cuSPARSE may be used by any thread, one at a time, and nobody can use it through a shared reference of
// another thread: this type is not `Sync`.
unsafe impl Send for Sparse {}

impl SparseMatrix for Sparse {
    fn apply(&self, x: &Array, y: &mut Array) -> Result<(), DeviceError> {
        // Its work goes to one stream, and not to where work is recorded.
        self.recorder.refuse("multiply with cuSPARSE")?;
        let bytes = self.rows * size_of::<f64>();
        let x = x.memory::<CudaSlice<u8>>(self.owner)?;
        let y = y.memory::<CudaSlice<u8>>(self.owner)?;
        if x.len() < bytes || y.len() < bytes {
            return Err(DeviceError::Mismatch { operation: "sparse matrix times vector" });
        }
        let (x, _x) = x.device_ptr(&self.stream);
        let (y, _y) = y.device_ptr(&self.stream);
        let (buffer, _buffer) = self.buffer.device_ptr(&self.stream);
        // What it reads is there as long as this is.
        debug_assert!(self.arrays.iter().all(|array| Arc::strong_count(array) > 0));
        let done = self.with_vectors(x, y, |x, y, one, zero| {
            // SAFETY: the descriptors are those of this matrix and of vectors of its length; the buffer has the size
            // that cuSPARSE asked for. One stream orders all that use them.
            unsafe {
                sys::cusparseSpMV(
                    self.handle,
                    AS_IS,
                    one,
                    self.matrix.cast_const(),
                    x,
                    zero,
                    y,
                    REAL,
                    DEFAULT,
                    address(buffer),
                )
            }
        });
        Ok(done?)
    }
}

impl Drop for Sparse {
    fn drop(&mut self) {
        // SAFETY: both are this value's own, and no work with them is begun after this.
        unsafe {
            if !self.matrix.is_null() {
                let _ = sys::cusparseDestroySpMat(self.matrix.cast_const());
            }
            let _ = result::destroy(self.handle);
        }
    }
}

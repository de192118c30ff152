//! Products with a sparse matrix by NVIDIA's cuSPARSE, for assembled operators and as a reference for measurements.
//!
//! Matrices are in compressed rows on the GPU, in double precision with 32-bit indices. The library chooses the
//! algorithm of y = A x.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cudarc::cusparse::{result, sys};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};

use super::error::{CudaError, driver};
use super::record::Recorder;
use crate::device::array::{BackendData, OwnerId};
use crate::device::{Array, DeviceError, SparseMatrix};

/// Data type of the entries.
const REAL: sys::cudaDataType = sys::cudaDataType::CUDA_R_64F;
/// Data type of row starts and columns, counted from 0.
const INDEX: sys::cusparseIndexType_t = sys::cusparseIndexType_t::CUSPARSE_INDEX_32I;
const BASE: sys::cusparseIndexBase_t = sys::cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO;
/// The matrix itself, not its transpose.
const AS_IS: sys::cusparseOperation_t = sys::cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
/// The algorithm is the library's choice.
const DEFAULT: sys::cusparseSpMVAlg_t = sys::cusparseSpMVAlg_t::CUSPARSE_SPMV_ALG_DEFAULT;

/// Returns the error of a failed cuSPARSE call.
fn refused(what: &str) -> impl Fn(result::CusparseError) -> CudaError + '_ {
    move |error| CudaError::Driver { what: what.to_owned(), error: format!("{:?}", error.0) }
}

/// A matrix in the memory of a GPU.
pub(super) struct CusparseMatrix {
    owner: OwnerId,
    stream: Arc<CudaStream>,
    recorder: Arc<Recorder>,
    handle: sys::cusparseHandle_t,
    matrix: sys::cusparseSpMatDescr_t,
    rows: usize,
    /// Row starts, columns and values: the arrays of the descriptor.
    arrays: [BackendData; 3],
    /// Work space of the library, allocated at construction.
    buffer: CudaSlice<u8>,
}

/// Returns an address as a pointer for cuSPARSE.
fn address(pointer: u64) -> *mut c_void {
    pointer as *mut c_void
}

impl CusparseMatrix {
    /// Creates the square matrix with these row starts, columns and values, without copying them. Returns `None` if
    /// cuSPARSE is not installed, or if row or entry counts exceed 32-bit indices or are zero.
    pub(super) fn new(
        owner: OwnerId,
        (stream, recorder): (&Arc<CudaStream>, &Arc<Recorder>),
        rows: usize,
        arrays: [&Array; 3],
    ) -> Result<Option<Self>, DeviceError> {
        // SAFETY: the call only looks for the library and loads it.
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

    /// Creates the matrix descriptor.
    fn describe(&mut self, arrays: [&Array; 3]) -> Result<(), DeviceError> {
        let (rows, entries) = (self.rows as i64, arrays[2].len() as i64);
        let [starts, columns, values] =
            arrays.map(|array| array.memory::<CudaSlice<u8>>(self.owner));
        let (starts, _starts) = starts?.device_ptr(&self.stream);
        let (columns, _columns) = columns?.device_ptr(&self.stream);
        let (values, _values) = values?.device_ptr(&self.stream);
        // SAFETY: the stream lives as long as the handle. The three arrays live as long as the descriptor, and have the
        // lengths and types given here.
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

    /// Allocates the work space of a product.
    fn make_room(&mut self) -> Result<(), CudaError> {
        let room = driver("reserve memory for cuSPARSE");
        let x = self.stream.alloc_zeros::<f64>(self.rows).map_err(&room)?;
        let mut y = self.stream.alloc_zeros::<f64>(self.rows).map_err(&room)?;
        let mut bytes = 0;
        {
            let (x, _x) = x.device_ptr(&self.stream);
            let (y, _y) = y.device_ptr_mut(&self.stream);
            self.with_vectors(x, y, |x, y, one, zero| {
                // SAFETY: the descriptors belong to this matrix and to vectors of its length.
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
        // SAFETY: both were created above and are not used elsewhere.
        unsafe {
            let _ = sys::cusparseDestroyDnVec(x.cast_const());
            let _ = sys::cusparseDestroyDnVec(y.cast_const());
        }
        done.result().map_err(refused("multiply with cuSPARSE"))
    }
}

// SAFETY: any thread may use a cuSPARSE handle, one at a time. The type is not `Sync`, so shared references stay on one
// thread.
unsafe impl Send for CusparseMatrix {}

impl SparseMatrix for CusparseMatrix {
    fn apply(&self, x: &Array, y: &mut Array) -> Result<(), DeviceError> {
        // The product runs on the handle's stream, so it cannot be recorded.
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
        // The arrays live as long as this matrix.
        debug_assert!(self.arrays.iter().all(|array| Arc::strong_count(array) > 0));
        let done = self.with_vectors(x, y, |x, y, one, zero| {
            // SAFETY: the descriptors belong to this matrix and to vectors of its length. The buffer has the size that
            // cuSPARSE requested, and all its uses are ordered on one stream.
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

impl Drop for CusparseMatrix {
    fn drop(&mut self) {
        // SAFETY: this value owns both handles, and no work with them starts afterwards.
        unsafe {
            if !self.matrix.is_null() {
                let _ = sys::cusparseDestroySpMat(self.matrix.cast_const());
            }
            let _ = result::destroy(self.handle);
        }
    }
}

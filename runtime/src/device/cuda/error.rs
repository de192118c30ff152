//! Errors of GPUs, with remedies.

use cudarc::driver::DriverError;

/// Error of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// No driver.
    #[error(
        "no CUDA driver: libcuda was not found\nhelp: install NVIDIA's driver, or use another backend"
    )]
    NoDriver,
    /// No NVRTC.
    #[error(
        "NVRTC was not found\nhelp: install CUDA's toolkit, or `pip install nvidia-cuda-nvrtc-cu12`, \
         and put the folder of libnvrtc on LD_LIBRARY_PATH"
    )]
    NoCompiler,
    /// No GPU with the given number or name.
    #[error(
        "there is no GPU `{wanted}`: CUDA finds {count}\n\
         help: name one by its number, from 0, or by a part of its name; or use another backend"
    )]
    NoDevice {
        /// The given number or name.
        wanted: String,
        /// The number of GPUs.
        count: usize,
    },
    /// Insufficient GPU memory.
    #[error(
        "{device} has no room for {bytes} bytes: {free} of its {memory} bytes are free\n\
         help: take a smaller problem, or single precision, or another GPU"
    )]
    OutOfMemory {
        /// The GPU.
        device: String,
        /// The requested bytes.
        bytes: usize,
        /// The free bytes.
        free: usize,
        /// The total bytes.
        memory: usize,
    },
    /// A driver error.
    #[error("CUDA could not {what}: {error}")]
    Driver {
        /// The operation.
        what: String,
        /// The driver's message.
        error: String,
    },
    /// Kernels that do not compile.
    #[error("NVRTC does not compile {name} for {arch}; the source is {dump}\n{log}")]
    Rejected {
        /// The description of the source.
        name: String,
        /// The architecture.
        arch: String,
        /// The saved source.
        dump: String,
        /// The log of NVRTC.
        log: String,
    },
}

/// Returns the driver's message.
pub(super) fn text(error: DriverError) -> String {
    error.to_string()
}

/// Returns the error of an operation that the driver rejects.
pub(super) fn driver(what: &str) -> impl Fn(DriverError) -> CudaError + '_ {
    move |error| CudaError::Driver { what: what.to_owned(), error: error.to_string() }
}

//! What goes wrong on the way to a GPU or on it, each with its remedy.

use cudarc::driver::DriverError;

/// Why a GPU cannot do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// There is no driver.
    #[error(
        "no CUDA driver: libcuda was not found\nhelp: install NVIDIA's driver, or use another backend"
    )]
    NoDriver,
    /// There is no NVRTC.
    #[error(
        "NVRTC was not found\nhelp: install CUDA's toolkit, or `pip install nvidia-cuda-nvrtc-cu12`, \
         and put the folder of libnvrtc on LD_LIBRARY_PATH"
    )]
    NoCompiler,
    /// There is no such GPU.
    #[error(
        "there is no GPU `{wanted}`: CUDA finds {count}\n\
         help: name one by its number, from 0, or by a part of its name; or use another backend"
    )]
    NoDevice {
        /// What was asked for.
        wanted: String,
        /// How many there are.
        count: usize,
    },
    /// The GPU has too little memory.
    #[error(
        "{device} has no room for {bytes} bytes: {free} of its {memory} bytes are free\n\
         help: take a smaller problem, or single precision, or another GPU"
    )]
    OutOfMemory {
        /// The GPU.
        device: String,
        /// How much was asked for.
        bytes: usize,
        /// How much is free.
        free: usize,
        /// How much there is.
        memory: usize,
    },
    /// The driver refused something.
    #[error("CUDA could not {what}: {error}")]
    Driver {
        /// What was tried.
        what: String,
        /// What the driver says.
        error: String,
    },
    /// The kernels do not compile.
    #[error("NVRTC does not compile {name} for {arch}; the source is {dump}\n{log}")]
    Rejected {
        /// What the source is about.
        name: String,
        /// The architecture.
        arch: String,
        /// Where the source can be read.
        dump: String,
        /// What NVRTC says.
        log: String,
    },
}

/// What the driver says.
pub(super) fn text(error: DriverError) -> String {
    error.to_string()
}

/// The error of something that the driver refused.
pub(super) fn driver(what: &str) -> impl Fn(DriverError) -> CudaError + '_ {
    move |error| CudaError::Driver { what: what.to_owned(), error: error.to_string() }
}

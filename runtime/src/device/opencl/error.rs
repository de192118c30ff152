//! Errors of OpenCL devices, with remedies.

use super::api::Status;

/// Error of an OpenCL device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenClError {
    /// No installed library.
    #[error(
        "the OpenCL library was not found\n\
         help: install it and a driver (Debian, on the CPU: apt-get install ocl-icd-libopencl1 pocl-opencl-icd), and \
         put the folder of libOpenCL.so.1 on LD_LIBRARY_PATH if it is in none of the system's"
    )]
    NoLibrary,
    /// No installed driver.
    #[error(
        "there is no OpenCL platform\n\
         help: install a driver and the ICD file that names it (Debian, on the CPU: apt-get install \
         pocl-opencl-icd; NVIDIA: a file in /etc/OpenCL/vendors that says libnvidia-opencl.so.1)"
    )]
    NoPlatform,
    /// No platform or device with the given name.
    #[error(
        "no OpenCL platform or device is called `{wanted}`; there are {found}\n\
         help: WF_OPENCL takes a part of a platform's or a device's name"
    )]
    Unknown {
        /// The given name.
        wanted: String,
        /// The available devices.
        found: String,
    },
    /// No device with double precision.
    #[error(
        "no OpenCL device computes in double precision (cl_khr_fp64); there are {found}\n\
         help: use another backend, or install PoCL, which computes on the CPU"
    )]
    NoDoubles {
        /// The available devices.
        found: String,
    },
    /// Insufficient device memory.
    #[error(
        "{device} has no room for {bytes} bytes: {status}; it has {memory} bytes in all, and at \
         most {largest} for one array\n\
         help: take a smaller problem, or single precision, or another device with WF_OPENCL"
    )]
    OutOfMemory {
        /// The device.
        device: String,
        /// The requested bytes.
        bytes: usize,
        /// The total memory in bytes.
        memory: u64,
        /// The largest array in bytes.
        largest: u64,
        /// The driver's status.
        status: Status,
    },
    /// A source that the driver's compiler rejects.
    #[error("{device} could not compile {name}: {status}; its source is {dump}\n{log}")]
    Rejected {
        /// The device.
        device: String,
        /// The description of the source.
        name: String,
        /// The driver's status.
        status: Status,
        /// The compiler's log.
        log: String,
        /// The saved source.
        dump: String,
    },
    /// A kernel that needs more threads per group than the device supports.
    #[error(
        "`{kernel}` needs {threads} threads a group, and {device} has {most}\n\
         help: plan with fewer cells a batch"
    )]
    TooManyThreads {
        /// The kernel.
        kernel: String,
        /// The kernel's threads per group.
        threads: usize,
        /// The device.
        device: String,
        /// The device's limit.
        most: usize,
    },
    /// Another driver error.
    #[error("OpenCL could not {what}: {status}")]
    Driver {
        /// The operation.
        what: String,
        /// The driver's status.
        status: Status,
    },
}

/// Returns the error of an operation that the driver rejects.
pub(super) fn driver(what: &str) -> impl Fn(Status) -> OpenClError + '_ {
    move |status| OpenClError::Driver { what: what.to_owned(), status }
}

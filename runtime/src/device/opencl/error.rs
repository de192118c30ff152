//! What goes wrong on the way to an OpenCL device or on it, each with its remedy.

use super::api::Status;

/// Why an OpenCL device cannot do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenClError {
    /// No driver is installed.
    #[error(
        "there is no OpenCL platform\n\
         help: install a driver and the ICD file that names it (Debian, on the CPU: apt-get install \
         pocl-opencl-icd; NVIDIA: a file in /etc/OpenCL/vendors that says libnvidia-opencl.so.1)"
    )]
    NoPlatform,
    /// No platform and no device of that name.
    #[error(
        "no OpenCL platform or device is called `{wanted}`; there are {found}\n\
         help: WF_OPENCL takes a part of a platform's or a device's name"
    )]
    Unknown {
        /// What was asked for.
        wanted: String,
        /// What there is.
        found: String,
    },
    /// No device computes in double precision.
    #[error(
        "no OpenCL device computes in double precision (cl_khr_fp64); there are {found}\n\
         help: use another backend, or install PoCL, which computes on the CPU"
    )]
    NoDoubles {
        /// What there is.
        found: String,
    },
    /// The device has too little memory.
    #[error(
        "{device} has no room for {bytes} bytes: {status}; it has {memory} bytes in all, and at \
         most {largest} for one array\n\
         help: take a smaller problem, or single precision, or another device with WF_OPENCL"
    )]
    OutOfMemory {
        /// The device.
        device: String,
        /// How much was asked for.
        bytes: usize,
        /// How much it has.
        memory: u64,
        /// How much one array may have.
        largest: u64,
        /// What the driver said.
        status: Status,
    },
    /// The driver's compiler refused the source.
    #[error("{device} could not compile {name}: {status}; its source is {dump}\n{log}")]
    Rejected {
        /// The device.
        device: String,
        /// What the source is about.
        name: String,
        /// What the driver said.
        status: Status,
        /// What its compiler wrote.
        log: String,
        /// Where the source can be read.
        dump: String,
    },
    /// A kernel needs more threads a group than the device has.
    #[error(
        "`{kernel}` needs {threads} threads a group, and {device} has {most}\n\
         help: plan with fewer cells a batch"
    )]
    TooManyThreads {
        /// The kernel.
        kernel: String,
        /// Its threads a group.
        threads: usize,
        /// The device.
        device: String,
        /// The device's most.
        most: usize,
    },
    /// The driver refused something else.
    #[error("OpenCL could not {what}: {status}")]
    Driver {
        /// What was tried.
        what: String,
        /// What the driver said.
        status: Status,
    },
}

/// The error of something that the driver refused.
pub(super) fn driver(what: &str) -> impl Fn(Status) -> OpenClError + '_ {
    move |status| OpenClError::Driver { what: what.to_owned(), status }
}

//! The used functions, types and numbers of OpenCL 1.2, as declared in `CL/cl.h`; the library is loaded at run time.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use libloading::Library;

/// The file names of the library; packages without headers contain only the first.
const FILES: [&str; 4] = [
    "libOpenCL.so.1",
    "libOpenCL.so",
    "OpenCL.dll",
    "/System/Library/Frameworks/OpenCL.framework/OpenCL",
];

/// A handle of a platform, a device, a context, a queue, a buffer, a program, a kernel or an event.
pub(super) type Handle = *mut c_void;

/// A set of flags.
pub(super) type Flags = u64;

/// A function that is told of errors or of a finished compilation; always absent here.
type Callback = *const c_void;

pub(super) const SUCCESS: c_int = 0;
pub(super) const DEVICE_NOT_FOUND: c_int = -1;
pub(super) const DEVICE_NOT_AVAILABLE: c_int = -2;
pub(super) const COMPILER_NOT_AVAILABLE: c_int = -3;
pub(super) const MEM_OBJECT_ALLOCATION_FAILURE: c_int = -4;
pub(super) const OUT_OF_RESOURCES: c_int = -5;
pub(super) const OUT_OF_HOST_MEMORY: c_int = -6;
pub(super) const PROFILING_INFO_NOT_AVAILABLE: c_int = -7;
pub(super) const BUILD_PROGRAM_FAILURE: c_int = -11;
pub(super) const INVALID_VALUE: c_int = -30;
pub(super) const INVALID_BINARY: c_int = -42;
pub(super) const INVALID_BUILD_OPTIONS: c_int = -43;
pub(super) const INVALID_KERNEL_NAME: c_int = -46;
pub(super) const INVALID_ARG_SIZE: c_int = -51;
pub(super) const INVALID_KERNEL_ARGS: c_int = -52;
pub(super) const INVALID_WORK_GROUP_SIZE: c_int = -54;
pub(super) const INVALID_BUFFER_SIZE: c_int = -61;
pub(super) const PLATFORM_NOT_FOUND: c_int = -1001;

pub(super) const PLATFORM_VERSION: c_uint = 0x0901;
pub(super) const PLATFORM_NAME: c_uint = 0x0902;
pub(super) const DEVICE_TYPE: c_uint = 0x1000;
pub(super) const DEVICE_MAX_WORK_GROUP_SIZE: c_uint = 0x1004;
pub(super) const DEVICE_MAX_MEM_ALLOC_SIZE: c_uint = 0x1010;
pub(super) const DEVICE_GLOBAL_MEM_SIZE: c_uint = 0x101F;
pub(super) const DEVICE_LOCAL_MEM_SIZE: c_uint = 0x1023;
pub(super) const DEVICE_NAME: c_uint = 0x102B;
pub(super) const DRIVER_VERSION: c_uint = 0x102D;
pub(super) const DEVICE_EXTENSIONS: c_uint = 0x1030;
pub(super) const PROGRAM_BINARY_SIZES: c_uint = 0x1165;
pub(super) const PROGRAM_BINARIES: c_uint = 0x1166;
pub(super) const PROGRAM_BUILD_LOG: c_uint = 0x1183;
pub(super) const KERNEL_PRIVATE_MEM_SIZE: c_uint = 0x11B4;
pub(super) const PROFILING_COMMAND_END: c_uint = 0x1283;

pub(super) const DEVICE_TYPE_CPU: Flags = 1 << 1;
pub(super) const DEVICE_TYPE_ALL: Flags = 0xFFFF_FFFF;
pub(super) const QUEUE_PROFILING_ENABLE: Flags = 1 << 1;
pub(super) const MEM_READ_WRITE: Flags = 1;
pub(super) const TRUE: c_uint = 1;

/// Defines the table of functions, and loads each by its C name.
macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*) -> $result:ty;)*) => {
        /// The used functions of the library.
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "system" fn($($argument),*) -> $result,)*
            /// Keeps the functions loaded.
            _file: Library,
        }

        impl Functions {
            fn load() -> Option<Self> {
                // SAFETY: the initialisers of OpenCL are sound.
                let file = FILES.iter().find_map(|name| unsafe { Library::new(*name) }.ok())?;
                // SAFETY: the functions have these types in every version from 1.2 on. They live as long as the file,
                // which is stored with them.
                unsafe {
                    Some(Self {
                        $($name: *file.get(concat!($symbol, "\0").as_bytes()).ok()?,)*
                        _file: file,
                    })
                }
            }
        }
    };
}

functions! {
    platforms = "clGetPlatformIDs" (c_uint, *mut Handle, *mut c_uint) -> c_int;
    platform = "clGetPlatformInfo" (Handle, c_uint, usize, *mut c_void, *mut usize) -> c_int;
    devices = "clGetDeviceIDs" (Handle, Flags, c_uint, *mut Handle, *mut c_uint) -> c_int;
    device = "clGetDeviceInfo" (Handle, c_uint, usize, *mut c_void, *mut usize) -> c_int;
    create_context = "clCreateContext"
        (*const isize, c_uint, *const Handle, Callback, *mut c_void, *mut c_int) -> Handle;
    release_context = "clReleaseContext" (Handle) -> c_int;
    create_queue = "clCreateCommandQueue" (Handle, Handle, Flags, *mut c_int) -> Handle;
    release_queue = "clReleaseCommandQueue" (Handle) -> c_int;
    create_buffer = "clCreateBuffer" (Handle, Flags, usize, *mut c_void, *mut c_int) -> Handle;
    release_memory = "clReleaseMemObject" (Handle) -> c_int;
    create_from_source = "clCreateProgramWithSource"
        (Handle, c_uint, *const *const c_char, *const usize, *mut c_int) -> Handle;
    create_from_binary = "clCreateProgramWithBinary"
        (Handle, c_uint, *const Handle, *const usize, *const *const u8, *mut c_int, *mut c_int) -> Handle;
    release_program = "clReleaseProgram" (Handle) -> c_int;
    build = "clBuildProgram"
        (Handle, c_uint, *const Handle, *const c_char, Callback, *mut c_void) -> c_int;
    program = "clGetProgramInfo" (Handle, c_uint, usize, *mut c_void, *mut usize) -> c_int;
    program_build = "clGetProgramBuildInfo"
        (Handle, Handle, c_uint, usize, *mut c_void, *mut usize) -> c_int;
    create_kernel = "clCreateKernel" (Handle, *const c_char, *mut c_int) -> Handle;
    release_kernel = "clReleaseKernel" (Handle) -> c_int;
    kernel_of_device = "clGetKernelWorkGroupInfo"
        (Handle, Handle, c_uint, usize, *mut c_void, *mut usize) -> c_int;
    set_argument = "clSetKernelArg" (Handle, c_uint, usize, *const c_void) -> c_int;
    launch = "clEnqueueNDRangeKernel"
        (Handle, Handle, c_uint, *const usize, *const usize, *const usize, c_uint, *const Handle, *mut Handle) -> c_int;
    write = "clEnqueueWriteBuffer"
        (Handle, Handle, c_uint, usize, usize, *const c_void, c_uint, *const Handle, *mut Handle) -> c_int;
    read = "clEnqueueReadBuffer"
        (Handle, Handle, c_uint, usize, usize, *mut c_void, c_uint, *const Handle, *mut Handle) -> c_int;
    fill = "clEnqueueFillBuffer"
        (Handle, Handle, *const c_void, usize, usize, usize, c_uint, *const Handle, *mut Handle) -> c_int;
    finish = "clFinish" (Handle) -> c_int;
    mark = "clEnqueueMarkerWithWaitList" (Handle, c_uint, *const Handle, *mut Handle) -> c_int;
    wait = "clWaitForEvents" (c_uint, *const Handle) -> c_int;
    event_time = "clGetEventProfilingInfo" (Handle, c_uint, usize, *mut c_void, *mut usize) -> c_int;
    release_event = "clReleaseEvent" (Handle) -> c_int;
}

impl Functions {
    /// Returns the library, searched for once.
    pub(super) fn find() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
        FOUND.get_or_init(Self::load).as_ref()
    }
}

/// Returns the functions, for handles that the library has created.
pub(super) fn cl() -> &'static Functions {
    Functions::find().expect("a handle of OpenCL should come from its library")
}

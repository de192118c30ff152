//! Owning handles around the functions of OpenCL, with numeric errors.

use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::fmt;
use std::ptr;

use super::functions::{self as ffi, Functions, Handle, cl};

/// An error code of OpenCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub i32);

impl Status {
    /// Returns whether the error is a lack of memory.
    pub fn is_memory(self) -> bool {
        [
            ffi::MEM_OBJECT_ALLOCATION_FAILURE,
            ffi::OUT_OF_RESOURCES,
            ffi::OUT_OF_HOST_MEMORY,
            ffi::INVALID_BUFFER_SIZE,
        ]
        .contains(&self.0)
    }

    fn name(self) -> &'static str {
        match self.0 {
            ffi::DEVICE_NOT_FOUND => "CL_DEVICE_NOT_FOUND",
            ffi::DEVICE_NOT_AVAILABLE => "CL_DEVICE_NOT_AVAILABLE",
            ffi::COMPILER_NOT_AVAILABLE => "CL_COMPILER_NOT_AVAILABLE",
            ffi::MEM_OBJECT_ALLOCATION_FAILURE => "CL_MEM_OBJECT_ALLOCATION_FAILURE",
            ffi::OUT_OF_RESOURCES => "CL_OUT_OF_RESOURCES",
            ffi::OUT_OF_HOST_MEMORY => "CL_OUT_OF_HOST_MEMORY",
            ffi::PROFILING_INFO_NOT_AVAILABLE => "CL_PROFILING_INFO_NOT_AVAILABLE",
            ffi::BUILD_PROGRAM_FAILURE => "CL_BUILD_PROGRAM_FAILURE",
            ffi::INVALID_VALUE => "CL_INVALID_VALUE",
            ffi::INVALID_BINARY => "CL_INVALID_BINARY",
            ffi::INVALID_BUILD_OPTIONS => "CL_INVALID_BUILD_OPTIONS",
            ffi::INVALID_KERNEL_NAME => "CL_INVALID_KERNEL_NAME",
            ffi::INVALID_KERNEL_ARGS => "CL_INVALID_KERNEL_ARGS",
            ffi::INVALID_ARG_SIZE => "CL_INVALID_ARG_SIZE",
            ffi::INVALID_WORK_GROUP_SIZE => "CL_INVALID_WORK_GROUP_SIZE",
            ffi::INVALID_BUFFER_SIZE => "CL_INVALID_BUFFER_SIZE",
            ffi::PLATFORM_NOT_FOUND => "CL_PLATFORM_NOT_FOUND_KHR",
            _ => "an OpenCL error",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

/// Result of a call.
pub(super) type ClResult<T> = Result<T, Status>;

fn check(code: c_int) -> ClResult<()> {
    if code == ffi::SUCCESS { Ok(()) } else { Err(Status(code)) }
}

/// Queries a value of variable length: `ask(size, place, needed)` first returns the length, then the value.
fn answer(ask: impl Fn(usize, *mut c_void, *mut usize) -> c_int) -> ClResult<Vec<u8>> {
    let mut size = 0;
    check(ask(0, ptr::null_mut(), &mut size))?;
    let mut bytes = vec![0; size];
    check(ask(size, bytes.as_mut_ptr().cast(), ptr::null_mut()))?;
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> String {
    let whole = String::from_utf8_lossy(&bytes);
    whole.trim_end_matches('\0').trim().to_owned()
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// An OpenCL platform.
#[derive(Clone, Copy, Debug)]
pub(super) struct Platform(Handle);

/// Returns the platforms; empty without drivers, `None` without the library.
pub(super) fn platforms() -> ClResult<Option<Vec<Platform>>> {
    if Functions::find().is_none() {
        return Ok(None);
    }
    let mut count: c_uint = 0;
    // SAFETY: queries the number only.
    match check(unsafe { (cl().platforms)(0, ptr::null_mut(), &mut count) }) {
        Err(Status(ffi::PLATFORM_NOT_FOUND)) => return Ok(Some(Vec::new())),
        other => other?,
    }
    let mut ids = vec![ptr::null_mut(); count as usize];
    if count > 0 {
        // SAFETY: `ids` has space for `count`.
        check(unsafe { (cl().platforms)(count, ids.as_mut_ptr(), ptr::null_mut()) })?;
    }
    Ok(Some(ids.into_iter().map(Platform).collect()))
}

impl Platform {
    /// Returns the name and version.
    pub(super) fn words(self) -> ClResult<(String, String)> {
        let ask = |what| {
            answer(|size, place, needed| {
                // SAFETY: the platform exists as long as the program, and `place` has space for `size` bytes.
                unsafe { (cl().platform)(self.0, what, size, place, needed) }
            })
        };
        Ok((text(ask(ffi::PLATFORM_NAME)?), text(ask(ffi::PLATFORM_VERSION)?)))
    }

    /// Returns the devices of the platform.
    pub(super) fn devices(self) -> ClResult<Vec<DeviceId>> {
        let (all, mut count) = (ffi::DEVICE_TYPE_ALL, 0);
        // SAFETY: queries the number only.
        match check(unsafe { (cl().devices)(self.0, all, 0, ptr::null_mut(), &mut count) }) {
            Err(Status(ffi::DEVICE_NOT_FOUND)) => return Ok(Vec::new()),
            other => other?,
        }
        let mut ids = vec![ptr::null_mut(); count as usize];
        // SAFETY: `ids` has space for `count`.
        check(unsafe { (cl().devices)(self.0, all, count, ids.as_mut_ptr(), ptr::null_mut()) })?;
        Ok(ids.into_iter().map(DeviceId).collect())
    }
}

/// An OpenCL device; it exists as long as the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceId(Handle);

// SAFETY: root devices are never released, and any thread may call OpenCL.
unsafe impl Send for DeviceId {}
// SAFETY: as for `Send`.
unsafe impl Sync for DeviceId {}

impl DeviceId {
    fn ask(self, what: c_uint) -> ClResult<Vec<u8>> {
        answer(|size, place, needed| {
            // SAFETY: `place` has space for `size` bytes.
            unsafe { (cl().device)(self.0, what, size, place, needed) }
        })
    }

    pub(super) fn text(self, what: c_uint) -> ClResult<String> {
        self.ask(what).map(text)
    }

    pub(super) fn number(self, what: c_uint) -> ClResult<u64> {
        self.ask(what).map(|bytes| number(&bytes))
    }
}

/// Defines an owning handle.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $release:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name(Handle);

        // SAFETY: OpenCL counts references atomically, and any thread may call it.
        unsafe impl Send for $name {}
        // SAFETY: as for `Send`; kernel arguments, the exception, are set through `&mut` only.
        unsafe impl Sync for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the handle was created with one reference, which is released once.
                let _ = unsafe { (cl().$release)(self.0) };
            }
        }
    };
}

handle!(
    /// An OpenCL context, the owner of buffers, programs and queues.
    Context, release_context
);
handle!(
    /// An in-order command queue of a device.
    Queue, release_queue
);
handle!(
    /// A device buffer.
    Memory, release_memory
);
handle!(
    /// A compiled source.
    Program, release_program
);
handle!(
    /// A kernel of a program, with its arguments.
    Kernel, release_kernel
);
handle!(
    /// A marker in a queue.
    Event, release_event
);

impl Context {
    pub(super) fn new(device: DeviceId) -> ClResult<Self> {
        let mut code = 0;
        // SAFETY: one device, no properties, no callback.
        let raw = unsafe {
            (cl().create_context)(
                ptr::null(),
                1,
                &device.0,
                ptr::null(),
                ptr::null_mut(),
                &mut code,
            )
        };
        check(code).map(|()| Self(raw))
    }

    /// Creates a queue with profiling.
    pub(super) fn queue(&self, device: DeviceId) -> ClResult<Queue> {
        let mut code = 0;
        // SAFETY: the device belongs to the context.
        let raw = unsafe {
            (cl().create_queue)(self.0, device.0, ffi::QUEUE_PROFILING_ENABLE, &mut code)
        };
        check(code).map(|()| Queue(raw))
    }

    /// Allocates uninitialised memory.
    pub(super) fn memory(&self, bytes: usize) -> ClResult<Memory> {
        let (flags, mut code) = (ffi::MEM_READ_WRITE, 0);
        // SAFETY: without data nothing is read.
        let raw = unsafe { (cl().create_buffer)(self.0, flags, bytes, ptr::null_mut(), &mut code) };
        check(code).map(|()| Memory(raw))
    }

    pub(super) fn source(&self, text: &CStr) -> ClResult<Program> {
        let (start, length, mut code) = (text.as_ptr(), text.count_bytes(), 0);
        // SAFETY: one text with its length.
        let raw = unsafe { (cl().create_from_source)(self.0, 1, &start, &length, &mut code) };
        check(code).map(|()| Program(raw))
    }

    pub(super) fn binary(&self, device: DeviceId, binary: &[u8]) -> ClResult<Program> {
        let (start, length) = (binary.as_ptr(), binary.len());
        let (mut accepted, mut code) = (0, 0);
        // SAFETY: one device, and one binary with its length.
        let raw = unsafe {
            (cl().create_from_binary)(
                self.0,
                1,
                &device.0,
                &length,
                &start,
                &mut accepted,
                &mut code,
            )
        };
        check(code)?;
        let program = Program(raw);
        check(accepted).map(|()| program)
    }
}

impl Program {
    pub(super) fn build(&self, device: DeviceId, flags: &CStr) -> ClResult<()> {
        // SAFETY: the device belongs to the context; without a callback the call blocks.
        check(unsafe {
            (cl().build)(self.0, 1, &device.0, flags.as_ptr(), ptr::null(), ptr::null_mut())
        })
    }

    /// Returns the compiler's log.
    pub(super) fn log(&self, device: DeviceId) -> ClResult<String> {
        let what = ffi::PROGRAM_BUILD_LOG;
        let log = answer(|size, place, needed| {
            // SAFETY: `place` has space for `size` bytes.
            unsafe { (cl().program_build)(self.0, device.0, what, size, place, needed) }
        });
        log.map(text)
    }

    /// Returns the binary for the only device.
    pub(super) fn made(&self) -> ClResult<Vec<u8>> {
        let mut length: usize = 0;
        let mut place = (&raw mut length).cast();
        // SAFETY: the program has one device, so there is one length.
        check(unsafe {
            let what = ffi::PROGRAM_BINARY_SIZES;
            (cl().program)(self.0, what, size_of::<usize>(), place, ptr::null_mut())
        })?;
        let mut binary = vec![0_u8; length];
        let mut start = binary.as_mut_ptr();
        place = (&raw mut start).cast();
        // SAFETY: one pointer to as many bytes as the previous call returned.
        check(unsafe {
            let what = ffi::PROGRAM_BINARIES;
            (cl().program)(self.0, what, size_of::<*mut u8>(), place, ptr::null_mut())
        })?;
        Ok(binary)
    }

    pub(super) fn kernel(&self, name: &str) -> ClResult<Kernel> {
        let name = CString::new(name).map_err(|_| Status(ffi::INVALID_KERNEL_NAME))?;
        let mut code = 0;
        // SAFETY: a zero-terminated text.
        let raw = unsafe { (cl().create_kernel)(self.0, name.as_ptr(), &mut code) };
        check(code).map(|()| Kernel(raw))
    }
}

/// Argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) enum ClArgument<'a> {
    Size(u64),
    Real(f64),
    Memory(&'a Memory),
}

impl Kernel {
    /// Returns the private memory per thread in bytes, including register spills.
    pub(super) fn private_bytes(&self, device: DeviceId) -> ClResult<u64> {
        let mut bytes: u64 = 0;
        let place = (&raw mut bytes).cast();
        // SAFETY: one number, to a place of its size.
        check(unsafe {
            let (what, none) = (ffi::KERNEL_PRIVATE_MEM_SIZE, ptr::null_mut());
            (cl().kernel_of_device)(self.0, device.0, what, size_of::<u64>(), place, none)
        })?;
        Ok(bytes)
    }

    /// Sets an argument. The caller ensures that the parameter has that type.
    pub(super) fn set(&mut self, at: u32, given: ClArgument<'_>) -> ClResult<()> {
        let (size, place): (usize, *const c_void) = match &given {
            ClArgument::Size(number) => (size_of::<u64>(), ptr::from_ref(number).cast()),
            ClArgument::Real(number) => (size_of::<f64>(), ptr::from_ref(number).cast()),
            ClArgument::Memory(memory) => (size_of::<Handle>(), (&raw const memory.0).cast()),
        };
        // SAFETY: `place` points to `size` bytes, which are copied; the memory object is retained until the commands
        // that use it are done.
        check(unsafe { (cl().set_argument)(self.0, at, size, place) })
    }
}

impl Queue {
    /// Runs `groups` groups of `threads` threads.
    ///
    /// # Safety
    ///
    /// Every argument is set, and the kernel stays within its arrays.
    pub(super) unsafe fn launch(
        &self,
        kernel: &Kernel,
        groups: usize,
        threads: usize,
    ) -> ClResult<()> {
        let (global, local) = (groups * threads, threads);
        // SAFETY: one dimension; the caller guarantees the kernel.
        check(unsafe {
            let (none, nothing) = (ptr::null(), ptr::null_mut());
            (cl().launch)(self.0, kernel.0, 1, none, &global, &local, 0, none.cast(), nothing)
        })
    }

    /// Copies bytes to device memory at byte offset `at`, and waits.
    pub(super) fn write(&self, memory: &Memory, at: usize, bytes: &[u8]) -> ClResult<()> {
        let wait: c_uint = ffi::TRUE;
        let (from, none, nothing) = (bytes.as_ptr().cast(), ptr::null(), ptr::null_mut());
        // SAFETY: the driver checks the length, and the call returns after the copy.
        check(unsafe {
            (cl().write)(self.0, memory.0, wait, at, bytes.len(), from, 0, none, nothing)
        })
    }

    /// Copies `bytes.len()` bytes of device memory from byte offset `at`, and waits.
    pub(super) fn read(&self, memory: &Memory, at: usize, bytes: &mut [u8]) -> ClResult<()> {
        let wait: c_uint = ffi::TRUE;
        let (length, to) = (bytes.len(), bytes.as_mut_ptr().cast());
        // SAFETY: as in `write`.
        check(unsafe {
            let (none, nothing) = (ptr::null(), ptr::null_mut());
            (cl().read)(self.0, memory.0, wait, at, length, to, 0, none, nothing)
        })
    }

    /// Sets bytes to zero; the number must be a multiple of four.
    pub(super) fn clear(&self, memory: &Memory, bytes: usize) -> ClResult<()> {
        let zero = 0_u32;
        // SAFETY: the pattern is copied, and the driver checks the length.
        check(unsafe {
            let (none, nothing) = (ptr::null(), ptr::null_mut());
            let pattern = ptr::from_ref(&zero).cast();
            (cl().fill)(self.0, memory.0, pattern, 4, 0, bytes, 0, none, nothing)
        })
    }

    /// Waits for all commands.
    pub(super) fn finish(&self) -> ClResult<()> {
        // SAFETY: only waits.
        check(unsafe { (cl().finish)(self.0) })
    }

    /// Creates an event that completes after all earlier commands.
    pub(super) fn mark(&self) -> ClResult<Event> {
        let mut raw = ptr::null_mut();
        // SAFETY: waits for the queue; `raw` is written before it is read.
        check(unsafe { (cl().mark)(self.0, 0, ptr::null(), &mut raw) })?;
        Ok(Event(raw))
    }
}

impl Event {
    pub(super) fn wait(&self) -> ClResult<()> {
        // SAFETY: one event.
        check(unsafe { (cl().wait)(1, &self.0) })
    }

    /// Returns the completion time in nanoseconds of the device clock.
    pub(super) fn time(&self) -> ClResult<u64> {
        let mut time: u64 = 0;
        let (place, size) = ((&raw mut time).cast(), size_of::<u64>());
        let what = ffi::PROFILING_COMMAND_END;
        // SAFETY: `place` has space for `size` bytes.
        check(unsafe { (cl().event_time)(self.0, what, size, place, ptr::null_mut()) })?;
        Ok(time)
    }
}

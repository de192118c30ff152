//! Communication between GPUs of several processes or threads by NCCL, loaded at run time.
//!
//! Messages are enqueued on the stream of the calling thread's work, so they can be recorded and overlapped like
//! kernels.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};
use libloading::Library;

use super::agreement::agreed;
use crate::device::{ElementKind, TransportError};
use crate::processes::ProcessGroup;

/// The file names of the library; packages contain only the first.
const FILES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// Bytes of a group's unique id.
const NAME: usize = 128;

/// Unique id of a group of GPUs, passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
struct UniqueId([c_char; NAME]);

/// A communicator of the library.
type Comm = *mut c_void;

/// A CUDA stream in the library's interface.
type Stream = *mut c_void;

/// The values of `ncclSum`, `ncclUint32`, `ncclFloat32` and `ncclFloat64`.
const SUM: c_int = 0;
const UINT32: c_int = 3;
const FLOAT32: c_int = 7;
const FLOAT64: c_int = 8;

/// The used functions of NCCL, as declared in `nccl.h`.
struct NcclFunctions {
    version: unsafe extern "C" fn(*mut c_int) -> c_int,
    error: unsafe extern "C" fn(c_int) -> *const c_char,
    name: unsafe extern "C" fn(*mut UniqueId) -> c_int,
    init: unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int) -> c_int,
    destroy: unsafe extern "C" fn(Comm) -> c_int,
    sum: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        c_int,
        c_int,
        Comm,
        Stream,
    ) -> c_int,
    send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Comm, Stream) -> c_int,
    receive: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Comm, Stream) -> c_int,
    start: unsafe extern "C" fn() -> c_int,
    end: unsafe extern "C" fn() -> c_int,
    /// Keeps the functions loaded.
    _file: Library,
}

impl NcclFunctions {
    /// Returns the library, searched for once.
    fn get() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<NcclFunctions>> = OnceLock::new();
        FOUND.get_or_init(Self::load).as_ref()
    }

    fn load() -> Option<Self> {
        // SAFETY: the initialisers of NCCL are sound.
        let file = FILES.iter().find_map(|name| unsafe { Library::new(*name) }.ok())?;
        // SAFETY: the functions have these types in every version 2 that has all of them. They live as long as the
        // file, which is stored with them.
        unsafe {
            Some(Self {
                version: *file.get(b"ncclGetVersion\0").ok()?,
                error: *file.get(b"ncclGetErrorString\0").ok()?,
                name: *file.get(b"ncclGetUniqueId\0").ok()?,
                init: *file.get(b"ncclCommInitRank\0").ok()?,
                destroy: *file.get(b"ncclCommDestroy\0").ok()?,
                sum: *file.get(b"ncclAllReduce\0").ok()?,
                send: *file.get(b"ncclSend\0").ok()?,
                receive: *file.get(b"ncclRecv\0").ok()?,
                start: *file.get(b"ncclGroupStart\0").ok()?,
                end: *file.get(b"ncclGroupEnd\0").ok()?,
                _file: file,
            })
        }
    }

    /// Checks a return code.
    fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: a zero-terminated text of the library.
        let text = unsafe { CStr::from_ptr((self.error)(code)) };
        Err(text.to_string_lossy().into_owned())
    }
}

/// A group of GPUs connected by NCCL.
pub(super) struct Nccl {
    calls: &'static NcclFunctions,
    comm: Comm,
}

// SAFETY: NCCL accepts a communicator from any thread, one at a time. In a process group, one thread at a time uses the
// device, in the same order on all processes.
unsafe impl Send for Nccl {}
// SAFETY: as above.
unsafe impl Sync for Nccl {}

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GPUs that reach each other by NCCL")
    }
}

/// Returns the version of NCCL; `None` if it is not found.
pub fn nccl_version() -> Option<String> {
    let (calls, mut version) = (NcclFunctions::get()?, 0);
    // SAFETY: writes a number.
    calls.check(unsafe { (calls.version)(&raw mut version) }).ok()?;
    Some(format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100))
}

/// Returns NCCL's number for an element type.
fn number_of(kind: ElementKind) -> c_int {
    match kind {
        ElementKind::F64 => FLOAT64,
        ElementKind::F32 => FLOAT32,
        ElementKind::U32 => UINT32,
    }
}

impl Nccl {
    /// Connects the GPUs of all processes of a group, one each. Collective.
    pub(super) fn connect(
        stream: &Arc<CudaStream>,
        group: &Arc<dyn ProcessGroup>,
    ) -> Result<Self, TransportError> {
        let context = stream.context();
        let all = agreed(group, NcclFunctions::get().ok_or(String::new()));
        let calls = all.map_err(|_| TransportError::NoLibrary)?;
        let mut name = UniqueId([0; NAME]);
        let named = match group.rank() {
            // SAFETY: writes the id to its place.
            0 => calls.check(unsafe { (calls.name)(&raw mut name) }).is_ok(),
            _ => false,
        };
        let given = name.0.map(|byte| byte as u8);
        let given = group.gather(if named { &given } else { &[] }).swap_remove(0);
        if given.len() != NAME {
            return Err(TransportError::Library { error: "it gives the group no name".to_owned() });
        }
        name.0.iter_mut().zip(&given).for_each(|(to, &from)| *to = from as c_char);
        let mut comm = std::ptr::null_mut();
        let (size, rank) = (group.size() as c_int, group.rank() as c_int);
        let bound = context.bind_to_thread().map_err(|error| error.to_string());
        let made = bound.and_then(|()| {
            // SAFETY: the place for the communicator is local; all processes have just received the id from the first.
            calls.check(unsafe { (calls.init)(&raw mut comm, size, name, rank) })
        });
        let library = |error| TransportError::Library { error };
        let made = agreed(group, made.map(|()| Self { calls, comm })).map_err(library)?;
        // NCCL establishes connections at the first use.
        let first = stream.alloc_zeros::<u8>(8).map_err(|error| error.to_string());
        let first = first.and_then(|memory| made.sum(stream, &memory, (1, ElementKind::F64)));
        let first = first.and_then(|()| stream.synchronize().map_err(|error| error.to_string()));
        agreed(group, first).map_err(library)?;
        Ok(made)
    }

    /// Sums each of the first n numbers over all GPUs; the memory has at least n.
    pub(super) fn sum(
        &self,
        stream: &CudaStream,
        memory: &CudaSlice<u8>,
        (n, kind): (usize, ElementKind),
    ) -> Result<(), String> {
        let (start, _guard) = memory.device_ptr(stream);
        let (start, stream, kind) =
            (start as *mut c_void, stream.cu_stream().cast(), number_of(kind));
        // SAFETY: the memory has n numbers of this kind (checked) and lives until the stream is done; in-place
        // operation is allowed.
        let done = unsafe { (self.calls.sum)(start, start, n, kind, SUM, self.comm, stream) };
        self.calls.check(done)
    }

    /// Exchanges ranges with neighbours; both memories contain the ranges.
    pub(super) fn exchange(
        &self,
        stream: &CudaStream,
        neighbours: &[(usize, Range<usize>)],
        [sent, received]: [&CudaSlice<u8>; 2],
        kind: ElementKind,
    ) -> Result<(), String> {
        let Self { calls, comm } = self;
        let (width, kind) = (kind.width(), number_of(kind));
        let ((out, _sent), (come, _received)) =
            (sent.device_ptr(stream), received.device_ptr(stream));
        let stream: Stream = stream.cu_stream().cast();
        // SAFETY: only affects the processing of the following calls.
        calls.check(unsafe { (calls.start)() })?;
        let mut done = Ok(());
        for (rank, range) in neighbours {
            let (first, n, rank) = ((range.start * width) as u64, range.len(), *rank as c_int);
            let (out, come) = ((out + first) as *const c_void, (come + first) as *mut c_void);
            // SAFETY: both arrays contain the range (checked), in numbers of this kind, and live until the stream is
            // done.
            let codes = unsafe {
                [
                    (calls.send)(out, n, kind, rank, *comm, stream),
                    (calls.receive)(come, n, kind, rank, *comm, stream),
                ]
            };
            done = codes.into_iter().fold(done, |done, code| done.and(calls.check(code)));
        }
        // SAFETY: as for the start.
        calls.check(unsafe { (calls.end)() })?;
        done
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        // SAFETY: the communicator is owned, and nothing uses it any longer.
        unsafe { (self.calls.destroy)(self.comm) };
    }
}

//! GPUs of several processes that reach each other by MPI, which takes device pointers.
//!
//! ```text
//! array → memory for MPI → (the host waits) → MPI → memory for MPI → array        copies in the order of the stream
//! ```
//!
//! Arrays come from a pool, which other processes cannot open, and whose addresses go from one array to another, while an MPI keeps
//! open what it has once opened. So MPI sees only memory that stays, till the program ends: a copy on the GPU takes a few microseconds.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{
    CudaContext, CudaEvent, CudaSlice, CudaStream, DevicePtr, DriverError, result, sys,
};

use crate::device::mpi::direct::Direct;
use crate::device::mpi::{takes_device_pointers, version};
use crate::device::{Apart, Kind};
use crate::processes::Group;

use super::error::text;
use super::plain::Plain;
use super::reach::{agreed, numbers};

/// Bytes that memory for MPI has at least.
const LEAST: usize = 1 << 16;

/// What MPI reads, and what it writes.
struct Memory {
    out: Plain,
    come: Plain,
    /// Of each of them.
    bytes: usize,
}

impl Memory {
    fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, DriverError> {
        Ok(Self { out: Plain::new(context, bytes)?, come: Plain::new(context, bytes)?, bytes })
    }

    /// Where both are.
    fn addresses(&self) -> [*mut c_void; 2] {
        [&self.out, &self.come].map(|memory| memory.start() as *mut c_void)
    }

    /// Has so many bytes from now on, at least; what it had is half of that at most.
    fn hold(&mut self, bytes: usize) -> Result<(), DriverError> {
        if self.bytes < bytes {
            *self = Self::new(&Arc::clone(self.out.context()), bytes.next_power_of_two())?;
        }
        Ok(())
    }
}

/// The GPUs as MPI knows them.
pub(super) struct Pointers {
    direct: Direct,
    memory: Mutex<Memory>,
    /// When what is to be sent is there, and when what has come was taken.
    ready: CudaEvent,
    taken: CudaEvent,
}

/// Messages that MPI has not been given yet.
pub(super) struct Sent<'a> {
    pointers: &'a Pointers,
    memory: MutexGuard<'a, Memory>,
    stream: &'a CudaStream,
    neighbours: &'a [(usize, Range<usize>)],
    received: &'a CudaSlice<u8>,
    kind: Kind,
    bytes: usize,
}

impl Pointers {
    /// Connects the GPUs of all processes of a group, which all call it.
    pub(super) fn connect(stream: &Arc<CudaStream>, group: &Arc<dyn Group>) -> Result<Self, Apart> {
        let direct = Direct::of(group).ok_or(Apart::NoMpi)?;
        let takes = agreed(group, takes_device_pointers().filter(|&yes| yes).ok_or_else(version));
        takes.map_err(|library| Apart::NoPointers { library })?;
        let context = stream.context();
        // MPI closes what it has opened of other GPUs when it ends, behind all that is here: till then the context must live.
        std::mem::forget(Arc::clone(context));
        let made = Memory::new(context, LEAST).and_then(|memory| {
            let [ready, taken] = [context.new_event(None)?, context.new_event(None)?];
            Ok(Self { direct, memory: Mutex::new(memory), ready, taken })
        });
        let pointers = |error| Apart::Pointers { error };
        let made = agreed(group, made.map_err(text)).map_err(pointers)?;
        let tried = made.try_out(stream, group);
        agreed(group, tried).map_err(pointers)?;
        Ok(made)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends numbers once, and compares what comes: what carries the addresses' own bits would do so without a word.
    fn try_out(&self, stream: &Arc<CudaStream>, group: &Arc<dyn Group>) -> Result<(), String> {
        let (own, size) = (group.rank(), group.size());
        let mut neighbours = vec![((own + 1) % size, 0..1), ((own + size - 1) % size, 1..2)];
        if size == 2 {
            neighbours.truncate(1);
        }
        let sent = [own as f64 + 0.5, own as f64 + 0.25];
        let bytes: Vec<u8> = sent.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let out = stream.clone_htod(&bytes).map_err(text);
        let come = stream.alloc_zeros::<u8>(bytes.len()).map_err(text);
        // A failure here leaves the others with a message that never comes, so it is told first.
        let (out, come) = agreed(group, out.and_then(|out| Ok((out, come?))))?;
        let sent = agreed(group, self.send(stream, &neighbours, [&out, &come], Kind::F64))?;
        let found = agreed(group, sent.receive().and_then(|()| numbers(stream, &come)))?;
        // To the next goes the first number, to the one before the second; between two the first alone.
        let known = |(with, range): &(usize, Range<usize>)| match (size, range.start) {
            (2, _) | (_, 1) => *with as f64 + 0.5,
            _ => *with as f64 + 0.25,
        };
        let right = neighbours.iter().all(|own| found[own.1.start] == known(own));
        self.sum(stream, &out, (1, Kind::F64))?;
        let (found, all) =
            (numbers(stream, &out)?[0], (0..size).map(|rank| rank as f64 + 0.5).sum::<f64>());
        match right && found == all {
            true => Ok(()),
            false => Err("other numbers came than were sent".to_owned()),
        }
    }

    /// The sum of each of the first n numbers, of which the memory has as many, behind what was started on the stream.
    pub(super) fn sum(
        &self,
        stream: &CudaStream,
        memory: &CudaSlice<u8>,
        (n, kind): (usize, Kind),
    ) -> Result<(), String> {
        let (bytes, mut own) = (n * kind.width(), self.memory());
        stream.context().bind_to_thread().map_err(text)?;
        own.hold(bytes).map_err(text)?;
        let (start, _guard) = memory.device_ptr(stream);
        // SAFETY: both have so many bytes, as the caller has compared, and live until the copy is done, for which this waits.
        unsafe { copy(stream, start, own.out.start(), bytes)? };
        self.ready.record(stream).map_err(text)?;
        self.wait()?;
        let [out, come] = own.addresses();
        // SAFETY: the memory is ours alone as long as it is locked; all that was started with it is done.
        unsafe { self.direct.sum(out, come, n, kind)? };
        // SAFETY: as above; it is not freed before the driver is done with it.
        unsafe { copy(stream, own.come.start(), start, bytes)? };
        self.taken.record(stream).map_err(text)
    }

    /// Waits until MPI can read and write.
    fn wait(&self) -> Result<(), String> {
        self.ready.synchronize().and_then(|()| self.taken.synchronize()).map_err(text)
    }

    /// Takes what is to be sent, behind what was started on the stream, from memory that has the ranges of all neighbours, as has
    /// that which is for what comes.
    pub(super) fn send<'a>(
        &'a self,
        stream: &'a CudaStream,
        neighbours: &'a [(usize, Range<usize>)],
        [sent, received]: [&'a CudaSlice<u8>; 2],
        kind: Kind,
    ) -> Result<Sent<'a>, String> {
        let end = neighbours.iter().map(|(_, range)| range.end).max().unwrap_or(0);
        let (bytes, mut memory) = (end * kind.width(), self.memory());
        stream.context().bind_to_thread().map_err(text)?;
        memory.hold(bytes).map_err(text)?;
        let (start, _guard) = sent.device_ptr(stream);
        // SAFETY: both have so many bytes; MPI has read what was sent before, since it is given messages and waited for at once.
        unsafe { copy(stream, start, memory.out.start(), bytes)? };
        self.ready.record(stream).map_err(text)?;
        Ok(Sent { pointers: self, memory, stream, neighbours, received, kind, bytes })
    }
}

impl Sent<'_> {
    /// Waits until it is there, gives it to MPI and waits for what comes, which is there for what is started on the stream from then on.
    pub(super) fn receive(self) -> Result<(), String> {
        let Self { pointers, memory, stream, neighbours, received, kind, bytes } = self;
        pointers.wait()?;
        stream.context().bind_to_thread().map_err(text)?;
        // SAFETY: the memory is ours alone as long as it is locked and has the ranges; what is sent is there, and what came before was
        // taken.
        unsafe { pointers.direct.exchange(neighbours, memory.addresses(), kind)? };
        let (start, _guard) = received.device_ptr(stream);
        // SAFETY: both have so many bytes; the memory is not freed before the driver is done with it.
        unsafe { copy(stream, memory.come.start(), start, bytes)? };
        pointers.taken.record(stream).map_err(text)
    }
}

/// Copies on the GPU, in the order of a stream.
///
/// # Safety
///
/// There are so many bytes at both places, until the stream is done.
unsafe fn copy(
    stream: &CudaStream,
    from: sys::CUdeviceptr,
    to: sys::CUdeviceptr,
    bytes: usize,
) -> Result<(), String> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: as the caller says.
    unsafe { result::memcpy_dtod_async(to, from, bytes, stream.cu_stream()) }.map_err(text)
}

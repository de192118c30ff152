//! Communication between GPUs of several processes by CUDA-aware MPI.
//!
//! ```text
//! array → memory for MPI → (the host waits) → MPI → memory for MPI → array        copies in the order of the stream
//! ```
//!
//! Arrays come from a pool that other processes cannot open. Their addresses are reused, while MPI keeps memory open.
//! MPI therefore only sees permanent buffers; a copy on the GPU takes a few microseconds.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{
    CudaContext, CudaEvent, CudaSlice, CudaStream, DevicePtr, DriverError, result, sys,
};

use crate::device::{AddressChannel, ElementKind, TransportError};
use crate::processes::ProcessGroup;

use super::agreement::{agreed, numbers};
use super::error::text;
use super::shareable_memory::ShareableMemory;

/// Minimal size of the MPI buffers in bytes.
const LEAST: usize = 1 << 16;

/// The send and the receive buffer of MPI.
struct MpiBuffers {
    out: ShareableMemory,
    come: ShareableMemory,
    /// The size of each in bytes.
    bytes: usize,
}

impl MpiBuffers {
    fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, DriverError> {
        Ok(Self {
            out: ShareableMemory::new(context, bytes)?,
            come: ShareableMemory::new(context, bytes)?,
            bytes,
        })
    }

    /// Returns the addresses of both.
    fn addresses(&self) -> [*mut c_void; 2] {
        [&self.out, &self.come].map(|memory| memory.start() as *mut c_void)
    }

    /// Enlarges the buffers to at least `bytes`, doubling them, so that abandoned buffers are smaller in total.
    fn reserve(&mut self, bytes: usize) -> Result<(), DriverError> {
        if self.bytes < bytes {
            *self = Self::new(&Arc::clone(self.out.context()), bytes.next_power_of_two())?;
        }
        Ok(())
    }
}

/// A group of GPUs connected by MPI.
pub(super) struct MpiGroup {
    direct: AddressChannel,
    memory: Mutex<MpiBuffers>,
    /// Events: the send buffer is filled, the receive buffer has been read.
    ready: CudaEvent,
    taken: CudaEvent,
}

/// Messages not yet passed to MPI.
pub(super) struct UnsentMessages<'a> {
    pointers: &'a MpiGroup,
    memory: MutexGuard<'a, MpiBuffers>,
    stream: &'a CudaStream,
    neighbours: &'a [(usize, Range<usize>)],
    received: &'a CudaSlice<u8>,
    kind: ElementKind,
    bytes: usize,
}

impl MpiGroup {
    /// Connects the GPUs of all processes of a group. Collective.
    pub(super) fn connect(
        stream: &Arc<CudaStream>,
        group: &Arc<dyn ProcessGroup>,
    ) -> Result<Self, TransportError> {
        let direct = AddressChannel::of(&**group).ok_or(TransportError::NoMpi)?;
        let known = direct.0.take_device_pointers().then_some(());
        let takes = agreed(group, known.ok_or_else(|| direct.0.name()));
        takes.map_err(|library| TransportError::NoPointers { library })?;
        let context = stream.context();
        // MPI closes the opened memory when it is finalised, after everything here: the context must live until then.
        std::mem::forget(Arc::clone(context));
        let made = MpiBuffers::new(context, LEAST).and_then(|memory| {
            let [ready, taken] = [context.new_event(None)?, context.new_event(None)?];
            Ok(Self { direct, memory: Mutex::new(memory), ready, taken })
        });
        let pointers = |error| TransportError::Pointers { error };
        let made = agreed(group, made.map_err(text)).map_err(pointers)?;
        let tried = made.try_out(stream, group);
        agreed(group, tried).map_err(pointers)?;
        Ok(made)
    }

    fn memory(&self) -> MutexGuard<'_, MpiBuffers> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exchanges test messages: an MPI that treats addresses as host memory would transfer wrong data silently.
    fn try_out(
        &self,
        stream: &Arc<CudaStream>,
        group: &Arc<dyn ProcessGroup>,
    ) -> Result<(), String> {
        let (own, size) = (group.rank(), group.size());
        let mut neighbours = vec![((own + 1) % size, 0..1), ((own + size - 1) % size, 1..2)];
        if size == 2 {
            neighbours.truncate(1);
        }
        let sent = [own as f64 + 0.5, own as f64 + 0.25];
        let bytes: Vec<u8> = sent.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let out = stream.clone_htod(&bytes).map_err(text);
        let come = stream.alloc_zeros::<u8>(bytes.len()).map_err(text);
        // Errors are reported first: a failing process would leave the others waiting for a message.
        let (out, come) = agreed(group, out.and_then(|out| Ok((out, come?))))?;
        let sent = agreed(group, self.send(stream, &neighbours, [&out, &come], ElementKind::F64))?;
        let found = agreed(group, sent.receive().and_then(|()| numbers(stream, &come)))?;
        // The next process gets the first number, the previous one the second; two processes exchange only the first.
        let known = |(with, range): &(usize, Range<usize>)| match (size, range.start) {
            (2, _) | (_, 1) => *with as f64 + 0.5,
            _ => *with as f64 + 0.25,
        };
        let right = neighbours.iter().all(|own| found[own.1.start] == known(own));
        self.sum(stream, &out, (1, ElementKind::F64))?;
        let (found, all) =
            (numbers(stream, &out)?[0], (0..size).map(|rank| rank as f64 + 0.5).sum::<f64>());
        match right && found == all {
            true => Ok(()),
            false => Err("other numbers came than were sent".to_owned()),
        }
    }

    /// Sums each of the first n numbers over all GPUs, after earlier work on the stream; the memory has at least n.
    pub(super) fn sum(
        &self,
        stream: &CudaStream,
        memory: &CudaSlice<u8>,
        (n, kind): (usize, ElementKind),
    ) -> Result<(), String> {
        let (bytes, mut own) = (n * kind.width(), self.memory());
        stream.context().bind_to_thread().map_err(text)?;
        own.reserve(bytes).map_err(text)?;
        let (start, _guard) = memory.device_ptr(stream);
        // SAFETY: both have this many bytes (checked by the caller) and live until the copy is done, for which this
        // waits.
        unsafe { copy(stream, start, own.out.start(), bytes)? };
        self.ready.record(stream).map_err(text)?;
        self.wait()?;
        let [out, come] = own.addresses();
        // SAFETY: the buffers are locked, and all work with them is done.
        unsafe { self.direct.0.sum(out, come, n, kind)? };
        // SAFETY: as above; the memory is not freed before the driver is done with it.
        unsafe { copy(stream, own.come.start(), start, bytes)? };
        self.taken.record(stream).map_err(text)
    }

    /// Waits until MPI may access the buffers.
    fn wait(&self) -> Result<(), String> {
        self.ready.synchronize().and_then(|()| self.taken.synchronize()).map_err(text)
    }

    /// Copies the data to send to the buffer, after earlier work on the stream. Both memories contain the ranges of all
    /// neighbours.
    pub(super) fn send<'a>(
        &'a self,
        stream: &'a CudaStream,
        neighbours: &'a [(usize, Range<usize>)],
        [sent, received]: [&'a CudaSlice<u8>; 2],
        kind: ElementKind,
    ) -> Result<UnsentMessages<'a>, String> {
        let end = neighbours.iter().map(|(_, range)| range.end).max().unwrap_or(0);
        let (bytes, mut memory) = (end * kind.width(), self.memory());
        stream.context().bind_to_thread().map_err(text)?;
        memory.reserve(bytes).map_err(text)?;
        let (start, _guard) = sent.device_ptr(stream);
        // SAFETY: both have this many bytes; MPI has read earlier messages, because each transfer is completed at once.
        unsafe { copy(stream, start, memory.out.start(), bytes)? };
        self.ready.record(stream).map_err(text)?;
        Ok(UnsentMessages { pointers: self, memory, stream, neighbours, received, kind, bytes })
    }
}

impl UnsentMessages<'_> {
    /// Waits for the copy, passes the data to MPI and waits for the messages. Later work on the stream sees the
    /// received data.
    pub(super) fn receive(self) -> Result<(), String> {
        let Self { pointers, memory, stream, neighbours, received, kind, bytes } = self;
        pointers.wait()?;
        stream.context().bind_to_thread().map_err(text)?;
        // SAFETY: the buffers are locked and contain the ranges; the data to send is complete, and earlier messages
        // have been read.
        unsafe { pointers.direct.0.exchange(neighbours, memory.addresses(), kind)? };
        let (start, _guard) = received.device_ptr(stream);
        // SAFETY: both have this many bytes; the memory is not freed before the driver is done with it.
        unsafe { copy(stream, memory.come.start(), start, bytes)? };
        pointers.taken.record(stream).map_err(text)
    }
}

/// Copies memory on the GPU, in stream order.
///
/// # Safety
///
/// Both places have this many bytes until the stream is done.
unsafe fn copy(
    stream: &CudaStream,
    from: sys::CUdeviceptr,
    to: sys::CUdeviceptr,
    bytes: usize,
) -> Result<(), String> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: guaranteed by the caller.
    unsafe { result::memcpy_dtod_async(to, from, bytes, stream.cu_stream()) }.map_err(text)
}

//! Communication between GPUs of one host by peer access: a kernel writes messages into the memory of the other GPU.
//!
//! ```text
//! array → memory of the other GPU, each word with its message number → array        one kernel, which waits for data
//! ```
//!
//! Messages are enqueued on the stream like kernels; the host does not wait. A message between two large NVIDIA GPUs
//! takes about six microseconds, a fifth of NCCL's time. Processes open each other's memory by driver handles (CUDA
//! driver API, section "Memory Management", `cuIpcGetMemHandle`); threads of one program use it directly. A GPU has
//! room for the blocks of one waiting kernel, so it takes part in one group at a time.

use std::ffi::c_char;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, DriverError,
    LaunchConfig, PushKernelArg, result, sys,
};
use cudarc::nvrtc::Ptx;
use kernels_gen::dialect::{Language, SourceFile};

use super::agreement::{agreed, numbers};
use super::compile::compile_through;
use super::error::text;
use super::shareable_memory::ShareableMemory;
use crate::device::jit::Jit;
use crate::device::{ElementKind, SharedEntryTables, TransportError};
use crate::processes::ProcessGroup;

/// The source of the kernels, with `$` before each constant.
const TEXT: &str = include_str!("peers.c.txt");

/// The largest number of other GPUs of a host.
const MOST: usize = 15;
/// Words per message; longer data is split.
const WORDS: usize = 1 << 17;
/// Bytes per word: one 64-bit or two 32-bit numbers, and the message number.
const WORD: usize = 16;
/// Threads per block.
const THREADS: usize = 512;
/// The largest number of blocks; fewer if a GPU cannot run as many at once. Blocks wait for those of other GPUs, which
/// could otherwise wait for blocks that are not running.
const BLOCKS: usize = 128;
/// The time limit of the first messages, in nanoseconds.
const PATIENCE: u64 = 10_000_000_000;

/// Returns the source of the kernels for the compiler.
pub fn peer_kernels() -> SourceFile {
    let constants = [("$MOST", MOST), ("$SLOT", WORDS * WORD), ("$THREADS", THREADS)];
    let text = constants
        .into_iter()
        .fold(TEXT.to_owned(), |text, (word, number)| text.replace(word, &number.to_string()));
    SourceFile { text, ..SourceFile::empty(Language::Cuda) }
}

/// Returns whether each GPU of this machine can access the memory of all others; `None` for a single GPU or without a
/// driver.
pub fn have_peer_access() -> Option<bool> {
    let numbers = 0..super::count().ok().filter(|&count| count > 1)? as i32;
    let of = |number| result::device::get(number).ok();
    let reaches = |own, other| {
        let mut yes = 0;
        // SAFETY: writes a number; both devices exist.
        let asked = unsafe { sys::cuDeviceCanAccessPeer(&raw mut yes, of(own)?, of(other)?) };
        asked.result().ok().map(|()| yes != 0)
    };
    let pairs = numbers.clone().flat_map(|own| numbers.clone().map(move |other| (own, other)));
    let mut apart = pairs.filter(|(own, other)| own != other);
    Some(apart.all(|(own, other)| reaches(own, other) == Some(true)))
}

/// A message to and from another GPU, as declared in the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
struct Message {
    out: u64,
    come: u64,
    first: u64,
    numbers: u64,
    count: u64,
}

/// Messages of one launch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Messages {
    all: [Message; MOST],
    n: u64,
}

// SAFETY: consecutive 64-bit numbers, as declared in the kernels.
unsafe impl DeviceRepr for Messages {}

/// Splits the data into messages of at most `most` words: for each launch, the neighbours and the parts of their
/// ranges.
fn in_pieces(neighbours: &[(usize, Range<usize>)], most: usize) -> Vec<Vec<(usize, Range<usize>)>> {
    let longest = neighbours.iter().map(|(_, range)| range.len()).max().unwrap_or(0);
    let piece = |first: usize| {
        let part = |(rank, range): &(usize, Range<usize>)| {
            let (start, end) = (range.start + first, range.end.min(range.start + first + most));
            (start < end).then_some((*rank, start..end))
        };
        neighbours.iter().filter_map(part).collect()
    };
    (0..longest).step_by(most).map(piece).collect()
}

/// A group of GPUs with peer access.
pub(super) struct Peers {
    rank: usize,
    size: usize,
    /// For each process, the address of its slots; two per writing process.
    slots: Vec<sys::CUdeviceptr>,
    /// Counters: finished blocks of a kernel, and messages to and from each process.
    state: CudaSlice<u64>,
    kernels: PeerKernels,
}

/// The kernels loaded on the device.
struct PeerKernels {
    exchange: CudaFunction,
    sum: CudaFunction,
    /// For 64-bit and 32-bit numbers.
    meet: [CudaFunction; 2],
    /// The largest number of blocks of each.
    blocks: usize,
}

impl PeerKernels {
    fn load(context: &Arc<CudaContext>, code: Vec<u8>) -> Result<Self, DriverError> {
        let module = context.load_module(Ptx::from_binary(code))?;
        let kernel = |name| module.load_function(name);
        let meet = [kernel("peers_meet_f64")?, kernel("peers_meet_f32")?];
        let (exchange, sum) = (kernel("peers_exchange")?, kernel("peers_sum")?);
        let several = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let (several, mut blocks) = (context.attribute(several)? as usize, BLOCKS);
        for kernel in meet.iter().chain([&exchange, &sum]) {
            let most =
                kernel.occupancy_max_active_blocks_per_multiprocessor(THREADS as u32, 0, None);
            blocks = blocks.min(most? as usize * several);
        }
        Ok(Self { exchange, sum, meet, blocks })
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // The driver does not wait for kernels whose code it unloads.
        let _ = self.state.stream().context().synchronize();
    }
}

/// Memory of a process's slots that others can open.
#[derive(Clone, Copy)]
struct ExportedMemory {
    /// The program that owns it.
    program: u64,
    /// The context, and the address in it; threads of one program share both.
    context: u64,
    start: u64,
    /// The handle for other processes.
    handle: [u8; HANDLE],
}

/// Returns a number unique to this program: process numbers may repeat in another container.
fn program() -> u64 {
    static OWN: OnceLock<u64> = OnceLock::new();
    *OWN.get_or_init(|| RandomState::new().build_hasher().finish())
}

/// Bytes per handle.
const HANDLE: usize = size_of::<sys::CUipcMemHandle>();

impl ExportedMemory {
    /// Exports memory of this process.
    fn of(memory: &ShareableMemory) -> Result<Self, DriverError> {
        let mut handle = sys::CUipcMemHandle { reserved: [0; HANDLE] };
        // SAFETY: the memory is from `cuMemAlloc`, and never freed.
        unsafe { sys::cuIpcGetMemHandle(&raw mut handle, memory.start()) }.result()?;
        Ok(Self {
            program: program(),
            context: memory.context().cu_ctx() as u64,
            start: memory.start(),
            handle: handle.reserved.map(|byte| byte as u8),
        })
    }

    fn bytes(&self) -> Vec<u8> {
        let numbers = [self.program, self.context, self.start];
        numbers.iter().flat_map(|number| number.to_ne_bytes()).chain(self.handle).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, handle) = bytes.split_at_checked(24)?;
        let number = |i: usize| Some(u64::from_ne_bytes(numbers[8 * i..][..8].try_into().ok()?));
        Some(Self {
            program: number(0)?,
            context: number(1)?,
            start: number(2)?,
            handle: handle.try_into().ok()?,
        })
    }

    /// Opens the memory on this GPU and returns its address.
    fn open(&self, context: &Arc<CudaContext>) -> Result<sys::CUdeviceptr, DriverError> {
        context.bind_to_thread()?;
        if self.program == program() {
            // SAFETY: a context of this program, whose thread waits for this one.
            let enabled = unsafe { sys::cuCtxEnablePeerAccess(self.context as sys::CUcontext, 0) };
            return match enabled {
                sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(self.start),
                enabled => enabled.result().map(|()| self.start),
            };
        }
        let handle = sys::CUipcMemHandle { reserved: self.handle.map(|byte| byte as c_char) };
        let flag = sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let mut start = 0;
        // SAFETY: the handle was just received from another process, which keeps the memory.
        unsafe { sys::cuIpcOpenMemHandle_v2(&raw mut start, handle, flag) }.result()?;
        Ok(start)
    }
}

impl Peers {
    /// Opens the memory of the GPUs of all processes of a group, one each. Collective.
    pub(super) fn connect(
        stream: &Arc<CudaStream>,
        arch: &str,
        group: &Arc<dyn ProcessGroup>,
    ) -> Result<Self, TransportError> {
        let (rank, size) = (group.rank(), group.size());
        if group.of_host().0 < size || size > MOST + 1 {
            return Err(TransportError::Far);
        }
        let closed = |error| TransportError::Closed { error };
        let context = stream.context();
        let code = compile_through(Jit::global(), &peer_kernels(), arch);
        let code = code.map_err(|error| error.to_string());
        let kernels = code.and_then(|(code, _)| PeerKernels::load(context, code).map_err(text));
        let kernels = agreed(group, kernels).map_err(closed)?;
        let own = ShareableMemory::zeros(context, size * 2 * WORDS * WORD);
        let own = own.and_then(|memory| {
            Ok((ExportedMemory::of(&memory)?, memory, stream.alloc_zeros(1 + size)?))
        });
        let (own, memory, state) = agreed(group, own.map_err(text)).map_err(closed)?;
        // Others keep the memory open until they end: the context must live as long.
        std::mem::forget(Arc::clone(context));
        let opened = group.gather(&own.bytes()).into_iter().enumerate().map(|(other, bytes)| {
            let theirs =
                ExportedMemory::from_bytes(&bytes).ok_or("another build of this program")?;
            let opened = if other == rank { Ok(memory.start()) } else { theirs.open(context) };
            opened.map_err(text)
        });
        let slots = agreed(group, opened.collect::<Result<Vec<_>, _>>()).map_err(closed)?;
        let made = Self { rank, size, slots, state, kernels };
        let tried = made.try_out(stream, group);
        agreed(group, tried).map_err(closed)?;
        Ok(made)
    }

    /// Exchanges test messages with a time limit: memory that others do not reach must not block forever.
    fn try_out(
        &self,
        stream: &Arc<CudaStream>,
        group: &Arc<dyn ProcessGroup>,
    ) -> Result<(), String> {
        let others: Vec<usize> = (0..self.size).filter(|&other| other != self.rank).collect();
        let number = |from: usize, to: usize| (from * self.size + to) as f64 + 0.5;
        let own: Vec<f64> = others.iter().map(|&other| number(self.rank, other)).collect();
        let bytes: Vec<u8> = own.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let out = stream.clone_htod(&bytes).map_err(text);
        let come = stream.alloc_zeros::<u8>(bytes.len()).map_err(text);
        // Errors are reported first: a failing process would leave the others waiting for a message.
        let (out, come) = agreed(group, out.and_then(|out| Ok((out, come?))))?;
        let neighbours: Vec<_> = others.iter().copied().zip((0..).map(|i| i..i + 1)).collect();
        let sent =
            self.exchange_within(stream, &neighbours, [&out, &come], ElementKind::F64, PATIENCE);
        let found = agreed(group, sent.and_then(|()| numbers(stream, &come)))?;
        let wanted: Vec<f64> = others.iter().map(|&other| number(other, self.rank)).collect();
        let right =
            |yes| if yes { Ok(()) } else { Err("other numbers came than were sent".to_owned()) };
        agreed(group, right(found == wanted))?;
        let summed = self.sum_within(stream, &out, (1, ElementKind::F64), PATIENCE);
        let found = agreed(group, summed.and_then(|()| numbers(stream, &out)))?;
        let first = |of: usize| number(of, usize::from(of == 0));
        right(found[0] == (0..self.size).map(first).sum::<f64>())
    }

    /// Returns the messages of one launch.
    fn messages(&self, parts: &[(usize, Range<usize>)], width: usize) -> Messages {
        let mut messages = Messages { all: [Message::default(); MOST], n: parts.len() as u64 };
        let counts = self.state.device_ptr(self.state.stream()).0 + 8;
        let slots = |of: usize, from: usize| self.slots[of] + (from * 2 * WORDS * WORD) as u64;
        for (message, (other, range)) in messages.all.iter_mut().zip(parts) {
            *message = Message {
                out: slots(*other, self.rank),
                come: slots(self.rank, *other),
                first: (range.start * width) as u64,
                numbers: range.len() as u64,
                count: counts + 8 * *other as u64,
            };
        }
        messages
    }

    /// Returns the launch configuration if the longest message has `words` words.
    fn shape(&self, words: usize) -> LaunchConfig {
        let blocks = words.div_ceil(THREADS).min(self.kernels.blocks).max(1) as u32;
        let (grid_dim, block_dim) = ((blocks, 1, 1), (THREADS as u32, 1, 1));
        LaunchConfig { grid_dim, block_dim, shared_mem_bytes: 0 }
    }

    /// Splits an exchange into messages that fit the slots, with launch configurations.
    fn launches(
        &self,
        neighbours: &[(usize, Range<usize>)],
        kind: ElementKind,
    ) -> impl Iterator<Item = (Messages, LaunchConfig)> {
        let of_word = 8 / kind.width();
        in_pieces(neighbours, WORDS * of_word).into_iter().map(move |parts| {
            let longest = parts.iter().map(|(_, range)| range.len()).max().unwrap_or(0);
            (self.messages(&parts, kind.width()), self.shape(longest.div_ceil(of_word)))
        })
    }

    /// Exchanges ranges with neighbours; both memories contain the ranges.
    pub(super) fn exchange(
        &self,
        stream: &Arc<CudaStream>,
        neighbours: &[(usize, Range<usize>)],
        memory: [&CudaSlice<u8>; 2],
        kind: ElementKind,
    ) -> Result<(), String> {
        self.exchange_within(stream, neighbours, memory, kind, 0)
    }

    fn exchange_within(
        &self,
        stream: &Arc<CudaStream>,
        neighbours: &[(usize, Range<usize>)],
        [sent, received]: [&CudaSlice<u8>; 2],
        kind: ElementKind,
        most: u64,
    ) -> Result<(), String> {
        let width = kind.width() as u32;
        for (messages, shape) in self.launches(neighbours, kind) {
            let mut builder = stream.launch_builder(&self.kernels.exchange);
            builder.arg(sent).arg(received).arg(&messages).arg(&width).arg(&most).arg(&self.state);
            // SAFETY: both arrays contain the ranges (checked), in numbers of this kind, and live until the stream is
            // done. Slots have space for a message, and all GPUs start the same messages in the same order.
            unsafe { builder.launch(shape) }.map_err(text)?;
        }
        Ok(())
    }

    /// Updates shared entries in one kernel. Returns false if a neighbour's entries exceed a message.
    pub(super) fn meet(
        &self,
        stream: &Arc<CudaStream>,
        common: &SharedEntryTables<'_>,
        tables: [&CudaSlice<u8>; 3],
        y: (&CudaSlice<u8>, ElementKind),
    ) -> Result<bool, String> {
        if common.longest > WORDS || y.1 == ElementKind::U32 {
            return Ok(false);
        }
        let ([dofs, starts, sources], (memory, kind)) = (tables, y);
        let (n, all) = (common.dofs.len() as u64, u32::from(common.add));
        // All messages go at once; processes without common entries skip the launch.
        let Some(parts) = in_pieces(common.neighbours, WORDS).pop() else { return Ok(true) };
        // Each number takes a whole word here.
        let messages = self.messages(&parts, 1);
        let kernel = &self.kernels.meet[usize::from(kind == ElementKind::F32)];
        let mut builder = stream.launch_builder(kernel);
        builder.arg(dofs).arg(starts).arg(sources).arg(&n).arg(memory);
        builder.arg(&messages).arg(&all).arg(&self.state);
        // SAFETY: entries lie in y, and sources among the sent values, as `SharedEntryTables` requires. Slots have
        // space for each neighbour's words, and all GPUs start the same messages in the same order.
        unsafe { builder.launch(self.shape(common.dofs.len())) }.map_err(text)?;
        Ok(true)
    }

    /// Sums each of the first n numbers over all GPUs; the memory has at least n.
    pub(super) fn sum(
        &self,
        stream: &Arc<CudaStream>,
        memory: &CudaSlice<u8>,
        numbers: (usize, ElementKind),
    ) -> Result<(), String> {
        self.sum_within(stream, memory, numbers, 0)
    }

    fn sum_within(
        &self,
        stream: &Arc<CudaStream>,
        memory: &CudaSlice<u8>,
        (n, kind): (usize, ElementKind),
        most: u64,
    ) -> Result<(), String> {
        let others = (0..self.size).filter(|&other| other != self.rank);
        let neighbours: Vec<_> = others.map(|other| (other, 0..n)).collect();
        let own = self.rank as u64;
        let number: u32 = match kind {
            ElementKind::F64 => 0,
            ElementKind::F32 => 1,
            ElementKind::U32 => 2,
        };
        for (messages, shape) in self.launches(&neighbours, kind) {
            let mut builder = stream.launch_builder(&self.kernels.sum);
            builder.arg(memory).arg(&messages).arg(&own).arg(&number).arg(&most).arg(&self.state);
            // SAFETY: as above; the array has n numbers of this kind.
            unsafe { builder.launch(shape) }.map_err(text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_go_in_pieces() {
        let neighbours = [(3, 0..5), (1, 5..7), (4, 7..7)];
        let pieces = in_pieces(&neighbours, 2);
        let known = [vec![(3, 0..2), (1, 5..7)], vec![(3, 2..4)], vec![(3, 4..5)]];
        assert_eq!(pieces, known);
        assert_eq!(in_pieces(&neighbours, 8), [vec![(3, 0..5), (1, 5..7)]]);
        assert!(in_pieces(&[], 8).is_empty());
    }

    #[test]
    fn exported_memory_passes_through_bytes() {
        let known = ExportedMemory { program: 7, context: 1 << 60, start: 3, handle: [5; HANDLE] };
        let found = ExportedMemory::from_bytes(&known.bytes()).expect("as many bytes");
        assert_eq!(found.bytes(), known.bytes());
        assert!(ExportedMemory::from_bytes(&known.bytes()[1..]).is_none());
    }
}

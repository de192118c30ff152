//! [`Device`]: what every device with memory of its own can do, whoever made it.
//!
//! Arrays and kernels are type-erased, so that operators, vectors and solvers hold a `dyn Device` and no backend is
//! named above this folder. A device does its work in the order in which it is asked for; only [`Device::write`],
//! [`Device::read`] and [`Device::synchronise`] wait. What is compared before a kernel starts is the same for all
//! devices and stands here.

#![cfg_attr(
    not(any(feature = "cuda", feature = "opencl")),
    allow(dead_code, reason = "without these features there is no device that makes arrays")
)]

mod sparse;

pub use sparse::SparseMatrix;
use std::any::Any;
use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::parallel::*;
use kernels_gen::abi::{KernelAbi, Precision, Role, SHARED_BYTES};
use kernels_gen::dialect::c::Words;
use kernels_gen::dialect::{Generated, SourceFile};

use super::cpu::{Largest, LaunchError, Plain, indices_fit};
use super::{Apart, Backend, DeviceError, DeviceGroup, Joined, Staging};
use crate::processes::Group;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Double precision.
    F64,
    /// Single precision.
    F32,
    /// Indices and counts.
    U32,
}

impl Kind {
    /// The type's name in Rust.
    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => f64::NAME,
            Self::F32 => f32::NAME,
            Self::U32 => u32::NAME,
        }
    }

    /// Bytes of an element.
    pub fn width(self) -> usize {
        match self {
            Self::F64 => 8,
            Self::F32 | Self::U32 => 4,
        }
    }
}

impl From<Precision> for Kind {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::F64 => Self::F64,
            Precision::F32 => Self::F32,
        }
    }
}

/// A number that a device's array can hold.
pub trait Element: Plain {
    /// The type's name for arrays.
    const KIND: Kind;

    /// Numbers of this type, if they can be indices.
    fn as_indices(values: &[Self]) -> Option<&[u32]> {
        let _ = values;
        None
    }
}

impl Element for f64 {
    const KIND: Kind = Kind::F64;
}

impl Element for f32 {
    const KIND: Kind = Kind::F32;
}

impl Element for u32 {
    const KIND: Kind = Kind::U32;

    fn as_indices(values: &[Self]) -> Option<&[u32]> {
        Some(values)
    }
}

/// Something that belongs to one kind of device. It is shared with the recordings that need it.
pub(super) type Own = Arc<dyn Any + Send + Sync>;

/// What tells devices apart, so that none is given what is another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(u64);

impl Owner {
    /// The next device's.
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// An array in a device's memory.
pub struct Array {
    kind: Kind,
    len: usize,
    owner: Owner,
    pub(super) memory: Own,
    /// What is known of indices that were uploaded and have not been changed since.
    indices: Option<Indices>,
}

/// What is known of the indices in an array.
#[derive(Clone, Copy, Debug)]
struct Indices {
    largest: Largest,
    /// From here on all are the last one.
    settled: usize,
}

impl Indices {
    fn of(values: &[u32]) -> Self {
        let last = values.last();
        let settled = values.iter().rposition(|value| Some(value) != last);
        let parts = values.par_chunks(1 << 16).map(Largest::of);
        let largest = parts.merged(Largest::and).unwrap_or_default();
        Self { largest, settled: settled.map_or(0, |at| at + 1) }
    }
}

impl Array {
    /// Memory of a device with room for `len` elements.
    pub(super) fn new(owner: Owner, kind: Kind, len: usize, memory: Own) -> Self {
        Self { kind, len, owner, memory, indices: None }
    }

    /// An array that no device has memory for.
    pub(crate) fn nowhere(kind: Kind) -> Self {
        Self::new(Owner(0), kind, 0, Arc::new(()))
    }

    /// Says what indices a kernel has written: all up to `largest`, and the same from the place `settled` on.
    pub(crate) fn with_indices(self, largest: u32, settled: usize) -> Self {
        Self { indices: Some(Indices { largest: Largest::of(&[largest]), settled }), ..self }
    }

    /// The type of its elements.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of its elements.
    pub fn bytes(&self) -> usize {
        self.len * self.kind.width()
    }

    /// The same for an array that is changed: what was known of its indices is known no more.
    pub(super) fn changes(&mut self, at: usize, len: usize) -> Result<(), DeviceError> {
        self.indices = None;
        self.holds(at, len)
    }

    /// A range of bytes must lie within it.
    pub(super) fn holds(&self, at: usize, len: usize) -> Result<(), DeviceError> {
        match at.checked_add(len) {
            Some(end) if end <= self.bytes() => Ok(()),
            _ => Err(DeviceError::Mismatch { operation: "copy" }),
        }
    }

    /// The memory, as the device knows it that made it, which must be this one.
    pub(super) fn memory<M: 'static>(&self, owner: Owner) -> Result<&M, DeviceError> {
        let own = self.memory.downcast_ref().filter(|_| self.owner == owner);
        own.ok_or(DeviceError::Foreign)
    }

    /// What keeps the memory.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "other devices do not record"))]
    pub(super) fn own(&self) -> Own {
        Arc::clone(&self.memory)
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} on a device", self.len, self.kind.name())
    }
}

/// A kernel that is loaded on a device.
pub struct Kernel {
    abi: KernelAbi,
    handle: Own,
    spilt: usize,
    /// Its last argument, [`Role::Tables`], if it has one.
    tables: Option<Array>,
}

impl Kernel {
    /// What a device knows it by.
    pub(super) fn new(abi: KernelAbi, handle: Own) -> Self {
        Self { abi, handle, spilt: 0, tables: None }
    }

    /// The same with the bytes that a thread keeps in memory because registers do not hold them.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "other devices do not say"))]
    pub(super) fn with_spilt(self, spilt: usize) -> Self {
        Self { spilt, ..self }
    }

    /// Bytes that a thread keeps in memory because registers do not hold them; 0 where the device does not say.
    pub fn spilt(&self) -> usize {
        self.spilt
    }

    /// Its interface.
    pub fn abi(&self) -> &KernelAbi {
        &self.abi
    }

    /// What the device that loaded it knows it by.
    pub(super) fn handle<H: 'static>(&self) -> Result<&H, DeviceError> {
        self.handle.downcast_ref().ok_or(DeviceError::Foreign)
    }

    /// What keeps it loaded.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "other devices do not record"))]
    pub(super) fn own(&self) -> Own {
        Arc::clone(&self.handle)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}", self.abi.name)
    }
}

/// The kernels of one source.
#[derive(Debug)]
pub struct Module {
    /// The kernels, in the source's order.
    pub kernels: Vec<Kernel>,
    /// Whether they had been compiled before.
    pub cached: bool,
}

impl Module {
    /// The kernels, whose tables go to their device, where they stay.
    pub(super) fn new(
        device: &dyn Device,
        mut kernels: Vec<Kernel>,
        cached: bool,
    ) -> Result<Self, DeviceError> {
        for kernel in kernels.iter_mut().filter(|kernel| !kernel.abi.tables.is_empty()) {
            let tables = &kernel.abi.tables;
            kernel.tables = Some(match kernel.abi.precision {
                Precision::F64 => device.upload(tables)?,
                Precision::F32 => {
                    device.upload(&tables.iter().map(|&x| x as f32).collect::<Vec<f32>>())?
                }
            });
        }
        Ok(Self { kernels, cached })
    }

    /// The kernel of this name.
    ///
    /// # Errors
    ///
    /// [`LaunchError::UnknownKernel`].
    pub fn kernel(&self, name: &str) -> Result<&Kernel, LaunchError> {
        let found = self.kernels.iter().find(|kernel| kernel.abi.name == name);
        found.ok_or_else(|| LaunchError::UnknownKernel(name.to_owned()))
    }
}

/// What is given to a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// An array, which the kernel may write.
    Array(&'a Array),
    /// A number of things, 64 bits.
    Size(u64),
    /// A double.
    Real(f64),
}

/// A place in a device's order of work.
pub struct Mark(Own);

impl Mark {
    /// What a device knows it by.
    pub(super) fn new(handle: Own) -> Self {
        Self(handle)
    }

    /// What the device that made it knows it by.
    pub(super) fn handle<H: 'static>(&self) -> Result<&H, DeviceError> {
        self.0.downcast_ref().ok_or(DeviceError::Foreign)
    }
}

impl fmt::Debug for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a place in a device's work")
    }
}

/// Work of a device that was recorded, to be done again and again. It keeps the arrays and kernels that it needs.
pub struct Recording(Own);

impl Recording {
    /// What a device knows it by.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "other devices do not record"))]
    pub(super) fn new(handle: Own) -> Self {
        Self(handle)
    }

    /// What the device that made it knows it by.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "other devices do not record"))]
    pub(super) fn handle<H: 'static>(&self) -> Result<&H, DeviceError> {
        self.0.downcast_ref().ok_or(DeviceError::Foreign)
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a recording of a device's work")
    }
}

/// What is to be recorded: it asks a device for work.
pub type Record<'a> = &'a mut dyn FnMut() -> Result<(), Box<dyn Error>>;

/// A device with memory of its own.
pub trait Device: fmt::Debug + Send + Sync {
    /// What it is reached by.
    fn backend(&self) -> Backend;

    /// Its name.
    fn name(&self) -> String;

    /// Bytes that the threads of a group may share.
    fn shared_bytes(&self) -> usize {
        SHARED_BYTES
    }

    /// Bytes of memory that can be had now, or at most; none where the device does not say.
    fn free_bytes(&self) -> Option<f64> {
        None
    }

    /// Lets the devices of all processes of a group reach each other, where they can; all of them call it, and find the same.
    ///
    /// # Errors
    ///
    /// Why they do not, where they do not.
    fn join(&self, group: &Arc<dyn Group>) -> Result<Joined, Apart> {
        let _ = group;
        Err(Apart::Backend)
    }

    /// The devices of other processes, where this one reaches them.
    fn group(&self) -> Option<&dyn DeviceGroup> {
        None
    }

    /// The dialect of its sources.
    fn words(&self) -> &'static Words;

    /// Compiles a source, or finds it in the cache, and loads its kernels.
    ///
    /// # Errors
    ///
    /// A compiler that is missing or refuses the source, a driver that fails.
    ///
    /// # Safety
    ///
    /// The kernels of the text must do what their interfaces say, and no more. [`Generated`] sources do: for them there
    /// is a safe `load`.
    unsafe fn load_source(&self, source: &SourceFile) -> Result<Module, DeviceError>;

    /// An array of zeros.
    ///
    /// # Errors
    ///
    /// Too little memory, a driver that fails.
    fn zeros(&self, kind: Kind, len: usize) -> Result<Array, DeviceError>;

    /// Sets every element to zero.
    ///
    /// # Errors
    ///
    /// A driver that fails; an array of another device.
    fn clear(&self, array: &mut Array) -> Result<(), DeviceError>;

    /// Copies bytes to an array, from its byte `at` on.
    ///
    /// # Errors
    ///
    /// As [`Device::clear`].
    fn write(&self, array: &mut Array, at: usize, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies bytes of an array, from its byte `at` on, when all work before is done.
    ///
    /// # Errors
    ///
    /// As [`Device::clear`], also for work that was asked for before.
    fn read(&self, array: &Array, at: usize, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Host memory of so many bytes that is read into and written from again and again.
    fn staging(&self, bytes: usize) -> Box<dyn Staging> {
        Box::new(vec![0; bytes])
    }

    /// Waits for all work.
    ///
    /// # Errors
    ///
    /// What went wrong with it.
    fn synchronise(&self) -> Result<(), DeviceError>;

    /// Marks this place in the order of work.
    ///
    /// # Errors
    ///
    /// A driver that fails.
    fn mark(&self) -> Result<Mark, DeviceError>;

    /// Seconds between two marks, the later of which is waited for.
    ///
    /// # Errors
    ///
    /// A driver that fails; marks of another device.
    fn seconds(&self, from: &Mark, to: &Mark) -> Result<f64, DeviceError>;

    /// Does two works that need no order, at once where a device can: kernels that this thread starts and arrays that it
    /// clears, nothing else. What is asked for afterwards comes behind both.
    ///
    /// # Errors
    ///
    /// What either says; a driver that fails.
    fn beside(&self, aside: Record<'_>, own: Record<'_>) -> Result<(), Box<dyn Error>> {
        aside()?;
        own()
    }

    /// The same, where `aside` is what others wait for, and goes before `own` where both wait for room.
    ///
    /// # Errors
    ///
    /// As [`Device::beside`].
    fn ahead(&self, aside: Record<'_>, own: Record<'_>) -> Result<(), Box<dyn Error>> {
        self.beside(aside, own)
    }

    /// Records what `work` asks for instead of doing it: kernels that this thread starts and arrays that it clears,
    /// nothing else. Gives nothing, and nothing has been done, where a device does not record, where `work` fails or
    /// asks for more, or where somebody else is recording; `work` may have been called in vain.
    ///
    /// # Errors
    ///
    /// A driver that fails.
    fn record(&self, work: Record<'_>) -> Result<Option<Recording>, DeviceError> {
        let _ = work;
        Ok(None)
    }

    /// Does recorded work, with the arrays that were named then and what they hold now.
    ///
    /// # Errors
    ///
    /// A driver that fails; a recording of another device.
    fn replay(&self, recording: &Recording) -> Result<(), DeviceError> {
        let _ = recording;
        Err(DeviceError::Foreign)
    }

    /// A square matrix in compressed rows for the vendor's library; nothing where there is no such library.
    ///
    /// # Errors
    ///
    /// Too little memory, a driver that fails.
    ///
    /// # Safety
    ///
    /// Starts, columns and values in double precision, with n + 1 starts at least for n rows: they begin with 0, do not
    /// descend, and the last is the number of columns, which is that of values; every column is below n.
    unsafe fn sparse_matrix(
        &self,
        rows: usize,
        arrays: [&Array; 3],
    ) -> Result<Option<Box<dyn SparseMatrix>>, DeviceError> {
        let _ = (rows, arrays);
        Ok(None)
    }

    /// Starts `groups` groups of a kernel's threads.
    ///
    /// # Errors
    ///
    /// A driver that fails; a kernel or an array of another device.
    ///
    /// # Safety
    ///
    /// The arguments must be those of the kernel, in their number, order and types, and the kernel must stay within the
    /// arrays.
    unsafe fn start(
        &self,
        kernel: &Kernel,
        groups: usize,
        arguments: &[Given<'_>],
    ) -> Result<(), DeviceError>;
}

impl dyn Device + '_ {
    /// An array with these elements.
    ///
    /// # Errors
    ///
    /// Too little memory, a driver that fails.
    pub fn upload<T: Element>(&self, values: &[T]) -> Result<Array, DeviceError> {
        let mut array = self.zeros(T::KIND, values.len())?;
        self.write(&mut array, 0, bytes(values))?;
        array.indices = T::as_indices(values).map(Indices::of);
        Ok(array)
    }

    /// Compiles a source that was generated, or finds it in the cache, and loads its kernels. No other text is taken:
    ///
    /// ```compile_fail,E0308
    /// #![forbid(unsafe_code)]
    /// use kernels_gen::dialect::{Language, SourceFile};
    ///
    /// fn load(device: &dyn runtime::device::Device) {
    ///     let _ = device.load(&SourceFile::empty(Language::OpenCl));
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// A compiler that is missing or refuses the source, a driver that fails.
    pub fn load(&self, source: &Generated) -> Result<Module, DeviceError> {
        // SAFETY: nobody but the generator makes such a source: its text and its interfaces are printed together.
        unsafe { self.load_source(source) }
    }

    /// The same for one of this crate's own texts, which must do what their interfaces say.
    pub(crate) fn load_written(&self, source: &SourceFile) -> Result<Module, DeviceError> {
        // SAFETY: callers are in this crate, each with a text that is written by hand for the interfaces beside it.
        unsafe { self.load_source(source) }
    }

    /// The elements of an array, as doubles.
    ///
    /// # Errors
    ///
    /// A driver that fails, also at work that was asked for before.
    pub fn download(&self, array: &Array) -> Result<Vec<f64>, DeviceError> {
        Ok(match array.kind() {
            Kind::F64 => self.elements::<f64>(array)?,
            Kind::F32 => self.elements::<f32>(array)?.into_iter().map(f64::from).collect(),
            Kind::U32 => self.elements::<u32>(array)?.into_iter().map(f64::from).collect(),
        })
    }

    fn elements<T: Element>(&self, array: &Array) -> Result<Vec<T>, DeviceError> {
        let mut values = vec![T::default(); array.len()];
        self.read(array, 0, bytes_mut(&mut values))?;
        Ok(values)
    }

    /// Runs a range of batches of a generated kernel; `arguments` are in the order of its interface, without
    /// [`Role::Tables`], which a loaded kernel brings along.
    ///
    /// # Errors
    ///
    /// [`LaunchError`] if the arguments do not fit: their number, types and lengths, and the largest indices, which are
    /// known of arrays that were uploaded and not changed since. A driver that fails.
    pub fn launch(
        &self,
        kernel: &Kernel,
        batches: Range<usize>,
        arguments: &[&Array],
    ) -> Result<(), DeviceError> {
        let abi = kernel.abi();
        let arguments: Vec<&Array> = arguments.iter().copied().chain(&kernel.tables).collect();
        let read = |array: &Array| self.elements::<u32>(array).ok();
        fits(abi, batches.end, &arguments, &read)?;
        if batches.is_empty() {
            return Ok(());
        }
        let range = [batches.start, batches.end].map(|batch| Given::Size(batch as u64));
        let arrays = arguments.iter().map(|array| Given::Array(array));
        let all: Vec<Given<'_>> = range.into_iter().chain(arrays).collect();
        // SAFETY: number, types and lengths of the arguments have just been compared with the interface that was
        // printed with the code, and so have the largest indices.
        unsafe { self.start(kernel, batches.len().div_ceil(abi.group), &all) }
    }
}

/// Compares arguments with what an interface says, up to batch `end`; `read` brings indices back of which not all reach
/// equally far, as runs do.
fn fits(
    abi: &KernelAbi,
    end: usize,
    arguments: &[&Array],
    read: &dyn Fn(&Array) -> Option<Vec<u32>>,
) -> Result<(), LaunchError> {
    let kernel = || abi.name.clone();
    let (expected, found) = (abi.arguments.len(), arguments.len());
    if expected != found {
        return Err(LaunchError::WrongCount { kernel: kernel(), expected, found });
    }
    for (wanted, array) in abi.arguments.iter().zip(arguments) {
        let argument = || wanted.name.clone();
        let expected = if wanted.role.is_integer() { Kind::U32 } else { abi.precision.into() };
        let found = array.kind.name();
        if array.kind != expected {
            let (kernel, argument, expected) = (kernel(), argument(), expected.name());
            return Err(LaunchError::WrongType { kernel, argument, expected, found });
        }
        let expected = match wanted.role {
            Role::Params | Role::Tables => wanted.extent,
            // And one behind all of them.
            Role::Starts => wanted.extent.saturating_mul(end).saturating_add(1),
            _ => wanted.extent.saturating_mul(end),
        };
        if array.len < expected {
            let (kernel, argument) = (kernel(), argument());
            return Err(LaunchError::TooShort { kernel, argument, expected, found: array.len });
        }
        let mut others = abi.arguments.iter().zip(arguments).filter(|(other, _)| !other.written);
        if wanted.written && others.any(|(_, other)| Arc::ptr_eq(&other.memory, &array.memory)) {
            return Err(LaunchError::Aliased { kernel: kernel(), argument: argument() });
        }
    }
    let unknown = |at: usize| {
        let argument = abi.arguments[at].name.clone();
        LaunchError::UnknownIndices { kernel: kernel(), argument }
    };
    let known = |at: usize| arguments[at].indices.ok_or_else(|| unknown(at));
    let largest = |at: usize, part: Option<&Range<usize>>| {
        let all = known(at)?.largest;
        let Some(part) = part else { return Ok(all) };
        let indices = read(arguments[at]).ok_or_else(|| unknown(at))?;
        let rows = indices.chunks_exact(abi.arguments[at].extent.max(1));
        let each = rows.map(|row| row.get(part.clone()).unwrap_or(row));
        Ok(each.fold(Largest::default(), |most, part| most.and(Largest::of(part))))
    };
    indices_fit(abi, largest, |at| arguments[at].len)?;
    // Owners of unknowns write those whose lists are not empty.
    let place = |role: Role| abi.arguments.iter().position(|argument| argument.role == role);
    if let (Some(starts), Some(result)) = (place(Role::Starts), place(Role::Result(0))) {
        let (expected, found) = (known(starts)?.settled, arguments[result].len);
        if found < expected {
            let argument = abi.arguments[result].name.clone();
            return Err(LaunchError::TooShort { kernel: kernel(), argument, expected, found });
        }
    }
    Ok(())
}

/// The bytes of numbers.
pub(super) fn bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: plain numbers have no padding, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of numbers, to be written.
pub(super) fn bytes_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `bytes`; and whatever the bytes are, they are numbers.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

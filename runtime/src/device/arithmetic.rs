//! Vector operations on a device: one source, instantiated per dialect and precision. The kernels of entry-wise
//! operations and their sums are generated from the [`operations`] table; the others are a template.
//!
//! In addition to the operator, an iteration of the conjugate gradient method takes one dot product, one pass over x,
//! r, p, q and D⁻¹ with both new dot products, and one pass for the next direction. A sum has two stages: each thread
//! group sums its entries, and the consumer sums the groups, in an order that depends on the length only. The second
//! stage is part of the next kernel or of the download, so it needs no launch.

mod combinations;
mod copies;
mod lists;
pub(crate) mod operations;
mod recurrence;
mod selection;
mod several;
mod shared_entries;
mod sums;

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kernels_gen::abi::{KernelAbi, Precision};
use kernels_gen::dialect::SourceFile;
use kernels_gen::dialect::c::Vocabulary;

use super::array::{bytes, bytes_mut};
use super::cpu::LaunchError;
use super::{
    Array, Device, DeviceError, Element, ElementKind, Kernel, KernelArgument, Module, VectorLayout,
};
use crate::processes::interface_exchange::InterfaceExchange;
pub use combinations::{CombinationTables, DeviceCombinations, NONE, WIDTH};
pub use copies::EntryCopies;
pub use lists::{DeviceLists, EntryLists};
use operations::{OPERATIONS, VectorOperation};
pub use recurrence::{CgRecurrence, SearchDirection};
pub use selection::EntrySelection;
pub use shared_entries::SharedEntries;
use shared_entries::SumSelection;
pub use sums::{PendingSums, SumValues};

/// The source template, with `$` before each dialect-dependent word.
const TEXT: &str = include_str!("arithmetic/kernels.c.txt");

/// Prefix of all names: OpenCL has a `dot` of its own.
const PREFIX: &str = "vector_";
/// The names of the template's kernels, without prefix.
const NAMES: [&str; 28] = [
    "ramp",
    "flip_signs",
    "randomise",
    "weigh",
    "narrow",
    "widen",
    "move",
    "fill_at",
    "set_aside",
    "put_back",
    "put_at",
    "get_at",
    "take_at",
    "meet",
    "project_at",
    "project_action_at",
    "average_at",
    "copy_at",
    "sum_at",
    "sum_parts",
    "sum_whole",
    "without",
    "conjugate",
    "conjugate_plain",
    "batch_step",
    "batch_step_plain",
    "batch_advance",
    "batch_advance_plain",
];

/// Returns the names of all kernels, without prefix.
fn names() -> impl Iterator<Item = &'static str> {
    let of_table = OPERATIONS.iter().map(|operation| operation.name);
    NAMES.into_iter().chain(of_table).chain(several::NAMES)
}

/// Threads per group.
pub(super) const THREADS: usize = 256;
/// The largest number of groups: the capacity of a large GPU.
const MOST: usize = 1024;
/// Minimal number of entries per thread.
const ENTRIES: usize = 4;

/// Returns the number of groups for `n` entries, which determines the order of sums.
pub(super) fn groups(n: usize) -> usize {
    n.div_ceil(THREADS * ENTRIES).clamp(1, MOST)
}

/// Returns the number of groups of a sum over `n` entries, some of which may be shared with other processes.
fn groups_of(n: usize, shared: Option<&Arc<SharedEntries>>) -> usize {
    shared.map_or_else(|| groups(n), |shared| shared.groups())
}

/// Vector kernels of one precision on a device.
pub struct Arithmetic {
    device: Arc<dyn Device>,
    precision: Precision,
    layout: VectorLayout,
    module: Module,
    /// Unused arrays for the sums of groups.
    spare: Mutex<Vec<Array>>,
    failure: Mutex<Option<DeviceError>>,
    /// Shared entries of vectors, for each exchange.
    shared_cache: Mutex<Vec<(Weak<InterfaceExchange>, Arc<SharedEntries>)>>,
}

impl fmt::Debug for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "arithmetic in {:?} on {:?}", self.precision, self.device)
    }
}

impl Arithmetic {
    /// Returns the source of the kernels in a dialect.
    pub fn source(words: &Vocabulary, precision: Precision) -> SourceFile {
        let (threads, slots) = (THREADS.to_string(), CgRecurrence::MOST.to_string());
        let kernel = words.kernel.replace("$THREADS", &threads).replace("$GROUPS", "4");
        let scalar = match precision {
            Precision::F64 => "double",
            Precision::F32 => "float",
        };
        let thread = format!("({})", words.thread);
        let replacements = [
            ("$KERNEL", kernel.as_str()),
            ("$GLOBAL", words.global.trim_end()),
            ("$SHARED", words.shared),
            ("$BARRIER", words.barrier),
            ("$RESTRICT", words.restrict),
            ("$THREADS", &threads),
            ("$THREAD", &thread),
            ("$GROUP", words.group),
            ("$SIZE", words.size),
            ("$SLOTS", &slots),
            ("$T", scalar),
        ];
        let mut text = TEXT.to_owned();
        for operation in OPERATIONS {
            text = text.replace(&format!("@{}@", operation.name), &operation.entry());
            text += &operation.kernel(PREFIX);
        }
        text += &several::kernels(PREFIX);
        for (word, with) in replacements {
            text = text.replace(word, with);
        }
        let abi = |name: &str| {
            KernelAbi::by_hand(format!("{PREFIX}{name}"), precision, THREADS, Vec::new())
        };
        SourceFile {
            text,
            kernels: names().map(abi).collect(),
            ..SourceFile::empty(words.language)
        }
    }

    /// Compiles the kernels, or finds them in the cache.
    ///
    /// # Errors
    ///
    /// The driver rejects them.
    pub fn new(device: Arc<dyn Device>, precision: Precision) -> Result<Arc<Self>, DeviceError> {
        Self::with_layout(device, precision, VectorLayout::plain(1))
    }

    /// Like [`Arithmetic::new`], for vectors with another layout.
    ///
    /// # Errors
    ///
    /// The driver rejects them.
    pub fn with_layout(
        device: Arc<dyn Device>,
        precision: Precision,
        layout: VectorLayout,
    ) -> Result<Arc<Self>, DeviceError> {
        let module = device.load_written(&Self::source(device.words(), precision))?;
        let (spare, failure, shared_cache) = (Mutex::default(), Mutex::default(), Mutex::default());
        Ok(Arc::new(Self { device, precision, layout, module, spare, failure, shared_cache }))
    }

    /// Returns the device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Returns the precision of the entries.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Returns the layout of vectors.
    pub fn layout(&self) -> &VectorLayout {
        &self.layout
    }

    /// Stores the first error of an operation that cannot return one.
    pub fn keep<T>(&self, result: Result<T, DeviceError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
                None
            }
        }
    }

    /// Returns the first stored error, if any. Results since then are invalid.
    ///
    /// # Errors
    ///
    /// The stored error.
    pub fn check(&self) -> Result<(), DeviceError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone().map_or(Ok(()), Err)
    }

    /// Creates a vector of zeros.
    ///
    /// # Errors
    ///
    /// Those of [`Device::zeros`].
    pub fn zeros(&self, len: usize) -> Result<Array, DeviceError> {
        self.device.zeros(self.precision.into(), len)
    }

    /// Uploads numbers in the precision of the entries.
    ///
    /// # Errors
    ///
    /// Those of [`Device::zeros`].
    pub fn upload(&self, values: &[f64]) -> Result<Array, DeviceError> {
        match self.precision {
            Precision::F64 => self.device.upload(values),
            Precision::F32 => {
                let singles: Vec<f32> = values.iter().map(|&value| single(value)).collect();
                self.device.upload(&singles)
            }
        }
    }

    /// Overwrites entries of an array, from element `at` on.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] if they do not fit; a driver error.
    pub fn overwrite(
        &self,
        array: &mut Array,
        at: usize,
        values: &[f64],
    ) -> Result<(), DeviceError> {
        self.same("overwrite", &[array], array.len())?;
        if at + values.len() > array.len() {
            return Err(DeviceError::Mismatch { operation: "overwrite" });
        }
        match self.precision {
            Precision::F64 => self.device.write(array, at * size_of::<f64>(), bytes(values)),
            Precision::F32 => {
                let singles: Vec<f32> = values.iter().map(|&value| single(value)).collect();
                self.device.write(array, at * size_of::<f32>(), bytes(&singles))
            }
        }
    }

    /// Downloads one element of an array.
    ///
    /// # Errors
    ///
    /// Those of [`Arithmetic::overwrite`].
    pub fn element(&self, array: &Array, at: usize) -> Result<f64, DeviceError> {
        if at >= array.len() {
            return Err(DeviceError::Mismatch { operation: "element" });
        }
        match array.kind() {
            ElementKind::F64 => self.one::<f64>(array, at),
            ElementKind::F32 => self.one::<f32>(array, at).map(f64::from),
            ElementKind::U32 => self.one::<u32>(array, at).map(f64::from),
        }
    }

    /// Downloads a range of an array, in double precision.
    ///
    /// # Errors
    ///
    /// Those of [`Arithmetic::overwrite`].
    pub fn read(&self, array: &Array, range: Range<usize>) -> Result<Vec<f64>, DeviceError> {
        self.same("read", &[array], array.len())?;
        if range.end > array.len() {
            return Err(DeviceError::Mismatch { operation: "read" });
        }
        match self.precision {
            Precision::F64 => self.device.elements::<f64>(array, range),
            Precision::F32 => {
                let values = self.device.elements::<f32>(array, range)?;
                Ok(values.into_iter().map(f64::from).collect())
            }
        }
    }

    fn one<T: Element>(&self, array: &Array, at: usize) -> Result<T, DeviceError> {
        let mut value = [T::default()];
        self.device.read(array, at * size_of::<T>(), bytes_mut(&mut value))?;
        Ok(value[0])
    }

    /// Checks that arrays have `n` entries of this precision.
    fn same(
        &self,
        operation: &'static str,
        arrays: &[&Array],
        n: usize,
    ) -> Result<(), DeviceError> {
        let kind: ElementKind = self.precision.into();
        let fit = arrays.iter().all(|array| array.kind() == kind && array.len() == n);
        if fit { Ok(()) } else { Err(DeviceError::Mismatch { operation }) }
    }

    fn kernel(&self, name: &str) -> Result<&Kernel, DeviceError> {
        let at = names().position(|known| known == name);
        let kernel = at.and_then(|at| self.module.kernels.get(at));
        Ok(kernel.ok_or_else(|| LaunchError::UnknownKernel(name.to_owned()))?)
    }

    /// Runs a kernel on arrays of `n` entries each, followed by other arguments.
    fn run(
        &self,
        name: &'static str,
        n: usize,
        arrays: &[&Array],
        others: &[KernelArgument<'_>],
    ) -> Result<(), DeviceError> {
        self.same(name, arrays, n)?;
        self.run_first(name, n, arrays, others)
    }

    /// Like [`run`](Self::run), for the first `n` entries of longer arrays.
    fn run_first(
        &self,
        name: &'static str,
        n: usize,
        arrays: &[&Array],
        others: &[KernelArgument<'_>],
    ) -> Result<(), DeviceError> {
        match n {
            0 => Ok(()),
            n => self.run_in(name, (n, groups(n)), arrays, others),
        }
    }

    /// Runs a kernel on arrays of `n` entries with a given number of groups, each of which forms a sum, even without
    /// entries.
    fn run_by(
        &self,
        name: &'static str,
        (n, groups): (usize, usize),
        arrays: &[&Array],
        others: &[KernelArgument<'_>],
    ) -> Result<(), DeviceError> {
        self.same(name, arrays, n)?;
        self.run_in(name, (n, groups), arrays, others)
    }

    fn run_in(
        &self,
        name: &'static str,
        (n, groups): (usize, usize),
        arrays: &[&Array],
        others: &[KernelArgument<'_>],
    ) -> Result<(), DeviceError> {
        let kind: ElementKind = self.precision.into();
        if arrays.iter().any(|array| array.kind() != kind || array.len() < n) {
            return Err(DeviceError::Mismatch { operation: name });
        }
        let mut given =
            vec![KernelArgument::Size(n as u64), KernelArgument::Size((groups * THREADS) as u64)];
        given.extend(arrays.iter().map(|array| KernelArgument::Array(array)));
        given.extend(others);
        // SAFETY: the kernels are those of `TEXT`. Their arguments are n, the stride, arrays with at least n entries of
        // this precision (just checked), and further arguments of the callers in this folder.
        unsafe { self.device.start(self.kernel(name)?, groups, &given) }
    }

    /// Returns an array for as many sums of the largest number of groups as a kernel forms; its contents are undefined.
    fn room(&self) -> Result<Array, DeviceError> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.map_or_else(|| self.device.zeros(ElementKind::F64, several::MANY * MOST), Ok)
    }

    /// Returns an operation of the table with the numbers of operands and scalars that are given.
    fn operation(
        name: &'static str,
        written: usize,
        read: usize,
        scalars: usize,
    ) -> Result<&'static VectorOperation, DeviceError> {
        let operation = VectorOperation::of(name)
            .filter(|operation| operation.arity()[..3] == [written, read, scalars]);
        operation.ok_or(DeviceError::Mismatch { operation: name })
    }

    /// Does an operation of the table [`operations`]: written and updated vectors, then read ones.
    ///
    /// # Errors
    ///
    /// For this and all following functions: arrays that do not match, or a driver error.
    pub fn compute<const W: usize, const R: usize>(
        &self,
        name: &'static str,
        written: [&mut Array; W],
        read: [&Array; R],
        scalars: &[f64],
    ) -> Result<(), DeviceError> {
        Self::operation(name, W, R, scalars.len())?;
        let arrays: Vec<&Array> = written.iter().map(|array| &**array).chain(read).collect();
        let scalars: Vec<_> = scalars.iter().map(|&scalar| KernelArgument::Real(scalar)).collect();
        self.run(name, arrays.first().map_or(0, |first| first.len()), &arrays, &scalars)
    }

    /// Does a reduction of the table [`operations`]; with shared entries, over all processes.
    pub fn reduce<const W: usize, const R: usize>(
        self: &Arc<Self>,
        name: &'static str,
        written: [&mut Array; W],
        read: [&Array; R],
        scalars: &[f64],
        shared: Option<&Arc<SharedEntries>>,
    ) -> Result<PendingSums, DeviceError> {
        let operation = Self::operation(name, W, R, scalars.len())?;
        let arrays: Vec<&Array> = written.iter().map(|array| &**array).chain(read).collect();
        let scalars: Vec<_> = scalars.iter().map(|&scalar| KernelArgument::Real(scalar)).collect();
        self.sums(name, (operation, &arrays), (&[], &scalars), shared)
    }

    /// Runs a kernel that forms the sums of an operation.
    fn sums(
        self: &Arc<Self>,
        name: &'static str,
        (operation, arrays): (&VectorOperation, &[&Array]),
        (before, after): (&[KernelArgument<'_>], &[KernelArgument<'_>]),
        shared: Option<&Arc<SharedEntries>>,
    ) -> Result<PendingSums, DeviceError> {
        let n = arrays.first().map_or(0, |array| array.len());
        let partials = self.room()?;
        let mut others = before.to_vec();
        others.push(KernelArgument::Array(&partials));
        others.extend(after);
        let groups = groups_of(n, shared);
        self.run_by(name, (n, groups), arrays, &others)?;
        let factors: Vec<Vec<usize>> = operation.factors().collect();
        if let Some(shared) = shared {
            let (wanted, [a, b, c]) = match factors.iter().map(|own| &own[..]).collect::<Vec<_>>()[..]
            {
                [&[a, b]] => (SumSelection::First, [a, b, b]),
                [&[a, b, c]] => (SumSelection::Second, [a, b, c]),
                [&[a, b], &[_, _, c]] => (SumSelection::Both, [a, b, c]),
                _ => return Err(DeviceError::Mismatch { operation: name }),
            };
            shared.settle(self, &partials, wanted, [arrays[a], arrays[b], arrays[c]])?;
        }
        let (arithmetic, shared) = (Arc::clone(self), shared.cloned());
        let (count, curvature) = (factors.len(), !before.is_empty());
        Ok(PendingSums { arithmetic, partials: Some(partials), groups, count, curvature, shared })
    }

    /// Sets y_i = 0 for i < n.
    pub fn clear(&self, y: &mut Array, n: usize) -> Result<(), DeviceError> {
        self.run_first("assign", n.min(y.len()), &[y], &[KernelArgument::Real(0.0)])
    }

    /// Sets y_i = 0 in some ranges.
    pub fn clear_all(&self, y: &mut Array, ranges: &[Range<usize>]) -> Result<(), DeviceError> {
        let clear = |range: &Range<usize>| self.overwrite(y, range.start, &vec![0.0; range.len()]);
        ranges.iter().try_for_each(clear)
    }

    /// Sets y_i = i mod `period` − `period` / 2, also in padding.
    pub fn ramp(&self, y: &mut Array, period: usize) -> Result<(), DeviceError> {
        self.run("ramp", y.len(), &[y], &[KernelArgument::Real(period as f64)])
    }

    /// Sets y_i = ±y_i, with pseudorandom signs that depend on i.
    pub fn flip_signs(&self, y: &mut Array) -> Result<(), DeviceError> {
        self.run("flip_signs", y.len(), &[y], &[])
    }

    /// Sets y_i to pseudorandom numbers in [−1, 1) that depend on i and the seed; also in padding.
    pub fn randomise(&self, y: &mut Array, seed: u64) -> Result<(), DeviceError> {
        self.run("randomise", y.len(), &[y], &[KernelArgument::Size(seed)])
    }

    /// Multiplies n entries from `from` on by the weight of their component, which changes every `tile` entries.
    pub fn weigh(
        &self,
        y: &mut Array,
        (from, n): (usize, usize),
        tile: usize,
        weights: &[f64],
    ) -> Result<(), DeviceError> {
        self.same("weigh", &[y], y.len())?;
        if n == 0 {
            return Ok(());
        }
        if weights.is_empty() || tile == 0 || from > y.len() || n > y.len() - from {
            return Err(DeviceError::Mismatch { operation: "weigh" });
        }
        let (given, groups) = (self.device.upload(weights)?, groups(n));
        let size = |number: usize| KernelArgument::Size(number as u64);
        let arguments = [
            size(n),
            size(groups * THREADS),
            KernelArgument::Array(y),
            KernelArgument::Array(&given),
            size(from),
            size(tile),
            size(weights.len()),
        ];
        // SAFETY: the kernel takes n, the stride, an array of this precision with n entries from a position on, the
        // weights, that position, and two positive sizes, of which the second is the number of weights.
        unsafe { self.device.start(self.kernel("weigh")?, groups, &arguments) }
    }

    /// Computes y = a·x for n entries, from one position to another; one of the arrays has the precision of the
    /// entries.
    pub fn convert(
        &self,
        a: f64,
        (x, from): (&Array, usize),
        (y, into): (&mut Array, usize),
        n: usize,
    ) -> Result<(), DeviceError> {
        let (own, wide): (ElementKind, _) = (self.precision.into(), ElementKind::F64);
        let name = match (x.kind(), y.kind()) {
            (there, here) if there == own && here == own => "move",
            (there, here) if there == wide && here == own => "narrow",
            (there, here) if there == own && here == wide => "widen",
            _ => return Err(DeviceError::Mismatch { operation: "convert" }),
        };
        let fits = |array: &Array, first: usize| first <= array.len() && n <= array.len() - first;
        if !fits(x, from) || !fits(y, into) {
            return Err(DeviceError::Mismatch { operation: name });
        }
        if n == 0 {
            return Ok(());
        }
        let groups = groups(n);
        let size = |number: usize| KernelArgument::Size(number as u64);
        let given = [
            size(n),
            size(groups * THREADS),
            KernelArgument::Array(x),
            KernelArgument::Array(y),
            KernelArgument::Real(a),
            size(from),
            size(into),
        ];
        // SAFETY: the kernels take n, the stride, two arrays of the kinds just checked, with n entries from these
        // positions on, a, and the positions.
        unsafe { self.device.start(self.kernel(name)?, groups, &given) }
    }

    /// Does a conjugate gradient step: x = x + α·p, r = r − α·q with α = rz / `curvature`, or 0 if the curvature is not
    /// positive. Returns r·r, and r·D⁻¹r for a given diagonal D⁻¹.
    pub fn conjugate(
        self: &Arc<Self>,
        (rz, curvature): (f64, &PendingSums),
        [p, q]: [&Array; 2],
        d: Option<&Array>,
        [x, r]: [&mut Array; 2],
        shared: Option<&Arc<SharedEntries>>,
    ) -> Result<PendingSums, DeviceError> {
        let before = [KernelArgument::Array(curvature.partials()?)];
        let after = [KernelArgument::Size(curvature.groups as u64), KernelArgument::Real(rz)];
        let arguments = (&before[..], &after[..]);
        match d {
            Some(d) => {
                let operation = Self::operation("step_scaled", 2, 3, 1)?;
                self.sums("conjugate", (operation, &[x, r, p, q, d]), arguments, shared)
            }
            None => {
                let operation = Self::operation("step_plain", 2, 2, 1)?;
                self.sums("conjugate_plain", (operation, &[x, r, p, q]), arguments, shared)
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to single precision is the purpose")]
fn single(value: f64) -> f32 {
    value as f32
}

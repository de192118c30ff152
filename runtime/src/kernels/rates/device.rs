//! Rates of a device, measured by kernels written for that, and the time of work by the device's clock.

use super::Rates;
use crate::device::{Array, Device, DeviceError, ElementKind};
use kernels_gen::abi::{Argument, KernelAbi, Precision, Role};
use kernels_gen::dialect::SourceFile;
use kernels_gen::dialect::c::{Vocabulary, with_preamble};
use std::time::Instant;

/// Number of timed samples, after warm-ups.
const REPEATS: usize = 11;
/// Target seconds of a sample, which contains as many calls as needed, at most [`MOST`].
const SAMPLE: f64 = 2e-3;
const MOST: f64 = 50.0;
/// Total seconds after which a slow device is not sampled again.
const ENOUGH: f64 = 0.5;

/// Returns the median time of some work by the device clock, after `warm` calls. Calls follow one another without
/// synchronisation, as in a solver: a sample is a series of about [`SAMPLE`] seconds.
pub fn median<E: From<DeviceError>>(
    device: &dyn Device,
    warm: usize,
    mut work: impl FnMut() -> Result<(), E>,
) -> Result<f64, E> {
    let mut sample = |calls: usize| -> Result<f64, E> {
        let start = device.mark()?;
        for _ in 0..calls {
            work()?;
        }
        let end = device.mark()?;
        device.synchronise()?;
        Ok(device.seconds(&start, &end)? / calls as f64)
    };
    sample(warm.max(1))?;
    let one = sample(1)?;
    let calls = (SAMPLE / one.max(1e-9)).ceil().min(MOST) as usize;
    let (begin, mut times) = (Instant::now(), Vec::with_capacity(REPEATS));
    while times.len() < REPEATS && (times.len() < 3 || begin.elapsed().as_secs_f64() < ENOUGH) {
        times.push(sample(calls)?);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Kernels timed by [`rates`]: a copy of whole cache lines, independent chains of multiply-adds, and chains of
/// divisions. The others are conflict-free reads of shared memory, atomic additions to adjacent numbers, and an empty
/// kernel.
const RATES: &str = "
$KERNEL rates_copy(const $SIZE first, const $SIZE end, $GLOBAL const double* $RESTRICT from, $GLOBAL double* $RESTRICT to)
{
    const $SIZE i = (first + $GROUP) * 256 + $THREAD;
    const double4 value = ((const $GLOBAL double4*)from)[i];
    (($GLOBAL double4*)to)[i] = value;
}
$KERNEL rates_fma(const $SIZE first, const $SIZE end, $GLOBAL double* $RESTRICT to)
{
    double a[8];
    const double x = 1.0 + 1e-9 * $THREAD;
    for (int i = 0; i < 8; ++i) a[i] = i;
    for (int k = 0; k < 2048; ++k)
        for (int i = 0; i < 8; ++i) a[i] = a[i] * x + 1e-3;
    double sum = 0;
    for (int i = 0; i < 8; ++i) sum += a[i];
    to[(first + $GROUP) * 256 + $THREAD] = sum;
}
$KERNEL rates_divide(const $SIZE first, const $SIZE end, $GLOBAL double* $RESTRICT to)
{
    double a[8];
    const double x = 1.0 + 1e-9 * $THREAD;
    for (int i = 0; i < 8; ++i) a[i] = i + 1;
    for (int k = 0; k < 256; ++k)
        for (int i = 0; i < 8; ++i) a[i] = x / a[i];
    double sum = 0;
    for (int i = 0; i < 8; ++i) sum += a[i];
    to[(first + $GROUP) * 256 + $THREAD] = sum;
}
$KERNEL rates_shared(const $SIZE first, const $SIZE end, $GLOBAL double* $RESTRICT to)
{
    $SHARED double numbers[512];
    numbers[$THREAD] = $THREAD;
    numbers[$THREAD + 256] = $THREAD;
    $BARRIER;
    double a[8];
    for (int i = 0; i < 8; ++i) a[i] = 0;
    for (int k = 0; k < 256; ++k)
        for (int i = 0; i < 8; ++i) a[i] += numbers[($THREAD + 8 * k + 32 * i) % 512];
    double sum = 0;
    for (int i = 0; i < 8; ++i) sum += a[i];
    to[(first + $GROUP) * 256 + $THREAD] = sum;
}
$KERNEL rates_add(const $SIZE first, const $SIZE end, $GLOBAL double* $RESTRICT to)
{
    for (int i = 0; i < 16; ++i) atomic_add(&to[(((first + $GROUP) * 16 + i) * 256 + $THREAD) % $PLACES], 1e-3);
}
$KERNEL rates_nothing(const $SIZE first, const $SIZE end, $GLOBAL double* $RESTRICT to)
{
}
";

/// Doubles of a copied array, 256 MiB, and the factor for devices on which that is too fast to measure.
const COPIED: usize = 1 << 25;
const MORE_COPIED: usize = 4;
/// Doubles copied by a thread group.
const SHARE: usize = 1024;
/// Doubles that atomic additions target: 8 MiB, as much as a cache level holds.
const PLACES: usize = 1 << 20;
/// Thread groups of the arithmetic kernels: initial number, and growth factor while these are too fast to measure; at
/// most 64 for each of an H200's 132 multiprocessors.
const GROUPS: usize = 8;
const MORE: usize = 4;
const MOST_GROUPS: usize = 64 * 132;
/// Numbers added by a thread group, and number of groups that add to each target.
const ADDED: usize = 16 * 256;
const ADDING: usize = PLACES / ADDED;
/// Shortest measurable time in seconds.
const LONG: f64 = 0.01;

/// Returns the source of the kernels timed by [`rates`], in a dialect.
pub fn rates_source(words: &Vocabulary) -> SourceFile {
    let kernel = words.kernel.replace("$THREADS", "256").replace("$GROUPS", "1");
    let (thread, places) = (format!("({})", words.thread), PLACES.to_string());
    let text = RATES
        .replace("$KERNEL", &kernel)
        .replace("$GLOBAL", words.global.trim_end())
        .replace("$SHARED", words.shared)
        .replace("$BARRIER", words.barrier)
        .replace("$RESTRICT", words.restrict)
        .replace("$SIZE", words.size)
        .replace("$GROUP", words.group)
        .replace("$PLACES", &places)
        .replace("$THREAD", &thread);
    let text = with_preamble(words, Precision::F64, &text);
    let abi = |name: &str, written: &[bool], each: usize| {
        let argument = |&written: &bool| {
            let (role, name) = (Role::Stored, "array".to_owned());
            Argument { role, name, extent: each, written }
        };
        let arguments = written.iter().map(argument).collect();
        KernelAbi::by_hand(name, Precision::F64, 256, arguments)
    };
    let mut kernels = vec![abi("rates_copy", &[false, true], SHARE)];
    kernels.extend(COMPUTE.map(|name| abi(name, &[true], 256)));
    kernels.extend(["rates_add", "rates_nothing"].map(|name| abi(name, &[true], 0)));
    SourceFile { text, kernels, ..SourceFile::empty(words.language) }
}

/// Arithmetic kernels among these.
const COMPUTE: [&str; 3] = ["rates_fma", "rates_divide", "rates_shared"];

/// Measures a copy, loops of multiply-adds, divisions and shared reads, additions, and launches. The copy has 256 MiB,
/// 1 GiB if that is too fast, or less if memory is short.
pub fn rates(device: &dyn Device) -> Result<Rates, DeviceError> {
    let module = device.load_written(&rates_source(device.words()))?;
    let time = |name: &str, batches: usize, arrays: &[&Array]| {
        let kernel = module.kernel(name).map_err(DeviceError::from)?;
        median(device, 1, || device.launch(kernel, 0..batches, arrays))
    };
    let mut copied = two(device, COPIED)?;
    let copy_of = |(from, to): &(Array, Array)| time("rates_copy", from.len() / SHARE, &[from, to]);
    let mut copy = copy_of(&copied)?;
    if copy < LONG {
        copied = two(device, MORE_COPIED * COPIED)?;
        copy = copy_of(&copied)?;
    }
    let (from, to) = &copied;
    let mut groups = GROUPS;
    while groups < MOST_GROUPS && time("rates_fma", groups, &[to])? < LONG {
        groups = (groups * MORE).min(MOST_GROUPS);
    }
    let [fma, divide, shared] = COMPUTE.map(|name| time(name, groups, &[to]));
    let adding = groups.max(ADDING);
    let add = time("rates_add", adding, &[to])?;
    let launch = time("rates_nothing", 1, &[to])?;
    let threads = (groups * 256) as f64;
    let copy = (2 * from.len() * size_of::<f64>()) as f64 / copy;
    Ok(Rates {
        copy,
        read: copy,
        flops: threads * (2048 * 8 * 2) as f64 / fma?,
        divisions: threads * (256 * 8) as f64 / divide?,
        shared: threads * (256 * 8) as f64 / shared?,
        additions: (adding * ADDED) as f64 / add,
        launch,
    })
}

/// Allocates two arrays of `len` doubles, or smaller ones that fit.
fn two(device: &dyn Device, mut len: usize) -> Result<(Array, Array), DeviceError> {
    loop {
        let both = device
            .zeros(ElementKind::F64, len)
            .and_then(|a| Ok((a, device.zeros(ElementKind::F64, len)?)));
        if both.is_ok() || len <= COPIED >> 3 {
            return both;
        }
        len /= 2;
    }
}

//! What an OpenCL device does with sources, arrays, launches and clocks, and what it says when something is wrong.
#![cfg(feature = "opencl")]

#[path = "opencl/device.rs"]
mod device;

use device::opencl;
use kernels_gen::abi::{Argument, KernelAbi, Precision, Role};
use kernels_gen::dialect::{Language, SourceFile};
use runtime::device::cpu::LaunchError;
use runtime::device::opencl::{OpenCl, OpenClError};
use runtime::jit::{Environment, Jit};
use std::fs;
use std::path::Path;

/// Threads of a group.
const LANES: usize = 64;

/// y ← 2 x + y on batches of `LANES` elements.
const SOURCE: &str = "
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void axpy(
    const ulong first, const ulong end, __global const double* x, __global double* y)
{
    const ulong batch = first + get_group_id(0);
    if (batch >= end) return;
    const ulong at = batch * 64 + get_local_id(0);
    y[at] = 2.0 * x[at] + y[at];
}
";

fn axpy() -> KernelAbi {
    let argument =
        |name: &str, role, written| Argument { role, name: name.into(), extent: LANES, written };
    KernelAbi {
        name: "axpy".into(),
        lanes: LANES,
        threads: LANES,
        group: 1,
        residency: 1,
        precision: Precision::F64,
        arguments: vec![argument("x", Role::Diameter, false), argument("y", Role::Stored, true)],
        private_bytes: 0,
        shared_bytes: 0,
        hash: 0,
    }
}

fn source(text: &str) -> SourceFile {
    SourceFile { text: text.into(), language: Language::OpenCl, kernels: vec![axpy()] }
}

fn jit(folder: &Path) -> Jit {
    Jit::new(Environment { cache_dir: Some(folder.join("cache")), ..Environment::default() })
}

#[test]
fn a_range_of_batches_is_run() {
    let Some(device) = opencl() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let module = device.load_through(&jit(folder.path()), &source(SOURCE)).expect("a module");
    let kernel = module.kernel("axpy").expect("the kernel");
    let x: Vec<f64> = (0..5 * LANES).map(|i| i as f64).collect();
    let (there, y) =
        (device.upload(&x).expect("x"), device.zeros(x.len(), Precision::F64).expect("y"));
    device.launch(&kernel, 1..4, &[&there, &y]).expect("a launch");
    device.launch(&kernel, 3..4, &[&there, &y]).expect("a launch");
    device.launch(&kernel, 2..2, &[&there, &y]).expect("nothing to do");
    let times = |i: usize| [0.0, 1.0, 1.0, 2.0, 0.0][i / LANES];
    let want: Vec<f64> = (0..x.len()).map(|i| 2.0 * times(i) * x[i]).collect();
    assert_eq!(device.download(&y).expect("y"), want);
}

#[test]
fn arrays_keep_what_they_are_given() {
    let Some(device) = opencl() else { return };
    let mut singles = device.upload(&[1.5_f32, -2.0, 0.25]).expect("singles");
    assert_eq!(device.download(&singles).expect("singles"), [1.5, -2.0, 0.25]);
    device.overwrite(&mut singles, &[4.0_f32, 5.0, 6.0]).expect("others");
    assert_eq!(device.download(&singles).expect("singles"), [4.0, 5.0, 6.0]);
    device.clear(&mut singles).expect("zeros");
    assert_eq!(device.download(&singles).expect("zeros"), [0.0; 3]);
    let indices = device.upload(&[7_u32, u32::MAX]).expect("indices");
    assert_eq!(device.download(&indices).expect("indices"), [7.0, f64::from(u32::MAX)]);
    let none = device.upload::<f64>(&[]).expect("nothing");
    assert!(none.is_empty() && device.download(&none).expect("nothing").is_empty());
    assert_eq!(device.download(&device.zeros(3, Precision::F32).expect("0")).expect("0"), [0.0; 3]);
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let Some(device) = opencl() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let module = device.load_through(&jit(folder.path()), &source(SOURCE)).expect("a module");
    let kernel = module.kernel("axpy").expect("the kernel");
    assert!(module.kernel("other").is_none());
    let zeros = |len, precision| device.zeros(len, precision).expect("zeros");
    let doubles = zeros(2 * LANES, Precision::F64);
    let singles = zeros(2 * LANES, Precision::F32);
    let refused = |arguments: &[_]| match device.launch(&kernel, 0..2, arguments) {
        Err(OpenClError::Launch(error)) => error,
        other => panic!("{other:?}"),
    };
    let wrong = refused(&[&doubles]);
    assert!(matches!(wrong, LaunchError::WrongCount { expected: 2, found: 1, .. }), "{wrong}");
    let wrong = refused(&[&singles, &doubles]);
    let LaunchError::WrongType { argument, expected, found, .. } = &wrong else {
        panic!("{wrong}");
    };
    assert_eq!((argument.as_str(), *expected, *found), ("x", "f64", "f32"));
    let short = zeros(2 * LANES - 1, Precision::F64);
    let wrong = refused(&[&doubles, &short]);
    assert!(matches!(wrong, LaunchError::TooShort { expected: 128, found: 127, .. }), "{wrong}");
}

#[test]
fn a_rejected_source_is_kept_with_what_the_compiler_said() {
    let Some(device) = opencl() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let text = SOURCE.replace("2.0 * x[at]", "2.0 * missing_name[at]");
    let error = device.load_through(&jit(folder.path()), &source(&text)).expect_err("no module");
    let OpenClError::Rejected { dump, log, .. } = &error else { panic!("{error}") };
    assert!(log.contains("missing_name"), "{log}");
    assert_eq!(fs::read_to_string(dump).expect("the source"), text);
    assert!(error.to_string().contains(dump.as_str()), "{error}");
}

#[test]
fn what_was_compiled_is_found_again() {
    let Some(device) = opencl() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for round in 0..2 {
        let jit = jit(folder.path());
        let module = device.load_through(&jit, &source(SOURCE)).expect("a module");
        assert_eq!(jit.cache().expect("a cache").contents().modules, 1, "in round {round}");
        let (x, y) = (vec![1.0; LANES], device.zeros(LANES, Precision::F64).expect("y"));
        let x = device.upload(&x).expect("x");
        let kernel = module.kernel("axpy").expect("the kernel");
        device.launch(&kernel, 0..1, &[&x, &y]).expect("a launch");
        assert_eq!(device.download(&y).expect("y"), [2.0; LANES]);
    }
}

#[test]
fn devices_are_found_by_name() {
    let Some(device) = opencl() else { return };
    let name = device.facts().name.to_uppercase();
    let again = OpenCl::named(Some(&name[..name.len() / 2])).expect("the device");
    assert!(again.facts().doubles);
    let error = OpenCl::named(Some("no such device")).expect_err("none");
    assert!(matches!(&error, OpenClError::Unknown { found, .. } if found.contains(&device.name())));
}

#[test]
fn more_memory_than_there_is_is_refused() {
    let Some(device) = opencl() else { return };
    let error = device.zeros(1 << 50, Precision::F64).expect_err("no room");
    assert!(matches!(error, OpenClError::OutOfMemory { .. }), "{error}");
    assert!(error.to_string().contains("help: "), "{error}");
}

#[test]
fn too_many_threads_are_refused_before_the_compiler_is_asked() {
    let Some(device) = opencl() else { return };
    let mut source = source(SOURCE);
    source.kernels[0].threads = device.facts().threads + 1;
    let folder = tempfile::tempdir().expect("a folder");
    let error = device.load_through(&jit(folder.path()), &source).expect_err("no module");
    assert!(matches!(error, OpenClError::TooManyThreads { .. }), "{error}");
}

#[test]
fn work_takes_time() {
    let Some(device) = opencl() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let module = device.load_through(&jit(folder.path()), &source(SOURCE)).expect("a module");
    let kernel = module.kernel("axpy").expect("the kernel");
    let batches = 4000;
    let array = || device.zeros(batches * LANES, Precision::F64).expect("zeros");
    let (x, y) = (array(), array());
    device.launch(&kernel, 0..batches, &[&x, &y]).expect("a launch");
    device.synchronise().expect("the end");
    let before = device.mark().expect("a mark");
    for _ in 0..10 {
        device.launch(&kernel, 0..batches, &[&x, &y]).expect("a launch");
    }
    let after = device.mark().expect("a mark");
    let seconds = before.seconds_to(&after).expect("the time");
    assert!(seconds > 0.0 && seconds < 60.0, "{seconds}");
}

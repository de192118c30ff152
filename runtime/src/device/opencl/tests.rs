//! OpenCL devices: sources, arrays, launches, timers and errors.

#[path = "../../../tests/opencl/device.rs"]
mod device;

use super::{OpenCl, OpenClError};
use crate::device::acoo::{AcooAssembly, ElementPositions, StoredElements};
use crate::device::cpu::LaunchError;
use crate::device::jit::{Environment, Jit};
use crate::device::{Array, Device, DeviceError, ElementKind};
use device::opencl;
use kernels_gen::abi::{Argument, KernelAbi, Precision, Role};
use kernels_gen::dialect::{Language, SourceFile};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Threads per group.
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
    let arguments = vec![argument("x", Role::Diameter, false), argument("y", Role::Stored, true)];
    KernelAbi::by_hand("axpy", Precision::F64, LANES, arguments)
}

fn source(text: &str) -> SourceFile {
    SourceFile { text: text.into(), kernels: vec![axpy()], ..SourceFile::empty(Language::OpenCl) }
}

fn jit(folder: &Path) -> Jit {
    Jit::new(Environment { cache_dir: Some(folder.join("cache")), ..Environment::default() })
}

/// Returns the device with a cache in a folder.
fn keeping(folder: &Path) -> Option<OpenCl> {
    Some(opencl()?.with_jit(jit(folder)))
}

/// Zeros in double precision.
fn zeros(device: &dyn Device, len: usize) -> Array {
    device.zeros(ElementKind::F64, len).expect("zeros")
}

#[test]
fn a_range_of_batches_is_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(device) = keeping(folder.path()) else { return };
    let device: &dyn Device = &device;
    let module = device.load_written(&source(SOURCE)).expect("a module");
    let kernel = module.kernel("axpy").expect("the kernel");
    let x: Vec<f64> = (0..5 * LANES).map(|i| i as f64).collect();
    let (device_x, y) = (device.upload(&x).expect("x"), zeros(device, x.len()));
    device.launch(kernel, 1..4, &[&device_x, &y]).expect("a launch");
    device.launch(kernel, 3..4, &[&device_x, &y]).expect("a launch");
    device.launch(kernel, 2..2, &[&device_x, &y]).expect("nothing to do");
    let times = |i: usize| [0.0, 1.0, 1.0, 2.0, 0.0][i / LANES];
    let want: Vec<f64> = (0..x.len()).map(|i| 2.0 * times(i) * x[i]).collect();
    assert_eq!(device.download(&y).expect("y"), want);
}

#[test]
fn arrays_keep_what_they_are_given() {
    let Some(device) = opencl() else { return };
    let device: &dyn Device = &device;
    let mut singles = device.upload(&[1.5_f32, -2.0, 0.25]).expect("singles");
    assert_eq!(device.download(&singles).expect("singles"), [1.5, -2.0, 0.25]);
    device.write(&mut singles, 4, &5.0_f32.to_ne_bytes()).expect("another");
    assert_eq!(device.download(&singles).expect("singles"), [1.5, 5.0, 0.25]);
    let beyond = device.write(&mut singles, 12, &[0]);
    assert!(matches!(beyond, Err(DeviceError::Mismatch { .. })), "{beyond:?}");
    device.clear(&mut singles).expect("zeros");
    assert_eq!(device.download(&singles).expect("zeros"), [0.0; 3]);
    let indices = device.upload(&[7_u32, u32::MAX]).expect("indices");
    assert_eq!(device.download(&indices).expect("indices"), [7.0, f64::from(u32::MAX)]);
    let none = device.upload::<f64>(&[]).expect("nothing");
    assert!(none.is_empty() && device.download(&none).expect("nothing").is_empty());
    let zeros = device.zeros(ElementKind::F32, 3).expect("zeros");
    assert_eq!(device.download(&zeros).expect("zeros"), [0.0; 3]);
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(device) = keeping(folder.path()) else { return };
    let device: &dyn Device = &device;
    let module = device.load_written(&source(SOURCE)).expect("a module");
    let kernel = module.kernel("axpy").expect("the kernel");
    let missing = module.kernel("other");
    assert!(matches!(missing, Err(LaunchError::UnknownKernel(_))), "{missing:?}");
    let doubles = zeros(device, 2 * LANES);
    let singles = device.zeros(ElementKind::F32, 2 * LANES).expect("zeros");
    let refused = |arguments: &[_]| match device.launch(kernel, 0..2, arguments) {
        Err(DeviceError::Launch(error)) => error,
        other => panic!("{other:?}"),
    };
    let wrong = refused(&[&doubles]);
    assert!(matches!(wrong, LaunchError::WrongCount { expected: 2, found: 1, .. }), "{wrong}");
    let wrong = refused(&[&singles, &doubles]);
    let LaunchError::WrongType { argument, expected, found, .. } = &wrong else {
        panic!("{wrong}");
    };
    assert_eq!((argument.as_str(), *expected, *found), ("x", "f64", "f32"));
    let short = zeros(device, 2 * LANES - 1);
    let wrong = refused(&[&doubles, &short]);
    assert!(matches!(wrong, LaunchError::TooShort { expected: 128, found: 127, .. }), "{wrong}");
}

#[test]
fn a_rejected_source_is_kept_with_what_the_compiler_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(device) = keeping(folder.path()) else { return };
    let device: &dyn Device = &device;
    let text = SOURCE.replace("2.0 * x[at]", "2.0 * missing_name[at]");
    let error = device.load_written(&source(&text)).expect_err("no module");
    let DeviceError::OpenCl(OpenClError::Rejected { dump, log, .. }) = &error else {
        panic!("{error}");
    };
    assert!(log.contains("missing_name"), "{log}");
    assert_eq!(fs::read_to_string(dump).expect("the source"), text);
    assert!(error.to_string().contains(dump.as_str()), "{error}");
}

#[test]
fn what_was_compiled_is_found_again() {
    let folder = tempfile::tempdir().expect("a folder");
    for round in 0..2 {
        let Some(device) = keeping(folder.path()) else { return };
        // PoCL has its own cache.
        let ours = !device.facts().keeps_kernels();
        let device: &dyn Device = &device;
        let module = device.load_written(&source(SOURCE)).expect("a module");
        assert_eq!(module.cached, ours && round == 1, "in round {round}");
        let modules = jit(folder.path()).cache().expect("a cache").contents().modules;
        assert_eq!(modules, usize::from(ours), "in round {round}");
        let (x, y) = (device.upload(&[1.0; LANES]).expect("x"), zeros(device, LANES));
        let kernel = module.kernel("axpy").expect("the kernel");
        device.launch(kernel, 0..1, &[&x, &y]).expect("a launch");
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
    let error = device.zeros(ElementKind::F64, 1 << 50).expect_err("no room");
    assert!(matches!(error, DeviceError::OpenCl(OpenClError::OutOfMemory { .. })), "{error}");
    assert!(error.to_string().contains("help: "), "{error}");
}

#[test]
fn too_many_threads_are_refused_before_the_compiler_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(device) = keeping(folder.path()) else { return };
    let mut source = source(SOURCE);
    source.kernels[0].threads = device.facts().threads + 1;
    let device: &dyn Device = &device;
    let error = device.load_written(&source).expect_err("no module");
    assert!(matches!(error, DeviceError::OpenCl(OpenClError::TooManyThreads { .. })), "{error}");
}

#[test]
fn work_takes_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(device) = keeping(folder.path()) else { return };
    let device: &dyn Device = &device;
    let module = device.load_written(&source(SOURCE)).expect("a module");
    let kernel = module.kernel("axpy").expect("the kernel");
    let batches = 4000;
    let (x, y) = (zeros(device, batches * LANES), zeros(device, batches * LANES));
    device.launch(kernel, 0..batches, &[&x, &y]).expect("a launch");
    device.synchronise().expect("the end");
    let before = device.mark().expect("a mark");
    for _ in 0..10 {
        device.launch(kernel, 0..batches, &[&x, &y]).expect("a launch");
    }
    let after = device.mark().expect("a mark");
    let seconds = device.seconds(&before, &after).expect("the time");
    assert!(seconds > 0.0 && seconds < 60.0, "{seconds}");
}

/// One element per cell: its row and its column, of two degrees of freedom.
fn single_elements(pairs: &[(u32, u32)], of_row: usize, columns: usize) -> ElementPositions {
    let work = StoredElements { first: 0, entries: 1, lanes: 1, unknowns: 2, dofs: 0, table: 0 };
    ElementPositions {
        works: vec![work],
        tables: vec![0, 1, 1, 0, 1],
        dofs: pairs.iter().flat_map(|&(row, column)| [row, column]).collect(),
        count: pairs.len(),
        of_row,
        columns,
    }
}

#[test]
fn tables_of_columns_grow_to_the_longest_row() {
    let Some(device) = opencl() else { return };
    let device: Arc<dyn Device> = Arc::new(device);
    // Row 0 has the most elements, row 1 the most columns; the latter fit into shared memory or not.
    for columns in [150_u32, 1500] {
        let (repeated, rows) = (2 * columns, columns as usize);
        let pairs: Vec<(u32, u32)> = (0..repeated)
            .map(|element| (0, element % 10))
            .chain((0..columns).map(|column| (1, column)))
            .collect();
        let elements = single_elements(&pairs, repeated as usize, 10);
        let precision = Precision::F64;
        let acoo = AcooAssembly::new(&device, precision, &elements, (rows, rows)).expect("tables");
        let values: Vec<f64> = (0..pairs.len()).map(|element| element as f64).collect();
        let cells = device.upload(&values).expect("elements");
        let made = acoo.assemble(cells).expect("a matrix");
        let download = |array: &Array| device.download(array).expect("numbers");
        let mut wanted = vec![vec![0.0; rows]; 2];
        for (&(row, column), value) in pairs.iter().zip(&values) {
            wanted[row as usize][column as usize] += value;
        }
        let listed = |row: usize| wanted[row].iter().take(if row == 0 { 10 } else { rows });
        let starts = download(&made.starts);
        assert_eq!(starts[..3], [0.0, 10.0, f64::from(10 + columns)]);
        let in_order = (0..10).chain(0..columns).map(f64::from);
        assert_eq!(download(&made.columns), in_order.collect::<Vec<_>>());
        let entries: Vec<f64> = listed(0).chain(listed(1)).copied().collect();
        assert_eq!(download(&made.entries), entries);
    }
}
